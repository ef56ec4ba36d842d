"""What of NumPy there is to cover: every overridable function, and every ufunc with all of its methods."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from numpy_dist.conformance.suite import cases_by_function
from numpy_dist.dispatch.core import catalogue
from numpy_dist.dispatch.core.keys import METHODS


def functions() -> list[Any]:
    """Every function that can be overridden, once.

    Functions with ``like=`` are there twice in NumPy's list; the protocol receives the public one.
    """
    public = (
        getattr(importlib.import_module(function.__module__), function.__name__, function)
        for function in catalogue.overridable_functions()
    )
    return list(dict.fromkeys(public))


def ufunc_targets() -> Iterator[Any]:
    """Every ufunc, and every method of every ufunc."""
    for ufunc in catalogue.overridable_ufuncs():
        for method in METHODS:
            yield ufunc if method == "__call__" else getattr(ufunc, method)


def without_cases() -> list[Any]:
    """What has no case: functions, and methods of ufuncs that have loops of fixed dtypes."""
    found = cases_by_function()
    targets = [*functions(), *(t for t in ufunc_targets() if t in found or getattr(t, "__self__", t).types)]
    return [target for target in targets if target not in found]
