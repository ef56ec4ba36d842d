"""How all ranks go on when they have finished a cell.

They go on as they are where nothing failed, or where all have come equally far. Where ranks have parted (one has
raised an error, and another has waited for it) what has been started will never be complete: they get a new
communicator, and arrays from before have no values that all ranks agree on. Reading one raises `LostValueError`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass

from numpy_dist.comm import detect
from numpy_dist.comm.divergence.journal import packed
from numpy_dist.comm.mpi import MpiCommunicator, Progress, all_complete
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.runtime import runtime
from numpy_dist.errors import RankError

__all__ = [
    "PARTED",
    "PATIENCE_OUTSIDE",
    "CellOver",
    "CellOutcome",
    "announced_by",
    "decide",
    "operations_of",
    "outcome_of",
    "settle",
]

AS_BEFORE, TOGETHER, RENEWED = "as before", "together", "renewed"
PATIENCE_OUTSIDE = 0.5  # seconds in which an interrupt of the user's own code waits for a place of all ranks
_DRAIN_SECONDS = 0.001

PARTED = (
    "The ranks have parted in this cell: some have done what others have not. Distributed arrays made before have lost "
    "their values, and reading one raises LostValueError; run the cells that make them again. Plain variables may "
    "differ between the ranks, too: when in doubt, restart the kernel."
)
_LOST = "the ranks of the notebook have parted in a cell ({reason}). Run the cells that make the array again"


@dataclass(frozen=True)
class CellOutcome:
    """How a request went on one rank.

    Attributes
    ----------
    name, text : str
        The class of the error and its message; empty where there was none.
    followed : bool
        Whether it only waited for a rank that failed.
    traceback : tuple of str
        As IPython shows it.
    progress : Progress
        How far the communicator has come.
    program : tuple
        How far the program has come, and the mark of what it did.
    """

    name: str
    text: str
    followed: bool
    traceback: tuple[str, ...]
    progress: Progress
    program: tuple[object, ...]

    @property
    def failed(self) -> bool:
        """Whether it was left by an error."""
        return bool(self.name)

    @property
    def error(self) -> str:
        """The error in one line."""
        return f"{self.name}: {self.text}".strip() if self.text else self.name


@dataclass(frozen=True)
class CellOver:
    """All ranks have finished a request.

    Attributes
    ----------
    serial : int
    how : str
        How they go on, see `decide`.
    announced : frozenset of int
        Ranks that have announced a failure over the program's communicator.
    interrupted : bool
        Whether the user has interrupted it.
    """

    serial: int
    how: str
    announced: frozenset[int]
    interrupted: bool


def outcome_of(comm: MpiCommunicator, error: BaseException | None, traceback: tuple[str, ...] = ()) -> CellOutcome:
    """What a rank tells of a request that it has finished; not collective."""
    name = "" if error is None else type(error).__name__
    text = "" if error is None else str(error)
    program: tuple[object, ...] = ()
    if comm.checks is not None:
        program = comm.checks.journal.place(), comm.checks.mark()
    return CellOutcome(name, text, isinstance(error, RankError), traceback, comm.progress(), program)


def operations_of(comm: MpiCommunicator) -> bytes:
    """What this rank has done, for one that waits for it, to be compared with its own."""
    return b"" if comm.checks is None else packed(comm.checks.journal.operations())


def decide(outcomes: Mapping[int, CellOutcome]) -> str:
    """How the ranks go on, of all of which the outcomes are given."""
    states = [outcomes[rank].progress for rank in sorted(outcomes)]
    if not any(outcome.failed for outcome in outcomes.values()) and not announced_by(outcomes):
        return AS_BEFORE
    programs = [outcome.program for outcome in outcomes.values()]
    alike = all(program == programs[0] for program in programs) and (not programs[0] or programs[0][0] is not None)
    return TOGETHER if alike and all_complete(states) else RENEWED


def announced_by(outcomes: Mapping[int, CellOutcome]) -> frozenset[int]:
    """The ranks that have told the others, over the program's communicator, that they have failed."""
    return frozenset(rank for rank, outcome in outcomes.items() if outcome.progress[0])


def settle(comm: MpiCommunicator, over: CellOver, reason: str) -> MpiCommunicator:
    """Go on, on every rank at the same time; the communicator may be a new one (collective then).

    Parameters
    ----------
    comm : MpiCommunicator
    over : CellOver
    reason : str
        Why ranks have parted, if they have.
    """
    if over.interrupted:
        comm.signals.forget(over.serial)
    if over.how == TOGETHER and over.announced:
        expected = over.announced - {comm.rank}
        while not expected <= comm.ended.keys():
            comm.look_for_notices()
            time.sleep(_DRAIN_SECONDS)
        comm.withdraw()
    elif over.how == RENEWED:
        found = [thing for thing in gc.get_objects() if isinstance(thing, Storage)]
        renewed = detect.renew()
        assert isinstance(renewed, MpiCommunicator)
        comm = renewed
        comm.signals.patience_outside = PATIENCE_OUTSIDE
        runtime().program.lose(found, _LOST.format(reason=reason))
    return comm
