"""Functions to which the standard gives other parameters than NumPy (all versions of it that are supported)."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import creation, engine
from numpy_dist.standard.zero_axes import as_array

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray


def _dtype_of(x: object) -> Any:
    """The dtype of an array; what is none as it is."""
    return x.dtype if engine.is_handle(x) or isinstance(x, np.ndarray | np.generic) else x


def asarray(
    obj: object, /, *, dtype: DTypeLike | None = None, device: Literal["cpu"] | None = None, copy: bool | None = None
) -> DistArray:
    """A distributed array of the data."""
    return creation.asarray(obj, dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Literal["cpu"] | None = None, copy: bool | None = None) -> DistArray:
    """A distributed array of an array that every rank has and that takes part in DLPack."""
    return creation.asarray(np.from_dlpack(x), device=device, copy=copy)


def take(x: DistArray, indices: DistArray, /, *, axis: int | None = None) -> DistArray:
    """Elements along an axis, which may be left out for arrays of one axis."""
    if axis is None and x.ndim != 1:
        raise TypeError(f"take needs axis= for an array of {x.ndim} axes")
    return as_array(np.take(x, indices, axis=axis))


def take_along_axis(x: DistArray, indices: Any, /, *, axis: int = -1) -> DistArray:
    """Elements by an index for each."""
    return as_array(np.take_along_axis(x, indices, axis))


def sort(x: DistArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> object:
    """A sorted copy along an axis."""
    made = np.sort(x, axis=axis, stable=stable)
    return np.flip(made, axis=axis) if descending else made


def argsort(x: DistArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> object:
    """The indices that sort an array along an axis; equal elements stay in their order."""
    if not descending:
        return np.argsort(x, axis=axis, stable=stable)
    # The last of equal elements comes first in the flipped array, and last again in the flipped result.
    found = np.flip(np.argsort(np.flip(x, axis=axis), axis=axis, stable=stable), axis=axis)
    return x.shape[axis] - 1 - found


def clip(x: DistArray, /, min: DistArray | float | None = None, max: DistArray | float | None = None) -> object:
    """Values limited to an interval, of the dtype of `x`."""
    if min is None and max is None:
        return np.copy(x)
    made = np.clip(x, min, max)
    return as_array(made if made.dtype == x.dtype else made.astype(x.dtype))


def expand_dims(x: DistArray, /, axis: int | tuple[int, ...] = 0) -> object:
    """The array with axes of length 1."""
    return np.expand_dims(x, axis)


def round(x: DistArray, /) -> DistArray:
    """Values rounded to the nearest integer."""
    return as_array(np.round(x))


def can_cast(from_: object, to: DTypeLike, /) -> builtins.bool:
    """Whether one dtype can be cast to another by the rules of promotion."""
    return np.can_cast(_dtype_of(from_), to)


def result_type(*arrays_and_dtypes: object) -> np.dtype:
    """The dtype of an operation on these."""
    return np.result_type(*map(_dtype_of, arrays_and_dtypes))


@dataclass(frozen=True)
class FloatLimits:
    """What the standard tells of a floating-point dtype: Python's numbers, and the dtype of real numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


def finfo(type: object, /) -> FloatLimits:
    """Limits of a floating-point dtype, or of an array's."""
    found = np.finfo(_dtype_of(type))
    eps, largest, least, normal = map(float, (found.eps, found.max, found.min, found.smallest_normal))
    return FloatLimits(found.bits, eps, largest, least, normal, np.dtype(found.dtype))


def iinfo(type: object, /) -> np.iinfo:
    """Limits of an integer dtype, or of an array's."""
    return np.iinfo(_dtype_of(type))


class Info(np.__array_namespace_info__):  # type: ignore[name-defined, misc]
    """One device, NumPy's dtypes, and no restriction that the standard would want to hear of."""

    def devices(self) -> tuple[str, ...]:  # type: ignore[override]  # since 2025.12; NumPy has a list
        """The devices."""
        return tuple(super().devices())
