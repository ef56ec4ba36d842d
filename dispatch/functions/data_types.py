"""Data type routines and other questions about metadata: nothing is computed or moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.ir import structure


def _dtype_of(x: Any) -> Any:
    return x.dtype if engine.is_handle(x) else x


@implements(np.result_type, kind="native")
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    # Arrays, not dtypes: NumPy's errors have them in another order.
    return np.result_type(*(np.empty(0, x.dtype) if engine.is_handle(x) else x for x in arrays_and_dtypes))


@implements(np.can_cast, kind="native")
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(_dtype_of(from_), _dtype_of(to), casting)


@implements(np.min_scalar_type, kind="native")
def min_scalar_type(a: Any, /) -> np.dtype:
    # It depends on the value of a 0-d array.
    return a.dtype if a.ndim else np.min_scalar_type(engine.item(a))


@implements(np.common_type, kind="native")
def common_type(*arrays: Any) -> type:
    return np.common_type(*(np.empty(0, x.dtype) if engine.is_handle(x) else x for x in arrays))


@implements(np.shape, kind="native")
def shape(a: Any) -> tuple[int, ...]:
    return a.shape


@implements(np.ndim, kind="native")
def ndim(a: Any) -> int:
    return a.ndim


@implements(np.size, kind="native")
def size(a: Any, axis: Any = None) -> int:
    # In a new version of NumPy `axis` may be a tuple: it decides.
    return np.size(np.broadcast_to(np.uint8(0), a.shape), axis)


def _shares(function: Any, a: Any, b: Any, max_work: int) -> bool:
    """Arrays of different storages share no memory; within one, the meta arrays' addresses tell."""
    storages = [x._storage if engine.is_handle(x) else None for x in (a, b)]
    if storages[0] is not storages[1]:
        return False
    if storages[0] is not None:
        return structure.shares_memory(a._array, b._array, max_work, function is np.shares_memory)
    return function(engine.plain(a), engine.plain(b), max_work=max_work)


@implements(np.may_share_memory, kind="native")
def may_share_memory(a: Any, b: Any, /, max_work: int = 0) -> bool:
    return _shares(np.may_share_memory, a, b, max_work)


@implements(np.shares_memory, kind="native")
def shares_memory(a: Any, b: Any, /, max_work: int = -1) -> bool:
    return _shares(np.shares_memory, a, b, max_work)


@implements(np.copy, kind="native")
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return engine.copy(a, order=order)


@implements(np.astype, kind="native")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    if not (device is None or device == "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')
    if not copy and x.dtype == dtype:
        return x
    return engine.copy(x, dtype=np.dtype(dtype))


def _copied(dst: Any, src: Any, where: Any, casting: Any) -> Any:
    """The source of a copy; where NumPy casts a scalar depends on what it is, and on how many elements there are."""
    src = engine.plain(src)
    if np.ndim(src) or isinstance(src, list | tuple):
        return src
    is_weak = type(src) in (bool, int, float, complex) and dst.dtype.kind in "biufc"
    src = np.asarray(src, np.result_type(dst.dtype, src) if is_weak else None)
    if np.can_cast(src.dtype, dst.dtype) or dst.size > 1 or (dst.size and (where is True or np.any(where))):
        return src[()]
    if casting != "unsafe":
        np.copyto(np.empty(0, dst.dtype), src, casting)  # NumPy's error
    # Nothing is chosen, of one element or none, and NumPy does not cast.
    return np.zeros((), src.dtype if src.dtype.kind in "biufc" else dst.dtype)[()]


@implements(np.copyto, kind="native")
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if engine.is_handle(dst):
        source = src if engine.is_sharded(src) else _copied(dst, src, where, casting)
        engine.assign(dst, source, where=where, casting=casting)
    else:
        moved = [x for x in (src, where) if engine.is_sharded(x)]
        if moved:
            policy.permit(
                "numpy.copyto",
                "its target is an ndarray, which every rank holds whole",
                sum(x._array.nbytes for x in moved),
                action="bring the values to every rank",
            )
        whole: list[Any] = [engine.gather(x) if engine.is_handle(x) else x for x in (src, where)]
        np.copyto(dst, whole[0], casting, whole[1])
