"""Faults on two hosts, one after the other: each is found and named, all ranks end soon, and nothing stays anywhere.

What docs/faults.md has of one machine, where the rank that fails is on another host than the launcher, or on its own.
Two of the drill run with the tests marked slow; the others by hand:

    python -m pytest -m long tests/hosts/test_drill.py
"""

from __future__ import annotations

import signal
import time
from typing import NamedTuple

import pytest

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
    "SIGTERM to a rank": Fault("os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)", {143, 137}, "rank {rank}"),
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
