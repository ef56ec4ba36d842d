"""Where a rank is in the user's code, read off its stack.

The classes of the watchdog are here since its own module is imported late, perhaps while an interrupt ends the program:
making such a class executes text, and Python then forgets that it was interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

from numpy_dist.frames import user_call

__all__ = ["Position", "Waiting", "called_function", "caller_line", "is_stand_in", "line_of", "stack_of"]


class Waiting(NamedTuple):
    """A rank's wait.

    Attributes
    ----------
    since : float
        By `time.monotonic`.
    where : str
        In what.
    timeout : float
        After how many seconds all positions are printed; 0: never.
    ends_job : bool
        Whether the job ends then.
    """

    since: float
    where: str
    timeout: float
    ends_job: bool


@dataclass(frozen=True)
class Position:
    """Where a rank is.

    Attributes
    ----------
    function : str
        What the user has called, or "the program".
    line : str
        The user's line: ``file:line in function``.
    waits : str
        For what the rank waits; empty if it does not.
    number : int
        How many operations it has recorded.
    operations : sequence of JournalEntry
        The latest ones.
    stack : str
    """

    function: str
    line: str
    waits: str
    number: int
    operations: Sequence[Any]
    stack: str

    def __str__(self) -> str:
        doing = f"waits in {self.waits}, called by {self.function}" if self.waits else f"does not wait: {self.function}"
        return f"{doing}, at {self.line} (after operation {self.number})"


_NAMES = {
    "__repr__": "repr()",
    "__str__": "str()",
    "__format__": "format()",
    "__array__": "numpy.asarray()",
    "__float__": "float()",
    "__int__": "int()",
    "__complex__": "complex()",
    "__bool__": "bool()",
    "__index__": "an index",
    "__iter__": "a loop over the array",
    "__getitem__": "x[...]",
    "__setitem__": "x[...] = ...",
    "__reduce__": "pickling",
    "__reduce_ex__": "pickling",
}


# Functions of ours that stand for another, which (or its name) is in one of these local variables.
_STAND_INS = frozenset(
    (
        *("__array_function__", "__array_ufunc__", "method", "forward", "reflected", "in_place", "unary", "equality"),
        "function",
    )
)
_MEANT = ("func", "ufunc", "function", "name", "method")


def called_function(called: FrameType | None) -> str:
    """The function that the user has called, as the user knows it."""
    if called is None:
        return "the program"
    name = called.f_code.co_name
    if is_stand_in(called.f_code):
        local = called.f_locals
        function = next((local[word] for word in _MEANT if word in local), None)
        return function if isinstance(function, str) else f"numpy.{getattr(function, '__name__', name)}"
    if str(called.f_globals.get("__name__", "")).startswith("numpy_dist.comm."):
        return f"comm.{name}"
    return _NAMES.get(name) or (name[2:-2] if name.startswith("__") and name.endswith("__") else name)


def is_stand_in(code: CodeType) -> bool:
    """Whether this is a function of ours that stands for others, so that only its frame knows what was called."""
    return code.co_name in _STAND_INS


@lru_cache(maxsize=4096)
def _line(code: CodeType, instruction: int) -> int:
    for start, stop, number in code.co_lines():
        if start <= instruction < stop and number is not None:
            return number
    return code.co_firstlineno


def line_of(code: CodeType, instruction: int) -> str:
    """``file:line in function`` of a place in the code."""
    return f"{code.co_filename}:{_line(code, instruction)} in {code.co_name}"


def stack_of(frame: FrameType) -> str:
    """The stack with the user's calls, innermost last; of ours only the first and the last one."""
    frames: list[FrameType] = []
    entry: FrameType | None = frame
    while entry is not None:
        frames.append(entry)
        entry = entry.f_back
    user, _ = user_call(frame)
    inner = frames.index(user)
    lines = []
    for position in range(len(frames) - 1, -1, -1):
        if 0 < position < inner - 1:
            if position == 1:
                lines.append(f"  ... {inner - 2} calls within numpy_dist and NumPy ...\n")
            continue
        found = traceback.StackSummary.extract([(frames[position], frames[position].f_lineno)])
        lines += found.format()
    return "".join(lines)


def caller_line(frame: FrameType | None = None) -> str:
    """``file:line in function`` of the innermost frame that is neither ours nor NumPy's, for messages."""
    user, _ = user_call(frame if frame is not None else sys._getframe(1))
    return line_of(user.f_code, user.f_lasti)
