"""Lost values: what an execution that an exception left has overwritten in part or could not compute, and what is
computed from these.

Whoever asks for them gets a `LostValueError`, until all of the array is assigned anew.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Sequence

import numpy as np

from numpy_dist.engine.events.sites import resolve
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.frames import is_internal
from numpy_dist.ir.statements import Statement


def propagate(statements: Sequence[Statement]) -> tuple[list[Statement], list[Storage]]:
    """The statements that can be executed, of some in program order, though values of storages are lost.

    The results of others are lost, too. What is written as a whole has values again.

    Returns
    -------
    statements, lost
        The latter are storages that were not lost before.
    """
    kept: list[Statement] = []
    lost: list[Storage] = []
    for statement in statements:
        cause = next((ref.storage.lost for ref in statement.reads() if ref.storage.lost), "")
        for out in statement.outputs:
            if cause:
                out.storage.lost = out.storage.lost or cause
                lost.append(out.storage)
            elif out.storage.lost and statement.where is None and _is_whole(out.array, out.storage):
                out.storage.lost = ""
        if not cause:
            kept.append(statement)
    return kept, lost


def _is_whole(array: np.ndarray, storage: Storage) -> bool:
    """Whether a meta array has all elements of a storage."""
    flags = array.flags
    return array.nbytes == storage.nbytes and array.size > 0 and (flags.c_contiguous or flags.f_contiguous)


_OF_THE_CALLER = (MemoryError, RecursionError, ctypes.ArgumentError)  # the last is what ctypes makes of the others


def cannot_run(error: BaseException) -> bool:
    """Whether an error is of the statement that was executed: it would be raised each time.

    Exceptions that are no errors, want of memory or of depth on the caller's stack, and what code of the user's raises
    (a handler of signals) are not.
    """
    if not isinstance(error, Exception) or isinstance(error, _OF_THE_CALLER):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and is_internal(trace.tb_frame)


def reason(statement: Statement, error: BaseException, why: str = "") -> str:
    """Why what a statement writes is lost; or tell `why`, by whom and where."""
    site = resolve(statement.site)
    what = traceback.format_exception_only(error)[0].strip()
    where = f"{statement.op.name}, recorded in {site.filename}, line {site.line}"
    if why:
        return f"{why}: {what} was raised as {where}, was executed"
    if cannot_run(error):
        return f"it has no values: {what} was raised as {where}, was executed"
    return (
        f"its values are lost: {what} has interrupted {where}, as that was writing, in place, into memory that it also "
        "read. Assign all of the array, or make it anew"
    )
