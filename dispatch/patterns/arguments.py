"""Arguments of a function as what the patterns take: handles, metadata, values, truth, the options that were given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Keywords, SomeAxes
from numpy_dist.dispatch.core.registry import decline

if TYPE_CHECKING:
    from typing import TypeVar

    from numpy.typing import DTypeLike

    from numpy_dist.dispatch.patterns.structural import H
    from numpy_dist.distarray import DistArray

    # NumPy's own annotations of these functions know no arrays but ndarrays.
    A = TypeVar("A", bound=engine.Handle | np.ndarray)

    def astype(x: A, dtype: DTypeLike | None, /, *, copy: bool = True) -> A:
        """NumPy's function."""
        ...

    def moveaxis(a: A, source: SomeAxes, destination: SomeAxes) -> A:
        """NumPy's function."""
        ...

else:
    astype, moveaxis = np.astype, np.moveaxis

NoValue = np._NoValue


def as_handle(x: object) -> DistArray:
    """`x` itself if it is an array of ours, else a copy of it as one (every rank has the same `x`)."""
    made: Any = x if engine.is_handle(x) else engine.from_global(np.asanyarray(x), compared=True)
    return made


def type_of(dtype: DTypeLike | None) -> DTypeLike | None:
    """The type of a dtype, without its byte order and unit: what NumPy's functions written in C hand on to a ufunc.

    The ufunc itself refuses such a dtype, so ``np.cumsum(x, dtype=">f8")`` is legal, and ``np.sum`` of it is not.
    """
    kind = None if dtype is None else np.dtype(dtype)
    return kind if kind is None or kind.kind == "T" else kind.type


def decline_unshardable(x: engine.Handle | np.ndarray) -> None:
    """Leave the call to the next rule where the values of `x` cannot be parts of a sharded result."""
    if not engine.shardable(x.dtype):
        decline(f"values that cannot be sharded ({x.dtype})")


def truth(a: H) -> H:
    """What counts as true: of a record one of its fields, of other void elements one of their bytes."""
    if a.dtype == bool:
        return a
    if a.dtype.kind != "V":
        return engine.copy(a, dtype=bool)
    if a.dtype.names is None:
        return np.any(a[..., None].view("u1"), axis=-1)
    found = engine.full(a.shape, False, np.dtype(bool), layout=engine.layout_of(a))
    for name in a.dtype.names:
        part = truth(a[name])
        found = found | (part if part.ndim == a.ndim else np.any(part, axis=tuple(range(a.ndim, part.ndim))))
    return found


def metadata(x: object) -> np.ndarray:
    """The ndarray that has the shape, dtype, strides and flags of `x`; its values must not be read."""
    return x._array if engine.is_handle(x) else np.asanyarray(x)


def values_of(x: object) -> np.ndarray:
    """The ndarray of a replicated array of ours, or of something that is none."""
    return np.asanyarray(engine.plain(x))


def given(**options: object) -> Keywords:
    """The options that were given, for passing them on."""
    return {name: value for name, value in options.items() if value is not NoValue}


def truth_of(x: object) -> DistArray:
    """The `truth` of an array, ours or not."""
    return truth(as_handle(x))


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another one."""
    return len(shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False)
    )
