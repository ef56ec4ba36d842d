"""Errors that travel to other ranks, where each rank raises the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from numpy_dist.argument_types import Arguments

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


Result = TypeVar("Result")


@dataclass
class PortableError:
    """An error whose class cannot be unpickled from its arguments."""

    kind: type[Exception]
    args: Arguments
    state: dict[str, object]
    text: str

    def restore(self) -> Exception:
        """The error again."""
        made = self.kind.__new__(self.kind)
        made.args = self.args
        made.__dict__.update(self.state)
        return made if str(made) == self.text else RuntimeError(f"{self.kind.__name__}: {self.text}")


def portable_error(error: Exception | None) -> Exception | PortableError | None:
    """An error that can be sent to other ranks: itself, or a `PortableError`; None for None."""
    if error is None:
        return None
    try:
        again = pickle.loads(pickle.dumps(error, 5))
        if type(again) is type(error) and str(again) == str(error):
            return error
    except Exception as problem:  # classes that want other arguments than their `args`, local classes
        del problem
    portable = PortableError(type(error), error.args, dict(vars(error)), str(error))
    try:
        pickle.dumps(portable, 5)
    except Exception:  # not even the class can be named
        return RuntimeError(f"{type(error).__name__}: {error}")
    return portable


def restored(error: Exception | PortableError) -> Exception:
    """An error that came from another rank."""
    return error.restore() if isinstance(error, PortableError) else error


def first_error(
    told: Iterable[Exception | PortableError | None], rank: int = -1, own: Exception | None = None
) -> tuple[int, Exception] | None:
    """The first rank that has met an error, and this; None if none has.

    Parameters
    ----------
    told : iterable
        For each rank, `portable_error` of what it has met.
    rank, own : optional
        The calling rank, and what it has met itself: that has its traceback.
    """
    for number, error in enumerate(told):
        if error is not None:
            return number, own if own is not None and number == rank else restored(error)
    return None


def agree(error: Exception | None, comm: Communicator) -> None:
    """Raise on every rank what the first of the ranks that have met an error has met (collective: one allgather)."""
    told = comm.allgather(portable_error(error)) if comm.size > 1 else [error]
    found = first_error(told, comm.rank, error)
    if found is not None:
        raise found[1]


def on_root(work: Callable[[], Result], comm: Communicator, root: int = 0) -> Result:
    """What `work` gives on one rank, or raise there, on every rank (collective: one broadcast).

    Parameters
    ----------
    work : callable
        Called on `root` only; does not communicate. Its result is pickled.
    comm : Communicator
    root : int
    """
    failure, result = None, None
    if comm.rank == root:
        try:
            result = work()
        except Exception as error:
            failure = error
    told, result = comm.bcast((portable_error(failure), result), root)
    if told is not None:
        raise restored(told) if failure is None else failure
    return result  # type: ignore[return-value]
