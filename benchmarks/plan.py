"""Plans beside reality: what `numpy-dist plan` says of the examples on 1, 2 and 4 ranks, and what runs of them do.

Memory (the pool's peak), messages, bytes and collectives must be the same, to the byte; the exit code says whether they
are. Times are predictions for this machine, which is measured first, and are only shown: they depend on what else runs.
On a machine that does nothing else, with one thread a rank:

    export NUMPY_DIST_NUM_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/plan.py --wall --parts --rounds 7          # five minutes
    python benchmarks/plan_hosts.py --wall --parts --rounds 7    # on two emulated hosts; as root
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.scaling.counted import JobPlan
    from numpy_dist.scaling.prediction import Prediction

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RANKS = (1, 2, 4)
FACTOR = 1.5  # within which a predicted time is a good one
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
    from kmeans_functions import cluster

    import numpy_dist

    # In no order: a processor would foresee where the least of ordered ones is, which no user's points let it.
    points = 3.0 * numpy_dist.random.default_rng(1).random((200_000, 4))
    return cluster(points, np.linspace(0.0, 3.0, 16).reshape(4, 4), 2)


def shallow() -> Any:
    """Waves on 500 x 500 cells, 10 steps."""
    from shallow_functions import waves

    import numpy_dist as nd

    h = nd.ones((500, 500))
    h[:250, :250] = 1.5
    return waves(h, nd.zeros((500, 500)), nd.zeros((500, 500)), 10)


def gradients() -> Any:
    """Conjugate gradients on 700 x 700 unknowns, 10 steps."""
    from gradients_functions import solve

    import numpy_dist

    return solve(numpy_dist.linspace(0.0, 1.0, 490_000).reshape(700, 700), 10, 0.0)


def life() -> Any:
    """The game of life on 1500 x 1500 cells, 10 steps."""
    from life_functions import play

    import numpy_dist

    return play(numpy_dist.ones((1500, 1500), np.uint8), 10)


def cavity() -> Any:
    """Flow in a cavity of 400 x 400 cells, 2 steps."""
    from cavity_functions import flow

    import numpy_dist

    return flow(*(numpy_dist.zeros((400, 400)) for _ in range(3)), 2)


def poisson() -> Any:
    """Poisson's equation in a box of 96 cells along each side."""
    from poisson_functions import potential

    import numpy_dist

    return potential(numpy_dist.ones((96, 96, 96), split=0))


def regression() -> Any:
    """Logistic regression on 300,000 samples of 10 features, 5 steps."""
    from regression_functions import fit

    import numpy_dist

    features = numpy_dist.linspace(-1.0, 1.0, 3_000_000).reshape(300_000, 10)
    return fit(features, (features[:, 0] > 0) * 1.0, 5)


def bodies() -> Any:
    """1,500 bodies, 2 steps."""
    from bodies_functions import move

    import numpy_dist

    place, speed = ([numpy_dist.zeros(1500, split=0) + low for low in (-1.0, -0.5, 0.1)] for _ in range(2))
    return move(place, speed, numpy_dist.ones(1500, split=0), 2)


def pi() -> Any:
    """Pi from 5 million points."""
    from pi_functions import estimate, throw

    import numpy_dist

    return estimate(*throw(numpy_dist.random.default_rng(1), 5_000_000))


def fit() -> Any:
    """A polynomial of degree 13 through 200,000 values."""
    from fit_functions import fitted

    import numpy_dist

    times = numpy_dist.linspace(0.0, 1.0, 200_000)
    return fitted(times, np.sin(9 * times), 13)


def layers() -> Any:
    """Three layers of width 128, a batch of 20,000 rows."""
    from layers_functions import forward

    import numpy_dist

    batch = numpy_dist.linspace(-1.0, 1.0, 20_000 * 128).reshape(20_000, 128)
    return forward(batch, [np.linspace(-0.1, 0.1 * k, 128 * 128).reshape(128, 128) for k in (1, 2, 3)])


def batches() -> Any:
    """Row sums of three batches of 200 columns."""
    from batches_functions import summed

    import numpy_dist

    return summed([numpy_dist.ones((20_000 // k, 200), split=0) for k in (1, 2, 3)])


def images() -> Any:
    """500 images of 96 x 96 pixels, half of them mirrored."""
    from images_functions import prepare

    import numpy_dist

    batch = numpy_dist.ones((500, 96, 96, 3), np.uint8)
    batch[:, ::2] = 9  # pixels that were all alike would be divided by a deviation of 0
    return prepare(batch, numpy_dist.random.default_rng(7))


def terrain() -> Any:
    """A terrain of 800 x 1000 cells, 20 steps of smoothing."""
    from terrain_functions import analyse

    import numpy_dist

    return analyse(numpy_dist.linspace(0.0, 500.0, 800_000).reshape(800, 1000), 90.0, 90.0, 20)


def ordered() -> Any:
    """A sort of a million random numbers."""
    import numpy_dist

    return np.sort(numpy_dist.random.default_rng(1).random(1_000_000))


def products() -> Any:
    """The product of two matrices of 1000 x 1000."""
    import numpy_dist

    a = numpy_dist.ones((1000, 1000))
    return a @ a


PROGRAMS: dict[str, Callable[[], Any]] = {
    program.__name__: program
    for program in (
        *(stencil, options, kmeans, shallow, gradients, life, cavity, poisson, regression, bodies, pi, fit),
        *(layers, batches, images, terrain),
        *(ordered, products),
    )
}


def really(name: str, rounds: int, path: str, wall_clock: bool) -> None:
    """Run a program on this rank, once for the counts and then for the time; rank 0 writes what all ranks say."""
    import time

    from numpy_dist import engine
    from numpy_dist.settings import config

    rt = engine.runtime()
    alone = config.NUM_THREADS == 1 and not wall_clock
    clock = time.process_time if alone else time.perf_counter
    waited = _waiting(clock)
    engine.flush()
    rt.comm.counters.reset()
    result = PROGRAMS[name]()
    engine.flush()
    counters = rt.comm.counters
    counted = {"peak": rt.pool.peak, **{word: getattr(counters, word) for word in COUNTS[1:]}}
    del result
    seconds = []
    for _ in range(1 + rounds):
        rt.comm.barrier()
        waited[0], begin = 0.0, clock()
        result = PROGRAMS[name]()
        engine.flush()
        # One thread: what it takes of its core, and neither what other programs do there nor what it does as it waits.
        taken = clock() - begin
        seconds.append((taken - waited[0] if alone else taken, waited[0]))
        del result
    found = rt.comm.allgather((counted, *min(seconds[1:])))
    if rt.rank == 0:
        Path(path).write_text(json.dumps(found), encoding="utf-8")


def _waiting(clock: Callable[[], float]) -> list[float]:
    """Seconds that this rank has waited for others since they were set to 0."""
    waited = [0.0]
    if "numpy_dist.comm.mpi" in sys.modules:
        wait = sys.modules["numpy_dist.comm.mpi"]._Wait
        until = wait.until

        def timed(self: Any, done: Callable[[], bool]) -> None:
            begin = clock()
            until(self, done)
            waited[0] += clock() - begin

        wait.until = timed
    return waited


def run_job(name: str, ranks: int, given: argparse.Namespace) -> list[tuple[dict[str, int], float, float]]:
    """What the ranks of a real job say."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        arguments = [sys.argv[0], "--run", name, path, "--rounds", str(given.rounds), *["--wall"] * given.wall]
        where = ["--hosts", given.hosts] if given.hosts and ranks > 1 else []
        command = [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks), *where, *arguments]
        # As the plan has it: nothing small is done at once by NumPy, and loops have their kernels from the start.
        settings = {"NUMPY_DIST_AT_ONCE": "0", "NUMPY_DIST_COMPILE": "first", "NUMPY_DIST_ADVICE": "off"}
        subprocess.run(command, check=True, timeout=300, env=os.environ | settings)
        return json.loads(Path(path).read_text(encoding="utf-8"))


def _notes(job: JobPlan, predicted: Prediction, parts: bool, waited: float) -> list[str]:
    """What else is to be said of a plan: its parts, what is in no prediction, and how it has ended."""
    shown = [f"{part} {each * 1e3:.2f}" for part, each in predicted.parts.parts() if each]
    shown += [f"(really waited {waited * 1e3:.2f})"] if waited else []
    notes = [", ".join(shown)] if parts and shown else []
    missing = dict.fromkeys(name for rank in job.ranks for name in rank.not_modelled)
    notes += [f"not modelled: {', '.join(missing)}"] if missing else []
    return notes + [f"ended: {ending}" for ending in dict.fromkeys(rank.ending for rank in job.ranks if rank.ending)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="a machine file, made by numpy-dist plan --measure (default: measure)")
    parser.add_argument("--rounds", type=int, default=3, help="of the timed program (default %(default)s)")
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=RANKS)
    wall = "time by the clock, where nothing else runs: else processor time of one thread, without waiting for ranks"
    parser.add_argument("--wall", action="store_true", help=wall)
    parser.add_argument("--hosts", default="", help="two, as of numpy-dist run: ranks are divided among them")
    parser.add_argument("--only", help="some of the programs (default: all)")
    parser.add_argument("--parts", action="store_true", help="show of what each prediction is the sum")
    parser.add_argument("--run", nargs=2, metavar=("NAME", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        really(given.run[0], given.rounds, given.run[1], given.wall)
        return 0

    from numpy_dist.cli.measuring import measure
    from numpy_dist.scaling.machine import load_speeds
    from numpy_dist.scaling.prediction import predict
    from numpy_dist.scaling.simulation import plan_job, small_run

    machine = load_speeds(given.machine) if given.machine else measure(given.hosts)
    if given.hosts:  # which are this machine, twice
        machine = replace(machine, cores=max(1, machine.cores // 2))
    print(f"kernels {machine.kernel_bandwidth / 1e9:.1f} GB/s, latency {machine.latency * 1e6:.1f} us, messages "
          f"{machine.network_bandwidth / 1e9:.1f} GB/s, a statement {machine.statement_seconds * 1e6:.0f} us")
    form = "{:<8} {:>5}  {:>12} {:>12} {:>8} {:>10} {:>11}  {:>10} {:>10} {:>6}"
    print(form.format("program", "ranks", "peak, bytes", "really", "messages", "bytes", "collectives", "predicted",
                      "really", "ratio"))
    alike, alone = True, os.environ.get("NUMPY_DIST_NUM_THREADS") == "1" and not given.wall
    ratios: dict[int, list[float]] = {ranks: [] for ranks in given.ranks}
    for name in given.only.split(",") if given.only else PROGRAMS:
        program = PROGRAMS[name]
        values = small_run(program)
        for ranks in given.ranks:
            place = replace(machine, ranks_per_machine=-(-ranks // 2) if given.hosts else ranks)
            planned_for = {"values": values, "memory": place.rank_memory(ranks), "nodes": place.nodes(ranks)}
            job, found = plan_job(program, ranks, **planned_for), run_job(name, ranks, given)
            planned = [{word: getattr(rank, word) for word in COUNTS} for rank in job.ranks]
            same = [word for word in COUNTS if [p[word] for p in planned] == [each[0][word] for each in found]]
            alike = alike and same == list(COUNTS)
            predicted, seconds, waited = predict(job, place), *max((taken, wait) for _, taken, wait in found)
            prediction = predicted.seconds
            if alone:  # neither waiting nor the turns of others
                parts, turns = predicted.parts, place.turns(ranks)[1]
                prediction = (predicted.seconds - parts.latency - parts.bandwidth - parts.turns) / turns
            told = [f"{planned[0][word]:,}" + ("" if word in same else f" (really {found[0][0][word]:,})")
                    for word in COUNTS[1:]]
            times = f"{prediction * 1e3:.2f} ms", f"{seconds * 1e3:.2f} ms"
            ratio = f"{seconds / prediction:.2f}" if prediction else "-"
            ratios[ranks].append(seconds / prediction if prediction else math.inf)
            peaks = f"{planned[0]['peak']:,}", f"{found[0][0]['peak']:,}"
            print(form.format(name, ranks, *peaks, *told, *times, ratio), flush=True)
            for note in _notes(job, predicted, given.parts, waited):
                print(f"          {note}", flush=True)
    for ranks, found in ratios.items():
        near = sum(1 / FACTOR <= ratio <= FACTOR for ratio in found)
        cores = f" on {machine.cores} cores" if ranks > machine.cores else ""
        middle = statistics.median(found)
        print(f"On {ranks} ranks{cores} {near} of {len(found)} take as long as predicted, within a factor of {FACTOR}; "
              f"the middle one {middle:.2f} times that.")
    print("Counts of rank 0; " + ("those of all ranks are as planned." if alike else "NOT all ranks do as planned."))
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
