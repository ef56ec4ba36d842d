"""The hosts of `numpy-dist run --hosts`, as far as it can be seen without starting a job."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from numpy_dist.cli import distant_ranks, hosts, launcher
from numpy_dist.cli.distant_ranks import DistantRanks, first_death
from numpy_dist.cli.hosts import Place
from numpy_dist.cli.launcher import Job
from numpy_dist.cli.library import Launcher
from numpy_dist.cli.main import main
from numpy_dist.cli.roll_call import Death, RollCall
from numpy_dist.errors import LauncherError


def test_a_list_of_hosts() -> None:
    assert hosts.parse_hosts("a, b:2,10.0.0.1:3") == [Place("a"), Place("b", 2), Place("10.0.0.1", 3)]


@pytest.mark.parametrize("text", ["", "a,", "a:0", "a:b", "a b", "a slots=0"])
def test_what_is_no_host(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="is not a host"):
        hosts.parse_hosts(text)
    with pytest.raises(SystemExit):
        main(["run", "--hosts", text, __file__])
    assert "is not a host" in capsys.readouterr().err


def test_a_file_of_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\na\n\nb:2 # two\nc slots=3\nd  slots = 4  max_slots=8\n")
    assert hosts.parse_hostfile(file) == [Place("a"), Place("b", 2), Place("c", 3), Place("d", 4)]
    file.write_text("a\nb c\n")
    with pytest.raises(ValueError, match="hosts, line 2: 'b c' is not a host"):
        hosts.parse_hostfile(file)
    file.write_text("# none\n")
    with pytest.raises(ValueError, match="names no host"):
        hosts.parse_hostfile(file)


@pytest.mark.parametrize(
    ("text", "ranks", "shares"),
    [
        ("a,b", 4, "a:2,b:2"),
        ("a,b,c", 4, "a:2,b:1,c:1"),
        ("a,b,c", 2, "a:1,b:1"),
        ("a:3,b:3", 4, "a:3,b:1"),
        ("a:3,b:3", 2, "a:2"),
        ("a,b:3", 4, "a:1,b:3"),
        ("a,b,a", 3, "a:2,b:1"),
    ],
)
def test_ranks_are_divided_among_hosts(text: str, ranks: int, shares: str) -> None:
    assert hosts.written(hosts.divided(hosts.parse_hosts(text), ranks)) == shares


def test_more_ranks_than_slots() -> None:
    with pytest.raises(LauncherError, match=r"4 ranks are asked for, and the hosts have 3 slots \(a:1,b:2\)"):
        hosts.divided(hosts.parse_hosts("a:1,b:2"), 4)


@pytest.mark.parametrize(("family", "option"), [("mpich", "-hosts"), ("openmpi", "--host")])
def test_launchers_are_told_of_hosts(family: str, option: str) -> None:
    job = Job(3, ("a.py",), hosts=(Place("a", 2), Place("b", 1)), environment={})
    command = launcher.mpi_command(job, Launcher("m/mpiexec", "", family), {"PATH": "bin"})
    assert command[command.index(option) + 1] == "a:2,b:1"
    assert launcher.job_environment(job, 8)["OMP_NUM_THREADS"] == "4"


def test_this_host_is_known_by_its_addresses() -> None:
    assert hosts.is_here("localhost") and hosts.is_here("127.0.0.1")
    assert not hosts.is_here("192.0.2.1")  # kept for documentation: nobody's
    assert not hosts.is_here("no such host.invalid")


# -- ranks on other hosts ----------------------------------------------------------------------------------------------

RANK = """
import os, sys, time
from numpy_dist.cli.distant_ranks import connect
leave = connect(sys.argv[1], int(sys.argv[2]))
print(leave is not None, flush=True)
word = sys.stdin.readline()
if word == "leave\\n":
    leave()
elif word == "fail\\n":
    leave(os.getpid())
elif word == "crash\\n":
    import ctypes
    ctypes.string_at(0)
"""


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Ranks:
    """Processes that say that they are ranks."""

    def __init__(self, listen: bool = True) -> None:
        self.launcher = DistantRanks(["localhost"], 5.0)
        environment: dict[str, str] = {}
        self.launcher.describe(environment)
        self.description = environment[distant_ranks.VARIABLE]
        if listen:
            self.launcher.start()

    def start(self, rank: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", RANK, self.description, str(rank)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None and process.stdout.readline() == "True\n"
        wait_until(lambda: any(known.rank == rank for known in list(self.launcher._ranks.values())))
        return process


def test_the_first_rank_that_is_lost() -> None:
    ranks = Ranks()
    first, second = ranks.start(2), ranks.start(3)
    second.kill()
    second.communicate()
    wait_until(lambda: ranks.launcher._lost)
    first.kill()
    first.communicate()
    assert first_death(None, ranks.launcher) == Death(3, second.pid, None, host=socket.gethostname())
    assert not ranks.launcher.silent


def test_where_a_rank_crashes_is_told() -> None:
    ranks = Ranks()
    process = ranks.start(2)
    process.communicate("crash\n")
    death = first_death(None, ranks.launcher)
    assert death is not None and (death.rank, death.pid) == (2, process.pid)
    assert death.crash.startswith("Fatal Python error: Segmentation fault\n")
    assert '  File "<string>", line' in death.crash
    assert ranks.launcher.crashed() == [death]


def test_a_rank_that_crashes_as_it_waits_for_another_was_not_the_first() -> None:
    """It may be known to have ended before the one that it has waited for."""
    mpi, script = '  File "/x/numpy_dist/comm/mpi.py", line 9 in until\n', '  File "a.py", line 3 in <module>\n'
    waiting, own = (f"Fatal Python error: Segmentation fault\n\n{text}" for text in (mpi + script, script + mpi))
    waits, crashes, killed = Death(0, 10, None, crash=waiting), Death(1, 11, None, crash=own), Death(2, 12, None)
    assert distant_ranks.first_lost([]) is None
    assert distant_ranks.first_lost([(1.0, waits), (1.1, killed), (1.2, crashes)]) == (1.1, killed)
    assert distant_ranks.first_lost([(1.0, waits), (1.1, crashes), (1.2, killed)]) == (1.1, crashes)
    assert distant_ranks.first_lost([(1.0, waits), (9.0, killed)]) == (1.0, waits)


def test_a_rank_that_is_killed_is_known_here_before_mpiexec_knows() -> None:
    """Files are closed in the order of their numbers; by one of them mpiexec knows that a process has ended."""
    mpiexecs, other = socket.socketpair()
    connection, launchers = socket.socketpair()
    before = mpiexecs.detach()
    with other, connection, launchers, mock.patch.dict(os.environ, PMI_FD=str(before)):
        assert before < connection.fileno()
        distant_ranks._close_first(connection)
        after = int(os.environ["PMI_FD"])
        with pytest.raises(OSError):
            os.fstat(before)
        assert after > connection.fileno() and os.write(after, b"cmd") == 3 == len(other.recv(9))
        distant_ranks._close_first(connection)  # it stays where it is right
        assert int(os.environ["PMI_FD"]) == after
        os.close(after)


@pytest.mark.parametrize("here_first", [True, False])
def test_who_was_lost_first_here_or_there(here_first: bool) -> None:
    ranks = Ranks()
    roll = RollCall(1)
    begun = time.monotonic()
    process = ranks.start(2)
    process.kill()
    process.communicate()
    there = Death(2, process.pid, None, host=socket.gethostname())
    here = Death(0, 77, signal.SIGSEGV)  # it may have crashed as the other one was lost
    with (
        mock.patch.object(roll, "first", lambda: here),
        mock.patch.object(roll, "when", lambda death: begun if here_first else begun + 60),
    ):
        assert first_death(roll, ranks.launcher) == (here if here_first else there)


def test_after_one_has_left_none_is_lost() -> None:
    ranks = Ranks()
    first, second = ranks.start(2), ranks.start(3)
    first.communicate("leave\n")
    wait_until(lambda: ranks.launcher.left_at < float("inf"))
    second.kill()
    second.communicate()
    assert first_death(None, ranks.launcher) is None


def test_a_rank_that_has_failed_and_is_killed_for_it() -> None:
    ranks = Ranks()
    process = ranks.start(2)
    process.communicate("fail\n")
    assert first_death(None, ranks.launcher) == Death(2, process.pid, None, True, socket.gethostname())


def test_a_rank_that_is_still_connected_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distant_ranks, "_TOLD_SECONDS", 0.1)
    ranks = Ranks()
    process = ranks.start(1)
    assert first_death(None, ranks.launcher) is None
    assert ranks.launcher.silent == {1: socket.gethostname()}
    process.kill()
    process.communicate()


def test_strangers_are_not_listened_to() -> None:
    ranks = Ranks()
    _, port, *_ = ranks.description.split()
    with socket.create_connection(("127.0.0.1", int(port))) as stranger:
        stranger.sendall(b"secret 0 1 host\n")
        assert stranger.recv(1) == b""
    assert first_death(None, ranks.launcher) is None and not ranks.launcher.silent


@pytest.mark.parametrize("description", ["", "nonsense", "token 1 5 127.0.0.1"])
def test_without_a_launcher_nobody_is_told(description: str) -> None:
    assert distant_ranks.connect(description, 0) is None
