"""Weak and strong scaling of six programs, in the job that starts this script, beside other libraries.

Each job adds its figures to a file; the report compares the numbers of ranks in it:

    numpy-dist run -n 1 benchmarks/scaling.py figures.jsonl      # and -n 2, -n 4, ...; srun, mpiexec: see docs/scale.md
    python benchmarks/scaling.py figures.jsonl --report [--plot figures.png]
    python benchmarks/scaling.py --predict 64,1024 [--machine machine.json]

Weak: as much for each rank at any number of ranks. Strong: what one rank has of the weak case, divided by all. A figure
is the fastest of some rounds, in which the candidates take turns; a round takes as long as its slowest rank. Rates are
those of one rank; efficiency is its rate relative to that at the fewest ranks in the file: ranks must have as many
threads at any number of them (NUMPY_DIST_NUM_THREADS and OMP_NUM_THREADS). The programs are those of examples/, in
plain NumPy; what is written by hand uses NumPy and mpi4py. On one rank Dask is beside the stencil, the product and the
regression, on as many threads, and cuPyNumeric beside all; each where it is installed. SCALING_SIZE=0.1 makes all of
them smaller.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

Work = Callable[[], Any]


class ScalingCase(NamedTuple):
    """A program of which a rank has so much, prepared for a number of ranks' worth of it.

    Parameters
    ----------
    prepare : callable
        ``prepare(amount, library)`` makes the data of so many ranks' work with `numpy_dist`, or another library that
        has NumPy's functions, and returns the work and how many units it has.
    unit : str
        What is counted, of which a rate is so many in a second.
    by_hand : callable or None
        ``by_hand(amount)`` the same with mpi4py.
    with_dask : callable or None
        ``with_dask(amount)`` the same with Dask's arrays, on the threads of one process.
    """

    prepare: Callable[[float, Any], tuple[Work, float]]
    unit: str
    by_hand: Callable[[float], Work] | None = None
    with_dask: Callable[[float], Work] | None = None


@dataclass
class Figure:
    """One measurement: `rate` units a second and rank; `crowded`: more ranks on a machine than it has cores."""

    program: str
    library: str
    scaling: str
    ranks: int
    seconds: float
    rate: float
    unit: str
    crowded: bool
    machine: str


SCALE = float(os.environ.get("SCALING_SIZE", "1"))  # of what a rank has
CELLS, STEPS = 1_000_000, 10


def _side(amount: float, cells: float = CELLS) -> int:
    return max(8, round(math.sqrt(cells * SCALE * amount)))


# -- in NumPy's functions ---------------------------------------------------------------------------------------------


def stencil(amount: float, nd: Any) -> tuple[Work, float]:
    """A plate of a million cells on each rank, ten steps."""
    from stencil_functions import relax

    side = _side(amount)
    def work() -> Any:
        grid = nd.zeros((side, side))
        grid[0] = 100.0
        return relax(grid, STEPS)

    return work, side * side * STEPS


def shallow(amount: float, nd: Any) -> tuple[Work, float]:
    """Waves on a quarter of a million cells, ten steps."""
    from shallow_functions import waves

    side = _side(amount, CELLS / 4)

    def work() -> Any:
        h = nd.ones((side, side))
        h[: side // 2, : side // 2] = 1.5
        return waves(h, nd.zeros((side, side)), nd.zeros((side, side)), STEPS)["volume"]

    return work, side * side * STEPS


def gradients(amount: float, nd: Any) -> tuple[Work, float]:
    """Conjugate gradients on half a million unknowns, ten steps."""
    from gradients_functions import solve

    side = _side(amount, CELLS / 2)
    return lambda: solve(nd.ones((side, side)), STEPS), side * side * STEPS


def sort(amount: float, nd: Any) -> tuple[Work, float]:
    """Two million random numbers."""
    count = round(2 * CELLS * SCALE * amount)
    given = nd.random.default_rng(1).random(count)
    return lambda: nd.sort(given), count


def product(amount: float, nd: Any) -> tuple[Work, float]:
    """Square matrices of a quarter of a million elements on each rank: work grows faster than the ranks."""
    side = _side(amount, CELLS / 4)
    a, b = (nd.random.default_rng(seed).random((side, side)) for seed in (1, 2))
    return lambda: a @ b, 2.0 * side**3


def regression(amount: float, nd: Any) -> tuple[Work, float]:
    """Logistic regression on a hundred thousand samples of 20 features, ten steps."""
    from regression_functions import fit

    count = round(CELLS / 10 * SCALE * amount)
    features = nd.random.default_rng(1).standard_normal((count, 20))
    answers = (features[:, 0] > 0) * 1.0
    return lambda: fit(features, answers, STEPS)["loss"], count * STEPS


# -- by hand ---------------------------------------------------------------------------------------------------------


def _world() -> Any:
    from mpi4py import MPI

    return MPI.COMM_WORLD


def _rows(count: int, comm: Any) -> tuple[int, int]:
    return count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size


def stencil_by_hand(amount: float) -> Work:
    """Rows on each rank and one of each neighbour, in two arrays that take turns."""
    from mpi4py import MPI

    comm, side = _world(), _side(amount)
    low, high = _rows(side, comm)
    up, down = (rank if 0 <= rank < comm.size else MPI.PROC_NULL for rank in (comm.rank - 1, comm.rank + 1))

    def work() -> np.ndarray:
        here = np.zeros((high - low + 2, side))
        if not comm.rank:
            here[1] = 100.0
        there, part = here.copy(), np.empty((high - low, side - 2))
        first, last = (1 if not comm.rank else 0), (high - low - 1 if comm.rank + 1 == comm.size else high - low)
        for _ in range(STEPS):
            comm.Sendrecv(here[1], up, recvbuf=here[-1], source=down)
            comm.Sendrecv(here[-2], down, recvbuf=here[0], source=up)
            np.add(here[:-2, 1:-1], here[2:, 1:-1], out=part)
            part += here[1:-1, :-2]
            part += here[1:-1, 2:]
            part += here[1:-1, 1:-1]
            part *= 0.2
            there[1 + first : 1 + last, 1:-1] = part[first:last]
            here, there = there, here
        return here[1:-1]

    return work


def sort_by_hand(amount: float) -> Work:
    """Sample sort: splitters of regular samples, one exchange, and NumPy's sort."""
    from mpi4py import MPI

    comm, count = _world(), round(2 * CELLS * SCALE * amount)
    low, high = _rows(count, comm)
    given = np.random.default_rng((1, comm.rank)).random(high - low)

    def work() -> np.ndarray:
        mine = np.sort(given)
        samples = np.sort(np.concatenate(comm.allgather(mine[:: max(1, len(mine) // 1000)])))
        splitters = samples[np.arange(1, comm.size) * len(samples) // comm.size]
        ends = [0, *np.searchsorted(mine, splitters).tolist(), len(mine)]
        counts = np.diff(ends)
        arriving = np.empty_like(counts)
        comm.Alltoall(counts, arriving)
        made = np.empty(int(arriving.sum()))
        into = np.concatenate([[0], np.cumsum(arriving)[:-1]])
        comm.Alltoallv([mine, counts, ends[:-1], MPI.DOUBLE], [made, arriving, into, MPI.DOUBLE])
        made.sort()
        return made

    return work


def product_by_hand(amount: float) -> Work:
    """Rows of the left operand stay, rows of the right one go around."""
    comm, side = _world(), _side(amount, CELLS / 4)
    low, high = _rows(side, comm)
    rng = np.random.default_rng((2, comm.rank))
    a, b = rng.random((high - low, side)), rng.random((high - low, side))
    bounds = [(side * r // comm.size, side * (r + 1) // comm.size) for r in range(comm.size)]

    def work() -> np.ndarray:
        made, panel = np.zeros((high - low, side)), b
        for turn in range(comm.size):
            first, last = bounds[(comm.rank + turn) % comm.size]
            made += a[:, first:last] @ panel
            if turn + 1 < comm.size:
                start, stop = bounds[(comm.rank + turn + 1) % comm.size]
                following = np.empty((stop - start, side))
                before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
                comm.Sendrecv(panel, before, recvbuf=following, source=after)
                panel = following
        return made

    return work


# -- with Dask -------------------------------------------------------------------------------------------------------


def _chunks(side: int) -> tuple[int, int]:
    """Rows for each thread."""
    return max(1, -(-side // _threads())), side


def _threads() -> int:
    return int(os.environ.get("NUMPY_DIST_NUM_THREADS", "0")) or len(os.sched_getaffinity(0))


def stencil_with_dask(amount: float) -> Work:
    """Overlapping blocks of rows, one step after the other."""
    import dask.array as da

    side = _side(amount)

    def step(x: np.ndarray) -> np.ndarray:
        made = x.copy()
        made[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        return made

    def fixed(x: np.ndarray) -> np.ndarray:
        x[0] = 100.0
        return x

    def work() -> np.ndarray:
        plate = np.zeros((side, side))
        grid = da.from_array(fixed(plate), chunks=_chunks(side))
        for _ in range(STEPS):
            inner = grid.map_overlap(step, depth=(1, 0), boundary="none")
            grid = da.concatenate([grid[:1], inner[1:-1], grid[-1:]]).rechunk(_chunks(side))
        return grid.compute(scheduler="threads", num_workers=_threads())

    return work


def product_with_dask(amount: float) -> Work:
    """Blocks of rows of the left operand, the right one in one piece."""
    import dask.array as da

    side = _side(amount, CELLS / 4)
    a, b = (np.random.default_rng(seed).random((side, side)) for seed in (1, 2))
    left, right = da.from_array(a, chunks=_chunks(side)), da.from_array(b, chunks=(side, side))
    return lambda: (left @ right).compute(scheduler="threads", num_workers=_threads())


def regression_with_dask(amount: float) -> Work:
    """Blocks of samples; each step is computed before the next one."""
    import dask.array as da

    count = round(CELLS / 10 * SCALE * amount)
    given = np.random.default_rng(1).standard_normal((count, 20))
    features = da.from_array(given, chunks=(_chunks(count)[0], 20))
    answers = da.from_array((given[:, 0] > 0) * 1.0, chunks=_chunks(count)[0])

    def work() -> Any:
        weights = np.zeros(20)
        for _ in range(STEPS):
            error = 1 / (1 + da.exp(-(features @ weights))) - answers
            slope = (features.T @ error).compute(scheduler="threads", num_workers=_threads())
            weights = weights - 0.5 / count * slope
        return weights

    return work


CASES = {
    "stencil": ScalingCase(stencil, "cells", stencil_by_hand, stencil_with_dask),
    "shallow": ScalingCase(shallow, "cells"),
    "gradients": ScalingCase(gradients, "unknowns"),
    "sort": ScalingCase(sort, "elements", sort_by_hand),
    "product": ScalingCase(product, "flops", product_by_hand, product_with_dask),
    "regression": ScalingCase(regression, "samples", None, regression_with_dask),
}


# -- in a job --------------------------------------------------------------------------------------------------------


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _usable(name: str) -> Any:
    """A module; None where it is not installed, or cannot be used here, which is told."""
    if not _installed(name):
        return None
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as problem:  # cuPyNumeric's wheels want NVIDIA's driver, for processors alone as well
        print(f"not measured: {name} is installed, but {problem}", file=sys.stderr)
        return None


def measure(only: list[str], scalings: list[str], rounds: int) -> list[Figure]:
    """The figures of this job; the same on every rank. Collective."""
    import numpy_dist
    from numpy_dist import engine

    comm = engine.runtime().comm
    cupynumeric = _usable("cupynumeric") if comm.size == 1 else None  # it starts processes of its own
    found = []
    for scaling in scalings:
        for name in only:
            case, amount = CASES[name], comm.size if scaling == "weak" else 1.0
            work, units = case.prepare(amount, numpy_dist)
            candidates = {"numpy_dist": work}
            if case.by_hand is not None and _installed("mpi4py"):
                candidates["mpi4py"] = case.by_hand(amount)
            if case.with_dask is not None and comm.size == 1 and _installed("dask"):
                candidates["Dask"] = case.with_dask(amount)
            if cupynumeric is not None:
                candidates["cuPyNumeric"] = case.prepare(amount, cupynumeric)[0]
            taken: dict[str, list[float]] = {library: [] for library in candidates}
            for turn in range(-2, rounds):  # the first two make kernels, and are not counted
                for library, act in candidates.items():
                    comm.barrier()
                    begin = time.perf_counter()
                    result = act()
                    engine.flush()
                    seconds = max(comm.allgather(time.perf_counter() - begin))
                    del result
                    if turn >= 0:
                        taken[library].append(seconds)
            del work, candidates
            for library, seconds in taken.items():
                rate = units / min(seconds) / comm.size
                where = comm.node_size > (os.cpu_count() or 1), platform.machine()
                found.append(Figure(name, library, scaling, comm.size, min(seconds), rate, case.unit, *where))
    return found


# -- after jobs ------------------------------------------------------------------------------------------------------


def report(figures: list[Figure]) -> list[str]:
    """A table of rates and efficiencies; the last figure of each kind counts."""
    last = {(f.scaling, f.program, f.library, f.ranks): f for f in figures}
    head = f"{'':7} {'program':10} {'library':10} {'ranks':>6} {'seconds':>10} {'a rank and second':>27}"
    lines = [f"{head} {'efficiency':>11}"]
    fewest: dict[tuple[str, str, str], Figure] = {}
    for (scaling, program, library, ranks), figure in sorted(last.items()):
        base = fewest.setdefault((scaling, program, library), figure)
        crowded = "  more ranks than cores" if figure.crowded else ""
        rate, share = f"{figure.rate:,.3g} {figure.unit}", f"{figure.rate / base.rate:.2f}"
        row = f"{scaling:7} {program:10} {library:10} {ranks:6} {figure.seconds:10.4f} {rate:>27} {share:>11}{crowded}"
        lines.append(row)
    return lines


_STYLES = {"numpy_dist": "-o", "mpi4py": "--x", "Dask": ":s", "cuPyNumeric": "-.^"}


def plot(figures: list[Figure], path: str) -> None:
    """A picture of rates and efficiencies, where matplotlib is installed: a colour is a program, a style a library."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = sorted({figure.scaling for figure in figures})
    programs = list(dict.fromkeys(figure.program for figure in figures))
    every = sorted({figure.ranks for figure in figures})
    picture, axes = pyplot.subplots(2, len(panels), figsize=(6 * len(panels), 8), squeeze=False, sharex=True)
    for column, scaling in enumerate(panels):
        above, below = axes[:, column]
        for program, library in sorted({(f.program, f.library) for f in figures if f.scaling == scaling}):
            of = {f.ranks: f for f in figures if (f.scaling, f.program, f.library) == (scaling, program, library)}
            ranks, color = sorted(of), f"C{programs.index(program)}"
            rates, style = [of[n].rate for n in ranks], _STYLES.get(library, "-.d")
            label = f"{program} ({of[ranks[0]].unit}), {library}"
            above.plot(ranks, rates, style, color=color, label=label)
            if len(ranks) > 1:
                below.plot(ranks, [rate / rates[0] for rate in rates], style, color=color)
        above.set(title=f"{scaling} scaling", ylabel="a second and rank", yscale="log")
        below.set(xlabel="ranks", ylabel="efficiency", xscale="log", ylim=(0, None))
        below.set_xticks(every, [str(n) for n in every])
        below.minorticks_off()
    axes[0, -1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    picture.savefig(path, bbox_inches="tight")


def predict(only: list[str], scalings: list[str], sizes: list[int], machine: str | None) -> list[Figure]:
    """What the formulas of `numpy-dist plan` say of jobs that nobody has run."""
    import numpy_dist
    from numpy_dist.scaling import prediction
    from numpy_dist.scaling.machine import MachineSpeeds, load_speeds
    from numpy_dist.scaling.simulation import plan_job

    speeds = load_speeds(machine) if machine else MachineSpeeds()
    found = []
    for scaling in scalings:
        for name in only:
            for size in sizes:
                amount = size if scaling == "weak" else 1.0

                def program(name: str = name, amount: float = amount) -> Any:
                    return CASES[name].prepare(amount, numpy_dist)[0]()

                side = _side(amount, CELLS if name == "stencil" else CELLS / 2 if name == "gradients" else CELLS / 4)
                units = side * side * STEPS
                place = {"memory": speeds.rank_memory(size), "nodes": speeds.nodes(size)}
                job = plan_job(program, size, value=1.0, **place)
                if any(rank.ending for rank in job.ranks):
                    print(f"{name} on {size} ranks: {next(r.ending for r in job.ranks if r.ending)}", file=sys.stderr)
                    continue
                seconds = prediction.predict(job, speeds).seconds
                rate = units / seconds / size
                figure = Figure(name, "predicted", scaling, size, seconds, rate, CASES[name].unit, False, speeds.name)
                found.append(figure)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", help="where figures are kept, a line of JSON each")
    parser.add_argument("--only", default=",".join(CASES), help="some of %(default)s")
    parser.add_argument("--scaling", default="weak,strong", help="default %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="default %(default)s")
    parser.add_argument("--report", action="store_true", help="a table of what is in the file")
    parser.add_argument("--plot", metavar="PNG", help="with --report: a picture, too")
    parser.add_argument("--predict", metavar="RANKS", help="predictions of the stencils and gradients; nothing is run")
    parser.add_argument("--machine", help="a machine file for them (numpy-dist plan --measure)")
    given = parser.parse_args()
    only, scalings = given.only.split(","), given.scaling.split(",")
    if given.predict:
        loops = [name for name in only if name in ("stencil", "shallow", "gradients")]
        sizes = [int(size) for size in given.predict.split(",")]
        print("\n".join(report(predict(loops, scalings, sizes, given.machine))))
        return
    if given.file is None:
        parser.error("a file for the figures is needed")
    if given.report:
        figures = [Figure(**json.loads(line)) for line in Path(given.file).read_text(encoding="utf-8").splitlines()]
        print("\n".join(report(figures)))
        if given.plot:
            plot(figures, given.plot)
        return
    figures = measure(only, scalings, given.rounds)
    from numpy_dist import engine

    if engine.runtime().rank == 0:
        with open(given.file, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(figure)) + "\n" for figure in figures)
        print("\n".join(report(figures)), flush=True)


if __name__ == "__main__":
    main()
