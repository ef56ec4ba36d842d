"""The same case where floating-point events are errors, as the user may have said: `numpy.errstate`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking.subject import build, target


def tell_of_events(warned: set[str]) -> bool:
    """Whether warnings tell of floating-point events."""
    return any(map(is_event, warned))


def is_event(text: str) -> bool:
    """Whether a warning tells of a floating-point event."""
    return " encountered in " in text


def differences(case: Case, seed: str, gathers: bool) -> Iterator[str]:
    """What is not NumPy's error, on every rank alike; for cases that meet events (collective)."""
    ours = current()
    with ours.settings():
        subject = build(case, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = _error(case, *subject.theirs)
        with ours.watched(gathers, may_move=True):
            mine = _error(case, *subject.ours)
            ours.finish()  # what was recorded before the error
    told = ours.comm.allgather(repr(mine))
    if len(set(told)) > 1:
        yield f"under errstate(all='raise') the ranks differ: {told}"
    elif repr(mine) != repr(theirs):
        yield f"under errstate(all='raise') it raises {mine!r} instead of {theirs!r}"


def _error(case: Case, args: tuple, kwargs: dict) -> Exception | None:
    with np.errstate(all="raise", under="ignore"):
        try:
            target(case)(*args, **kwargs)
        except Exception as error:
            return error
    return None
