"""Tracebacks of errors that are shown: without this package's own lines, unless `config.TRACEBACK` is "full"."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from numpy_dist.frames import hide_internal

__all__ = ["program_part", "shorten", "shorten_shown", "show"]


def program_part(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback below the frames of a launcher, which bear a local variable `_launcher_frame`."""
    part = rest = trace
    while rest is not None:
        if "_launcher_frame" in rest.tb_frame.f_locals:
            part = rest.tb_next
        rest = rest.tb_next
    return part


def shorten(error: BaseException) -> str:
    """Take this package's lines out of the traceback of an error that is to be shown, unless TRACEBACK is "full".

    Returns
    -------
    str
        A line that says so; empty where nothing was taken out.
    """
    settings = sys.modules.get("numpy_dist.settings")  # the error may be that it cannot be imported
    hidden = 0 if settings is not None and settings.config.TRACEBACK == "full" else hide_internal(error)
    return f"({hidden} lines inside numpy_dist are left out; NUMPY_DIST_TRACEBACK=full shows them)\n" if hidden else ""


def show(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """Print an error as Python does, shortened; a `sys.excepthook`."""
    left_out = shorten(value.with_traceback(program_part(trace)))
    sys.__excepthook__(kind, value, value.__traceback__)
    if left_out:
        print(left_out, end="", file=sys.stderr)


def shorten_shown() -> None:
    """From now on, errors that Python or IPython shows are shortened, but where a hook of the user's shows them."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = show
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)  # it may be about to be imported
    shell = None if get_ipython is None else get_ipython()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((BaseException,), _show_in_ipython)


def _show_in_ipython(
    shell: Any,
    kind: type[BaseException],
    value: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    left_out = shorten(value.with_traceback(trace))
    if left_out:
        value.add_note(left_out.rstrip())
    shell.showtraceback((kind, value, value.__traceback__), tb_offset=tb_offset)
