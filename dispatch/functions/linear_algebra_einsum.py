"""Linear algebra by Einstein sums: views, fused products and sums, and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy._core import einsumfunc

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.linear_algebra_contractions import tensors
from numpy_dist.dispatch.patterns.arguments import as_handle, astype
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.replicate import known
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import as_strided, is_writeable
from numpy_dist.ir.rules import memory_axes, memory_order, only_asking

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

_parse: Callable[..., tuple[str, str, list[object]]] = vars(einsumfunc)["_parse_einsum_input"]

adopt(__name__, np.einsum_path)


@implements(np.einsum, kind="structural")
def einsum_view(*operands: object, out: object = None, optimize: object = False, **kwargs: object) -> DistArray:
    view = _view_of_one(_with_plain_subscripts(operands), out, kwargs)
    if view is None:
        decline("einsum, other than the view of one array")
    return view


def _view_of_one(operands: Arguments, out: object, kwargs: Keywords) -> DistArray | None:
    """The view of a single operand none of whose axes is summed over, also where an extent is 1: NumPy decides."""
    arrays, positions = _arrays(operands)
    if len(arrays) != 1 or out is not None or not arrays[0].ndim:
        return None
    few = _few(arrays[0])
    if getattr(_of_few(operands, positions, [few], kwargs), "base", None) is not few:
        return None
    inputs, output, _ = _parse(_stand_ins(operands, positions, arrays))
    if len(inputs) != arrays[0].ndim:
        decline("more axes than there are letters")
    view = arrays[0]._view(structure.einsum, f"{inputs}->{output}")
    return arrays[0]._owned(view)


def _few(x: DistArray | np.ndarray) -> np.ndarray:
    """At most one element along each axis, for NumPy's errors and decisions."""
    return np.zeros(tuple(min(n, 1) for n in x.shape), x.dtype)


def _of_few(
    operands: Sequence[object],
    positions: list[int],
    few: list[np.ndarray],
    kwargs: Keywords,
    out: DistArray | None = None,
) -> object:
    """NumPy's result where arrays have few elements; or its error, which tells of all of them."""
    small: list[Any] = list(operands)
    options = kwargs if out is None else {**kwargs, "out": _few(out)}
    for place, x in zip(positions, few, strict=True):
        small[place] = x
    try:
        return np.einsum(*small, **options)
    except ValueError:
        engine.numpy_error(np.einsum, operands, kwargs if out is None else {**kwargs, "out": out})


def _at_once(*operands: object, out: Any = None, **kwargs: Any) -> object:
    """What NumPy does without a path: the sum of the products, in the memory order of NumPy's result."""
    arrays, positions = _arrays(operands)
    few = [_few(x) for x in arrays]
    with only_asking():
        made: Any = _of_few(operands, positions, few, kwargs, out)
    dtype = getattr(made, "dtype", np.dtype(object))  # a sum of objects is one of them
    if out is not None:  # NumPy computes in what the output has in common with them
        wanted = kwargs.get("dtype")
        dtype = np.result_type(*(x.dtype for x in arrays), out.dtype) if wanted is None else np.dtype(wanted)
    inputs, output, _ = _parse(_stand_ins(operands, positions, arrays))
    labels = inputs.split(",")
    if any(len(names) != x.ndim for names, x in zip(labels, arrays, strict=True)):
        decline("more axes than there are letters")
    sizes: dict[str, int] = {}
    for names, x in zip(labels, arrays, strict=True):
        for name, n in zip(names, x.shape, strict=False):
            if sizes.setdefault(name, n) != n and n != 1:
                if sizes[name] != 1:
                    engine.numpy_error(np.einsum, operands, kwargs)
                sizes[name] = n
    if dtype.hasobject or not engine.shardable(dtype):
        decline("arrays of Python objects")
    shape = tuple(sizes[name] for name in output)
    if out is not None and any(n not in (1, m) for n, m in zip(shape, out.shape, strict=True)):
        engine.numpy_error(np.einsum, operands, {**kwargs, "out": out})
    with np.errstate(all="ignore"):  # as NumPy, which does not look at what einsum meets
        result, owned = _contracted(labels, output, arrays, sizes, dtype)
        if out is not None:
            np.copyto(out, result, casting="unsafe")
            return out
        if not shape:
            return engine.item(result)
        made = _ordered(result, _order(kwargs.get("order", "K"), labels, output, arrays, sizes), owned)
        return made if engine.is_sharded(made) or made.base is None else engine.copy(made)


def _step(*operands: object, out: object = None, **kwargs: object) -> object:
    """What NumPy does in a step of a path: operands that are only transposed are views, and not copied."""
    view = _view_of_one(operands, out, kwargs)
    return _at_once(*operands, out=out, **kwargs) if view is None else view


_names: dict[str, Function] = {"c_einsum": _step}
if hasattr(einsumfunc, "bmm_einsum"):  # since NumPy 2.4
    _names["bmm_einsum"] = numpy_source(einsumfunc.bmm_einsum, c_einsum=_step)
_einsum: Function = numpy_source(np.einsum, **_names)


@implements(np.einsum, kind="composed")
def einsum(*operands: object, out: object = None, optimize: object = False, **kwargs: object) -> object:
    operands = _with_plain_subscripts(operands)
    if optimize is False:
        return _at_once(*operands, out=out, **kwargs)
    return _einsum(*operands, out=out, optimize=optimize, **kwargs)


# -- reading the subscripts ------------------------------------------------------------------------------------------


def _arrays(operands: Sequence[object]) -> tuple[list[DistArray], list[int]]:
    """The arrays among the arguments, and where they stand."""
    if operands and isinstance(operands[0], str):
        positions = list(range(1, len(operands)))
    else:
        positions = list(range(0, len(operands) - 1, 2))
    return [as_handle(operands[place]) for place in positions], positions


def _with_plain_subscripts(operands: Arguments) -> Arguments:
    """The arguments, of which those that number axes are no arrays of ours (collective for sharded ones)."""
    if not operands or isinstance(operands[0], str):
        return operands
    arrays = range(0, len(operands) - 1, 2)
    return tuple(
        x if place in arrays or not engine.is_handle(x) else known(x, np.einsum, "subscripts")
        for place, x in enumerate(operands)
    )


def _stand_ins(operands: Sequence[object], positions: list[int], arrays: list[DistArray]) -> list[object]:
    """The arguments with arrays of these shapes that take no memory."""
    made = list(operands)
    for place, x in zip(positions, arrays, strict=True):
        made[place] = np.broadcast_to(np.zeros((), x.dtype), x.shape)
    return made


# -- contracting -----------------------------------------------------------------------------------------------------


def _contracted(
    labels: list[str], output: str, arrays: list[DistArray], sizes: dict[str, int], dtype: np.dtype
) -> tuple[DistArray, bool]:
    """The sum of the products, and whether it owns its memory: where nothing is computed it is a view of an array.

    As in NumPy, whatever is summed is added to 0, so that no zero is negative.
    """
    terms = [_simple(names, astype(x, dtype, copy=False), sizes) for names, x in zip(labels, arrays, strict=True)]
    adds = False
    for pair in _path(terms, output, sizes):
        chosen = [terms.pop(place) for place in sorted(pair, reverse=True)][::-1]
        kept = set(output).union(*(names for names, _ in terms))
        term, adds = (chosen[0], adds) if len(chosen) == 1 else _pair(chosen[0], chosen[1], kept, sizes, dtype)
        terms.append(term)
    (_, before), (names, x) = terms[0], _summed(terms[0], set(output), dtype)
    if not (adds or x is not before) and dtype.kind in "fc":
        x = as_handle(np.add(x, np.zeros((), dtype)[()]))
    missing = [name for name in output if name not in names]  # axes of extent 1 that were left out
    found: Any = np.transpose(x, [names.index(name) for name in output if name in names])
    key = tuple(None if name in missing else slice(None) for name in output)
    return found._view(structure.index, key), len(arrays) > 1 or x is not before


Term = tuple[str, Any]


def _simple(names: str, x: DistArray, sizes: dict[str, int]) -> Term:
    """An operand with each label once, and without axes that are repeated for other operands."""
    if len(set(names)) < len(names):
        once = "".join(dict.fromkeys(names))
        x, names = x._view(structure.einsum, f"{names}->{once}"), once
    dropped = [n == 1 for n in x.shape]
    key = tuple(0 if drop else slice(None) for drop in dropped)
    x = x._view(structure.index, key) if any(dropped) else x
    return "".join(name for name, drop in zip(names, dropped, strict=True) if not drop), x


def _path(terms: list[Term], output: str, sizes: dict[str, int]) -> list[tuple[int, ...]]:
    """Which terms are contracted, one pair after the other."""
    if len(terms) < 3:
        return [(0, 1)] if len(terms) == 2 else []
    known = "".join(name for name in output if any(name in names for names, _ in terms))
    shapes = [np.broadcast_to(0.0, tuple(sizes[name] for name in names)) for names, _ in terms]
    steps = np.einsum_path(",".join(names for names, _ in terms) + "->" + known, *shapes, optimize="greedy")[0][1:]
    found: list[tuple[int, ...]] = []
    for step in steps:  # a step that takes more than two is made of pairs: the result of one goes to the end
        places, count = sorted(step), len(terms) - sum(len(s) - 1 for s in found)
        while len(places) > 2:
            found.append((places[0], places[1]))
            count -= 1
            places = sorted([*(place - 2 for place in places[2:]), count - 1])
        found.append(tuple(places))
    return found


def _summed(term: Term, kept: set[str], dtype: np.dtype) -> Term:
    """A term summed over the labels that nobody needs any more."""
    names, x = term
    gone = tuple(place for place, name in enumerate(names) if name not in kept)
    return ("".join(name for name in names if name in kept), _total(x, gone, dtype)) if gone else term


def _total(x: DistArray, axes: tuple[int, ...], dtype: np.dtype) -> DistArray:
    return as_handle(np.any(x, axis=axes) if dtype == np.bool_ else np.sum(x, axis=axes, dtype=dtype))


def _pair(a: Term, b: Term, kept: set[str], sizes: dict[str, int], dtype: np.dtype) -> tuple[Term, bool]:
    """The product of two terms, summed over the labels that only they have; and whether anything was summed last."""
    common = [name for name in a[0] if name in b[0]]
    batch, gone = [n for n in common if n in kept], [n for n in common if n not in kept]
    is_fused = not gone or not kept & (set(a[0]) ^ set(b[0]))
    late = _summed_late(a, b, kept) if is_fused and dtype.kind in "fc" else set()
    (left, x), (right, y) = (_summed(p, kept | set(q[0]) | late, dtype) for p, q in ((a, b), (b, a)))
    rows, columns = [n for n in left if n not in right], [n for n in right if n not in left]
    if is_fused:
        # One fused pass over the larger of the two (or over the result of an outer product).
        names = "".join([*batch, *rows, *columns, *gone])
        product = as_handle(np.multiply(_spread(left, x, names), _spread(right, y, names), dtype=dtype))
        return _summed((names, product), kept, dtype), bool(gone or late)
    x = np.transpose(x, [left.index(name) for name in (*batch, *rows, *gone)])
    z = np.transpose(y, [right.index(name) for name in (*batch, *columns, *gone)])
    made = tensors(x, z, len(batch), len(gone), dtype, "einsum")
    if made is not None:
        return ("".join([*batch, *rows, *columns]), made), True
    y = np.transpose(y, [right.index(name) for name in (*batch, *gone, *columns)])
    lengths = [prod(sizes[name] for name in group) for group in (batch, rows, gone, columns)]
    stack = lengths[:1] if batch else []
    product = np.matmul(
        np.reshape(x, (*stack, lengths[1], lengths[2])), np.reshape(y, (*stack, lengths[2], lengths[3]))
    )
    names = "".join([*batch, *rows, *columns])
    return (names, np.reshape(product, tuple(sizes[name] for name in names))), True


def _summed_late(a: Term, b: Term, kept: set[str]) -> set[str]:
    """The labels of one term alone over which products are summed: with infinities it differs from a product of sums.

    NumPy sums first what lies side by side in memory along its innermost loop, which is that over the last letter.
    """
    only = {name for name in {*a[0]} ^ {*b[0]} if name not in kept}
    if not only:
        return only
    names, x = a if max(only) in a[0] else b
    sides = sorted((stride, n, name) for stride, n, name in zip(x._array.strides, x.shape, names, strict=True))
    size = x.dtype.itemsize
    for stride, n, name in sides:
        if name in only and stride == size:
            only.remove(name)
            size *= n
    return only


def _spread(names: str, x: Any, wanted: str) -> DistArray:
    """A view with an axis for each wanted label."""
    x = np.transpose(x, [names.index(name) for name in wanted if name in names])
    return x._view(structure.index, tuple(slice(None) if name in names else None for name in wanted))


# -- memory order ----------------------------------------------------------------------------------------------------


def _order(order: str, labels: list[str], output: str, arrays: list[DistArray], sizes: dict[str, int]) -> list[int]:
    """The axes of NumPy's result from outermost to innermost in memory: those of its loop over all labels."""
    count = len(output)
    order = memory_order(order)
    fortran = all(x._array.flags.f_contiguous for x in arrays) and not all(x._array.flags.c_contiguous for x in arrays)
    if order == "F" or order == "A" and fortran:
        return list(range(count))[::-1]
    if order != "K":
        return list(range(count))
    names = output + "".join(sorted(set("".join(labels)) - set(output)))
    shape = tuple(sizes[name] for name in names)
    loops = []
    for its, x in zip(labels, arrays, strict=True):
        strides = dict.fromkeys(names, 0)
        for name, n, stride in zip(its, x._array.shape, x._array.strides, strict=True):
            strides[name] += stride if n > 1 else 0
        loops.append(structure.view(x._array, as_strided, shape, [strides[name] for name in names], writeable=False))
    axes = memory_axes(loops, shape)
    return list(range(count)) if axes is None else [axis for axis in axes if axis < count]


def _ordered(x: Any, axes: list[int], owned: bool) -> DistArray | np.ndarray:
    """New memory with the axes in this order; that of `x` where it is its own and in order."""
    x = np.transpose(x, axes)
    x = x if owned and x._array.flags.c_contiguous and is_writeable(x._array) else engine.copy(x, order="C")
    return np.transpose(x, np.argsort(axes).tolist())
