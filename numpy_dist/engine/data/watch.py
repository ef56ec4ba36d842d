"""Floating-point events of what NumPy computes at once: NumPy would warn at the line of ours that calls it.

Where NumPy is to warn, an error state that calls back stands in for the user's while an operation runs, and the warning
is issued afterwards, at the user's line. NumPy keeps the error state in a context variable. What is computed of
ndarrays and numbers runs in a context in which nothing but that variable is set, which costs little more than a call;
whatever may call a user's code keeps the user's context, in which the variable's value is exchanged.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from contextvars import Context
from threading import get_ident
from typing import Any, TypeVar

import numpy as np

from numpy_dist.argument_types import Arguments, Function
from numpy_dist.engine.events import floating
from numpy_dist.frames import stack_level

__all__ = ["applied", "capsule", "exchanged", "forget", "is_busy", "latest", "look", "met", "tell", "watched"]

T = TypeVar("T")

met: list[tuple[int, str]] = []
"""The events that running operations have met, and that are to be told of: thread and kind."""

capsule = floating.capsule

_MOST = 64
Known = tuple[object, object, Function, bool]
_WATCHING: dict[int, Known] = {}
latest: Known = (None, None, operator.call, False)
"""The error state that was seen last, the one that stands in for it, what calls a function under that, and whether
NumPy tells nobody the name of the function."""


def _note(kind: str, flag: int) -> None:
    met.append((get_ident(), kind))


try:
    from numpy._core import umath as _umath

    _exchange: Function = _umath._extobj_contextvar.set
    _make: Any = _umath._make_extobj
except (ImportError, AttributeError):  # another NumPy: it warns at our lines

    def _exchange(state: object) -> object:
        """Nothing is exchanged."""

    _make = None


def look(now: object) -> Known:
    """An error state and what stands in for it, as `latest`."""
    global latest
    found = _WATCHING.get(id(now))
    if found is None or found[0] is not now:
        if len(_WATCHING) >= _MOST:
            _WATCHING.clear()
        found = _WATCHING[id(now)] = now, *_watching(now)
    latest = found
    return found


def _watching(now: object) -> tuple[object, Function, bool]:
    state = np.geterr()
    nameless = _make is not None and {"warn", "ignore", "raise"}.issuperset(state.values())
    if _make is None or "warn" not in state.values() or not {"call", "log"}.isdisjoint(state.values()):
        return now, operator.call, nameless
    made = _make(call=_note, **{kind: "call" if action == "warn" else action for kind, action in state.items()})
    context = Context()
    context.run(_exchange, made)
    return made, context.run, nameless


def forget() -> list[str]:
    """The kinds of events that this thread has met, each once; they are told of no more."""
    thread = get_ident()
    mine = [event for event in met if event[0] == thread]
    for event in mine:  # one by one, as other threads may be adding theirs
        met.remove(event)
    return list(dict.fromkeys([kind for _, kind in mine]))


def tell(name: str) -> None:
    """Warn of the events that were met, at the user's line.

    Parameters
    ----------
    name : str
        The operation's, in NumPy's message.
    """
    kinds = forget()
    name = floating.name_told(name) if kinds else name
    for kind in kinds:
        warnings.warn(f"{kind} encountered in {name}", RuntimeWarning, stacklevel=stack_level())


def watched(operation: Callable[..., T], name: str | Callable[..., str], *args: object, **kwargs: object) -> T:
    """The result of an operation of NumPy's, whose events are told at the user's line.

    Parameters
    ----------
    operation : callable
        It may call a user's code, by an argument.
    name : str or callable
        The operation's, in NumPy's message; or what makes it of the arguments.
    *args, **kwargs
        Its arguments.
    """
    result = exchanged(operation, *args, **kwargs)
    if met:
        tell(name if isinstance(name, str) else name(*args))
    return result


def exchanged(operation: Callable[..., T], *args: object, **kwargs: object) -> T:
    """The result of an operation under the error state that stands in for the user's; events are yet to be told."""
    state = capsule()
    known = latest
    if known[0] is not state:
        known = look(state)
    try:
        _exchange(known[1])
        result = operation(*args, **kwargs)
        _exchange(state)
    except BaseException:
        _exchange(state)
        forget()
        raise
    return result


def applied(operation: Callable[..., T], name: str | Callable[..., str], operands: Arguments) -> T:
    """As `watched`, of ndarrays and numbers, in a tuple: in less time."""
    state = capsule()
    known = latest
    if known[0] is not state:
        known = look(state)
    try:
        result: T = known[2](operation, *operands)
    except BaseException as error:
        if not is_busy(error):
            raise
        result = exchanged(operation, *operands)
    if met:
        tell(name if isinstance(name, str) else name(*operands))
    return result


def is_busy(error: BaseException) -> bool:
    """Whether an operation was not begun, as its context is another thread's now; if not, what it met is forgotten."""
    if type(error) is RuntimeError and str(error).startswith("cannot enter context"):
        return True
    forget()
    return False
