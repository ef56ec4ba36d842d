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

CallSite = tuple[CodeType, int, Any]
"""Code object, instruction and module name. One object for each call site and place that its function was called from,
the same each time, so that `id` tells them apart: a helper function that is called twice has its statements at two."""


class Site(NamedTuple):
    """A position in the user's code."""

    filename: str
    line: int
    module: str


class _Known:
    """A code object that was seen on the stack, kept so that its id stays its own (hashing code objects is slow).

    Attributes
    ----------
    ours : bool
        Whether it is part of us or NumPy.
    sites : dict
        What was recorded here, by instruction and by the caller's code object and instruction.
    callers : dict
        The callers' code objects, kept for the same reason.
    """

    __slots__ = ("callers", "code", "ours", "sites")

    def __init__(self, code: CodeType) -> None:
        name = code.co_filename
        self.code, self.sites, self.callers = code, dict[tuple, CallSite](), dict[int, CodeType]()
        self.ours = os.path.abspath(name).startswith(_HOMES) or name.startswith("<frozen")


_KNOWN: dict[int, _Known] = {}


def user_site(depth: int) -> CallSite:
    """The call site in the innermost frame that is neither ours nor NumPy's.

    Frames themselves are never kept: they keep their locals, hence handles, alive.

    Parameters
    ----------
    depth : int
        How many frames above the caller of this function the search begins: 1 for the function that called it. The
        nearer to the user's frame, the faster.
    """
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None:
        code = frame.f_code
        known = _KNOWN.get(id(code))
        if known is None:
            known = _KNOWN[id(code)] = _Known(code)
        if not known.ours:
            back = frame.f_back or frame
            caller = back.f_code
            key = frame.f_lasti, id(caller), back.f_lasti
            site = known.sites.get(key)
            if site is None:
                known.callers[id(caller)] = caller
                site = known.sites[key] = code, frame.f_lasti, frame.f_globals.get("__name__", "<unknown>")
            return site
        frame = frame.f_back
    return _NOWHERE


def stack_level() -> int:
    """The ``stacklevel`` with which a warning, issued by the caller of this function, shows the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _Known(frame.f_code).ours:
        level, frame = level + 1, frame.f_back
    return level


_NOWHERE: CallSite = (user_site.__code__, 0, "<unknown>")


def resolve(site: CallSite) -> Site:
    """File and line of a recorded position."""
    code, instruction, module = site
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= instruction < stop and number is not None:
            line = number
            break
    return Site(code.co_filename, line, module)
