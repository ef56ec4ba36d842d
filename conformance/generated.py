"""Generated cases: hypothesis strategies for shapes, dtypes, views, layouts, and arguments that fit them.

Values are whole numbers where sums and products are compared, so that they are exact in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.conformance.arguments import VIEWS, Array
from numpy_dist.conformance.case import SUMS, Case

Draw = Callable[[st.SearchStrategy[Any]], Any]
NUMBERS = "? i1 u1 i2 u2 i4 u4 i8 u8 f4 f8 F D".split()
UNARY = (np.negative, np.absolute, np.square, np.sign, np.logical_not, np.floor, np.isfinite, np.conjugate, np.positive)
BINARY = (
    np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.less, np.equal, np.logical_and, np.fmax,
    np.greater_equal,
)  # fmt: skip
REDUCTIONS = (np.add, np.maximum, np.minimum, np.logical_or, np.logical_and)


def shapes(most_axes: int = 3, most: int = 6) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes, with empty and single axes among them."""
    return st.lists(st.integers(0, most), max_size=most_axes).map(tuple)


def arrays(
    shape: tuple[int, ...] | None = None, dtypes: Sequence[str] = tuple(NUMBERS), values: str = "whole"
) -> st.SearchStrategy[Array]:
    """Descriptions of arrays: their shapes, dtypes, and how they lie in their bases."""
    return st.builds(
        Array,
        shapes() if shape is None else st.just(shape),
        st.sampled_from(dtypes),
        st.just(values),
        st.sampled_from(["whole", "whole", *VIEWS]),
    )


def partner(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes that broadcast with one."""
    single = st.tuples(*(st.sampled_from([n, 1]) for n in shape))
    return st.builds(lambda s, k: s[k:], single, st.integers(0, len(shape)))


@st.composite
def element_wise(draw: Draw) -> Case:
    """A ufunc, with `where` and `out` now and then."""
    x = draw(arrays())
    if draw(st.booleans()):
        function: Function = draw(st.sampled_from(UNARY))
        args: Arguments = (x,)
    else:
        function = draw(st.sampled_from(BINARY))
        other = draw(partner(x.shape))
        y = draw(st.one_of(arrays(other), arrays(other), st.sampled_from([2, -1, 2.5, True, np.float32(3), 300])))
        args = (x, y) if draw(st.booleans()) else (y, x)
    kwargs: Keywords = {}
    if draw(st.integers(0, 3)) == 0:
        kwargs["out"] = draw(arrays(x.shape))
        if draw(st.booleans()):
            kwargs["where"] = draw(arrays(draw(partner(x.shape)), ("?",)))
    elif draw(st.integers(0, 5)) == 0:
        kwargs["dtype"] = draw(st.sampled_from(NUMBERS))
    return Case(function, args, kwargs)


@st.composite
def reductions(draw: Draw) -> Case:
    """A reduction over some axes, with keywords."""
    x = draw(arrays())
    ndim = len(x.shape)
    axes = st.lists(st.integers(0, max(ndim - 1, 0)), max_size=ndim, unique=True).map(tuple)
    kwargs: Keywords = {"axis": draw(st.one_of(st.none(), st.integers(-ndim - 1, ndim), axes))}
    if draw(st.booleans()):
        kwargs["keepdims"] = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        kwargs["where"] = draw(arrays(draw(partner(x.shape)), ("?",)))
        kwargs["initial"] = 1
    functions = [f.reduce for f in REDUCTIONS] + [np.sum, np.max, np.any, np.all, np.min]
    if "where" not in kwargs:
        functions += [np.argmax, np.mean, np.count_nonzero, np.ptp]
    function = draw(st.sampled_from(functions))
    if function in (np.any, np.all, np.add.reduce, np.logical_or.reduce, np.logical_and.reduce):
        kwargs.pop("initial", None)
    if function is np.argmax and isinstance(kwargs["axis"], tuple):
        kwargs["axis"] = None
    return Case(function, (x,), kwargs, tolerance=SUMS)


@st.composite
def views(draw: Draw) -> Case:
    """A function that moves data, or returns a view."""
    x = draw(arrays())
    ndim = len(x.shape)
    axis = st.integers(-ndim, ndim)
    function, args, kwargs = draw(
        st.one_of(
            st.builds(lambda a: (np.flip, (x,), {"axis": a}), st.one_of(st.none(), axis)),
            st.builds(lambda s, a: (np.roll, (x, s), {"axis": a}), st.integers(-7, 7), st.one_of(st.none(), axis)),
            st.builds(lambda p: (np.transpose, (x, p), {}), st.permutations(range(ndim))),
            st.builds(lambda a, b: (np.swapaxes, (x, a, b), {}), axis, axis),
            st.builds(lambda s: (np.reshape, (x, s), {}), st.sampled_from([-1, (-1, 1), x.shape[::-1], (2, -1)])),
            st.builds(lambda a: (np.expand_dims, (x, a), {}), axis),
            st.builds(lambda n, a: (np.repeat, (x, n), {"axis": a}), st.integers(0, 3), st.one_of(st.none(), axis)),
            st.builds(lambda n: (np.tile, (x, n), {}), st.sampled_from([0, 2, (2, 1), (1, 2, 2)])),
            st.builds(lambda n, a: (np.array_split, (x, n), {"axis": a}), st.integers(1, 4), axis),
            st.builds(lambda y, a: (np.concatenate, ([x, y],), {"axis": a}), arrays(x.shape), axis),
            st.builds(lambda y, a: (np.stack, ([x, y],), {"axis": a}), arrays(x.shape), axis),
            st.builds(
                lambda n: (np.pad, (x, n), {"mode": "edge" if 0 not in x.shape else "constant"}), st.integers(0, 2)
            ),
            st.builds(lambda o: (np.ravel, (x,), {"order": o}), st.sampled_from("CFAK")),
            st.builds(lambda o: (np.copy, (x,), {"order": o}), st.sampled_from("CFAK")),
            st.builds(lambda k: (np.tril, (x,), {"k": k}), st.integers(-2, 2)),
            st.builds(lambda n, a: (np.diff, (x,), {"n": n, "axis": a}), st.integers(0, 2), axis),
        )
    )
    return Case(function, args, kwargs)


@st.composite
def orders(draw: Draw) -> Case:
    """Sorting, searching and counting."""
    x = draw(arrays(dtypes=[d for d in NUMBERS if d not in "FD"]))
    axis = st.one_of(st.none(), st.integers(-len(x.shape), len(x.shape)))
    function, kwargs = draw(
        st.one_of(
            st.builds(lambda a: (np.sort, {"axis": a}), axis),
            st.builds(lambda a: (np.argsort, {"axis": a, "kind": "stable"}), axis),
            st.builds(lambda a: (np.cumsum, {"axis": a}), axis),
            st.builds(lambda a: (np.median, {"axis": a}), axis),
            st.just((np.unique, {})),
            st.just((np.nonzero, {})),
            st.just((np.flatnonzero, {})),
        )
    )
    return Case(function, (x,), kwargs, tolerance=SUMS)


@st.composite
def selections(draw: Draw) -> Case:
    """Getting and setting by slices, integers, `...`, None and masks."""
    x = draw(arrays())
    item = st.one_of(st.slices(7), st.slices(7), st.integers(-7, 6), st.just(Ellipsis), st.none(), st.just([0, 0]))
    key = tuple(draw(st.lists(item, max_size=len(x.shape) + 1)))
    kwargs: Keywords = {}
    if draw(st.booleans()):
        return Case(np.ndarray.__getitem__, (x, key), kwargs, via=_get)
    return Case(np.ndarray.__setitem__, (x, key, draw(st.sampled_from([1, 2.5]))), kwargs, via=_set)


def _get(x: np.ndarray, key: tuple) -> object:
    return x[key]


def _set(x: np.ndarray, key: tuple, value: float) -> None:
    x[key] = value


FAMILIES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "element-wise": element_wise,
    "reductions": reductions,
    "views": views,
    "orders": orders,
    "selections": selections,
}
