"""Structural operations make views and read nothing, whatever the shape, and refuse what would read."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.errors import UnsupportedError
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import meta_array

SHAPES = [(), (1,), (1, 1), (0,), (2, 0), (3,), (4, 5), (1 << 12, 16), (3, 1, 2)]
PAIR = np.dtype([("x", "f8"), ("y", "i4")])
CALLS = {
    "index": [(structure.index, key) for key in (..., (), (None, ...), (..., slice(None, None, -1)), slice(1), 0, -1)],
    "fields": [(structure.fields, "x"), (structure.fields, ["y"])],
    "reshape": [(structure.reshape, -1), (structure.reshape, (1, -1)), (structure.reshape, ())],
    "flip": [(structure.flip,), (structure.flip, 0)],
    "itself": [(structure.itself,)],
    "einsum": [(structure.einsum, "...->..."), (structure.einsum, "->"), (structure.einsum, "ij->ji")],
    "attribute": [(structure.attribute, name) for name in ("T", "mT", "real", "imag")],
    "view_as": [(structure.view_as,), (structure.view_as, "u1"), (structure.view_as, np.ndarray)],
    "part": [(structure.part, (), 0, np.dtype("f8")), (structure.part, (), 4, np.dtype("u2"))],
    "changed": [(structure.changed, "shape", -1), (structure.changed, "dtype", "i8")],
    "NumPy's": [
        *((function,) for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d, np.fliplr, np.flipud, np.rot90)),
        *((function,) for function in (np.matrix_transpose, np.linalg.matrix_transpose, np.linalg.diagonal)),
        *((function,) for function in (np.ndarray.squeeze, np.ndarray.transpose, np.ndarray.diagonal)),
        (np.ndarray.getfield, "u1", 3),
        (np.ndarray.swapaxes, 0, -1),
        (np.broadcast_to, (2, 3, 4, 5)),
        (np.broadcast_to, ()),
        (np.expand_dims, 0),
        (np.moveaxis, 0, -1),
        (np.moveaxis, (), ()),
        (np.rollaxis, -1),
        (np.lib.stride_tricks.sliding_window_view, ()),
        (np.lib.stride_tricks.sliding_window_view, 1, 0),
    ],
}


@pytest.mark.parametrize("group", CALLS)
def test_views(group):
    """An array comes out, of which nothing was read (that would end the process), or NumPy's error."""
    assert {operation for operation, *_ in CALLS[group]} <= structure.OPERATIONS
    for shape in SHAPES:
        for operation, *args in CALLS[group]:
            dtype = PAIR if operation is structure.fields else np.dtype("c16" if "imag" in args else "f8")
            few = np.zeros(shape, dtype)
            try:
                expected = np.asarray(structure.view(few, operation, *args))
            except (ValueError, IndexError, TypeError, AttributeError, AssertionError) as error:
                with pytest.raises(type(error)):
                    structure.view(meta_array(shape, dtype), operation, *args)
                continue
            made = structure.view(meta_array(shape, dtype), operation, *args)
            assert type(made) is np.ndarray
            assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
            assert made.strides == expected.strides or made.size == 0


def test_what_is_not_listed():
    for function in (np.sum, np.ndarray.sum, np.asarray, np.ravel, lambda a: a, np.ndarray.view, np.reshape):
        with pytest.raises(AssertionError, match="no structural operation"):
            structure.view(meta_array((3,), np.dtype("f8")), function)


def test_indices_that_copy():
    for key in (True, np.True_, [0], np.array([0]), np.array(0), (slice(None), [0, 1]), "x", 1.0):
        with pytest.raises(AssertionError, match="makes no view"):
            structure.index(meta_array((3, 4), np.dtype("f8")), key)


@pytest.mark.parametrize("subscripts", ["ij->", "ij->i", "ii"])
def test_sums_are_no_views(subscripts):
    with pytest.raises(AssertionError, match="makes no view"):
        structure.einsum(meta_array((3, 3), np.dtype("f8")), subscripts)


def test_classes_and_attributes():
    x = meta_array((3, 4), np.dtype("f8"))
    with pytest.raises(UnsupportedError):
        structure.view_as(x, type=np.matrix)
    for refused in (lambda: structure.attribute(x, "flat"), lambda: structure.changed(x, "flat", 0)):
        with pytest.raises(AssertionError):
            refused()
    with pytest.raises(AssertionError):
        structure.fields(x, ["a", 0])
    with pytest.raises(AssertionError):
        structure.split(x, np.ix_, 3)


def test_a_shape_is_asked_once():
    """A length that changes when it is asked again must not make NumPy copy."""

    class Changing:
        found = iter([12, 4])

        def __index__(self):
            return next(self.found)

    x = structure.view(meta_array((3, 4), np.dtype("f8")), np.ndarray.transpose)
    with pytest.raises((AttributeError, ValueError)):
        structure.changed(x, "shape", Changing())


def test_positions_that_dispatch():
    """Positions of a class with rules of its own do not bring it the array."""

    class Positions:
        def __len__(self):
            return 1

        def __getitem__(self, place):
            return (2,)[place]

        def __array_function__(self, function, types, args, kwargs):
            raise AssertionError("dispatched")

    parts = structure.split(meta_array((3,), np.dtype("f8")), np.split, Positions())
    assert [part.shape for part in parts] == [(2,), (1,)]
