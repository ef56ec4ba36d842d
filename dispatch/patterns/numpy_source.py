"""Functions of NumPy that are Python code, run as they are on arrays of ours.

Much of NumPy is written with slices, ufuncs, reductions and other functions of NumPy, all of which dispatch; only its
conversions (``asanyarray``) and its tests for ``ndarray`` stand in the way. `numpy_source` gives such a function with
those names bound to ones that let an array of ours through. The code that runs is the installed NumPy's own, so that
its keywords, dtypes, errors and warnings are NumPy's by construction. `numpy_dist.distribute` does the same to a user's
code.
"""

from __future__ import annotations

import builtins
import types
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Function, Shape
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.frames import user_frame
from numpy_dist.ir import structure
from numpy_dist.ir.array_type import ndarray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Order = Literal["K", "A", "C", "F"] | None


def _asarray(
    a: Any, dtype: DTypeLike | None = None, order: Order = None, *, like: object = None, **options: Any
) -> object:
    if not engine.is_handle(a):
        return np.asarray(a, dtype, order, **options)
    if dtype is None or a.dtype == dtype:
        return a if order is None else a.astype(a.dtype, order=order, copy=False)
    return a.astype(dtype, order=order or "K")


def _asanyarray(
    a: object, dtype: DTypeLike | None = None, order: Order = None, *, like: object = None, **options: Any
) -> object:
    return _asarray(a, dtype, order, **options) if engine.is_handle(a) else np.asanyarray(a, dtype, order, **options)


def _array(
    a: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: Order = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: object = None,
) -> object:
    if not engine.is_handle(a):
        if dtype is not None and isinstance(a, np.ndarray | np.generic):
            a = engine.without_imaginary_part(a, np.dtype(dtype))
        return np.array(a, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    if copy or (dtype is not None and a.dtype != dtype):
        a = engine.copy(a, dtype=dtype, order=order)
    missing = ndmin - a.ndim
    return a if missing <= 0 else a._view(structure.index, (None,) * missing)


def _empty(shape: Shape, dtype: DTypeLike | None = float, order: str = "C", **options: object) -> engine.Handle:
    # However small: what will be put into it is cut.
    shape = np.empty(shape, "V0").shape
    return engine.empty(shape, dtype, order, layout=engine.default_layout(shape) if shape else None)


def _zeros(shape: Shape, dtype: DTypeLike | None = float, order: str = "C", **options: object) -> engine.Handle:
    return _full(shape, np.zeros((), dtype)[()], None, order)


def _full(
    shape: Shape, fill_value: object, dtype: DTypeLike | None = None, order: str = "C", **options: object
) -> engine.Handle:
    dtype = np.asanyarray(fill_value).dtype if dtype is None else dtype
    made = _empty(shape, dtype, order)
    engine.assign(made, fill_value)
    return made


def _broadcast(*args: ArrayLike) -> np.broadcast:
    """For its shape; the values of an array of ours are not to be iterated over."""
    return np.broadcast(*(np.broadcast_to(np.uint8(0), x.shape) if engine.is_handle(x) else x for x in args))


def warn(
    message: Warning | str, category: type[Warning] = UserWarning, stacklevel: int = 1, source: object = None
) -> None:
    """`warnings.warn` at the user's line, which is further up the stack than NumPy's code reckons."""
    frame = user_frame(2)
    module = frame.f_globals.get("__name__") or "<unknown>"
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry, source=source)


_REPLACED: dict[int, Function] = {
    id(np.asarray): _asarray,
    id(np.asanyarray): _asanyarray,
    id(np.array): _array,
    id(np.ndarray): ndarray,
    id(np.empty): _empty,
    id(np.zeros): _zeros,
    id(np.full): _full,
    id(np.broadcast): _broadcast,
    # NumPy's modules keep some functions without their dispatch: they get it back.
    **{id(f.__wrapped__): f for f in vars(np).values() if hasattr(f, "__wrapped__")},
}


class _Namespace:
    """A module of NumPy with the conversions replaced."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        found = getattr(self._module, name)
        return _REPLACED.get(id(found), found)


class _Warnings:
    """The module `warnings`, with a `warn` that finds the user's line."""

    warn = staticmethod(warn)

    def __getattr__(self, name: str) -> object:
        return getattr(warnings, name)


_BOUND: dict[str, dict[str, object]] = {}


def _bound_globals(module_globals: dict[str, Any]) -> dict[str, object]:
    """The names that a module's functions see: conversions replaced, private functions bound to the same names."""
    name = module_globals["__name__"]
    bound = _BOUND.get(name)
    if bound is None:
        bound = _BOUND[name] = dict(module_globals)
        for key, value in module_globals.items():
            if id(value) in _REPLACED:
                bound[key] = _REPLACED[id(value)]
            elif value is warnings:
                bound[key] = _Warnings()
            elif isinstance(value, types.ModuleType) and value.__name__.split(".")[0] == "numpy":
                bound[key] = _Namespace(value)
            elif isinstance(value, types.FunctionType) and value.__globals__ is module_globals and key.startswith("_"):
                bound[key] = _bind(value, bound)
        bound["__builtins__"] = builtins
    return bound


def _bind(function: types.FunctionType, names: dict[str, object]) -> types.FunctionType:
    bound = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    bound.__kwdefaults__ = function.__kwdefaults__
    bound.__module__, bound.__doc__ = __name__, function.__doc__
    return bound


def numpy_source(function: Function, **names: object) -> Function:
    """NumPy's implementation of a function, for arrays of ours.

    Parameters
    ----------
    function : callable
        A function of NumPy that is implemented in Python (whether it can be overridden or not).
    **names
        What further global names of its module mean in it.
    """
    implementation: Any = getattr(function, "__wrapped__", function)
    found = _bound_globals(implementation.__globals__)
    return _bind(implementation, {**found, **names} if names else found)


def adopt(module: str, *functions: Function, kind: str = "composed", alone: bool = False, **names: object) -> None:
    """Registration of NumPy's own implementation of functions, in the name of the module that says so (``__name__``).

    `kind` and `alone` are as in `registry.implements`, `names` as in `numpy_source`.
    """
    for function in functions:
        implements(function, kind=kind, source=module, alone=alone)(numpy_source(function, **names))
