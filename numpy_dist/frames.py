"""The user's frames on the stack: one rule for warnings, errors, records and reports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from types import FrameType, TracebackType
from typing import NamedTuple

__all__ = [
    "UserLine",
    "call_site",
    "calling_frame",
    "hide_internal",
    "is_installed",
    "is_internal",
    "stack_level",
    "user_call",
    "user_frame",
]

# What runs ours and NumPy's code, too.
_INTERNAL = ("numpy_dist", "numpy", "threading", "contextlib", "contextvars", "warnings", "_py_warnings")
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


def calling_frame(frame: FrameType) -> FrameType:
    """The innermost frame that is no installed library's, from a user's frame outwards; that frame if all are.

    A warning of ours is about the program, which cannot change a line of SciPy. NumPy's own name whoever calls NumPy.

    Parameters
    ----------
    frame : frame
        As `user_frame` gives it.
    """
    found: FrameType | None = frame
    while found is not None:
        if not (is_internal(found) or _is_library(found)):
            return found
        found = found.f_back
    return frame


def is_installed(filename: str) -> bool:
    """Whether a file belongs to an installed library, or to Python's own."""
    return _lies_in(filename, library_folders())


@lru_cache(maxsize=_MOST_FILES)
def _lies_in(filename: str, folders: tuple[str, ...]) -> bool:
    if filename.startswith(folders):
        return True
    return not {"site-packages", "dist-packages"}.isdisjoint(filename.split(os.sep))  # of another environment


def _is_library(frame: FrameType) -> bool:
    if str(frame.f_globals.get("__name__", "")).startswith(_USER_PARTS):
        return False
    return is_installed(frame.f_code.co_filename)


@cache
def library_folders() -> tuple[str, ...]:
    """The folders that packages are installed to, and that of Python's library, which other folders lie beside."""
    import site  # what follows is wanted for a warning only
    import sysconfig

    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.join(path, "") for path in paths if path} | {os.path.dirname(__file__) + os.sep})


def call_site() -> UserLine:
    """Where the user's code called."""
    frame = user_frame(2)
    return UserLine(frame.f_code.co_filename, frame.f_lineno)


def stack_level(ours: bool = False) -> int:
    """The ``stacklevel`` with which a warning, issued by the caller of this function, shows the user's line.

    Parameters
    ----------
    ours : bool
        Whether it is a warning of ours, for `calling_frame`, and not one of NumPy's that we issue in its place.
    """
    frame = sys._getframe(1)
    target = user_call(frame)[0]
    if ours:
        target = calling_frame(target)
    level = 1
    while frame is not target and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def hide_internal(error: BaseException) -> int:
    """Take this package's lines out of the traceback of an error that is to be shown, and of those that it came of.

    An error that was met and handled inside is not shown any more, where another one took its place.

    Parameters
    ----------
    error : BaseException
        A traceback of which nothing would be left stays as it is.

    Returns
    -------
    int
        How many lines were taken out.
    """
    hidden = 0
    met: dict[int, BaseException] = {}
    ahead: list[BaseException | None] = [error]
    while ahead:
        found = ahead.pop()
        if found is None or id(found) in met:
            continue
        met[id(found)] = found
        found.__context__ = _met_outside(found.__context__)
        ahead += [found.__cause__, found.__context__, *getattr(found, "exceptions", ())]
        lines = list(_lines(found.__traceback__))
        kept = [line for line in lines if not _is_own(line.tb_frame)]
        if kept and len(kept) < len(lines):
            hidden += len(lines) - len(kept)
            trace: TracebackType | None = None
            for line in reversed(kept):
                trace = TracebackType(trace, line.tb_frame, line.tb_lasti, line.tb_lineno)
            found.__traceback__ = trace
    return hidden


def _lines(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _met_outside(error: BaseException | None) -> BaseException | None:
    """The first of an error, and of those it was raised in the handling of, that not only this package has met."""
    met: set[int] = set()
    while error is not None and _met_inside(error) and id(error) not in met:
        met.add(id(error))
        error = error.__context__
    return error


def _met_inside(error: BaseException) -> bool:
    """Whether an error was raised and caught by this package, none of the user's code between."""
    frames = [line.tb_frame for line in _lines(error.__traceback__)]
    return bool(frames) and _is_own(frames[0]) and all(map(is_internal, frames))


def _is_own(frame: FrameType) -> bool:
    """Whether a frame runs code of this package, which is not NumPy's."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == "numpy_dist" and not module.startswith(_USER_PARTS)
