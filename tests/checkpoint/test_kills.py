"""Three programs whose ranks are killed at drawn points, and which end with NumPy's bits: ten seeds of each.

By hand, since they take half an hour; some kills at drawn steps run with the tests marked slow
(`tests/test_examples.py`). Outcome: benchmarks/results/2026-11-29-kills.txt.

    python -m pytest -s -m long tests/checkpoint/test_kills.py
"""

from __future__ import annotations

import functools
import random
import re
import tempfile
from pathlib import Path

import pytest

from numpy_dist.checkpoint.folder import read_manifest
from tests.test_examples import EXAMPLES, command, run

pytestmark = pytest.mark.long

PROGRAMS = "heat", "life", "prices"
SEEDS = range(10)
STEPS = 120  # of the example
BITS = "every bit is NumPy's"

# The victim ends when it has used so many seconds of processor time, wherever it is: in a call of the system, or while
# a thread of its own writes. SIGPROF ends a process at once, as SIGKILL does, since nobody handles it.
AT_A_MOMENT = """
import os, runpy, signal, sys, time
import numpy_dist

victim, *moments = map(float, sys.argv[1].split(","))
sys.argv[:2] = []
sys.path[0] = os.path.dirname(sys.argv[0])
rank, start = numpy_dist.zeros(1).comm.rank, int(os.environ.get("NUMPY_DIST_RESTART", "0"))
if rank == victim and start < len(moments):
    signal.setitimer(signal.ITIMER_PROF, moments[start])
begun = time.process_time()
runpy.run_path(sys.argv[0], run_name="__main__")
if rank == 0:
    print("used", time.process_time() - begun)
"""


def job(ranks: int, program: str, folder: Path, before: list[str], after: list[str]) -> str:
    """What a job prints that ends well, in whose folder nothing is left that no checkpoint names.

    What a rank has left that is killed after the last checkpoint is complete, the next save would remove.
    """
    words = [*command(ranks, "run"), "--restart=3", *before, str(EXAMPLES / "restart.py"), "--program", program]
    code, output = run([*words, "--size", "150", "--folder", str(folder / "saved"), *after], folder)
    assert code == 0 and BITS in output, output
    named = {name for path in (folder / "saved").glob("*.json") for name in read_manifest(path)["files"]}
    found = {path.name for path in (folder / "saved/data").iterdir()}
    assert found >= named if f"goes on at step {STEPS}\n" in output else found == named
    return output


def told(how: str, program: str, ranks: int, seed: int, drawn: str, output: str) -> None:
    """Print a row of the table."""
    again = output.count("is started again")
    steps = ", ".join(re.findall(r"goes on at step (\d+)", output))
    print(f"\n| {how} | {program} | {ranks} | {seed} | {drawn} | {again} | {steps or '-'} | {BITS} |", flush=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_kill_at_a_step(program: str, ranks: int, seed: int, tmp_path: Path) -> None:
    output = job(ranks, program, tmp_path, [], ["--kill", str(seed)])
    assert "is started again (1 of 3)" in output
    told("a step", program, ranks, seed, "", output)


@functools.cache
def seconds_of(program: str, ranks: int) -> float:
    """Processor time of rank 0 of an undisturbed job, from the script's first line on."""
    with tempfile.TemporaryDirectory() as name:
        output = job(ranks, program, Path(name), [at_a_moment(Path(name)), "-1"], [])
    return float(output.split("used")[1])


def at_a_moment(folder: Path) -> str:
    """The path of the script that has its process ended at a moment."""
    path = folder / "at_a_moment.py"
    path.write_text(AT_A_MOMENT)
    return str(path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_kill_at_a_moment(program: str, ranks: int, seed: int, tmp_path: Path) -> None:
    """Two kills, at moments of processor time in the first half, so that the first always happens."""
    numbers, most = random.Random(f"{program} {ranks} {seed}"), seconds_of(program, ranks)
    victim, moments = numbers.randrange(ranks), [numbers.uniform(0.0, 0.5 * most) for _ in range(2)]
    drawn = ",".join([str(victim), *(f"{moment:.3f}" for moment in moments)])
    output = job(ranks, program, tmp_path, [at_a_moment(tmp_path), drawn], [])
    assert "signal 27 (Profiling timer expired) and is started again (1 of 3)" in output
    told("a moment", program, ranks, seed, f"rank {drawn.replace(',', ', ')} s", output)
