"""The launcher knows which rank was the first to end without leave, and names none where it does not know."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from numpy_dist.cli import roll_call
from numpy_dist.cli.distant_ranks import first_death
from numpy_dist.cli.launcher import _explain_death
from numpy_dist.cli.roll_call import Death, RollCall
from numpy_dist.cli.streams import set_output
from tests.cli.test_hosts import Ranks as RanksElsewhere

pytestmark = pytest.mark.skipif(not roll_call.AVAILABLE, reason="the system does not tell of the ends of processes")

RANK = """
import sys
from numpy_dist.cli import roll_call
leave = roll_call.enter(int(sys.argv[1]), int(sys.argv[2]))
print("entered", flush=True)
word = input()
if word == "leave":
    leave()
    print("left", flush=True)
    input()
if word == "fail":
    import os, signal
    leave(os.getpid() + 1)  # of another process: says nothing
    if os.fork() == 0:
        leave(os.getppid())
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)
    signal.pause()
"""


class Ranks:
    """Some processes that have entered."""

    def __init__(self, roll: RollCall, count: int) -> None:
        self.roll = roll
        self.processes = [self._start(rank) for rank in range(count)]

    def _start(self, rank: int) -> subprocess.Popen[str]:
        shared, pipe = self.roll.for_ranks.fileno(), subprocess.PIPE
        command = [sys.executable, "-c", RANK, str(shared), str(rank)]
        return subprocess.Popen(command, pass_fds=[shared], stdin=pipe, stdout=pipe, text=True)

    def hear(self, rank: int) -> str:
        stdout = self.processes[rank].stdout
        assert stdout is not None
        return stdout.readline().strip()

    def tell(self, rank: int, text: str) -> None:
        stdin = self.processes[rank].stdin
        assert stdin is not None
        stdin.write(f"{text}\n")
        stdin.flush()

    def kill(self, rank: int, number: int = signal.SIGKILL) -> int:
        self.processes[rank].send_signal(number)
        self.processes[rank].wait(60)
        return self.processes[rank].pid


@pytest.fixture
def roll() -> RollCall:
    return RollCall(3)


@pytest.fixture
def ranks(roll: RollCall) -> Iterator[Ranks]:
    started = Ranks(roll, 3)
    yield started
    for process in started.processes:
        process.kill()
        process.communicate()


def look_late(roll: RollCall, known: Callable[[], bool]) -> tuple[threading.Event, threading.Event]:
    """Once ranks are known the launcher says so by the first event, and waits for the second before it listens."""
    looks, entered, gate = roll._poll, threading.Event(), threading.Event()

    class Late:
        """An epoll whose news is read once the gate is open."""

        register, unregister = looks.register, looks.unregister

        def poll(self) -> list[tuple[int, int]]:
            if known():
                entered.set()
                gate.wait(60)
            return looks.poll()

    roll._poll = Late()  # type: ignore[assignment]
    return entered, gate


def test_the_first_death_is_told_also_when_it_is_looked_at_late(roll: RollCall, ranks: Ranks) -> None:
    entered, gate = look_late(roll, lambda: len(roll._ranks) == 3)
    roll.start()
    assert [ranks.hear(rank) for rank in range(3)] == ["entered"] * 3
    assert entered.wait(60)
    pids = [ranks.kill(rank) for rank in (2, 0, 1)]
    roll.for_ranks.close()
    gate.set()
    first = roll.first()
    assert first is not None and (first.rank, first.pid) == (2, pids[0])
    assert first.number in (None, signal.SIGKILL)  # older systems forget it


def test_a_rank_that_has_failed_and_is_killed_for_it_is_told_so(roll: RollCall, ranks: Ranks) -> None:
    roll.start()
    assert [ranks.hear(rank) for rank in range(3)] == ["entered"] * 3
    ranks.kill(0)  # before, as a launcher would kill it afterwards
    ranks.tell(2, "fail")
    ranks.processes[2].wait(60)
    ranks.kill(1)
    roll.for_ranks.close()
    assert roll.first() == Death(2, ranks.processes[2].pid, None, failed=True)


def test_a_rank_that_has_left_is_not_named(roll: RollCall, ranks: Ranks) -> None:
    roll.start()
    assert [ranks.hear(rank) for rank in range(3)] == ["entered"] * 3
    ranks.tell(1, "leave")
    assert ranks.hear(1) == "left"
    ranks.tell(1, "end")
    ranks.processes[1].wait(60)
    pid = ranks.kill(0, signal.SIGTERM)
    ranks.kill(2)
    roll.for_ranks.close()
    first = roll.first()
    assert first is not None and (first.rank, first.pid) == (0, pid)


def test_a_rank_that_dies_after_its_leave_is_named_where_the_system_tells(roll: RollCall, ranks: Ranks) -> None:
    roll.start()
    assert [ranks.hear(rank) for rank in range(3)] == ["entered"] * 3
    ranks.tell(1, "leave")
    assert ranks.hear(1) == "left"
    ranks.processes[1].send_signal(signal.SIGSEGV)
    deadline = time.monotonic() + 60
    while not roll._statuses and time.monotonic() < deadline:
        time.sleep(0.01)
    for rank in (1, 0, 2):
        ranks.kill(rank)
    roll.for_ranks.close()
    assert roll.first() == Death(1, ranks.processes[1].pid, signal.SIGSEGV)


def test_a_rank_that_died_of_another_signal_than_the_launchers_was_the_first(roll: RollCall, ranks: Ranks) -> None:
    # As where a child of the rank has kept its pipes open, so that its end was told late.
    roll.start()
    assert [ranks.hear(rank) for rank in range(3)] == ["entered"] * 3
    for rank, number in ((0, signal.SIGKILL), (2, signal.SIGSEGV), (1, signal.SIGKILL)):
        ranks.processes[rank].send_signal(number)
        deadline = time.monotonic() + 60
        while ranks.processes[rank].pid not in roll._statuses and time.monotonic() < deadline:
            time.sleep(0.01)
    roll.for_ranks.close()
    assert roll.first() == Death(2, ranks.processes[2].pid, signal.SIGSEGV)


def test_the_signal_is_known(roll: RollCall, ranks: Ranks) -> None:
    roll.start()
    assert [ranks.hear(rank) for rank in range(3)] == ["entered"] * 3
    ranks.processes[1].send_signal(signal.SIGSEGV)
    deadline = time.monotonic() + 60
    while not roll._statuses and time.monotonic() < deadline:
        time.sleep(0.01)
    for rank in (1, 0, 2):
        ranks.kill(rank)
    roll.for_ranks.close()
    assert roll.first() == Death(1, ranks.processes[1].pid, signal.SIGSEGV)


def test_nobody_is_named_unless_all_ranks_have_entered(roll: RollCall) -> None:
    roll.start()
    started = Ranks(roll, 2)
    assert [started.hear(rank) for rank in range(2)] == ["entered"] * 2
    for rank in range(2):
        started.kill(rank)
        started.processes[rank].communicate()
    roll.for_ranks.close()
    assert roll.first() is None


def test_nobody_is_named_where_a_rank_had_ended_before_it_was_watched(
    roll: RollCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = Ranks(roll, 3)
    # Nobody listens yet; a rank that is killed as it waits for that is watched too late.
    time.sleep(0.5)
    ranks.kill(1)
    roll.start()
    assert [ranks.hear(rank) for rank in (0, 2)] == ["entered"] * 2
    for rank in (0, 2):
        ranks.kill(rank)
    for process in ranks.processes:
        process.communicate()
    roll.for_ranks.close()
    assert roll.first() is None


def test_a_rank_does_not_wait_for_a_launcher_that_is_gone(roll: RollCall) -> None:
    shared = roll.for_ranks.fileno()
    roll._socket.close()
    leave = roll_call.enter(os.dup(shared), 0)
    leave()
    leave(os.getpid())
    set_output(0, 1, True)(os.getpid())  # where there is no launcher


def test_ranks_enter_where_few_files_may_be_open(roll: RollCall) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        started = Ranks(roll, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    roll.start()
    try:
        assert started.hear(0) == "entered"
    finally:
        started.kill(0)
        started.processes[0].communicate()


def test_what_is_said_of_a_death(capsys: pytest.CaptureFixture[str]) -> None:
    _explain_death(signal.SIGTERM, Death(2, 77, None))
    _explain_death(signal.SIGKILL, None)
    _explain_death(signal.SIGINT, None)
    _explain_death(signal.SIGKILL, Death(1, 77, None, failed=True))
    assert capsys.readouterr().err == (
        "numpy-dist: rank 2 (process 77) was ended by signal 15 (Terminated)\n"
        "numpy-dist: a rank was ended by signal 9 (Killed); where nobody sent it, the system was out of memory\n"
        "numpy-dist: rank 1 failed (see above) before all ranks had started MPI\n"
    )


@pytest.mark.parametrize("here_first", [True, False])
def test_who_was_lost_first_is_known_also_when_it_is_looked_at_late(here_first: bool) -> None:
    """On a busy machine the launcher comes to its listening when one has ended here, and one there."""
    elsewhere = RanksElsewhere(listen=False)
    roll = RollCall(1, elsewhere.launcher)
    entered, gate = look_late(roll, lambda: bool(roll._ranks and elsewhere.launcher._ranks))
    roll.start()
    there, here = elsewhere.start(2), Ranks(roll, 1)
    assert here.hear(0) == "entered" and entered.wait(60)

    def lose_there() -> None:
        there.kill()
        there.communicate()

    ends = [lambda: here.kill(0), lose_there]
    for end in ends if here_first else reversed(ends):
        end()
    roll.for_ranks.close()
    gate.set()
    death = first_death(roll, elsewhere.launcher)
    assert death is not None and death.rank == (0 if here_first else 2)
