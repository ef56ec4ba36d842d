"""The generalised ufunc pattern: `axes`, `axis`, `keepdims`, `out`, `order` and `signature` beside two operands."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from numpy_dist import engine
from numpy_dist.argument_types import Keywords
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype, moveaxis
from numpy_dist.ir.rules import memory_axes

_DEFAULTS: dict[str, object] = {"out": None, "casting": "same_kind", "dtype": None, "signature": None}
_DEFAULTS |= {"axes": NoValue, "axis": NoValue, "keepdims": False, "order": "K"}


def generalised(ufunc: np.ufunc, x1: object, x2: object, **given: Any) -> object:
    """A ufunc of two operands with any of these keywords, by its plain call on operands whose last axes it is about.

    As collective as that call, and an assignment to `out`. NumPy looks at the arguments: it is called with small
    arrays, and with stand-ins of these extents where it refuses those.
    """
    a, b = as_handle(x1), as_handle(x2)
    options = {name: value for name, value in given.items() if value is not _DEFAULTS[name]}
    target = options.pop("out", None)
    target = target[0] if isinstance(target, tuple) else target
    example = example_of(ufunc, a, b, target, options)
    loop = {"signature": options["signature"]} if "signature" in options else {}
    if "dtype" in options:
        loop = {"signature": (None, None, np.dtype(options["dtype"]))}
    casting = options.get("casting", "same_kind")
    kinds = ufunc.resolve_dtypes((a.dtype, b.dtype, None if target is None else target.dtype), casting=casting, **loop)
    *axes, result_axes = _axes(ufunc, options)
    first, second = (
        moveaxis(x if x.dtype == kind else astype(x, kind), its, range(-len(its), 0))
        for x, kind, its in zip((a, b), kinds, axes, strict=False)
    )
    result = ufunc(first, second)
    if options.get("keepdims"):
        result = np.expand_dims(as_handle(result), result_axes)
    elif result_axes:
        result = moveaxis(result, range(-len(result_axes), 0), result_axes)
    if target is None:
        return _ordered(result, example)
    deliver(result, target, casting)
    return target


def deliver(result: ArrayLike, target: Any, casting: Any) -> None:
    """Write the result of a generalized ufunc to its output."""
    if not engine.may_write(engine.metadata(target)):
        raise ValueError("output array is read-only")
    np.copyto(target, result, casting=casting)


def example_of(
    ufunc: np.ufunc,
    a: engine.Handle | np.ndarray,
    b: engine.Handle | np.ndarray,
    target: engine.Handle | np.ndarray | None,
    options: Keywords,
) -> object:
    """What NumPy returns for small arrays that lie in memory as the arguments do, and whose extents are equal where
    theirs are; or its error.
    """
    arrays = [x for x in (a, b, target) if x is not None]
    sizes = sorted({n for x in arrays for n in x.shape if n > 1})
    small = {0: 0, 1: 1} | {n: number + 2 for number, n in enumerate(sizes)}
    few = [_lying_as(x, [small[n] for n in x.shape]) for x in arrays]
    try:
        return ufunc(*few, **options)
    except (TypeError, ValueError):  # AxisError is one, too
        engine.numpy_error(ufunc, (a, b), options if target is None else {**options, "out": target})


def _lying_as(x: engine.Handle | np.ndarray, shape: list[int]) -> np.ndarray:
    order = memory_axes([x._array if engine.is_handle(x) else x], tuple(x.shape)) or tuple(range(len(shape)))
    return np.ones([shape[axis] for axis in order], x.dtype).transpose(np.argsort(order).tolist())


def _axes(ufunc: np.ufunc, options: Keywords) -> list[tuple[int, ...]]:
    """Which axes of each operand, and of the result, the ufunc is about; NumPy has accepted the options."""
    assert ufunc.signature is not None
    inputs, _, result = ufunc.signature.partition("->")
    counts = [core.count(",") + (core != "()") for core in (*inputs.replace("),(", ") (").split(), result)]
    if options.get("keepdims"):
        counts[-1] = counts[0]
    axes = [tuple(range(-count, 0)) for count in counts]
    if "axis" in options:
        axes = [(options["axis"],) * count for count in counts]
    for number, given in enumerate(options.get("axes", ())):
        axes[number] = given if isinstance(given, tuple) else (operator.index(given),)
    return axes


def _ordered(result: engine.Handle, example: object) -> object:
    """The result in the memory order of NumPy's."""
    if not isinstance(example, np.ndarray) or not engine.is_handle(result):
        return result
    order = memory_axes([example], example.shape) or tuple(range(example.ndim))
    moved = result.transpose(order)
    if moved.flags.c_contiguous:
        return result
    return engine.copy(moved, order="C").transpose(np.argsort(order).tolist())
