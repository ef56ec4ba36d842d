"""Floating-point events of what other layers compute on shards themselves."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, TracebackType

import numpy as np

from numpy_dist.engine.events import floating
from numpy_dist.engine.events.reporting import ReportedTogether
from numpy_dist.engine.events.sites import user_site
from numpy_dist.engine.runtime import runtime

_NONE: Mapping[str, str] = MappingProxyType({})


class events_reported:  # used as a statement, like numpy.errstate
    """Collect the floating-point events of a block in which a rank computes on its shards; all ranks tell them.

    Collective where the error state asks to be told at once: an event of one rank is then raised on all.

    Parameters
    ----------
    name : str
        The function's name in NumPy's message.
    alike : bool
        Whether all ranks compute the same: then each tells at once, without communication.
    names : mapping of str to str
        By the kinds of events (``"overflow"``, ...) the functions that meet them, where these are others.
    """

    __slots__ = ("_alike", "_errstate", "_name", "_names", "_runtime", "_site", "_state")

    def __init__(self, name: str, alike: bool = False, names: Mapping[str, str] = _NONE) -> None:
        self._name, self._runtime, self._alike, self._names = name, runtime(), alike, names
        self._state, self._site = self._runtime.events.error_state(), user_site(1)
        self._errstate = np.errstate(all="call", call=self._note)

    def _note(self, kind: str, flag: int) -> None:
        serial = self._runtime.counters.statements
        met = floating.event(serial, kind, self._names.get(kind, self._name), self._state, self._site)
        self._runtime.events.note(met, self._alike)

    def __enter__(self) -> None:
        self._errstate.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._errstate.__exit__(kind, error, traceback)
        events = self._runtime.events
        events.unreported |= not self._alike  # also where nothing is watched: ranks may differ in their error states
        if error is not None:
            return
        if self._runtime.size == 1 or self._state.eager:
            events.tell()
        elif self._alike:
            events.tell_before_value()


def reported_together() -> ReportedTogether:
    """The context of a call that computes and then writes an output: its events are reported behind it."""
    return runtime().events.together
