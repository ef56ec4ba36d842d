"""Weak scaling of the 5-point stencil by counted plans, without MPI: messages and bytes a rank and step, at a fixed
number of cells for each rank.

The pure planners say what each rank would send. The engine itself, with the backend that computes nothing, then runs
the stencil on simulated ranks with fewer cells and must send what was planned.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from harness import Comparison, add_options, show

RANKS = (4, 64, 1024)
LOCAL, SIMULATED_LOCAL = 1000, 20
"""Cells of a rank along each side, in plans and on simulated ranks."""

ITEM = 8
MEANING = "a rank and step, most"


class Halo:
    """The ghost cells that a step of the stencil needs of a grid over so many ranks.

    Parameters
    ----------
    ranks, local : int
        A rank holds ``local`` x ``local`` cells.
    """

    def __init__(self, ranks: int, local: int) -> None:
        from numpy_dist.ir.meta_arrays import meta_array
        from numpy_dist.ir.views import view_of
        from numpy_dist.layout import default_layout

        rows, columns = default_layout((10**6, 10**6), ranks).mesh.shape
        self.ranks = ranks
        self.shape = rows * local, columns * local
        self.layout = default_layout(self.shape, ranks)
        grid = meta_array(self.shape, _float())
        center = grid[1:-1, 1:-1]
        reads = [center, grid[:-2, 1:-1], grid[1:-1, 2:], grid[1:-1, :-2], grid[2:, 1:-1]]
        self.space = view_of(self.layout, ITEM, center).write_space
        self.reads = [view_of(self.layout, ITEM, view).vmap for view in reads]

    def blocks(self, rank: int) -> tuple[Sequence[range], ...]:
        """What a rank wants."""
        from numpy_dist.layout import ghost_blocks, storage_region
        from numpy_dist.layout.regions import region_hull, region_of

        own, box = self.layout.box(rank), self.space.box(rank)
        hulls = [region_hull(storage_region(vmap, box)) for vmap in self.reads]
        return tuple(region_of(block) for block in ghost_blocks(own, hulls).values())

    @cached_property
    def wanted(self) -> tuple:
        """What every rank wants."""
        return tuple(self.blocks(rank) for rank in range(self.ranks))

    def sent(self) -> list[tuple[int, int]]:
        """Messages and bytes that each rank sends in a step."""
        from numpy_dist.layout import plan_fetch
        from numpy_dist.layout.regions import region_size

        sent = []
        for rank in range(self.ranks):
            sends = plan_fetch(self.layout, self.wanted, rank, ((1, 1), (1, 1))).sends
            sent.append((len(sends), ITEM * sum(region_size(region) for _, regions in sends for region in regions)))
        return sent

    def planning_time(self, near: bool) -> float:
        """Seconds in which an inner rank plans its messages: by its neighbours' needs, or by those of all ranks."""
        from numpy_dist.layout import plan_fetch

        rows, columns = self.layout.mesh.shape
        rank = self.layout.mesh.rank((rows // 2, columns // 2))
        seconds = []
        for _ in range(15):
            begin = time.perf_counter()
            plan_fetch(self.layout, self.wanted, rank, ((1, 1), (1, 1)) if near else None)
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)


def _float() -> Any:
    import numpy as np

    return np.dtype(float)


def simulated(halo: Halo, steps: int) -> list[tuple[float, float]]:
    """Messages and bytes that each simulated rank has sent for each step after the first."""
    from stencil_functions import relax

    from numpy_dist import config, creation, engine
    from numpy_dist.comm.simulated import run_simulated

    def on_a_rank() -> tuple[float, float]:
        grid = creation.zeros(halo.shape)
        relax(grid, 1)
        engine.force(grid)
        counters = engine.runtime().comm.counters
        before = counters.messages, counters.bytes
        relax(grid, steps)
        engine.force(grid)
        return (counters.messages - before[0]) / steps, (counters.bytes - before[1]) / steps

    with config(BACKEND="null", MIN_SHARD_BYTES=1):
        return run_simulated(halo.ranks, on_a_rank)


def counted() -> tuple[list[Comparison], str]:
    """What the busiest rank sends at each number of ranks, and whether that is constant, in words."""
    most = {ranks: [max(values) for values in zip(*Halo(ranks, LOCAL).sent(), strict=True)] for ranks in RANKS}
    bounds = 4, 4 * LOCAL * ITEM  # four neighbours
    rows = [
        Comparison(
            f"stencil, {ranks} ranks of {LOCAL} x {LOCAL}: {what}", None, None, "s", figure, MEANING, f"<= {bound}"
        )
        for ranks, figures in most.items()
        for what, figure, bound in zip(("messages", "bytes"), figures, bounds, strict=True)
    ]
    few, some, many = RANKS
    (messages, nbytes), last = most[some], most[many]
    said = [f"A rank sends at most {messages} messages and {nbytes} bytes a step at {some} ranks"]
    said.append("and the same at" if most[some] == last else f"BUT {last[0]} messages and {last[1]} bytes at")
    said.append(f"{many} ranks: {'constant' if most[some] == last else 'NOT constant'}.")
    if most[few] != most[some]:
        said.append(f"At {few} ranks it is {most[few][0]} and {most[few][1]}: a rank has fewer neighbours there.")
    return rows, " ".join(said)


def check(ranks: int, steps: int) -> Comparison:
    """Compare the engine with the plan, rank by rank."""
    halo = Halo(ranks, SIMULATED_LOCAL)
    begin = time.perf_counter()
    found = simulated(halo, steps)
    seconds = time.perf_counter() - begin
    differ = sum(a != b for a, b in zip(found, halo.sent(), strict=True))
    case = f"engine on {ranks} simulated ranks of {SIMULATED_LOCAL} x {SIMULATED_LOCAL}, {steps} steps"
    return Comparison(case, None, seconds, "s", differ, "ranks that sent otherwise than planned", "<= 0")


def planning() -> list[Comparison]:
    """What a plan costs an inner rank; at more ranks it should not grow."""
    _, few, many = RANKS
    halos = Halo(few, LOCAL), Halo(many, LOCAL)
    rows = []
    for near, how in ((True, "by its neighbours"), (False, "by all ranks")):
        before, taken = (halo.planning_time(near) for halo in halos)
        case = f"planning a halo {how}, {many} ranks"
        rows.append(Comparison(case, None, taken, "us", taken / before, f"x the time at {few}", "<= 2" if near else ""))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, "weak_scaling")
    options = parser.parse_args()
    rows, verdict = counted()
    rows += [check(ranks, 3) for ranks in (RANKS[:2] if options.quick else RANKS)]
    show("weak_scaling", rows + planning(), options)
    if not options.json:
        print(verdict)


if __name__ == "__main__":
    main()
