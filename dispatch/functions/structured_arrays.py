"""Structured arrays, field by field: NumPy's `recfunctions` that treat all elements alike."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.lib import recfunctions

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.registry import declare, decline, implements
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.stacks import on_stacks
from numpy_dist.ir import structure

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

adopt(
    __name__,
    recfunctions.apply_along_fields,
    recfunctions.assign_fields_by_name,
    recfunctions.recursive_fill_fields,
)


def _of_elements(function: Function, depth: int = 0, order: str = "K") -> None:
    """Register a function whose first argument is an array with `depth` axes to an element; some return views.

    `order` is the memory order of NumPy's new arrays.
    """

    def implementation(*args: object, **kwargs: object) -> object:
        first, *rest = args if args else (kwargs.pop(next(iter(signature.parameters))),)
        x = as_handle(first)
        count = x.ndim - depth
        if count < 0:
            function(np.zeros(x.shape, x.dtype), *rest, **kwargs)  # NumPy's error
        sample = np.zeros((1,) * count + tuple(x.shape[count:]), x.dtype)
        found = function(sample, *rest, **kwargs)
        if type(found) is not np.ndarray:
            decline("masked arrays and records")
        if np.may_share_memory(found, sample):
            if depth and not x.flags.c_contiguous:  # NumPy's view is one of a contiguous copy
                x = engine.copy(x, order="C")
            return x if found is sample else x._view(structure.alike, sample, found, count)
        return on_stacks(lambda block: function(block, *rest, **kwargs), [x], depth, name=name, order=order)

    signature, name = inspect.signature(function), function.__name__
    implementation.__name__ = implementation.__qualname__ = name
    implementation.__signature__ = signature  # type: ignore[attr-defined]
    implements(function, kind="axis-local" if depth else "elementwise")(implementation)


@implements(recfunctions.find_duplicates, kind="composed")
def find_duplicates(a: DistArray, key: object = None, ignoremask: bool = True, return_index: bool = False) -> NoReturn:
    """NumPy's takes masked arrays only, and distributed ones are none: the error comes from one of their elements."""
    few = np.zeros((1,) * a.ndim, a.dtype)
    recfunctions.find_duplicates(few, key, ignoremask, return_index)  # type: ignore[call-overload]
    decline("NumPy takes it for a masked array")


_NEW_IN_MEMORY_ORDER: tuple[Function, ...] = (
    recfunctions.rename_fields,
    recfunctions.repack_fields,
    recfunctions.structured_to_unstructured,
)
_NEW_IN_C_ORDER: tuple[Function, ...] = (recfunctions.drop_fields, recfunctions.require_fields)
for _function in _NEW_IN_MEMORY_ORDER:
    _of_elements(_function)
for _function in _NEW_IN_C_ORDER:
    _of_elements(_function, order="C")
_of_elements(recfunctions.unstructured_to_structured, 1, order="C")


declare(
    recfunctions.join_by,
    kind="gathered",
    reason="its result is a masked array, unless it is told otherwise",
    source=__name__,
)
declare(
    recfunctions.rec_append_fields,
    recfunctions.rec_drop_fields,
    recfunctions.rec_join,
    kind="gathered",
    reason="its result is a numpy.recarray, which every rank holds whole",
    source=__name__,
)
