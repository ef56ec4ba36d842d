"""Where in the user's code something was recorded."""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import NamedTuple
from weakref import WeakValueDictionary

from numpy_dist.frames import is_internal

_getframe = sys._getframe  # saves a look-up for each statement


class SourceLine(NamedTuple):
    """A position in the user's code."""

    filename: str
    line: int
    module: str


class CallSite:
    """A place in the user's code that records statements: an instruction, and where its function was called from.

    There is one object for each, the same each time: a helper function that is called twice has its statements at two
    sites. It is the same for as long as anything refers to it, so that identity means equality; no longer, since
    programs may make code without end (``exec``).

    Attributes
    ----------
    code, instruction
        The code object, and the position in it.
    module : str
        The name of its module.
    caller, called_at
        Code object and instruction of the caller; the own ones where there is none.
    """

    __slots__ = ("__weakref__", "called_at", "caller", "code", "instruction", "module")

    def __init__(self, frame: FrameType) -> None:
        back = frame.f_back or frame
        self.code, self.instruction = frame.f_code, frame.f_lasti
        self.caller, self.called_at = back.f_code, back.f_lasti
        name = frame.f_globals.get("__name__")
        self.module = name if isinstance(name, str) else "<unknown>"  # which code given to `exec` may lack


LATEST: dict[int, dict[int, CallSite]] = {}
"""By the id of a code object of the user's, and instruction: the site that was seen last. For `Program.append`."""

_MOST = 2048
_RECENT: list[CallSite] = []  # kept for a while, with all of `LATEST`, though nothing refers to them: loops come again
_OURS: dict[int, CodeType] = {}  # code objects seen on the stack that are part of us or of NumPy, by their ids
_ALL: WeakValueDictionary[tuple[int, int, int, int], CallSite] = WeakValueDictionary()
_lock = threading.RLock()  # finalizers, handlers of signals and profiling functions may record in between
# Ids, since hashing code objects is slow. The sites keep the code objects, whose ids hence stay their own.


def user_site(depth: int) -> CallSite:
    """The call site in the innermost frame that is neither ours nor NumPy's.

    Parameters
    ----------
    depth : int
        How many frames above the caller of this function the search begins: 1 for the function that called it. The
        nearer to the user's frame, the faster.
    """
    return search(_getframe(depth + 1))


def search(frame: FrameType | None) -> CallSite:
    """The call site in the innermost frame of the user's, from this one outwards.

    Frames themselves are never kept: they keep their locals, hence handles, alive.
    """
    while frame is not None:
        code = frame.f_code
        if id(code) not in _OURS:
            if id(code) in LATEST or not is_internal(frame):
                return site_of(frame)
            _OURS[id(code)] = code
        frame = frame.f_back
    return _NOWHERE


def site_of(frame: FrameType) -> CallSite:
    """The site of a frame of the user's, found or new; it becomes the latest of its instruction."""
    code, back = frame.f_code, frame.f_back or frame
    key = id(code), frame.f_lasti, id(back.f_code), back.f_lasti
    site = _ALL.get(key)
    if site is None:
        with _lock:  # several ranks of one process may be here at once
            site = _ALL.get(key)
            if site is None:
                if len(_RECENT) >= _MOST:
                    _RECENT.clear()
                    LATEST.clear()
                site = _ALL[key] = CallSite(frame)
                _RECENT.append(site)
    LATEST.setdefault(id(code), {})[frame.f_lasti] = site
    return site


_NOWHERE = CallSite(_getframe())


def resolve(site: CallSite) -> SourceLine:
    """File and line of a recorded position."""
    code, instruction = site.code, site.instruction
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= instruction < stop and number is not None:
            line = number
            break
    return SourceLine(code.co_filename, line, site.module)
