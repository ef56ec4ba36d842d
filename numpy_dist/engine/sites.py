"""Where in the user's code something was recorded."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_HOMES = tuple(
    {
        _HERE,
        os.path.dirname(os.path.abspath(np.__file__)) + os.sep,
        *(os.path.realpath(os.path.join(_HERE, part)) + os.sep for part in ("dispatch", "backends")),
    }
)
_OURS: dict[CodeType, bool] = {}


class Site(NamedTuple):
    """A position in the user's code."""

    filename: str
    line: int
    module: str


def user_frame() -> tuple[CodeType, int, Any]:
    """Code object, instruction and module name of the innermost frame that is neither ours nor NumPy's.

    To be called by what records, of which the user's frame is no direct caller. Frames themselves are never kept: they
    keep their locals, hence handles, alive.
    """
    frame: FrameType | None = sys._getframe(3)
    known = _OURS
    while frame is not None:
        code = frame.f_code
        ours = known.get(code)
        if ours is None:
            ours = _is_ours(code)
        if not ours:
            return code, frame.f_lasti, frame.f_globals.get("__name__", "<unknown>")
        frame = frame.f_back
    return _NOWHERE


def _is_ours(code: CodeType) -> bool:
    name = code.co_filename
    ours = _OURS[code] = os.path.abspath(name).startswith(_HOMES) or name.startswith("<frozen")
    return ours


def stack_level() -> int:
    """The ``stacklevel`` with which a warning, issued by the caller of this function, shows the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code):
        level, frame = level + 1, frame.f_back
    return level


_NOWHERE = (user_frame.__code__, 0, "<unknown>")


def resolve(site: tuple[CodeType, int, Any]) -> Site:
    """File and line of a recorded position."""
    code, instruction, module = site
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= instruction < stop and number is not None:
            line = number
            break
    return Site(code.co_filename, line, module)
