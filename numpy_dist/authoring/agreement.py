"""Functions of others on blocks: what one rank's gives or raises, all ranks know before they go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.comm.portable import first_error, portable_error
from numpy_dist.dispatch.core.keys import name_of
from numpy_dist.engine import events_reported
from numpy_dist.errors import OverrideError

if TYPE_CHECKING:
    T = TypeVar("T")

Found = tuple[tuple[int, ...], np.dtype] | None


def on_blocks(function: Function, calls: Callable[[], object] | None, what: str) -> tuple[Any, list[Found]]:
    """Call a function on this rank's block; collective (one allgather).

    Parameters
    ----------
    function : callable
        For messages.
    calls : callable or None
        Makes the call; None on ranks that have nothing to call it with.
    what : str
        What was asked for: "map_blocks".

    Returns
    -------
    result : ndarray or None
        What this rank's call gave.
    found : list of (shape, dtype) or None
        Of all ranks; None for those that called nothing.

    Raises
    ------
    Exception
        On every rank what the first rank's call raised, with a note that names rank and function.
    """
    result, failure, metadata = None, None, None
    try:
        with events_reported(what):  # on every rank, since they may tell each other of events at its end
            try:
                result = None if calls is None else calls()
            except Exception as error:  # every rank raises it
                failure = error
        if failure is None and calls is not None:
            if not isinstance(result, np.ndarray | np.generic):
                result = np.asarray(result)
            if result.dtype.hasobject:
                raise OverrideError(f"it returned {type(result).__name__} of Python objects in place of numbers")
            metadata = (result.shape, result.dtype)
    except Exception as error:  # as above; of an event, where the user wants it to be an error
        failure = failure or error
    return result, everyones(metadata, failure, function, what)


def everyones(value: T, failure: Exception | None, function: Function, what: str) -> list[T]:
    """The values of all ranks, or the first rank's failure on every rank, with a note; collective (one allgather)."""
    comm = engine.runtime().comm
    told = comm.allgather((value, portable_error(failure), None if failure is None else name_of(function)))
    found = first_error((error for _, error, _ in told), comm.rank, failure)
    if found is not None:
        rank, error = found
        error.add_note(f"raised by {told[rank][2]} in {what} on the block of rank {rank}")
        raise error
    return [value for value, _, _ in told]


def disagree(function: Function, what: str, found: list[Found], expected: str) -> None:
    """Raise, on every rank, about results that do not fit."""
    listed = "".join(
        f"\n  rank {rank}: nothing to compute" if one is None else f"\n  rank {rank}: shape {one[0]}, {one[1]}"
        for rank, one in enumerate(found)
    )
    raise OverrideError(f"{what}: {name_of(function)} must return {expected}, and returned{listed}")
