"""Ufuncs with several outputs that are given, wherever the ranks own them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist.distarray
from numpy_dist import engine
from numpy_dist.engine.memory.views import allocation_view
from numpy_dist.layout.layout import Copies, Cut, Layout, Pinned
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.views import decode

pytestmark = pytest.mark.spmd(ranks=(1, 2, 3))  # and 7, in CI

SHAPE = (6, 5)
VALUES = np.arange(30.0).reshape(SHAPE) / 3


def layouts():
    """Owners that differ: rows, columns, everything on the last rank, copies."""
    size = engine.runtime().size
    mesh = Mesh((size,))
    rows = tuple(k * 6 // size for k in range(size + 1))
    columns = tuple(k * 5 // size for k in range(size + 1))
    lopsided = (*(0 for _ in range(size)), 5)
    dims = [Cut(0, rows), Cut(1, columns), Cut(1, lopsided), Cut(0, rows[::-1]), Pinned(0), Copies()]
    return [Layout(SHAPE, mesh, (dim,)) for dim in dims]


def twice_as_wide(layout):
    def wider(dim):
        return Cut(1, tuple(2 * p for p in dim.points)) if isinstance(dim, Cut) and dim.axis == 1 else dim

    return Layout((6, 10), layout.mesh, tuple(map(wider, layout.dims)))


def given(layout, dtype, order="C"):
    return engine.from_global(np.full(SHAPE, 9, dtype, order), layout)


@pytest.mark.parametrize("order", ["C", "F"])
def test_outputs_of_any_layouts(order):
    expected = np.frexp(VALUES)
    for first in layouts():
        for second in layouts():
            out = given(first, "g"), given(second, "i", order)
            x = engine.from_global(VALUES, second)
            result = np.frexp(x, out=out)
            assert result[0] is out[0] and result[1] is out[1]
            assert np.array_equal(out[0].gather(), expected[0])
            assert np.array_equal(out[1].gather(), expected[1])


@pytest.mark.parametrize("which", [0, 1])
def test_one_of_two_outputs(which):
    expected = np.divmod(VALUES, 2)
    for layout in layouts():
        whole = engine.from_global(np.zeros((6, 10)), twice_as_wide(layout))
        target = whole[:, ::2]
        out = (target, None) if which == 0 else (None, target)
        result = np.divmod(numpy_dist.asarray(VALUES), 2, out=out)
        assert result[which] is target
        assert all(np.array_equal(mine.gather(), other) for mine, other in zip(result, expected, strict=True))
        assert not whole.gather()[:, 1::2].any()


def test_results_without_axes_beside_outputs_are_scalars():
    for make in (lambda x: x, numpy_dist.asarray):
        x = make(np.array([9.5, 2]))
        quotient, rest = np.divmod(x[0, ...], 4, out=(x[1, ...], None))
        assert type(rest) is np.float64 and rest == 1.5
        assert quotient.shape == () and float(x[1]) == 2
        assert type(np.modf(x[0, ...], out=(None, x[1, ...]))[0]) is np.float64


def test_masked_and_broadcast_outputs():
    mask = VALUES[:, 0] > 2
    for first in layouts()[:3]:
        for second in layouts()[:3]:
            for value in (VALUES[0], numpy_dist.asarray(VALUES[0]), np.float64(2.5), 2.5):
                theirs = np.full(SHAPE, 9.0), np.full(SHAPE, 9.0)
                out = given(first, "d"), given(second, "d")
                plain = value.gather() if engine.is_handle(value) else value
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    np.modf(plain, out=theirs, where=mask[:, None])
                    np.modf(value, out=out, where=mask[:, None])
                assert all(np.array_equal(mine.gather(), other) for mine, other in zip(out, theirs, strict=True))


def test_outputs_that_overlap_inputs():
    for first in layouts():
        for second in layouts()[:2]:
            x, other = engine.from_global(VALUES, first), given(second, "d")
            np.modf(x[::-1], out=(x, other))
            fraction, whole = np.modf(VALUES[::-1])
            assert np.array_equal(x.gather(), fraction) and np.array_equal(other.gather(), whole)


def test_no_view_into_nothing():
    """NumPy lets strides reach out of a buffer that has no bytes: memory that is not ours would be written."""
    vmap = decode((6, 5), 8, (1,), 0, (6, 5), (40, 8), 8)
    with pytest.raises(IndexError, match="holds nothing"):
        allocation_view(8, (0, 0), (6, 0), None, vmap, ((0, 6), (0, 1)), np.dtype("d")).over(np.empty(0, np.uint8))
