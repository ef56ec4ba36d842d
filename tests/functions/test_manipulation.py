"""Functions that return views: they are views, their values are NumPy's, and writing through them works."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import overrides

import numpy_dist.distarray  # noqa: F401
from numpy_dist import engine
from numpy_dist.dispatch.core import registry
from numpy_dist.dispatch.core.targets import VIEW_FUNCTIONS
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.functions.harness import RANKS, check, leaves, outcome, split

A = np.arange(48.0).reshape(6, 8)
B = np.arange(2 * 3 * 4).reshape(2, 3, 4)
V = np.arange(12.0)
C = A + 1j * A[::-1]
windows = np.lib.stride_tricks.sliding_window_view

# For each function that returns views, calls that do, by name and arguments.
VIEWS = {
    np.reshape: [(A, (8, 6)), (A, -1), (V, (3, 4)), (B, (6, 4)), (B, (2, 12)), (A, (2, 3, -1))],
    np.ravel: [(A,), (B,), (V, "K")],
    np.transpose: [(A,), (B, (2, 0, 1)), (B, (-1, 0, 1))],
    np.matrix_transpose: [(A,), (B,)],
    np.linalg.matrix_transpose: [(A,), (B,)],
    np.swapaxes: [(B, 0, 2), (A, 0, 1)],
    np.moveaxis: [(B, 0, -1), (B, (0, 1), (1, 0))],
    np.rollaxis: [(B, 2), (B, 0, 2), (B, 1, 1)],
    np.squeeze: [(A[:, None],), (B[None], 0)],
    np.expand_dims: [(A, 1), (A, (0, 2))],
    np.atleast_1d: [(V,)],
    np.atleast_2d: [(V,), (A,)],
    np.atleast_3d: [(V,), (A,), (B,)],
    np.flip: [(A,), (A, 0), (B, (0, 2))],
    np.fliplr: [(A,)],
    np.flipud: [(A,), (V,)],
    np.rot90: [(A,), (A, 2), (B, 3, (1, 2)), (A, 0), (A, -1)],
    np.split: [(V, 3), (A, [1, 4]), (A, 2, 1)],
    np.array_split: [(V, 5), (A, 4, 1)],
    np.hsplit: [(A, 2), (V, 4)],
    np.vsplit: [(A, [2, 3])],
    np.dsplit: [(B, 2)],
    np.diagonal: [(A,), (A, 1), (A, -2), (B, 0, 1, 2)],
    np.linalg.diagonal: [(A,), (B,)],
    np.diag: [(A,), (A, 2)],
    windows: [(V, 3), (A, (2, 3)), (A, 2, 0)],
    np.broadcast_to: [(V, (3, 12)), (A[:, :1], (6, 5))],
    np.broadcast_arrays: [(A, A[:1])],
    np.real: [(A,), (C,)],
    np.imag: [(C,)],
    np.real_if_close: [(A,), (C,), (A + 0j,)],
    np.trim_zeros: [(V - 0,), (np.array([0, 0, 1, 2, 0, 3, 0]),), (np.array([0, 1, 0]), "f")],
}
if hasattr(np, "unstack"):
    VIEWS[np.unstack] = [(A,)]
COPYING = {
    np.ix_: [(V.astype(int),), (V.astype(int), np.arange(3)), (V > 3,)],
    np.meshgrid: [(V, V[:4])],
    np.diag: [(V,), (V, 2), (V, -1)],
    np.imag: [(A,)],
    np.reshape: [(A.T, -1), (A, (4, 12), "F")],
    np.ravel: [(A, "F"), (A.T,)],
}


@pytest.mark.slow
@pytest.mark.parametrize("function", VIEWS, ids=lambda f: f.__name__)
def test_views(function):
    for args in VIEWS[function]:
        check(lambda x, *rest: function(x, *rest), *args, ranks=(1, 3))


@pytest.mark.parametrize("function", COPYING, ids=lambda f: f.__name__)
def test_copies(function):
    for args in COPYING[function]:
        check(
            lambda x, *rest: function(x, *rest), *args, ranks=(2, 3), ways=("default", "last", "flipped", "transposed")
        )


@pytest.mark.parametrize("dtype", ["O", "T", "i4,U2"])
def test_broadcasting_what_is_no_number(dtype):
    values = np.zeros(2, dtype)
    expected = np.broadcast_arrays(values, np.array([[1], [2]]))
    found = np.broadcast_arrays(engine.from_global(values), engine.from_global(np.array([[1], [2]])))
    for ours, theirs in zip(found, expected, strict=True):
        assert (engine.gather(ours) == theirs).all() and ours.dtype == theirs.dtype


@pytest.mark.slow
@pytest.mark.parametrize("function", VIEWS, ids=lambda f: f.__name__)
def test_writing_through(function):
    """Results share the storage, and what is written to them is seen in the array."""
    for args in VIEWS[function]:
        a = args[0].copy()
        theirs = [v for v in leaves(function(a, *args[1:]))]

        def on_each_rank(args=args, a=a, theirs=theirs):
            with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
                x = split(args[0].copy(), 0)
                ours = list(leaves(function(x, *args[1:])))
                assert len(ours) == len(theirs)
                for mine, other in zip(ours, theirs, strict=True):
                    if not engine.is_handle(mine):
                        continue
                    assert mine.flags.writeable == other.flags.writeable
                    assert mine.strides == other.strides
                    assert np.shares_memory(mine, x) == np.shares_memory(other, a)
                mine, other = ours[0], theirs[0]
                if np.shares_memory(other, a) and other.flags.writeable and function is not np.broadcast_arrays:
                    mine[...] = 7
                    changed = args[0].copy()
                    next(leaves(function(changed, *args[1:])))[...] = 7
                    np.testing.assert_array_equal(engine.gather(x), changed)

        run_simulated(2, on_each_rank)


def test_what_is_made_of_lists_and_ndarrays_is_ours_too():
    def body():
        with config(MIN_SHARD_BYTES=0):
            x, other = split(np.arange(3), 0), np.arange(3)
            for made in (np.broadcast_arrays(x[:, None], [1, 2]), np.ix_(x, [1, 2]), np.atleast_2d(x, [1, 2])):
                assert all(map(engine.is_handle, made))
            view = np.broadcast_arrays(x[:, None], other)[1]
            other[0] = 9
            assert engine.gather(view)[2, 0] == 9
            assert np.broadcast_arrays(x, other)[1] is other and np.atleast_1d(x, other)[1] is other

    run_simulated(2, body)


def test_every_view_function_is_structural():
    for function in VIEW_FUNCTIONS - {np.lib.stride_tricks.as_strided, np.may_share_memory, np.shares_memory}:
        record = registry.lookup(function)
        assert record is not None and record.kind == "structural", function


# Functions that are no view functions, but return their argument or a view of it in some cases, and why they may.
SOMETIMES_VIEWS = {
    "numpy.asanyarray": "like= only: made by the creation functions",
    "numpy.asarray": "like= only",
    "numpy.ascontiguousarray": "like= only",
    "numpy.asfortranarray": "like= only",
    "numpy.require": "like= only",
    "numpy.frombuffer": "like= only, of a buffer",
    "numpy.around": "integers are returned themselves before NumPy 2.4: composed",
    "numpy.round": "integers are returned themselves before NumPy 2.4: composed",
    "numpy.diff": "n=0 returns the argument: composed",
    "numpy.nan_to_num": "copy=False writes into the argument: composed",
    "numpy.polyder": "m=0 returns the argument: composed",
    "numpy.polyint": "m=0 returns the argument: composed",
    "numpy.linalg.matrix_power": "the first power is the argument: composed",
    "numpy.histogram": "bins that were given are returned",
    "numpy.histogram_bin_edges": "bins that were given are returned",
}


@pytest.mark.slow
def test_no_view_function_is_missing():
    """Every function of NumPy is tried on many arguments: what shares memory with one of them is known to."""
    known = {f"{f.__module__}.{f.__name__}" for f in VIEW_FUNCTIONS} | SOMETIMES_VIEWS.keys() | {"numpy.einsum"}
    arrays = [V, A, A[:6, :6], B, C[:6, :6], np.array([1, 2, 3])]
    further = [(), (2,), (0,), (1,), (0, 1), ((1, -1),), ((2, 3),), ("ij->ji",)]
    unknown = set()
    for function in overrides.get_overridable_numpy_array_functions():
        name = f"{function.__module__}.{function.__name__}"
        if name in known or "recfunctions" in name or name.startswith(("numpy.save", "numpy.load", "numpy.from")):
            continue
        for array, rest in itertools.product(arrays, further):
            x = array.copy()
            args = ("ij->ji", x) if rest == ("ij->ji",) else (x, *rest)
            kind, result, _ = outcome(function, args)
            found = [r for r in leaves(result) if kind == "result" and isinstance(r, np.ndarray)]
            if any(np.shares_memory(r, x) for r in found):
                unknown.add(name)
    assert not unknown


def test_manipulation_errors_are_numpys():
    check(lambda x: np.reshape(x, (5, 5)), A, ways=("default",))
    check(lambda x: np.reshape(x, (-1, -1)), A, ways=("default",))
    check(lambda x: np.reshape(x, (3, 4), order="K"), V, ways=("default",))
    check(lambda x: np.transpose(x, (0, 0)), A, ways=("default",))
    check(lambda x: np.swapaxes(x, 0, 5), A, ways=("default",))
    check(lambda x: np.squeeze(x, 0), A, ways=("default",))
    check(lambda x: np.split(x, 5), A, ways=("default",))
    check(lambda x: np.broadcast_to(x, (3, 5)), A, ways=("default",))
    check(lambda x: np.diagonal(x), V, ways=("default",))
    check(lambda x: np.ravel(x, "X"), A, ways=("default",))
    check(lambda x: np.reshape(x, -1, copy=False), A.T, ways=("transposed",))
    check(lambda x: np.expand_dims(x, 5), A, ways=("default",))
    check(lambda x: np.diag(x), B, ways=("default",))
    check(lambda x: windows(x, 20), V, ways=("default",))


def test_copy_keyword():
    def call(x):
        made = np.reshape(x, (8, 6), copy=True)
        made[0] = -1
        return made

    check(call, A, ways=("default", "last"))


def test_memory_order():
    for order in "KAFC":
        for view in (lambda x: x.T, lambda x: x[:, ::2], lambda x: x[::-1], lambda x: x[:, :1], lambda x: x[None].T):
            check(lambda x, view=view, order=order: np.ravel(view(x), order), A, ranks=(2,), ways=("first", "last"))
        check(lambda x, order=order: np.ravel(x.transpose(1, 0, 2), order), B, ranks=(2,), ways=("first", "last"))
    for order in "AFC":
        check(lambda x, order=order: np.reshape(x.T, (16, 3), order), A, ranks=(2,), ways=("first", "last"))


def test_memory_sharing():
    def on_each_rank():
        with config(MIN_SHARD_BYTES=0):
            x, y = split(A, 0), split(A, 0)
            assert np.shares_memory(x, x[1:]) and not np.shares_memory(x, y)
            assert not np.shares_memory(x[::2], x[1::2]) and np.may_share_memory(x[::2], x[1::2])
            assert not np.may_share_memory(x, A)

    for n in RANKS[:2]:
        run_simulated(n, on_each_rank)


ONE_WAY = ("default",)  # others lie in other orders


def test_copies_in_one_row_have_no_base():
    for make in (lambda x: x.T.ravel(), lambda x: np.flip(x).ravel(), lambda x: x.ravel("F"), lambda x: x.T.flatten()):
        check(lambda x, make=make: make(x).base is None and make(x).flags.owndata, A, ranks=(1, 3), ways=ONE_WAY)
