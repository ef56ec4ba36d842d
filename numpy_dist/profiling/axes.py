"""Along which axes statements and functions work: where elements come together, and so ranks if the axis is cut."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

from numpy_dist import engine
from numpy_dist.argument_types import Keywords
from numpy_dist.ir.statements import Reduction, Ref, Statement
from numpy_dist.layout.views import ViewMap

Use = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]
"""Shape of the arrays, cut axes, the axes along which it is worked, and whether these are all."""


def loop_axes(statement: Statement, travelling: Collection[int]) -> Iterator[Use]:
    """The axes of the arrays of a statement.

    Two views of arrays of one shape meet along an axis where they begin, or go on, differently there.

    Parameters
    ----------
    statement : Statement
    travelling : collection of int
        The ids of storages of which elements go from rank to rank: where no axis says why, any may.
    """
    refs = statement.reads() if isinstance(statement, Reduction) else [*statement.reads(), *statement.outputs]
    of_shape: dict[tuple[int, ...], list[Ref]] = {}
    for ref in refs:
        if len(ref.storage.layout.shape) > 1:
            of_shape.setdefault(ref.storage.layout.shape, []).append(ref)
    for shape, those in of_shape.items():
        maps = [ref.vmap for ref in those]
        known = not any(vmap.merged for vmap in maps)
        along = _met(maps, len(shape)) if known else set()
        if known and isinstance(statement, Reduction):
            along |= _reduced(maps[0], statement.axes, len(shape))
        for cut in dict.fromkeys(ref.storage.layout.cut_axes for ref in those):
            moved = any(id(ref.storage) in travelling for ref in those if ref.storage.layout.cut_axes == cut)
            yield shape, cut, tuple(sorted(along)), known and (not moved or not along.isdisjoint(cut))


def _met(maps: Sequence[ViewMap], axes: int) -> set[int]:
    first = maps[0]
    return {
        axis
        for axis in range(axes)
        if any(
            vmap.offset[axis] != first.offset[axis] or _steps(vmap, axis) != _steps(first, axis) for vmap in maps[1:]
        )
    }


def _steps(vmap: ViewMap, axis: int) -> list[int]:
    return [row[axis] for row in vmap.steps]


def _reduced(vmap: ViewMap, axes: Sequence[int], count: int) -> set[int]:
    """The axes that are reduced; none if all are, which takes one value from each rank, whatever is cut."""
    found = {axis for axis in range(count) if any(vmap.steps[v][axis] for v in axes)}
    return set() if len(axes) == len(vmap.shape) else found


def of_function(function: object, args: Sequence[object], kwargs: Keywords) -> Iterator[Use]:
    """The axes of the distributed arrays that a function is given, by its parameter ``axis``."""
    axis = _axis_of(function, args, kwargs)
    for array in (*args, *kwargs.values()):
        if not engine.is_handle(array) or not engine.is_sharded(array) or array.ndim < 2:
            continue
        layout = array._storage.layout
        if layout.shape != array.shape:
            yield layout.shape, layout.cut_axes, (), False
            continue
        given = (axis,) if isinstance(axis, int) else axis
        known = isinstance(given, tuple) and all(isinstance(n, int) and -array.ndim <= n < array.ndim for n in given)
        along = tuple(sorted({n % array.ndim for n in given})) if known else ()
        yield array.shape, layout.cut_axes, along, known


def _axis_of(function: object, args: Sequence[object], kwargs: Keywords) -> Any:
    """The argument ``axis``, or its default; None where there is none, or all axes are meant."""
    if "axis" in kwargs:
        return kwargs["axis"]
    place, default = _axis_parameter(function)
    return args[place] if 0 <= place < len(args) else default


@lru_cache(maxsize=1024)
def _axis_parameter(function: Any) -> tuple[int, object]:
    """The position of the parameter ``axis``, -1 for none, and its default."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # one that says nothing of its parameters
        return -1, None
    if "axis" not in parameters:
        return -1, None
    default = parameters["axis"].default
    place = list(parameters).index("axis")
    return place, None if default is inspect.Parameter.empty else default
