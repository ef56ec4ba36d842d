"""What of NumPy can be overridden, functions and ufuncs with their methods, and how much runs without gathering."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from numpy_dist.argument_types import Function
from numpy_dist.conformance.suite import cases_by_function
from numpy_dist.dispatch.core import catalogue
from numpy_dist.dispatch.core.keys import METHODS


def functions() -> list[Function]:
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


def without_cases() -> list[Function]:
    """What has no case: functions, and methods of ufuncs that have loops of fixed dtypes."""
    found = cases_by_function()
    targets = [*functions(), *(t for t in ufunc_targets() if t in found or getattr(t, "__self__", t).types)]
    return [target for target in targets if target not in found]


def share() -> tuple[int, int, int, int]:
    """How many functions run without gathering, of how many; the same of ufuncs and their methods."""
    known, targets = functions(), list(ufunc_targets())
    return (
        sum(catalogue.kind_of(f) != "gathered" for f in known),
        len(known),
        sum(catalogue.kind_of(t) != "gathered" for t in targets),
        len(targets),
    )


def share_text() -> str:
    """`share` in words."""
    native, known, native_targets, targets = share()
    return (
        f"{native} of {known} functions ({100 * native / known:.1f} %) and {native_targets} of {targets} "
        f"ufuncs and ufunc methods ({100 * native_targets / targets:.1f} %) run without gathering."
    )
