"""Real ranks that wait for each other: found while they wait, and told on each of them.

A rank that waits for messages asks those that it waits for, in a message of the control channel; one that has not done
what it is asked for, and waits itself, passes the question on to those that *it* waits for. A question that comes back
to where it began has gone round a circle of ranks of which none can go on (Chandy, Misra and Haas, Distributed deadlock
detection, ACM TOCS 1, 1983; a rank waits for all that it asked for). A rank in a collective waits for whoever asks it
and has not joined; ranks that wait in collectives only cannot form a circle, as the later one has joined the earlier.
A rank that is asked for a message and has sent another one in its place, as their marks tell, knows at once.
Nothing is sent before a rank has waited for a second, and then a few bytes for each message that it waits for.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from numpy_dist.comm.divergence import fingerprint
from numpy_dist.comm.divergence.diagnosis import deadlock_error
from numpy_dist.comm.divergence.journal import packed, unpacked
from numpy_dist.comm.divergence.positions import caller_line

if TYPE_CHECKING:
    from numpy_dist.comm.divergence.checks import Checks
    from numpy_dist.comm.supervision.exits import EndNotice

__all__ = ["Deadlocks", "Need", "Wanted"]

PROBE_TAG, STATE_TAG = 4, 5
# Seconds of waiting before a rank asks, and the longest time from one question to the next.
_FIRST_SECONDS = 1.0
_MOST_SECONDS = 4.0
# A circle is believed in when it was found so many times in one wait: what was asked first may just have been on its
# way, as messages may wait for room in a queue of the MPI library.
_TIMES = 2
_AGAIN_SECONDS = 0.5
# How long ranks have to tell where they are; one that computes does not.
_ANSWER_SECONDS = 2.0


class Need(NamedTuple):
    """What one rank waits for another one to do.

    Attributes
    ----------
    collective : int
        To take part in the collective of this number.
    kind : str
        Which that is.
    tag, sent, posted : int
        To have started so many messages of this tag to the rank that waits, and so many receives of messages from it.
    mark : int
        That of the last of these messages, where messages of the tag have marks.
    """

    collective: int = 0
    kind: str = ""
    tag: int = 0
    sent: int = 0
    posted: int = 0
    mark: int = 0


@dataclass
class Wanted:
    """What a rank waits for, all of it: for the ranks in `each` to do something, or for all of them.

    Attributes
    ----------
    where : str
        In words.
    collective : Need or None
        The collective that it is in, which is another one than that of a rank with another `Need.kind`.
    """

    where: str
    each: Mapping[int, Need] = field(default_factory=dict)
    all: Need | None = None
    collective: Need | None = None


class _Probe(NamedTuple):
    """A question: who began with it (in which wait, for the how-manieth time), and what the last one waits for."""

    era: int
    origin: int
    wait: int
    turn: int
    need: Need


class _State(NamedTuple):
    """Where a rank waits, what it has recorded, and by what it decides what to communicate."""

    era: int
    where: str
    operations: bytes
    fingerprint: dict[str, str]


class DeadlockMail(Protocol):
    """What is needed of a communicator."""

    rank: int
    size: int
    checks: Checks | None
    ended: dict[int, EndNotice]

    def post(self, rank: int, tag: int, message: bytes) -> None: ...
    def poll(self, tag: int) -> tuple[int, bytes] | None: ...
    def has_done(self, need: Need, rank: int) -> bool: ...
    def contradicts(self, need: Need, rank: int) -> bool: ...
    def look_for_notices(self) -> None: ...
    def named(self, where: str) -> str: ...


class Deadlocks:
    """The questions of one rank.

    Parameters
    ----------
    mail : DeadlockMail
        The communicator.
    era : int
        The number of that communicator: messages of an earlier one are not for this.
    """

    def __init__(self, mail: DeadlockMail, era: int) -> None:
        self._mail = mail
        self._era = era
        self._wait = 0  # the number of the wait in which the rank is
        self._turn = self._found = 0
        self._next = _FIRST_SECONDS
        self._passed: set[tuple[int, int, int]] = set()

    def begin(self) -> None:
        """The rank waits for something else than before."""
        self._wait += 1
        self._turn = self._found = 0
        self._next = _FIRST_SECONDS
        self._passed.clear()

    def look(self, wanted: Wanted, waited: float) -> None:
        """Ask, and answer what others ask; not collective.

        Parameters
        ----------
        wanted : Wanted
            What the rank waits for.
        waited : float
            For so many seconds.

        Raises
        ------
        DivergenceError, RuntimeError
            If ranks wait for each other: on every rank that waits.
        """
        mail = self._mail
        while (asked := mail.poll(PROBE_TAG)) is not None:
            probe = _Probe(*pickle.loads(asked[1]))
            if probe.era == self._era:
                self._answer(wanted, asked[0], probe._replace(need=Need(*probe.need)), waited)
        told = self._told()
        if told or self._found >= _TIMES:
            self._explain(wanted, told)
        if waited < self._next:
            return
        self._turn += 1
        self._next = waited + min(waited, _MOST_SECONDS)
        for rank, need in wanted.each.items():
            self._post(rank, _Probe(self._era, mail.rank, self._wait, self._turn, need))
        if wanted.collective is not None:  # another one than the next rank's?
            self._post((mail.rank + 1) % mail.size, _Probe(self._era, -1, 0, 0, wanted.collective))

    def drain(self) -> None:
        """Receive what is of no use any more."""
        for tag in (PROBE_TAG, STATE_TAG):
            while self._mail.poll(tag) is not None:
                continue

    def _post(self, rank: int, probe: _Probe) -> None:
        self._mail.post(rank, PROBE_TAG, pickle.dumps(tuple(probe), protocol=5))

    def _answer(self, wanted: Wanted, source: int, probe: _Probe, waited: float) -> None:
        mine, joined = wanted.all, wanted.collective
        if probe.origin < 0:
            if joined is not None and joined.collective == probe.need.collective and joined.kind != probe.need.kind:
                self._found = _TIMES
            return
        if self._mail.contradicts(probe.need, source):
            self._found = _TIMES
        if self._mail.has_done(probe.need, source):
            return
        if probe.origin == self._mail.rank:
            if (probe.wait, probe.turn) == (self._wait, self._turn):
                self._found += 1
                self._next = min(self._next, waited + _AGAIN_SECONDS)
            return
        key = probe.origin, probe.wait, probe.turn
        if key not in self._passed:
            self._passed.add(key)
            for rank, need in wanted.each.items():
                self._post(rank, probe._replace(need=need))
        if mine is not None:
            self._post(source, probe._replace(need=mine))

    # -- what is said ------------------------------------------------------------------------------------------------

    def _told(self) -> dict[int, _State]:
        """The states that other ranks have told."""
        found = {}
        while (told := self._mail.poll(STATE_TAG)) is not None:
            state = _State(*pickle.loads(told[1]))
            if state.era == self._era:
                found[told[0]] = state
        return found

    def _explain(self, wanted: Wanted, states: dict[int, _State]) -> NoReturn:
        """Tell the other ranks where this one waits, hear the same of them, and raise."""
        mail = self._mail
        operations = packed(mail.checks.journal.operations()) if mail.checks is not None else packed([])
        where = f"{mail.named(wanted.where)}, at {caller_line()}"
        mine = _State(self._era, where, operations, fingerprint.deciding())
        for rank in range(mail.size):
            if rank != mail.rank:
                mail.post(rank, STATE_TAG, pickle.dumps(tuple(mine), protocol=5))
        states[mail.rank] = mine
        deadline = time.monotonic() + _ANSWER_SECONDS
        while time.monotonic() < deadline and len({*states, *mail.ended}) < mail.size:
            time.sleep(0.001)
            states.update(self._told())
            mail.look_for_notices()
        ranks = sorted(states)
        waits = {rank: states[rank].where for rank in ranks}
        for rank in range(mail.size):
            ended = mail.ended.get(rank)
            told = "has not answered: it computes, or waits outside of numpy_dist"
            waits.setdefault(rank, told if ended is None else f"ended ({ended.reason})")
        histories = {rank: unpacked(states[rank].operations) for rank in ranks}
        fingerprints = {rank: states[rank].fingerprint for rank in ranks}
        raise deadlock_error(waits, histories, {}, fingerprints)
