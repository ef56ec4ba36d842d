"""What the functions of this package share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.keys import name_of
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.ir import structure
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import box_empty, box_shape

NoValue = np._NoValue


def as_handle(x: Any) -> Any:
    """`x` itself if it is an array of ours, else a copy of it as one (every rank has the same `x`)."""
    return x if engine.is_handle(x) else engine.from_global(np.asanyarray(x))


def decline_unshardable(x: Any) -> None:
    """Leave the call to the next rule where the values of `x` cannot be parts of a sharded result."""
    if not engine.shardable(x.dtype):
        decline(f"values that cannot be sharded ({x.dtype})")


def truth(a: Any) -> Any:
    """What counts as true: of a record one of its fields, of other void elements one of their bytes."""
    if a.dtype == bool:
        return a
    if a.dtype.kind != "V":
        return engine.copy(a, dtype=bool)
    if a.dtype.names is None:
        return np.any(a[..., None].view("u1"), axis=-1)
    found: Any = engine.full(a.shape, False, np.dtype(bool), layout=engine.layout_of(a))
    for name in a.dtype.names:
        part = truth(a[name])
        found = found | (part if part.ndim == a.ndim else np.any(part, axis=tuple(range(a.ndim, part.ndim))))
    return found


def metadata(x: Any) -> Any:
    """The ndarray that has the shape, dtype, strides and flags of `x`; its values must not be read."""
    return x._array if engine.is_handle(x) else np.asanyarray(x)


def values_of(x: Any) -> np.ndarray:
    """The ndarray of a replicated array of ours, or of something that is none."""
    return np.asanyarray(engine.plain(x))


def everywhere(x: Any, function: Callable[..., Any], reason: str, chosen: bool = False) -> np.ndarray:
    """All of an array on every rank, for NumPy's `function` (collective where it is sharded): `policy.replicate`."""
    if engine.is_sharded(x):
        policy.replicate(name_of(function), reason, x.nbytes, chosen)
    return engine.gather(x) if engine.is_handle(x) else np.asanyarray(x)


def views(x: Any, parts: Sequence[np.ndarray]) -> list[Any]:
    """Handles of several views of `x`, given as views of its `_array`."""
    return [x._seen_as(part) for part in parts]


def view_or_self(x: Any, operation: structure.Operation, *args: Any) -> Any:
    """A view of `x` that a structural operation makes, or `x` itself where NumPy returns its argument."""
    found = structure.view(x._array, operation, *args)
    return x if found is x._array else x._seen_as(found)


def ours(found: np.ndarray, given: Any) -> Any:
    """What NumPy made of an argument that is no array of ours, as one: every rank has it. The argument itself stays."""
    return found if found is given else engine.replicated(found)


def blocks(*arrays: tuple[Any, Layout], library: bool = False) -> list[np.ndarray]:
    """This rank's boxes of arrays that have these layouts, for reading at once (executes what they need).

    On the host, or, for a `library` (`backends.library.compute`), on the device where they lie.
    """
    engine.force(*(x for x, _ in arrays))  # all, before the memory of any is looked at
    rank, found = engine.runtime().rank, []
    for x, layout in arrays:
        box = layout.box(rank)
        empty = box is None or box_empty(box)
        shape: Any = (0,) if box is None else box_shape(box)
        device = engine.device(x.dtype) if library else None
        if empty:
            found.append(np.empty(shape, x.dtype) if device is None else device.empty(shape, x.dtype))
        else:
            found.append(engine.shard_for_library(x) if library else engine.shard(x))
    return found


def given(**options: Any) -> dict[str, Any]:
    """The options that were given, for passing them on."""
    return {name: value for name, value in options.items() if value is not NoValue}
