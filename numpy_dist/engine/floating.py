"""Floating-point events: met under the statement's error state, reported at the user's line on every rank."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from numpy_dist.engine.sites import resolve

# In the order in which NumPy looks at them.
_KEYS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}
_BITS = {kind: 1 << number for number, kind in enumerate(_KEYS)}
_EAGER = frozenset(("raise", "call", "print", "log"))

try:  # NumPy keeps the error state in a context variable; the capsule's identity tells cheaply whether it changed
    from numpy._core import umath as _umath

    capsule: Any = _umath._extobj_contextvar.get
except (ImportError, AttributeError):

    def capsule() -> Any:
        return object()  # never the one that was seen last


class State(dict):
    """NumPy's error state as `numpy.geterr` gives it.

    Attributes
    ----------
    eager : bool
        Whether the user wants to be told at once: it says so (raise, call, print, log), or warnings were errors.
    watched : frozenset of str
        The kinds of events that it does not ignore.
    called : str or None
        The function that events are told of, whatever met them (`told_as`).
    """

    __slots__ = ("called", "eager", "watched")

    def __init__(self, state: Any, warnings_raise: bool, called: str | None = None) -> None:
        super().__init__(state)
        self.called = called
        self.watched = frozenset(kind for kind, action in state.items() if action != "ignore")
        self.eager = warnings_raise or not _EAGER.isdisjoint(state.values())


# What a `State` was made of, to be compared by identity: NumPy's capsule, the list of warning filters, its length and
# its first item; then the state. A plain tuple, which Python takes apart faster than a named one.
Seen = tuple[Any, Any, int, Any, State]
_STATES: dict[tuple[int, bool], tuple[Any, State]] = {}
_CALLED: dict[int, str] = {}


def look() -> Seen:
    """The error state here and now, and the circumstances by which to tell that it has not changed."""
    now, filters = capsule(), warnings.filters
    return now, filters, len(filters), filters[0] if filters else None, _state_of(now)


def current_state() -> State:
    """The error state here and now, and whether warnings are errors."""
    return look()[4]


def _state_of(now: Any) -> State:
    raises = warnings_are_errors()
    found = _STATES.get((id(now), raises))
    if found is None or found[0] is not now:
        if len(_STATES) > 256:
            _STATES.clear()
        found = _STATES[id(now), raises] = (now, State(np.geterr(), raises, _CALLED.get(id(now))))
    return found[1]


class told_as:
    """Tell the events of what a block computes as those of the function that the user called.

    Parameters
    ----------
    name : str
        The function's name in NumPy's message. Where blocks are nested the outermost says it.
    """

    __slots__ = ("_capsule", "_errstate", "_name")

    def __init__(self, name: str) -> None:
        self._name, self._errstate = _CALLED.get(id(capsule()), name), np.errstate()

    def __enter__(self) -> None:
        self._errstate.__enter__()
        self._capsule = capsule()  # one of its own, by which the state is known
        _CALLED[id(self._capsule)] = self._name

    def __exit__(self, *error: Any) -> None:
        del _CALLED[id(self._capsule)]
        self._errstate.__exit__(*error)


def warnings_are_errors() -> bool:
    """Whether the first filter that applies to a RuntimeWarning makes it an error."""
    for action, message, category, module, _ in warnings.filters:
        if message is None and module is None and issubclass(RuntimeWarning, category):
            return action == "error"
    return False


# (serial, kind, operation's name, action, filename, line, module): sortable, picklable, the same on every rank
Event = tuple[int, str, str, str, str, int, str]


def event(serial: int, kind: str, name: str, state: State, site: Any) -> Event | None:
    """An event of a statement that was recorded at `site` under an error state; None if the state ignores it."""
    action = state[_KEYS[kind]]
    if action == "ignore":
        return None
    where = resolve(site)
    return serial, kind, state.called or name, action, where.filename, where.line, where.module


_registries: dict[str, dict] = {}


def _order(event: Event) -> tuple:
    serial, kind, *rest = event
    return serial, _BITS[kind], *rest


def report(events: Iterable[Event]) -> None:
    """Tell the user of events as NumPy would have: warn at the recorded line, raise, call, print or log.

    Raises
    ------
    FloatingPointError
        For the first event that was recorded under ``errstate(...="raise")``.
    """
    for _, kind, name, action, filename, line, module in sorted(set(events), key=_order):
        message = f"{kind} encountered in {name}"
        if action == "warn":
            registry = _registries.setdefault(filename, {})
            warnings.warn_explicit(message, RuntimeWarning, filename, line, module, registry)
        elif action == "raise":
            raise FloatingPointError(message)
        elif action == "print":
            print(f"Warning: {message}", file=sys.stderr)
        else:
            handler: Any = np.geterrcall()
            if handler is not None and action == "call":
                handler(kind, _BITS[kind])
            elif handler is not None:
                handler.write(f"Warning: {message}\n")
