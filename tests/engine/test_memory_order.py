"""New results have NumPy's memory order."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest

import numpy_dist.distarray
from numpy_dist import engine
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.settings import config

pytestmark = pytest.mark.spmd(ranks=(1, 2, 3))

VALUES = np.arange(120.0).reshape(4, 5, 6)
MASK = VALUES % 7 > 1
VIEWS = {
    "C": lambda x: x,
    "transposed": lambda x: x.T,
    "turned": lambda x: x.transpose(1, 2, 0),
    "swapped": lambda x: x.swapaxes(1, 2),
    "strided": lambda x: x.T[::2, :, ::-1],
    "thin": lambda x: x.T[:, 1:2],
    "broadcast": lambda x: np.broadcast_to(x.T[None, 0], (3, 5, 4)),
}


def layouts():
    size = engine.runtime().size
    for axis, n in enumerate(VALUES.shape):
        yield Layout(VALUES.shape, Mesh((size,)), (Cut(axis, tuple(k * n // size for k in range(size + 1))),))


def steps(array):
    """Strides of axes that have more than one element; others mean nothing."""
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]


def same(mine, theirs):
    assert mine.shape == theirs.shape and np.array_equal(mine.gather(), theirs)
    assert steps(mine) == steps(theirs)
    assert [mine.flags[f] for f in ("C", "F")] == [theirs.flags[f] for f in ("C", "F")]
    assert steps(mine.gather()) == steps(theirs)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_reductions(view, keepdims):
    theirs = VIEWS[view](VALUES)
    some = chain.from_iterable(combinations(range(3), n) for n in (1, 2))
    for axes in some:
        for layout in layouts():
            mine = VIEWS[view](engine.from_global(VALUES, layout))
            same(np.add.reduce(mine, axis=axes, keepdims=keepdims), np.add.reduce(theirs, axis=axes, keepdims=keepdims))
            again = np.maximum.reduce(mine * 2, axis=axes, keepdims=keepdims) - 1
            same(again, np.maximum.reduce(theirs * 2, axis=axes, keepdims=keepdims) - 1)


@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_of_nothing(keepdims):
    for layout in layouts():
        mine, theirs = engine.from_global(VALUES, layout).T[:, :0], VALUES.T[:, :0]
        for function in (np.sum, np.any, np.prod):
            same(function(mine, axis=1, keepdims=keepdims), function(theirs, axis=1, keepdims=keepdims))


@pytest.mark.parametrize("shape", [(2, 2, 0), (0, 3), (3, 0, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_without_elements_have_numpys_strides(shape, order):
    with config(MIN_SHARD_BYTES=0):
        mine, theirs = numpy_dist.empty(shape, order=order), np.empty(shape, order=order)
    assert mine.strides == theirs.strides and mine.T[1:].strides == theirs.T[1:].strides
    assert (mine + 1).strides == (theirs + 1).strides
    same(np.any(mine, axis=-1), np.any(theirs, axis=-1))


def test_masks_have_a_say():
    for layout in layouts():
        for turn in ((0, 1, 2), (2, 0, 1), (1, 0, 2)):
            mask = np.ascontiguousarray(MASK.transpose(turn)).transpose(np.argsort(turn))
            for where in (mask, engine.from_global(mask, layout), mask[..., :1]):
                plain = where.gather() if engine.is_handle(where) else where
                theirs = np.add.reduce(VALUES.T, axis=1, where=plain.T)
                same(np.add.reduce(engine.from_global(VALUES, layout).T, axis=1, where=where.T), theirs)


def test_joined_arrays():
    for layout in layouts():
        for make in VIEWS.values():
            theirs, mine = make(VALUES), make(engine.from_global(VALUES, layout))
            for axis in range(3):
                same(np.concatenate([mine, mine], axis), np.concatenate([theirs, theirs], axis))
                same(np.stack([mine, mine, mine], axis), np.stack([theirs, theirs, theirs], axis))
            turned = np.ascontiguousarray(theirs)
            same(np.concatenate([mine, turned]), np.concatenate([theirs, turned]))
    x = numpy_dist.asarray(VALUES)
    for function in (np.vstack, np.hstack, np.dstack):
        same(function([x.T, x.T]), function([VALUES.T, VALUES.T]))


FUNCTIONS = {
    "imag": np.imag,
    "attribute": lambda x: x.imag,
    "isreal": np.isreal,
    "iscomplex": np.iscomplex,
    "unequal": lambda x: x != "text",
    "none": lambda x: x == None,  # noqa: E711
    "compress": lambda x: np.compress([True, False, True], x, axis=1),
    "product": lambda x: x[..., 0] @ np.ones((x.shape[1], 4)),
    "turned product": lambda x: x[0].T @ x[0],
    "columns": lambda x: np.ones((3, x.shape[0])) @ x[:, 0],
    "tensordot": lambda x: np.tensordot(x, x, axes=([0, 2], [0, 2])),
    "where": lambda x: np.where(x > 3, x, 1.0),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "mean": lambda x: np.mean(x, axis=0),
    "var": lambda x: np.var(x, axis=-1, keepdims=True),
    "sort": lambda x: np.sort(x, axis=0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("view", ["C", "transposed", "turned", "swapped"])
def test_functions(name, view):
    theirs = FUNCTIONS[name](VIEWS[view](VALUES))
    for layout in layouts():
        mine = FUNCTIONS[name](VIEWS[view](engine.from_global(VALUES, layout)))
        assert np.allclose(mine.gather(), theirs, rtol=1e-13) and steps(mine) == steps(theirs)
