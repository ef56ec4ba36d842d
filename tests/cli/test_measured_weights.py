"""`numpy-dist run --weights=measured`: each rank's share of new arrays is what its speed says."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_jobs import Run, environment, mpi, run

__all__ = ["environment", "mpi", "run"]

pytestmark = pytest.mark.slow

# Both ranks are on one processor, and so get as much of it as each other, whatever else this machine does; but for one
# that lets a child of its own go first. (Priorities alone would not do: sessions may be scheduled as groups.) Where the
# system binds no processes, it has a child for each processor.
SCRIPT = """
import json, os, subprocess, sys
binds = hasattr(os, "sched_setaffinity")
if binds:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy_dist as nd
from numpy_dist import engine

def busy():
    words = [sys.executable, "-ISc", "while True: pass"]
    return [subprocess.Popen(words) for _ in range(1 if binds else os.cpu_count())]

def end(children):
    for child in children:
        child.kill()
        child.wait()

def share(x):
    points = x.layout.dims[0].points
    return points[1] / points[-1]

slow, other, rank = int(sys.argv[1]), int(sys.argv[2]), engine.runtime().rank
if rank == slow:
    children = busy()
    os.nice(5)
try:
    x = nd.arange(120_000)
    found = [share(x)]
finally:
    if rank == slow:
        end(children)
if rank == other:
    children = busy()
    os.nice(8)
try:
    moved = nd.rebalance(x, "measured")
    found += [share(moved), share(nd.zeros(120_000)), bool((moved == x).all())]
finally:
    if rank == other:
        end(children)
print(json.dumps(found))
"""


@pytest.mark.usefixtures("mpi")
def test_a_slower_rank_gets_less(run: Run) -> None:
    """And the other one does, once that is the slower one and the array is rebalanced."""
    done = run("-n 2 --weights=measured", SCRIPT, "1", "0")
    assert done.returncode == 0, done.stderr
    before, rebalanced, new, same = json.loads(done.stdout)
    assert before > 0.6 and rebalanced < 0.4 and new == rebalanced and same
    assert done.stderr.count("numpy-dist: weights as measured: ") == 2


@pytest.mark.usefixtures("mpi")
def test_ranks_of_one_speed_get_the_same(run: Run) -> None:
    done = run("-n 2 --weights measured", SCRIPT, "2", "2")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0] == 0.5
    assert "weights as measured: all ranks are equally fast" in done.stderr
