"""Array manipulation routines that add and remove elements: `insert`, `delete`, `append`, `resize`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Axis
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source

if TYPE_CHECKING:
    from numpy_dist.distarray.array import DistArray

adopt(__name__, np.append, np.resize)


class _ArrayConverter:
    """What NumPy's array converter is to these functions: the array itself, and their result as it is."""

    def __init__(self, array: object) -> None:
        self._array = array

    def as_arrays(self, subok: bool = True) -> tuple[object]:
        return (self._array,)

    def wrap(self, result: object, to_scalar: object = None) -> object:
        return result


def _ones(shape: Any, dtype: DTypeLike | None = float) -> DistArray:
    """A mask over an axis, cut however small it is."""
    shape = (operator.index(shape),)
    return engine.full(shape, 1, dtype, layout=engine.default_layout(shape))


_names = {"_array_converter": _ArrayConverter, "ones": _ones}
_delete, _insert = numpy_source(np.delete, **_names), numpy_source(np.insert, **_names)


@implements(np.delete, kind="composed")
def delete(arr: object, obj: object, axis: Axis = None) -> object:
    """Collective: what stays is selected by a mask, or copied in slices."""
    return _delete(as_handle(arr), obj, axis)


@implements(np.insert, kind="composed")
def insert(arr: object, obj: object, values: object, axis: Axis = None) -> object:
    """Collective: old and new elements are assigned to their places in a new array."""
    return _insert(as_handle(arr), obj, values, axis)
