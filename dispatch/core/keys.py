"""The identity of what can be overridden. Names are no keys: 25 of NumPy's collide, and others have two."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

METHODS = ("__call__", "reduce", "accumulate", "reduceat", "outer", "at")

# The attribute in which an entry keeps its function.
ENTRY = "_numpy_dist_entry_of"

# A key of the table: the function object, a ufunc (its `__call__`), or a ufunc and the name of another method. The
# class `np.ufunc` in place of a ufunc stands for all of them.
Key = Any


def canonical(target: object) -> Any:
    """The object that NumPy's protocols pass for `target`.

    Numba's ``DUFunc`` and ``GUFunc`` are no ``numpy.ufunc``: their ``__call__`` may arrive as the wrapper, their other
    methods as the ufunc inside. The ufunc inside is the key. What stands before a function that does not dispatch by
    itself (`entries`) means that function.
    """
    before = getattr(target, ENTRY, None)
    if before is not None:
        return before
    if not isinstance(target, np.ufunc | type) and type(target).__module__.partition(".")[0] == "numba":
        inner = getattr(target, "ufunc", None)
        if isinstance(inner, np.ufunc):
            return inner
    return target


def key_of(target: Any, method: str | None = None) -> Key:
    """The key of a function, of a ufunc, or of a ufunc's method (``np.add.at``, or ``np.add`` and ``"at"``).

    Raises
    ------
    TypeError
        If `target` cannot be called, or has no such method.
    """
    owner = getattr(target, "__self__", None)
    if method is None and owner is not None and target.__name__ in METHODS and isinstance(canonical(owner), np.ufunc):
        return key_of(owner, target.__name__)
    found = canonical(target)
    if not callable(found):
        raise TypeError(f"{target!r} is neither a function nor a ufunc")
    if method is None or method == "__call__":
        return found
    if method not in METHODS:
        raise TypeError(f"ufuncs have no method {method!r}; they have {', '.join(METHODS)}")
    if not isinstance(found, np.ufunc) and found is not np.ufunc:
        raise TypeError(f"{name_of(target)} is no ufunc: it has no method {method!r} that could be implemented")
    return found, method


def name_of(target: object) -> str:
    """How a function, ufunc or ufunc method is called in messages: ``numpy.linalg.svd``, ``numpy.add.at``."""
    if isinstance(target, tuple):
        return f"{name_of(target[0])}.{target[1]}"
    name = getattr(target, "__name__", None) or repr(target)
    owner = getattr(target, "__self__", None)
    if owner is not None and isinstance(canonical(owner), np.ufunc):
        return f"{name_of(owner)}.{name}"
    owner = getattr(target, "__objclass__", None)
    if owner is not None:
        return f"{name_of(owner)}.{name}"
    module = getattr(target, "__module__", None)
    is_ufunc = isinstance(canonical(target), np.ufunc)
    if is_ufunc or "._" in (module or ""):
        # A ufunc does not know its home; some functions of older NumPy only tell where they are written.
        for home in ("numpy", "numpy.strings", "numpy.lib.scimath"):
            if getattr(sys.modules.get(home), name, None) is target:
                return f"{home}.{name}"
        if is_ufunc:
            return name
        public = (module or "").partition("._")[0]
        if canonical(getattr(sys.modules.get(public), name, None)) is target:
            return f"{public}.{name}"
    if not module or module in ("builtins", "__main__") or module.startswith("numpy_dist."):
        return str(name).strip("_")
    return f"{module.lstrip('_')}.{name}"
