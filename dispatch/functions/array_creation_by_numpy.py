"""Array creation by NumPy's own code, with creation functions of ours in place of those that it calls.

For functions of NumPy's namespace that its protocols hand nothing to us of, and that `numpy_dist` has in their place:
triangles and grids here, windows in `window_functions`, index arrays in `indexing_generation`.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Literal

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.functions.array_creation_from_data import array, asarray
from numpy_dist.dispatch.functions.array_creation_from_shape import empty, ones
from numpy_dist.dispatch.functions.array_creation_matrices import tri
from numpy_dist.dispatch.functions.array_creation_ranges import arange, indices, linspace
from numpy_dist.dispatch.patterns.creation import from_parts, is_replicated
from numpy_dist.dispatch.patterns.numpy_source import numpy_source
from numpy_dist.ir.rules import broadcast_shapes

if TYPE_CHECKING:
    from numpy_dist.distarray.array import DistArray

_CREATING: dict[str, Function] = {
    "arange": arange,
    "array": array,
    "empty": empty,
    "indices": indices,
    "linspace": linspace,
    "ones": ones,
    "tri": tri,
}


class Creating:
    """A module of NumPy with creation functions of ours."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        return _CREATING[name] if name in _CREATING else getattr(self._module, name)


def created(function: Function) -> Function:
    """NumPy's function, with creation functions of ours in it."""
    return functools.wraps(function)(numpy_source(function, **_CREATING, np=Creating(np)))


def _of_arrays(function: Function) -> Function:
    """A function that takes what an array is made of: that becomes a distributed array first."""

    @functools.wraps(function, updated=())
    def convert(*args: object, **kwargs: object) -> object:
        return function(asarray(args[0]), *args[1:], **kwargs) if args else function(**kwargs)

    return convert


diag = _of_arrays(np.diag)
diagflat = _of_arrays(np.diagflat)
tril = _of_arrays(np.tril)
triu = _of_arrays(np.triu)
vander = _of_arrays(np.vander)


@functools.wraps(np.meshgrid)
def meshgrid(
    *xi: object, copy: bool = True, sparse: bool = False, indexing: Literal["xy", "ij"] = "xy"
) -> tuple[DistArray, ...]:
    given = [asarray(x) for x in xi]
    if not copy:
        return np.meshgrid(*given, copy=False, sparse=sparse, indexing=indexing)
    parts = np.meshgrid(*given, copy=False, sparse=True, indexing=indexing)
    if not sparse:
        shape = broadcast_shapes(*(part.shape for part in parts))
        parts = tuple(np.broadcast_to(part, shape) for part in parts)
    return tuple(map(_dense, parts))


def _dense(view: object) -> DistArray:
    """A copy of a view in C order, of which each rank makes its part."""
    if engine.is_sharded(view):
        return engine.copy(view, order="C")
    values = engine.plain(view)
    if is_replicated(values.shape, values.dtype, None):
        return engine.replicated(values.copy())
    return from_parts(lambda box: values[tuple(slice(*side) for side in box)], values.shape, values.dtype)
