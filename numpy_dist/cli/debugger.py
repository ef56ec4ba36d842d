"""`breakpoint()` in a job: one rank debugs at the terminal, and the others go on until they have to wait for it.

While the prompt is open its rank is alone. What would need the others, which may be anywhere in the program, is refused
there, and nothing is recorded, since ranks that have recorded other statements cannot go on together. Arrays show what
can be known of them without the others.
"""

from __future__ import annotations

import os
import pdb
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn

from numpy_dist.argument_types import Arguments, Keywords
from numpy_dist.cli import streams
from numpy_dist.comm import detect

__all__ = ["enter"]

_ALONE = (
    "the other ranks are not at this prompt, and this needs them. Without them one can see shapes, dtypes and layouts, "
    "and this rank's elements: part x"
)
# What communicates, or notes what all ranks do, by the object whose method it is.
_COMMUNICATOR = ("_begin_collective", "_start_messages")
_CHECKS = ("begin", "called", "draws", "executing", "reads")
_PROGRAM = ("append", "run_deferred", "_execute")


_said = False


def enter(frame: FrameType, rank: int, debugged: int, arguments: Arguments, keywords: Keywords) -> object:
    """Do what `breakpoint()` is to do on one of several ranks.

    Parameters
    ----------
    frame : frame
        Where it was called.
    rank, debugged : int
        This rank, and the one that debugs.
    arguments, keywords
        What it was given: for another debugger.
    """
    wanted = os.environ.get("PYTHONBREAKPOINT", "")
    if wanted == "0":
        return None
    if rank != debugged:
        _say_once(
            f"breakpoint() at {_line(frame)} is passed over on this rank, as all that follow: rank {debugged} debugs "
            f"(numpy-dist run --debug={rank} debugs this one)"
        )
        return None
    if wanted not in ("", "pdb.set_trace"):
        return _enter_other(arguments, keywords)
    missing = _without_terminal()
    if missing:
        _say_once(
            f"breakpoint() at {_line(frame)} is passed over, as all that follow: the debugger needs a terminal, and "
            f"standard {missing} of this job is none. Start the job at a terminal, without a pipe or a file"
        )
        return None
    RankDebugger().set_trace(frame)
    return None


def _say_once(text: str) -> None:
    global _said
    if not _said:
        _said = True
        print(text, file=sys.stderr)


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _without_terminal() -> str:
    """Which of the debugger's streams is no terminal; empty where both are."""
    names = [name for name, is_one in (("input", _is_terminal(0)), ("output", streams.shows_terminal())) if not is_one]
    return " and ".join(names)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:  # it is closed
        return False


def _enter_other(arguments: Arguments, keywords: Keywords) -> object:
    """Call the debugger that PYTHONBREAKPOINT names: a function that returns when it is closed, or traces from then."""
    _tell(True)
    try:
        return sys.__breakpointhook__(*arguments, **keywords)
    finally:
        if sys.gettrace() is None:
            _tell(False)


def _tell(is_open: bool) -> None:
    """Tell the other ranks, if there are connections, that this one debugs, or does not any more."""
    debuggers = getattr(detect.started(), "debuggers", None)
    if debuggers is not None:
        debuggers.tell(is_open)


class RankDebugger(pdb.Pdb):
    """Python's debugger, on one rank of several; it steps over the code of this package.

    There is one more command, ``part x``.
    """

    def __init__(self) -> None:
        super().__init__(skip=["numpy_dist", "numpy_dist.*"], nosigint=True)

    def interaction(self, frame: FrameType | None, traceback: TracebackType | None) -> None:
        """Show the prompt until the program is to go on."""
        with ExitStack() as stack:
            stack.enter_context(streams.shown())
            _tell(True)
            stack.callback(_tell, False)
            stack.enter_context(alone())
            super().interaction(frame, traceback)

    def get_stack(self, frame: FrameType | None, traceback: TracebackType | None) -> tuple[list[Any], int]:
        """The frames of the program, without those of the launcher, and the position of the current one."""
        found, current = super().get_stack(frame, traceback)
        first = max((number for number, (f, _) in enumerate(found, 1) if _is_launchers(f)), default=0)
        return (found[first:], current - first) if first <= current else (found, current)

    def user_return(self, frame: FrameType, value: object) -> None:
        """Show the prompt where a function returns; the main program returns to nowhere."""
        super().user_return(frame, value)
        if frame.f_back is not None and _is_launchers(frame.f_back) and not self.quitting:
            self.set_continue()

    def do_part(self, text: str) -> None:
        """part x

        Show which elements of a distributed array this rank has, and their values if they are computed.
        """
        from numpy_dist import engine

        try:
            value = self._getval(text)
        except Exception:  # which the debugger has shown
            return
        if not engine.is_handle(value):
            self.error(f"{text} is not a distributed array")
            return
        try:
            self.message(f"{_described(value)}\n{engine.shard(value)!r}")
        except Exception as error:  # not computed yet, or of no rank
            self.error(f"{type(error).__name__}: {error}")


def _is_launchers(frame: FrameType) -> bool:
    """Whether a frame runs what has started the program."""
    spec = frame.f_globals.get("__spec__")  # the runner's name is __main__
    module = getattr(spec, "name", None) or frame.f_globals.get("__name__")
    return module in ("numpy_dist.cli.runner", "numpy_dist.comm.detect", "runpy")


def _described(x: Any) -> str:
    return f"<DistArray of shape {x.shape}, {x.dtype}, {x.layout}>"


@contextmanager
def alone() -> Iterator[None]:
    """A block in which this rank neither communicates nor records, and arrays show what it knows of them."""
    with ExitStack() as stack:
        for owner, names, value in _replacements():
            for name in names:
                stack.enter_context(_replaced(owner, name, value))
        yield


def _replacements() -> Iterator[tuple[object, tuple[str, ...], Callable[..., object]]]:
    """What stands for what while the prompt is open: objects, names of theirs, and the value of these."""
    comm = detect.started()
    if comm is None:
        yield detect, ("_make",), _refuse
        return
    from numpy_dist import engine
    from numpy_dist.distarray import DistArray

    yield comm, _COMMUNICATOR, _refuse
    yield comm.checks, _CHECKS, _refuse
    yield DistArray, ("__repr__", "__str__"), _described
    try:
        yield engine.runtime().program, _PROGRAM, _refuse
    except RuntimeError:  # it is another thread's, which records and executes
        return


def _refuse(*arguments: object, **keywords: object) -> NoReturn:
    raise RuntimeError(_ALONE)


_NONE = object()


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """A block in which an object has another attribute of its own."""
    before = vars(owner).get(name, _NONE)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is _NONE:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
