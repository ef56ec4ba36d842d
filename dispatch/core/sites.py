"""The user's call site, for warnings and errors: the innermost frame that is neither ours nor NumPy's."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NamedTuple

_OURS = ("numpy", "numpy_dist")
# Parts of the package whose code is a user's as far as warnings are concerned.
_USER_PARTS = ("numpy_dist.conformance", "numpy.conftest")


class UserLine(NamedTuple):
    """A line of the user's code; it keeps no frame, since frames keep the arrays of their locals alive."""

    filename: str
    line: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


def user_frame(depth: int = 1) -> FrameType:
    """The innermost frame outside of numpy_dist and NumPy; the outermost one where there is none.

    The caller must not keep it.
    """
    frame = sys._getframe(depth)
    while _is_ours(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    name: Any = frame.f_globals.get("__name__")
    return (
        isinstance(name, str)
        and name.partition(".")[0] in _OURS
        and not name.startswith(_USER_PARTS)
    )


def call_site() -> UserLine:
    """Where the user's code called."""
    frame = user_frame(2)
    return UserLine(frame.f_code.co_filename, frame.f_lineno)
