"""Whether the ranks do the same: compared where they meet anyway, and with ``CHECK=on`` before each collective."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from numpy_dist.comm.divergence import fingerprint
from numpy_dist.comm.divergence.diagnosis import PAGE, divergence_error, unlike_error
from numpy_dist.comm.divergence.journal import CALL, DRAW, Journal, Origin
from numpy_dist.errors import DivergenceWarning
from numpy_dist.frames import stack_level
from numpy_dist.ir.views import View
from numpy_dist.settings import MIRRORS, config

if TYPE_CHECKING:
    from numpy_dist.ir.statements import Statement

__all__ = ["UNLIKE", "Checks"]

T = TypeVar("T")

UNLIKE: list[object] = []
"""Communicators of which some ranks may compute other numbers than others; for a look that costs nothing."""

_ever_on = False  # whether CHECK was ever: a look at the setting costs more than a collective may


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
    within : bool
        Whether the rank is within a call that was noted with its arguments (`called`).
    """

    def __init__(self, communicator: Any) -> None:
        self.journal = Journal()
        self.collective = ""
        self.within = False
        self._communicator = communicator
        self._first = True
        self._busy = False

    def begin(self, kind: str, details: str = "", depth: int = 3) -> None:
        """A collective begins; collective itself, where something is to be compared.

        Parameters
        ----------
        details : str
            What else is the same on ranks that do the same, such as the root.
        depth : int
            How many frames up the search for the user's begins: at the caller of the communicator's method, since each
            frame that is looked at takes time.
        """
        if self._busy:
            return
        self.collective = kind
        self.journal.call(kind, sys._getframe(depth), details)
        if self._first or _ever_on:
            self._compare()

    def executing(self, statements: Sequence[Statement], depth: int = 3) -> None:
        """Statements are about to be executed, which may communicate; with ``CHECK=on`` collective."""
        journal = self.journal
        journal.with_operands = _ever_on and config.CHECK == "on"
        journal.executed(statements)
        if journal.with_operands:
            self.begin("execution", depth=depth)

    def reads(self, view: View, storage: Origin, kind: str = "", details: str = "", depth: int = 2) -> None:
        """The values of an array's view are read by all ranks, not by statements; of a `kind`, by messages alone."""
        if self._busy:
            return
        self.journal.read(view, storage)
        if kind:
            self.collective = kind
            self.journal.call(kind, sys._getframe(depth), details)

    def called(self, given: Sequence[str], depth: int = 2) -> None:
        """Something is called that all ranks call alike, with these arguments beside the views that were read."""
        if not self._busy:
            self.journal.call(CALL, sys._getframe(depth), "", given)

    def draws(self, state: str, depth: int = 2) -> None:
        """Random numbers are drawn by all ranks, from a generator of which this is the same."""
        if not self._busy:
            self.journal.call(DRAW, sys._getframe(depth), f"a generator in another state ({state})")

    def number(self) -> int:
        """What the messages between two ranks bear that do the same."""
        return 0 if self._busy else self.journal.mark()

    # -- marks in collectives ----------------------------------------------------------------------------------------

    def mark(self) -> int:
        """What travels with each part of a gathering collective, and is the same on ranks that do the same.

        A signed number of 64 bits: of the journal, with what stands for the overrides.
        """
        return 0 if self._busy else self.journal.mark() ^ fingerprint.overrides_mark

    def _compare(self) -> None:
        """Compare what the ranks are, in the first collective, and what they have done, with ``CHECK=on``."""
        journal = self.journal
        if self._first:
            self._first = False
            self._compare_fingerprints()
            journal.compares_values = self._communicator not in UNLIKE
        journal.with_operands = config.CHECK == "on"
        if journal.with_operands:
            mine = journal.digest() + fingerprint.overrides_mark.to_bytes(4, "little")
            if not self._alike(mine):
                self.differ()

    def _alike(self, digest: bytes) -> bool:
        """Whether all ranks have the same digest, in a collective that looks like all others."""
        told = self._told_by_all(digest)
        return told.count(told[0]) == len(told)

    def differ(self) -> None:
        """Raise on every rank what each has done, since their marks differ; collective."""
        if self._busy:
            return
        told = self._gathered((self.journal.operations(), fingerprint.deciding()))
        histories = {rank: operations for rank, (operations, _) in enumerate(told)}
        raise divergence_error(histories, None, {rank: found for rank, (_, found) in enumerate(told)})

    def _gathered(self, value: T) -> list[T]:
        """The values of all ranks, without looking at what they do."""
        return [pickle.loads(payload) for payload in self._told_by_all(pickle.dumps(value, protocol=5))]

    def _told_by_all(self, payload: bytes) -> Sequence[bytes]:
        counters = self._communicator.counters
        before = counters.bytes  # which are the program's
        self._busy = True
        try:
            payloads: Sequence[bytes] = self._communicator._allgather_payloads(payload)
            return payloads
        finally:
            self._busy, counters.bytes = False, before

    # -- fingerprints ------------------------------------------------------------------------------------------------

    def _compare_fingerprints(self) -> None:
        """In the first collective, once: find what differs between the ranks besides their program."""
        mine = fingerprint.local()
        digest = fingerprint.digest(mine)
        if self._alike(digest):
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
            stacklevel=stack_level(ours=True),
        )


def _look_at_setting() -> None:
    global _ever_on
    _ever_on = _ever_on or config.CHECK == "on"


MIRRORS["CHECK"] = _look_at_setting
_look_at_setting()
