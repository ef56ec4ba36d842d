"""Who raises SystemExit, and with which code: Python forgets both before it ends.

It neither calls `sys.excepthook` for a SystemExit nor tells `atexit` functions of it. From Python 3.12 on the
interpreter reports exceptions that leave a function, at no cost for those that do not. Before, instances of SystemExit
are seen as they are made.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType

__all__ = ["watch"]

# Of CPython 3.11, whose layouts do not change any more: the flags of a type, and the flag that it cannot be changed.
_FLAGS_OFFSET = 168
_IMMUTABLE = 1 << 8
_TOOLS = (3, 4, 5, 2, 1, 0)  # the first ones are nobody's


def watch(main: CodeType, left: Callable[[SystemExit], None], made: Callable[[object, FrameType], None]) -> None:
    """Have one of two functions called from now on.

    Parameters
    ----------
    main : code object
        The main program.
    left : callable
        Called with a SystemExit that leaves `main`.
    made : callable
        Called with the argument of each SystemExit that is made, and the frame that makes it, where nothing better is
        to be had.
    """
    if sys.version_info >= (3, 12):
        _watch_unwinding(main, left)
    elif sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 11):
        _watch_instances(made)


def _watch_unwinding(main: CodeType, left: Callable[[SystemExit], None]) -> None:
    monitoring: ModuleType = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    tool = next((number for number in _TOOLS if monitoring.get_tool(number) is None), None)
    if tool is None:  # all are taken, by debuggers and profilers
        return

    def unwinds(code: CodeType, offset: int, error: BaseException) -> None:
        if code is main and isinstance(error, SystemExit):
            left(error)

    monitoring.use_tool_id(tool, "numpy_dist")
    monitoring.register_callback(tool, monitoring.events.PY_UNWIND, unwinds)
    monitoring.set_events(tool, monitoring.events.PY_UNWIND)


def _watch_instances(made: Callable[[object, FrameType], None]) -> None:
    original = SystemExit.__init__

    def initialise(self: SystemExit, *args: object, **keywords: object) -> None:
        original(self, *args, **keywords)
        made(self.code, sys._getframe(1))

    flags = ctypes.c_ulong.from_address(id(SystemExit) + _FLAGS_OFFSET)
    if flags.value != SystemExit.__flags__ or not flags.value & _IMMUTABLE:
        return
    flags.value &= ~_IMMUTABLE
    try:
        SystemExit.__init__ = initialise  # type: ignore[method-assign, assignment]
    finally:
        flags.value |= _IMMUTABLE
