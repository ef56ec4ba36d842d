"""Element-wise functions of an author's own, in the program or block by block.

NumPy's element-wise functions that are no ufuncs (`dispatch.patterns.elementwise`) are of a stack of elements: dtypes,
such as the width of texts, follow from all values. Here the dtype is known from the first element, or given.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.authoring.blocks import map_blocks
from numpy_dist.dispatch.core.keys import canonical, name_of

if TYPE_CHECKING:
    import numpy.typing as npt


def elementwise(
    function: Function, *, dtype: npt.DTypeLike | None = None, arrays: bool = False
) -> Function:
    """A function of scalars as one of arrays, distributed or not.

    Parameters
    ----------
    function : callable
        A ufunc of NumPy, SciPy or Numba: it is recorded, and fused with what is recorded around it. Or a Python
        function of scalars: Numba makes a ufunc of it, for which the same holds. What Numba cannot compile is called
        for each element, on each rank's block (collective, see `map_blocks`).
    dtype : dtype, optional
        Of the results of a Python function that Numba cannot compile; by default that of the first element's result.
    arrays : bool
        The Python function takes whole blocks, and computes each element by itself: it is called once on each rank's
        block, and not compiled (collective).

    Returns
    -------
    callable
        Takes arrays and scalars by position, which broadcast.

    Examples
    --------
    >>> import numpy_dist
    >>> @numpy_dist.elementwise
    ... def clipped_square(x, limit):
    ...     return min(x * x, limit)
    >>> clipped_square(numpy_dist.arange(100_000.0), 9.0).sum()
    np.float64(899979.0)
    """
    if isinstance(canonical(function), np.ufunc):
        return function
    if not callable(function):
        raise TypeError(f"elementwise takes a function or a ufunc, not {function!r}")
    if arrays:
        return _on_arrays(function)
    return _of_scalars(function, dtype)


def _on_arrays(function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: object) -> object:
        if not any(map(engine.is_sharded, args)):
            result = function(*map(engine.plain, args))
            return engine.wrap(result) if any(map(engine.is_handle, args)) else result
        return map_blocks(function, *args)

    return call


def _of_scalars(function: Function, dtype: npt.DTypeLike | None) -> Function:
    ufuncs: list[Function] = []  # made at the first call: Numba takes long to import
    known: dict[tuple[np.dtype, ...], bool] = {}

    @functools.wraps(function)
    def call(*args: object) -> object:
        kinds = tuple(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype for x in args)
        if dtype is None and kinds not in known:
            known[kinds] = _compiles(function, ufuncs, kinds)
        if dtype is None and known[kinds]:
            return ufuncs[0](*args)
        return by_element(*args)

    by_element = _on_arrays(_each(function, dtype))
    functools.update_wrapper(by_element, function)
    return call


def _compiles(function: Function, ufuncs: list[Function], kinds: tuple[np.dtype, ...]) -> bool:
    try:
        scalar_functions = importlib.import_module("numpy_dist.backends.compiled.scalar_functions")
        if not ufuncs:
            ufuncs.append(scalar_functions.compiled(function))
    except ImportError:  # no Numba
        return False
    return scalar_functions.compiles(ufuncs[0], kinds) is None


def _each(function: Function, dtype: npt.DTypeLike | None) -> Function:
    """The function, called for each element of arrays."""

    @functools.wraps(function)
    def on_block(*blocks: npt.ArrayLike) -> np.ndarray:
        count = len(blocks)
        found = np.asarray(np.frompyfunc(function, count, 1)(*blocks))
        kind = dtype
        if kind is None:
            ones = [np.ones((), x.dtype)[()] if isinstance(x, np.ndarray) else x for x in blocks]
            first = next(iter(found.flat)) if found.size else function(*ones)
            kind = np.asarray(first).dtype
            if kind.hasobject:
                raise TypeError(
                    f"{name_of(function)}{inspect.signature(function)} returned {type(first).__name__}: "
                    "an element-wise function returns numbers; dtype= tells which"
                )
        return found.astype(kind)

    return on_block
