"""What a rank tells when it has finished a cell is of that cell, also where the next one has come meanwhile."""

from __future__ import annotations

import queue
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="notebooks need ipykernel")
pytest.importorskip("mpi4py.MPI", reason="there is no MPI library")

from numpy_dist.comm.supervision.exits import EndNotice
from numpy_dist.notebook import rank_shell
from numpy_dist.notebook.channel import FinishNotice, RankLink, SharedRequest
from numpy_dist.notebook.settling import AS_BEFORE, CellOver
from tests.notebook.test_settling import FINE


class Wire:
    """A connection that notes what is sent, and hands out what is to be received."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.to_come: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, message: object) -> None:
        self.sent.append(message)

    def recv(self) -> Any:
        return self.to_come.get()


class Ranks:
    """The communicator of rank 1 of 3; as it is asked for a notice, rank 0 has all go on, and begins the next cell."""

    rank, size, checks = 1, 3, None

    def __init__(self, wire: Wire) -> None:
        self.wire, self.ended = wire, dict[int, Any]()
        self.link: Any = None

    def notice_to(self, rank: int, *arguments: Any, **others: Any) -> str:
        if rank == 0:
            self.wire.to_come.put(CellOver(4, AS_BEFORE, frozenset(), False))
            self.wire.to_come.put(SharedRequest(5, "cell", {}))
            while self.link.serial < 5:
                pass
        return "finished"

    def look_for_notices(self) -> None:
        """There are none."""


def test_notices_are_of_the_cell_that_was_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_shell, "QUIET_SECONDS", 0.0)
    wire = Wire()
    comm: Any = Ranks(wire)
    wire.to_come.put(SharedRequest(4, "cell", {}))
    link = comm.link = RankLink(comm, wire)  # type: ignore[arg-type]
    request = link.todo.get()
    assert isinstance(request, SharedRequest)
    assert isinstance(rank_shell._wait(link, request.serial, FINE), CellOver)
    notices = [message for message in wire.sent if isinstance(message, FinishNotice)]
    assert [(notice.serial, notice.to) for notice in notices] == [(4, 0), (4, 2)] and link.serial == 5


def test_notices_hold_for_their_cell_alone() -> None:
    """Those of the next cell may come while this one is not over here, and are not to take its notices' place."""
    wire = Wire()
    comm: Any = Ranks(wire)
    link = RankLink(comm, wire)  # type: ignore[arg-type]
    finished = [EndNotice(0, 1, f"cell {serial}", True, False, False, 0) for serial in range(7)]

    def come(serial: int) -> None:
        link._take(FinishNotice(serial, 1, finished[serial]))

    link.ends.begin(4)
    come(4)
    come(5)
    assert comm.ended == {0: finished[4]}
    link.ends.over()
    assert comm.ended == {}, "rank 0 is there to go on"
    come(4)
    come(5)
    assert comm.ended == {}
    link.ends.begin(5)
    assert comm.ended == {0: finished[5]}
    link.ends.over()
    link.ends.begin(6)
    assert comm.ended == {}
