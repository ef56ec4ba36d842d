"""Faults on two hosts, one after the other: each is found and named, all ranks end soon, and nothing stays anywhere.

What docs/faults.md has of one machine, where the rank that fails is on another host than the launcher, or on its own;
and of one example on 64 ranks of one machine. Two of the drill run with the tests marked slow; the others by hand:

    python -m pytest -s -m long tests/hosts/test_drill.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from numpy_dist.conformance import faults
from numpy_dist.conformance.jobs import JobEnd
from numpy_dist.settings import config
from tests.hosts.conftest import HostJobs
from tests.hosts.namespaces import signal_inside
from tests.hosts.test_hosts import PREAMBLE, SOON, WAITING

DATA = """
import numpy as np
import numpy_dist as nd
x = nd.asarray(np.arange(400.0))
for step in range(3):
    x[1:-1] = x[2:] + x[:-2]
comm.barrier()
"""
GO_ON = """
for step in range(1000):
    x[1:-1] = 0.5 * (x[2:] + x[:-2])
    float(x.sum())
print("done")
"""


class Fault(NamedTuple):
    """What one rank does, and what must be said.

    Parameters
    ----------
    act : str
        The rank's code.
    code : set of int
        Exit codes of the job that are right.
    said : str
        What is in the errors; ``{rank}`` is the rank's number.
    """

    act: str
    code: set[int]
    said: str


FAULTS = {
    "exception": Fault("raise ValueError('planted')", {1}, "[rank {rank}] ValueError: planted\n"),
    "exit": Fault("sys.exit(3)", {3}, "rank {rank}"),
    "os._exit": Fault("os._exit(3)", {3}, "rank {rank}"),
    "SIGKILL": Fault("os.kill(os.getpid(), 9)", {137}, "numpy-dist: rank {rank} (process "),
    "segmentation fault": Fault("import ctypes; ctypes.string_at(0)", {139, 137}, "rank {rank}"),
    "abort": Fault("os.abort()", {134, 137}, "rank {rank}"),
    "failed allocation": Fault("np.ones(1 << 50)", {1}, "[rank {rank}] numpy"),
    "divergence": Fault("x = nd.sort(x)", {1}, "DivergenceError"),
    "stuck": Fault("time.sleep(1000)", {1}, "rank {rank}"),
    "SIGTERM to a rank": Fault("os.kill(os.getpid(), signal.SIGTERM); time.sleep(100)", {143, 137}, "rank {rank}"),
}
RANKS = {"other host": 3, "launcher's host": 1}
IN_CI = {("segmentation fault", "other host"), ("divergence", "other host")}


@pytest.mark.parametrize(
    ("name", "where"),
    [
        pytest.param(name, where, marks=pytest.mark.slow if (name, where) in IN_CI else pytest.mark.long)
        for where in RANKS
        for name in FAULTS
    ],
)
def test_a_fault(jobs: HostJobs, name: str, where: str) -> None:
    fault, rank = FAULTS[name], RANKS[where]
    if name == "stuck":
        jobs.environment |= {"NUMPY_DIST_TIMEOUT": "2", "NUMPY_DIST_ON_TIMEOUT": "end"}
    told = "open('fault', 'w').write(str(time.time()))"
    script = f"{PREAMBLE}{DATA}\nif comm.rank == {rank}:\n    {told}\n    {fault.act}\n{GO_ON}"
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", script)
    seconds = time.time() - float((jobs.folder / "fault").read_text())
    last = next((line for line in reversed(errors.splitlines()) if "rank" in line), "")
    print(f"| {name} | {where} | {code} | {seconds:.1f} | {last[:110]} |", flush=True)
    assert "done" not in output and seconds < SOON
    assert code in fault.code, errors
    assert fault.said.format(rank=rank) in errors and "HYD" not in errors


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("where", ["a", "login"])
def test_a_signal_while_ranks_compute(jobs: HostJobs, number: signal.Signals, where: str) -> None:
    process = jobs.start(where, "-n 4 --hosts a,b", f"{WAITING}\n{DATA}\nwhile True:\n    float((x * 2).sum())")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    begun = time.monotonic()
    signal_inside(process, number)
    code, _, errors = jobs.end(process)
    print(f"| {number.name} to the launcher on {where} | | {code} | {time.monotonic() - begun:.1f} | |")
    assert code == 128 + number and time.monotonic() - begun < SOON, errors


@pytest.mark.long
def test_a_hosts_interface_goes_down(fragile_jobs: HostJobs) -> None:
    """Its processes go on; they end by themselves when the launcher has not answered for the timeout."""
    jobs = fragile_jobs
    process = jobs.start("login", "-n 4 --hosts a,b --timeout 3", f"{WAITING}\n{DATA}\nwhile True:\n    float(x.sum())")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    begun = time.monotonic()
    jobs.network.disconnect("b")
    code, _, errors = jobs.end(process)
    print(f"| interface of b down | other host | {code} | {time.monotonic() - begun:.1f} | |")
    assert code == 137 and "numpy-dist: host b does not answer any more; it ran rank 2, 3\n" in errors


PLANTED = faults.EXAMPLES | faults.PROGRAMS


def calls_of(example: str, ranks: int, victim: int, kind: str) -> int:
    """How many calls a rank has at which it may fail, in a run of simulated ranks."""
    path = faults.examples_folder() / example
    with faults._as_script(path, PLANTED[example]), config(MIN_SHARD_BYTES=0, FALLBACK="error", BACKEND="numpy"):
        calls, ends = faults._run_once(path, ranks, victim, -1, kind)
    assert not any(ends)
    return len(calls[victim])


def planted(example: str, victim: int, position: int, kind: str) -> list[str]:
    """The program in which a rank fails at one of its calls."""
    path = str(faults.examples_folder() / example)
    return ["-m", "numpy_dist.conformance.faults", "--fault", f"{victim}:{position}:{kind}", path, *PLANTED[example]]


def told(place: str, example: str, kind: str, position: int, count: int, end: JobEnd) -> None:
    """Print a row of the table."""
    last = next((line for line in reversed(end.errors.splitlines()) if "rank" in line), "")
    print(f"\n| {place} | {example} | {kind} | {position} of {count} | {end.seconds:.1f} | {end.code} | {last[:110]} |")
    sys.stdout.flush()


@pytest.mark.long
@pytest.mark.parametrize("kind", faults.KINDS)
@pytest.mark.parametrize("example", PLANTED)
def test_a_fault_of_an_example(jobs: HostJobs, example: str, kind: str) -> None:
    number = list(PLANTED).index(example) + list(faults.KINDS).index(kind)
    victim = (3, 1, 2, 0)[number % 4]
    count = calls_of(example, 4, victim, kind)
    position = (count - 1) * (number % 3) // 2  # the first, one between, the last
    jobs.environment["NUMPY_DIST_FALLBACK"] = "error"
    begun = time.monotonic()
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b --all-output", planted(example, victim, position, kind))
    end = JobEnd(code, output, errors, time.monotonic() - begun, [], False)
    told(f"rank {victim} of two hosts", example, kind, position, count, end)
    assert faults._judged_job(end, kind, 2 * SOON) is None and "HYD" not in errors


@pytest.mark.long
@pytest.mark.parametrize("kind", faults.KINDS)
def test_a_fault_among_64_ranks(tmp_path: Path, kind: str) -> None:
    """Of the smallest example, on more ranks than there are cores."""
    example, ranks, victim = "pi.py", 64, 37
    count = calls_of(example, 4, 3, kind)  # as many on any number of ranks
    position = (count - 1) // 2
    words = [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks), *planted(example, victim, position, kind)]
    environment = os.environ | {f"NUMPY_DIST_{name}": value for name, value in faults._SETTINGS.items()}
    begun = time.monotonic()
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    end = JobEnd(done.returncode, done.stdout, done.stderr, time.monotonic() - begun, [], False)
    told(f"rank {victim} of 64", example, kind, position, count, end)
    assert faults._judged_job(end, kind, 600.0) is None
    assert not list(tmp_path.iterdir()) and len(done.stderr.splitlines()) < ranks
