"""Plans beside reality: what `numpy-dist plan` says of three examples on 1 and 2 ranks, and what runs of them do.

Memory (the pool's peak), messages, bytes and collectives must be the same, to the byte; the exit code says whether they
are. Times are predictions for this machine, which is measured first, and are only shown: they depend on what else runs.

    python benchmarks/plan.py [--machine machine.json] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RANKS = (1, 2)
COUNTS = ("peak", "messages", "bytes", "collectives")
sys.path.insert(0, str(EXAMPLES))


def stencil() -> Any:
    """The stencil on a plate of 1000 x 1000 cells, 20 steps."""
    from stencil_functions import relax

    import numpy_dist

    return relax(numpy_dist.zeros((1000, 1000)), 20)


def options() -> Any:
    """Prices of a million options."""
    from options_functions import prices

    import numpy_dist

    count = 1_000_000
    given = [numpy_dist.linspace(low, high, count) for low, high in ((5, 30), (1, 100), (0.25, 10))]
    return prices(*given)


def kmeans() -> Any:
    """Two steps of clustering 200,000 points around 4 centres."""
    import numpy as np
    from kmeans_functions import cluster

    import numpy_dist

    points = np.stack([numpy_dist.linspace(0.0, k + 1.0, 200_000) for k in range(4)], axis=1)
    return cluster(points, np.linspace(0.0, 3.0, 16).reshape(4, 4), 2)


PROGRAMS: dict[str, Callable[[], Any]] = {"stencil": stencil, "options": options, "kmeans": kmeans}


def really(name: str, rounds: int, path: str) -> None:
    """Run a program on this rank, once for the counts and then for the time; rank 0 writes what all ranks say."""
    import time

    from numpy_dist import engine

    rt = engine.runtime()
    engine.flush()
    rt.comm.counters.reset()
    result = PROGRAMS[name]()
    engine.flush()
    counters = rt.comm.counters
    counted = {"peak": rt.pool.peak, **{word: getattr(counters, word) for word in COUNTS[1:]}}
    del result
    seconds = []
    for _ in range(rounds):
        rt.comm.barrier()
        begin = time.perf_counter()
        result = PROGRAMS[name]()
        engine.flush()
        rt.comm.barrier()
        seconds.append(time.perf_counter() - begin)
        del result
    found = rt.comm.allgather((counted, min(seconds)))
    if rt.rank == 0:
        Path(path).write_text(json.dumps(found), encoding="utf-8")


def run_job(name: str, ranks: int, rounds: int) -> list[tuple[dict[str, int], float]]:
    """What the ranks of a real job say."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        arguments = [__file__, "--run", name, path, "--rounds", str(rounds)]
        command = [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks), *arguments]
        # As the plan has it: nothing small is done at once by NumPy, and loops have their kernels from the start.
        settings = {"NUMPY_DIST_AT_ONCE": "0", "NUMPY_DIST_COMPILE": "first"}
        subprocess.run(command, check=True, timeout=300, env=os.environ | settings)
        return json.loads(Path(path).read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="a machine file, made by numpy-dist plan --measure (default: measure)")
    parser.add_argument("--rounds", type=int, default=3, help="of the timed program (default %(default)s)")
    parser.add_argument("--run", nargs=2, metavar=("NAME", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        really(given.run[0], given.rounds, given.run[1])
        return 0

    from numpy_dist.cli.measuring import measure
    from numpy_dist.scaling.machine import load_speeds
    from numpy_dist.scaling.prediction import predict
    from numpy_dist.scaling.simulation import plan_job, small_run

    machine = load_speeds(given.machine) if given.machine else measure()
    machine = replace(machine, ranks_per_machine=max(RANKS))
    print(f"kernels {machine.kernel_bandwidth / 1e9:.1f} GB/s, latency {machine.latency * 1e6:.1f} us, messages "
          f"{machine.network_bandwidth / 1e9:.1f} GB/s, a statement {machine.statement_seconds * 1e6:.0f} us")
    form = "{:<8} {:>5}  {:>12} {:>12} {:>8} {:>10} {:>11}  {:>10} {:>10} {:>6}"
    print(form.format("program", "ranks", "peak, bytes", "really", "messages", "bytes", "collectives", "predicted",
                      "really", "ratio"))
    alike = True
    for name, program in PROGRAMS.items():
        values = small_run(program)
        for ranks in RANKS:
            memory = machine.rank_memory(ranks)
            job, found = plan_job(program, ranks, values=values, memory=memory), run_job(name, ranks, given.rounds)
            planned = [{word: getattr(rank, word) for word in COUNTS} for rank in job.ranks]
            same = [word for word in COUNTS if [p[word] for p in planned] == [f[word] for f, _ in found]]
            alike = alike and same == list(COUNTS)
            prediction, seconds = predict(job, machine).seconds, max(time for _, time in found)
            told = [f"{planned[0][word]:,}" + ("" if word in same else f" (really {found[0][0][word]:,})")
                    for word in COUNTS[1:]]
            print(form.format(name, ranks, f"{planned[0]['peak']:,}", f"{found[0][0]['peak']:,}", *told,
                              f"{prediction * 1e3:.2f} ms", f"{seconds * 1e3:.2f} ms", f"{seconds / prediction:.2f}"))
    print("Counts of rank 0; " + ("those of all ranks are as planned." if alike else "NOT all ranks do as planned."))
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
