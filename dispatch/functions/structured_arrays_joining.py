"""Structured arrays made of several: fields side by side, records one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import recfunctions
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.arguments import as_handle, astype

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

_numpy: ModuleType = recfunctions
_MASKED = "masked arrays and records are not distributed"


@implements(recfunctions.merge_arrays, kind="composed")
def merge_arrays(
    seqarrays: Any,
    fill_value: object = -1,
    flatten: object = False,
    usemask: object = False,
    asrecarray: object = False,
) -> DistArray | np.ndarray:
    """Collective where arrays are cut in different ways: each field is brought to where the result has it."""
    if usemask or asrecarray:
        decline(_MASKED)
    several = [seqarrays] if engine.is_handle(seqarrays) else [as_handle(x) for x in seqarrays]
    arrays = [np.ravel(x) for x in several]
    if not all(engine.shardable(x.dtype) for x in arrays) or len({x.size for x in arrays}) > 1:
        decline("arrays of different sizes, or of Python objects")
    if flatten and any(_is_nested(x.dtype) for x in arrays):
        decline("records in records that are to be flattened")
    kind = _numpy._zip_dtype([np.zeros(0, x.dtype) for x in arrays], flatten=flatten)
    if len(arrays) == 1:
        own = arrays[0].dtype if arrays[0].dtype.names else np.dtype([("", arrays[0].dtype)])
        if not flatten or own == kind:
            return arrays[0].view(own)
    parts: list[DistArray | np.ndarray] = []
    for x in arrays:
        names = x.dtype.names
        apart = names is not None and (flatten or len(names) == 1)
        parts += [x[name] for name in names or ()] if apart else [x]
    return _side_by_side(parts, kind)


@implements(recfunctions.append_fields, kind="composed")
def append_fields(
    base: Any,
    names: object,
    data: DistArray | np.ndarray | Sequence[object],
    dtypes: DTypeLike | tuple[DTypeLike, ...] | None = None,
    fill_value: object = -1,
    usemask: object = True,
    asrecarray: object = False,
) -> DistArray:
    """As `merge_arrays`."""
    if usemask or asrecarray:
        decline(_MASKED)
    if isinstance(names, tuple | list):
        if len(names) != len(data):
            raise ValueError("The number of arrays does not match the number of names")
        columns = [as_handle(x) for x in data]
    else:
        names, columns = [names], [as_handle(data)]
    if dtypes is not None:
        kinds = list(dtypes) if isinstance(dtypes, tuple | list) else [dtypes]
        if len(kinds) not in (1, len(columns)):
            raise ValueError("The dtypes argument must be None, a dtype, or a list.")
        kinds = kinds * len(columns) if len(kinds) == 1 else kinds
        columns = [astype(x, kind, copy=False) for x, kind in zip(columns, kinds, strict=True)]
    base = as_handle(base)
    if any(x.ndim != 1 or x.size != base.size or x.dtype.names for x in columns):
        decline("fields of another size, or that are records")
    base = merge_arrays(base)
    fields = [*_numpy._get_fieldspec(base.dtype), *((name, x.dtype) for name, x in zip(names, columns, strict=True))]
    return _side_by_side([*(base[name] for name in base.dtype.names), *columns], np.dtype(fields))


@implements(recfunctions.stack_arrays, kind="composed")
def stack_arrays(
    arrays: DistArray | Sequence[object],
    defaults: object = None,
    usemask: object = True,
    asrecarray: object = False,
    autoconvert: object = False,
) -> object:
    """As `numpy.concatenate`."""
    if engine.is_handle(arrays):
        return arrays
    if len(arrays) == 1:
        return arrays[0]
    if usemask or asrecarray:
        decline(_MASKED)
    several = [np.ravel(as_handle(x)) for x in arrays]
    first, *others = [dict(_numpy._get_fieldspec(x.dtype)) for x in several]
    if any(other.keys() != first.keys() for other in others):
        decline("records that have not the same fields")
    for other in others:
        for name, kind in other.items():
            if autoconvert:
                first[name] = max(kind, first[name])
            elif kind != first[name]:
                raise TypeError(f"Incompatible type '{first[name]}' <> '{kind}'")
    if len(first) == 1:
        return np.concatenate(several)
    made = _new(sum(x.size for x in several), np.dtype(list(first.items())))
    start = 0
    for x in several:
        for name in first:
            made[name][start : start + x.size] = x[name]
        start += x.size
    return made


def _is_nested(dtype: np.dtype) -> bool:
    return any(dtype[name].names is not None or dtype[name].subdtype is not None for name in dtype.names or ())


def _new(size: int, kind: np.dtype) -> DistArray:
    return engine.empty((size,), kind, layout=engine.default_layout((size,)))


def _side_by_side(parts: Sequence[DistArray | np.ndarray], kind: np.dtype) -> DistArray:
    made = _new(len(parts[0]), kind)
    for name, x in zip(kind.names or (), parts, strict=True):
        made[name][...] = x
    return made
