"""The user's frames on the stack: one rule for warnings, errors, records and reports."""

from __future__ import annotations

import sys
from types import FrameType
from typing import NamedTuple

__all__ = ["UserLine", "call_site", "is_internal", "stack_level", "user_call", "user_frame"]

# What runs ours and NumPy's code, too.
_INTERNAL = ("numpy_dist", "numpy", "threading", "contextvars", "warnings", "_py_warnings")
# Parts of these whose code is a user's.
_USER_PARTS = ("numpy_dist.conformance", "numpy.conftest")
# By file: whether its code is internal. Texts remember their hashes, so that a look is cheap.
_FILES: dict[str, bool] = {}
_MOST_FILES = 4096  # notebooks have one for each cell that is run


class UserLine(NamedTuple):
    """A line of the user's code; it keeps no frame, since frames keep the arrays of their locals alive."""

    filename: str
    line: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


def is_internal(frame: FrameType) -> bool:
    """Whether a frame runs code of this package or of NumPy."""
    found = _FILES.get(frame.f_code.co_filename)
    return _look(frame) if found is None else found


def _look(frame: FrameType) -> bool:
    filename, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
    found = module.partition(".")[0] in _INTERNAL and not module.startswith(_USER_PARTS)
    found = found or filename.startswith("<frozen")
    if not filename.startswith("<"):  # other code may be called <string> and the like, too
        if len(_FILES) >= _MOST_FILES:
            _FILES.clear()
        _FILES[filename] = found
    return found


def user_call(frame: FrameType) -> tuple[FrameType, FrameType | None]:
    """The innermost frame of the user's from this one outwards (else the outermost), and what it has called of ours."""
    called: FrameType | None = None
    known = _FILES
    while True:  # a look-up for each frame, of which there may be dozens in each collective
        internal = known.get(frame.f_code.co_filename)
        if internal is None:
            internal = _look(frame)
        back = frame.f_back
        if not internal or back is None:
            return frame, called
        called, frame = frame, back


def user_frame(depth: int = 1) -> FrameType:
    """The innermost frame of the user's, or the outermost one where there is none; the caller must not keep it.

    Parameters
    ----------
    depth : int
        How many frames above this function the search begins.
    """
    return user_call(sys._getframe(depth))[0]


def call_site() -> UserLine:
    """Where the user's code called."""
    frame = user_frame(2)
    return UserLine(frame.f_code.co_filename, frame.f_lineno)


def stack_level() -> int:
    """The ``stacklevel`` with which a warning, issued by the caller of this function, shows the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and is_internal(frame):
        level, frame = level + 1, frame.f_back
    return level
