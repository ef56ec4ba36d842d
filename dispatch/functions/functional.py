"""Functional programming: functions of the user's, called with lines or with the elements of a condition."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.operands import as_operand
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import as_handle, astype, moveaxis
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.stacks import on_stacks

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

adopt(__name__, np.apply_over_axes)


@implements(np.piecewise, kind="composed")
def piecewise(x: object, condlist: Any, funclist: Sequence[Function | complex], *args: object, **kw: object) -> object:
    """The functions are called on every rank, with distributed arrays of the elements that are theirs."""
    x = as_handle(x)
    is_list = not np.isscalar(condlist) and (
        engine.is_handle(condlist[0]) or isinstance(condlist[0], list | np.ndarray) or x.ndim == 0
    )
    conditions: list[DistArray | np.ndarray] = [
        astype(as_handle(as_operand(each)), bool) for each in (condlist if is_list else [condlist])
    ]
    if len(conditions) == len(funclist) - 1:
        conditions.append(np.logical_not(functools.reduce(np.logical_or, conditions)))
    elif len(conditions) != len(funclist):
        np.piecewise(np.zeros(1), [np.ones(1, bool)] * len(conditions), funclist)  # NumPy's error
    result = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            result[condition] = function
            continue
        values = x[condition]
        if values.size > 0:
            result[condition] = function(values, *args, **kw)
    return result


@implements(np.apply_along_axis, kind="axis-local")
def apply_along_axis(func1d: Function, axis: int, arr: object, *args: object, **kwargs: object) -> object:
    """The function is called on each rank for the lines that it holds, with ndarrays.

    As NumPy's, it may write into its line, which is the array's, and return the same buffer each time.
    """
    arr = as_handle(arr)
    axis = normalize_axis_index(axis, arr.ndim)
    lines = moveaxis(arr, axis, -1)
    if 0 in lines.shape[:-1]:
        np.apply_along_axis(func1d, axis, np.empty(arr.shape))  # NumPy's error

    first: list[np.dtype] = []
    wrote: list[bool] = []
    rewritten: list[np.ndarray] = []  # this rank's lines, if some were written into

    def call(block: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
        line, before = block[index].copy(), block[index].tobytes()
        line.flags.writeable = arr.flags.writeable
        made = np.array(func1d(line, *args, **kwargs))
        if line.tobytes() != before:
            if not wrote:
                wrote.append(True)
                rewritten.append(block.copy())
            rewritten[0][index] = line
        return made

    def local(block: np.ndarray) -> np.ndarray:
        made = [call(block, index) for index in np.ndindex(block.shape[:-1])]
        found = np.empty((len(made), *made[0].shape), np.result_type(*made))
        for index, each in enumerate(made):
            found[index] = each
        first.append(made[0].dtype)
        return found.reshape(block.shape[:-1] + made[0].shape)

    def written(block: np.ndarray) -> np.ndarray:
        return rewritten[0] if rewritten else block

    found = on_stacks(local, [lines], 1, name="apply_along_axis", order="C", first=first, wrote=wrote)
    if any(wrote):
        engine.assign(lines, on_stacks(written, [lines], 1, name="apply_along_axis", order="C"))
    depth = found.ndim - lines.ndim + 1
    places = list(range(lines.ndim - 1, found.ndim))
    return moveaxis(found, places, list(range(axis, axis + depth)))
