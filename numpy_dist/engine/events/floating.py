"""Floating-point events: met under the statement's error state, reported at its line, under its warning filters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.engine.events.filters import Filters, current_filters
from numpy_dist.engine.events.sites import resolve

if TYPE_CHECKING:
    from numpy_dist.engine.events.sites import CallSite

# In the order in which NumPy looks at them.
_KEYS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}
_BITS = {kind: 1 << number for number, kind in enumerate(_KEYS)}
_EAGER = frozenset(("raise", "call", "print", "log"))

try:  # NumPy keeps the error state in a context variable; the capsule's identity tells cheaply whether it changed
    from numpy._core import umath as _umath

    capsule: Callable[[], object] = _umath._extobj_contextvar.get
except (ImportError, AttributeError):

    def capsule() -> object:
        return object()  # never the one that was seen last


class ErrorState(dict):
    """NumPy's error state as `numpy.geterr` gives it, and the warning filters.

    Attributes
    ----------
    filters : Filters
    eager : bool
        Whether the user wants to be told at once: the error state says so (raise, call, print, log), or the filters.
    watched : frozenset of str
        The kinds of events that it does not ignore.
    called : str or None
        The function that events are told of, whatever met them (`told_as`).
    serial : int or None
        The serial of that call, if its statements tell their events as one.
    """

    __slots__ = ("called", "eager", "filters", "serial", "watched")

    def __init__(
        self, state: Mapping[str, object], filters: Filters, called: str | None = None, serial: int | None = None
    ) -> None:
        super().__init__(state)
        self.called, self.filters, self.serial = called, filters, serial
        self.watched = frozenset(kind for kind, action in state.items() if action != "ignore")
        self.eager = (filters.prompt and "warn" in state.values()) or not _EAGER.isdisjoint(state.values())


# What an `ErrorState` was made of, to be compared by identity: NumPy's capsule, the list of warning filters, its length
# and its first item; then the state. A plain tuple, which Python takes apart faster than a named one.
Seen = tuple[Any, Any, int, Any, ErrorState]
_MOST_STATES = 64
_CALLED: dict[int, tuple[str, int | None]] = {}


def look(filters: Filters) -> Seen:
    """The error state here and now, and the circumstances by which to tell that it has not changed.

    Parameters
    ----------
    filters : Filters
        Those in force.
    """
    now, listed, known = capsule(), current_filters(), filters.states
    found = known.get(id(now))
    if found is None or found[0] is not now:
        if len(known) >= _MOST_STATES:
            known.clear()
        found = known[id(now)] = (now, ErrorState(np.geterr(), filters, *_CALLED.get(id(now), ())))
    return now, listed, len(listed), listed[0] if listed else None, found[1]


class told_as:
    """Tell the events of what a block computes as those of the function that the user called.

    Parameters
    ----------
    name : str
        The function's name in NumPy's message. Where blocks are nested the outermost says it.
    serial : int, optional
        That of the next statement: events of the block's statements are then told as those of this one.
    """

    __slots__ = ("_call", "_capsule", "_errstate")

    def __init__(self, name: str, serial: int | None = None) -> None:
        self._call, self._errstate = _CALLED.get(id(capsule()), (name, serial)), np.errstate()

    def __enter__(self) -> None:
        self._errstate.__enter__()
        self._capsule = capsule()  # one of its own, by which the state is known
        _CALLED[id(self._capsule)] = self._call

    def __exit__(self, *error: Any) -> None:
        del _CALLED[id(self._capsule)]
        self._errstate.__exit__(*error)


def name_told(name: str) -> str:
    """The name by which events are told of now: an operation's own, or that of `told_as`."""
    return _CALLED.get(id(capsule()), (name,))[0]


# (serial, kind, operation's name, action, filename, line, module, number of the filters): sortable, picklable, the same
# on every rank
Event = tuple[int, str, str, str, str, int, str, int]


def event(serial: int, kind: str, name: str, state: ErrorState, site: CallSite) -> Event | None:
    """An event of a statement that was recorded at `site` under an error state; None if the state ignores it."""
    action = state[_KEYS[kind]]
    if action == "ignore":
        return None
    where = resolve(site)
    serial = serial if state.serial is None else state.serial
    return serial, kind, state.called or name, action, where.filename, where.line, where.module, state.filters.number


def _order(event: Event) -> tuple:
    serial, kind, *rest = event
    return serial, _BITS[kind], *rest


def report(events: Iterable[Event], filters_of: Callable[[int], Filters]) -> None:
    """Tell the user of events as NumPy would have: warn at the recorded line, raise, call, print or log.

    Parameters
    ----------
    filters_of : callable
        The filters with a number, under which warnings are issued.

    Raises
    ------
    FloatingPointError
        For the first event that was recorded under ``errstate(...="raise")``.
    NameError
        For the first one that was to be called or logged, without anything to call or to write to.
    RuntimeWarning
        For the first one of which the filters make an error.
    """
    events = sorted(set(events), key=_order)
    flags: dict[tuple[int, str], int] = {}  # all that a statement has met, which functions are called with
    for serial, kind, name, *_ in events:
        flags[serial, name] = flags.get((serial, name), 0) | _BITS[kind]
    for serial, kind, name, action, filename, line, module, number in events:
        message = f"{kind} encountered in {name}"
        if action == "warn":
            filters_of(number).warn(message, filename, line, module)
        elif action == "raise":
            raise FloatingPointError(message)
        elif action == "print":
            print(f"Warning: {message}", file=sys.stderr)
        elif action == "call":
            handler: Any = np.geterrcall()
            if handler is None:
                raise NameError(f"python callback specified for {kind} (in  {name}) but no function found.")
            handler(kind, flags[serial, name])
        else:
            log: Any = np.geterrcall()
            if log is None:
                raise NameError(f"log specified for {kind} (in {name}) but no object with write method found.")
            log.write(f"Warning: {message}\n")
