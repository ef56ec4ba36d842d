"""Floating-point events of what other layers compute on shards themselves."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from numpy_dist.engine import floating
from numpy_dist.engine.runtime import runtime
from numpy_dist.engine.sites import user_site


class noted:  # used as a statement, like numpy.errstate
    """Collect the floating-point events of a block in which a rank computes on its shards; all ranks tell them.

    Collective where the error state asks to be told at once: an event of one rank is then raised on all.

    Parameters
    ----------
    name : str
        The function's name in NumPy's message.
    """

    __slots__ = ("_errstate", "_name", "_runtime", "_site", "_state")

    def __init__(self, name: str) -> None:
        self._name, self._runtime = name, runtime()
        self._state, self._site = floating.current_state(), user_site(1)
        self._errstate = np.errstate(all="call", call=self._note)

    def _note(self, kind: str, flag: int) -> None:
        serial = self._runtime.counters.statements
        met = floating.event(serial, kind, self._name, self._state, self._site)
        if met is not None:
            self._runtime.flags.add(met)

    def __enter__(self) -> None:
        self._errstate.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._errstate.__exit__(kind, error, traceback)
        if error is None and (self._runtime.size == 1 or self._state.eager or floating.warnings_are_errors()):
            self._runtime.program.tell()
