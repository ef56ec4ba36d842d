"""Everything of NumPy that its protocols can hand to us, and the kind of implementation that each has."""

from __future__ import annotations

import importlib
import inspect

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core import registry
from numpy_dist.dispatch.core.engine_support import why_not_element_wise
from numpy_dist.dispatch.core.keys import key_of

# Modules whose functions are overridable but unknown to NumPy until they are imported.
_LAZY_MODULES = (
    "numpy.char",
    "numpy.fft",
    "numpy.lib.recfunctions",
    "numpy.lib.scimath",
    "numpy.lib.stride_tricks",
    "numpy.linalg",
    "numpy.polynomial",
    "numpy.strings",
)


def overridable_functions() -> list[Function]:
    """All functions that ``__array_function__`` can override, sorted by module and name."""
    from numpy.testing import overrides

    for module in _LAZY_MODULES:
        importlib.import_module(module)
    # Before NumPy 2.2 the functions that are overridden by their parameter `like` were not among them.
    found = overrides.get_overridable_numpy_array_functions() | {f for f in vars(np).values() if _has_like(f)}
    return sorted(found, key=lambda function: (function.__module__, function.__name__, id(function)))


def _has_like(found: object) -> bool:
    if not callable(found) or isinstance(found, type):
        return False
    try:
        return "like" in inspect.signature(found).parameters
    except ValueError:  # a function written in C: its documentation begins with the signature
        return "like=None" in (found.__doc__ or "").partition("\n\n")[0]


def overridable_ufuncs() -> list[np.ufunc]:
    """All of NumPy's ufuncs that ``__array_ufunc__`` can override, sorted by name."""
    from numpy.testing import overrides

    for module in _LAZY_MODULES:
        importlib.import_module(module)
    return sorted(overrides.get_overridable_numpy_ufuncs(), key=lambda ufunc: (ufunc.__name__, id(ufunc)))


def kind_of(target: Function, method: str | None = None) -> str:
    """The kind of implementation that a function, ufunc or ufunc method has: one of `registry.KINDS`.

    Where rules depend on the arguments it is that of the first one. What has no rule is "elementwise" or "reduction"
    where the engine does it, and else "gathered".
    """
    record = registry.lookup(target, method)
    key = key_of(target, method)
    ufunc, name = key if isinstance(key, tuple) else (key, "__call__")
    if name == "reduce" and key not in registry.TABLE and engine.reducible(ufunc, np.dtype(float)):
        return "reduction"
    if record is not None:
        return str(record.kind)
    if isinstance(ufunc, np.ufunc) and name == "__call__" and why_not_element_wise(ufunc, (), {}) is None:
        return "elementwise"
    return "gathered"
