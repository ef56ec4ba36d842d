"""Floating-point events: met under the statement's error state, reported at the user's line on every rank."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from numpy_dist.engine.sites import resolve

_KEYS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}
_EAGER = frozenset(("raise", "call", "print", "log"))

try:  # NumPy keeps the error state in a context variable; the capsule's identity tells cheaply whether it changed
    from numpy._core import umath as _umath

    _capsule: Any = _umath._extobj_contextvar
except (ImportError, AttributeError):
    _capsule = None


class State(dict):
    """NumPy's error state as `numpy.geterr` gives it.

    Attributes
    ----------
    eager : bool
        Whether it asks to be told at once (raise, call, print, log).
    watched : frozenset of str
        The kinds of events that it does not ignore.
    """

    __slots__ = ("eager", "watched")

    def __init__(self, state: Any) -> None:
        super().__init__(state)
        self.watched = frozenset(kind for kind, action in state.items() if action != "ignore")
        self.eager = not _EAGER.isdisjoint(state.values())


_STATES: dict[int, tuple[Any, State]] = {}


def current_state() -> State:
    """The error state here and now."""
    if _capsule is None:
        return State(np.geterr())
    capsule = _capsule.get()
    found = _STATES.get(id(capsule))
    if found is None or found[0] is not capsule:
        if len(_STATES) > 256:
            _STATES.clear()
        found = _STATES[id(capsule)] = (capsule, State(np.geterr()))
    return found[1]


_filters_seen: tuple[Any, Any, int] = (None, None, 0)
_filters_raise = False


def warnings_are_errors() -> bool:
    """Whether the first filter that applies to a RuntimeWarning makes it an error (cached by identity)."""
    global _filters_seen, _filters_raise
    filters = warnings.filters
    first = filters[0] if filters else None
    seen = _filters_seen
    if filters is not seen[0] or first is not seen[1] or len(filters) != seen[2]:
        _filters_seen = (filters, first, len(filters))
        first = next((f for f in filters if issubclass(RuntimeWarning, f[2]) and f[1] is None and f[3] is None), None)
        _filters_raise = first is not None and first[0] == "error"
    return _filters_raise


# (serial, kind, operation's name, action, filename, line, module): sortable, picklable, the same on every rank
Event = tuple[int, str, str, str, str, int, str]


def event(serial: int, kind: str, name: str, state: State, site: Any) -> Event | None:
    """An event of a statement that was recorded at `site` under an error state; None if the state ignores it."""
    action = state[_KEYS[kind]]
    if action == "ignore":
        return None
    where = resolve(site)
    return serial, kind, name, action, where.filename, where.line, where.module


_registries: dict[str, dict] = {}


def report(events: Iterable[Event]) -> None:
    """Tell the user of events as NumPy would have: warn at the recorded line, raise, call, print or log.

    Raises
    ------
    FloatingPointError
        For the first event that was recorded under ``errstate(...="raise")``.
    """
    for _, kind, name, action, filename, line, module in sorted(set(events)):
        message = f"{kind} encountered in {name}"
        if action == "warn":
            registry = _registries.setdefault(filename, {})
            warnings.warn_explicit(message, RuntimeWarning, filename, line, module, registry)
        elif action == "raise":
            raise FloatingPointError(message)
        elif action == "print":
            print(f"Warning: {message}")
        else:
            handler: Any = np.geterrcall()
            if handler is not None and action == "call":
                handler(kind, {"divide by zero": 1, "overflow": 2, "underflow": 4, "invalid value": 8}[kind])
            elif handler is not None:
                handler.write(f"Warning: {message}\n")
