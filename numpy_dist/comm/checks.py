"""Whether the ranks do the same: compared where they meet anyway, and with ``CHECK=on`` before each collective."""

from __future__ import annotations

import pickle
import struct
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from numpy_dist.comm import fingerprint
from numpy_dist.comm.divergence import PAGE, divergence_error, unlike_error
from numpy_dist.comm.journal import Journal
from numpy_dist.comm.positions import user_frame
from numpy_dist.errors import DivergenceError, DivergenceWarning
from numpy_dist.settings import config

__all__ = ["MARK_BYTES", "UNLIKE", "Checks"]

UNLIKE: list[Any] = []
"""Communicators of which some ranks may compute other numbers than others; for a look that costs nothing."""

# A mark: which call (and which collective it is), which statement, and what stands for the overrides.
_MARK = struct.Struct(f"<II{fingerprint.NUMBER_BYTES}s")
MARK_BYTES = _MARK.size
_KINDS = {"allgather": 1, "gather": 2, "scatter": 3, "allgather_array": 4, "bcast": 5}
_SHOWN = 3  # operations, where only this rank's are known
_KIND_BITS, _MOST = 3, (1 << 32) - 1
_NO_MARK = bytes(MARK_BYTES)


class Checks:
    """What one rank tells the others about what it does.

    Parameters
    ----------
    communicator : Communicator

    Attributes
    ----------
    journal : Journal
    collective : str
        The collective that the rank is in, or was in last.
    """

    def __init__(self, communicator: Any) -> None:
        self.journal = Journal()
        self.collective = ""
        self._communicator = communicator
        self._first = True
        self._busy = False
        self._kind = 0

    def begin(self, kind: str, depth: int = 2) -> None:
        """A collective begins; collective itself, where something is to be compared.

        Parameters
        ----------
        depth : int
            How many frames up the search for the user's begins.
        """
        if self._busy:
            return
        self.collective = kind
        self._kind = _KINDS.get(kind, 0)
        journal = self.journal
        journal.call(kind, sys._getframe(depth))
        if self._first:
            self._first = False
            self._compare_fingerprints()
        journal.with_operands = config.CHECK == "on"
        if journal.with_operands:
            self._compare()

    def executing(self, statements: Sequence[Any], depth: int = 3) -> None:
        """Statements are about to be executed, which may communicate; with ``CHECK=on`` collective."""
        journal = self.journal
        journal.with_operands = config.CHECK == "on"
        journal.executed(statements)
        if journal.with_operands:
            self.begin("execution", depth)

    # -- marks in collectives ----------------------------------------------------------------------------------------

    def mark(self) -> bytes:
        """What travels with each part of a gathering collective, and is the same on ranks that do the same."""
        if self._busy:
            return _NO_MARK
        journal = self.journal
        call = journal.calls << _KIND_BITS | self._kind
        return _MARK.pack(call & _MOST, journal.recorded & _MOST, fingerprint.number())

    def judge(self, marks: Sequence[bytes | bytearray]) -> None:
        """Raise, on every rank, if the marks of the ranks differ."""
        if marks.count(marks[0]) != len(marks) and not self._busy:
            self._raise()

    def judge_root(self, mark: bytes, root: int) -> None:
        """Raise, on this rank, if the root of a broadcast is elsewhere: only the root tells something there."""
        if mark == self.mark():
            return
        journal = self.journal
        call, recorded, _ = _MARK.unpack(mark)
        if (call, recorded) == _MARK.unpack(self.mark())[:2]:
            raise DivergenceError(
                f"rank {root} has registered other overrides than rank {self._communicator.rank}, whose own are: "
                f"{fingerprint.overrides_text()}. All ranks must have the same. See {PAGE}."
            )
        calls = call >> _KIND_BITS
        latest = "".join(f"\n  {operation}" for operation in journal.operations()[-_SHOWN:])
        raise DivergenceError(
            f"the ranks do not run the same program: before this broadcast rank {root} has recorded {recorded} "
            f"statements and {calls} collectives, rank {self._communicator.rank} {journal.recorded} and "
            f"{journal.calls}. The latest here:{latest}\n"
            f"NUMPY_DIST_CHECK=on shows where they began to differ. See {PAGE}."
        )

    def _compare(self) -> None:
        mine = self.journal.digest() + fingerprint.number()
        told = bytes(self._communicator._allgather_fixed(mine))
        if told != mine * self._communicator.size:
            self._raise()

    def _raise(self) -> None:
        told = self._gathered((self.journal.operations(), fingerprint.deciding()))
        histories = {rank: operations for rank, (operations, _) in enumerate(told)}
        raise divergence_error(histories, None, {rank: found for rank, (_, found) in enumerate(told)})

    def _gathered(self, value: Any) -> list[Any]:
        """The values of all ranks, without looking at what they do."""
        self._busy = True
        try:
            payloads = self._communicator._allgather_payloads(pickle.dumps(value, protocol=5))
            return [pickle.loads(payload) for payload in payloads]
        finally:
            self._busy = False

    # -- fingerprints ------------------------------------------------------------------------------------------------

    def _compare_fingerprints(self) -> None:
        """In the first collective, once: find what differs between the ranks besides their program."""
        size = self._communicator.size
        mine = fingerprint.local()
        digest = fingerprint.digest(mine)
        if bytes(self._communicator._allgather_fixed(digest)) == digest * size:
            return
        differences = fingerprint.compare(self._gathered(mine))
        if differences.deciding:
            raise unlike_error(differences)
        if differences.numbers:
            UNLIKE.append(self._communicator)
        warnings.warn(
            f"the ranks are not alike:\n{differences.text}\nThey may round differently; numbers that Python gets from "
            f"arrays (float(x), bool(x), x.item()) are rank 0's. See {PAGE}.",
            DivergenceWarning,
            stacklevel=_user_level(),
        )


def _user_level() -> int:
    """The stack level of the user's line, counted from the caller."""
    frame = sys._getframe(1)
    target, _ = user_frame(frame)
    level = 1
    while frame is not target and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level
