"""NumPy's protocols: which types are ours to compute, what reaches the engine, and in-place targets."""

import array
import sys

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.dispatch.core import operands, protocol, registry
from numpy_dist.dispatch.core.noting import words_of
from numpy_dist.spmd_testing import forbid_gathers, spmd

pytestmark = pytest.mark.usefixtures("tiny_shards")


class Foreign:
    """A duck array that does not know ours."""

    def __array_function__(self, func, types, args, kwargs):
        return NotImplemented

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented


class Knowing:
    """A duck array that handles ours."""

    def __array_function__(self, func, types, args, kwargs):
        return "theirs"

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "theirs"


class Subclass(np.ndarray):
    """An array with units, say."""


@pytest.mark.parametrize("other", [Foreign(), np.ma.masked_array([1.0, 2.0]), np.ones(2).view(Subclass)])
def test_foreign_types_are_left_to_themselves(other):
    x = nd.asarray([1.0, 2.0])
    with pytest.raises(TypeError):
        np.concatenate([x, other])
    with pytest.raises(TypeError):
        np.add(x, other)
    with pytest.raises(TypeError):
        np.add(x, 1.0, where=other if isinstance(other, Foreign) else Foreign())


def test_types_that_know_us_decide():
    x = nd.asarray([1.0, 2.0])
    assert np.concatenate([x, Knowing()]) == "theirs"
    assert np.add(x, Knowing()) == "theirs"
    assert x + Knowing() == "theirs"


def test_which_types_are_foreign():
    class Plain: ...

    for kind in (Subclass, np.ma.MaskedArray, np.matrix, Foreign):
        assert operands.is_foreign(kind)
    for kind in (int, list, np.float32, np.ndarray, np.memmap, nd.DistArray, Plain, type(None), np.void):
        assert not operands.is_foreign(kind)


def test_a_class_of_the_users_own_is_known():
    class Mine(nd.DistArray):
        __slots__ = ()

    assert not operands.is_foreign(Mine)


@spmd(1, 3)
def test_lists_and_buffers_among_the_inputs():
    x = nd.asarray([1.0, 2.0, 3.0])
    buffer = array.array("d", [4.0, 5.0, 6.0])
    for other in ([1, 2, 3], (1.0, 2.0, 3.0), buffer, [True, False, True], [x, x], [[x], [x]]):
        expected = np.add([1.0, 2.0, 3.0], _values(other))
        with nd.config(FALLBACK="error"):
            made = np.add(x, other)
        assert np.array_equal(made.gather(), expected)
    assert np.array_equal(np.add(x, 1, where=[True, False, True], out=x.copy()).gather(), [2.0, 2.0, 4.0])


def _values(other):
    if isinstance(other, list | tuple):
        return [_values(item) for item in other]
    return other.gather() if isinstance(other, nd.DistArray) else other


@spmd(1, 2, 3)
def test_the_very_same_ndarray_is_updated():
    x = nd.asarray(np.arange(6.0))
    mine = before = np.ones(6)
    with nd.config(FALLBACK="silent"):
        mine += x
        assert mine is before and np.array_equal(mine, np.arange(6.0) + 1)
        assert np.multiply(x, 2, out=mine) is before and np.array_equal(mine, np.arange(6.0) * 2)
        quotient, rest = np.empty(6), np.empty(6)
        result = np.divmod(x, 4, out=(quotient, None))
        assert result[0] is quotient and isinstance(result[1], nd.DistArray)
        assert np.divmod(x, 4, quotient, rest)[1] is rest
    assert np.array_equal(rest, np.arange(6.0) % 4)


@spmd(1, 2)
def test_an_ndarray_as_output_is_announced():
    x, mine = nd.asarray(np.arange(6.0)), np.ones(6)
    with pytest.warns(nd.FallbackWarning, match="numpy.add.*an ndarray, which every rank holds whole"):
        mine += x
    with nd.config(FALLBACK="error"), pytest.raises(nd.FallbackError):
        mine += x
    assert np.array_equal(mine, np.arange(6.0) + 1)


@spmd(1, 2)
def test_copyto_into_an_ndarray_is_announced():
    x, whole = nd.asarray(np.arange(6.0)), np.zeros(6)
    with pytest.warns(nd.FallbackWarning, match="numpy.copyto at .*its target is an ndarray"):
        np.copyto(whole, x)
    assert whole.tolist() == [0, 1, 2, 3, 4, 5]
    with nd.config(FALLBACK="error"), pytest.raises(nd.FallbackError, match=r"numpy\.copyto"):
        np.copyto(whole, x + 1)


@spmd(1, 3)
def test_dtypes_may_be_given_as_classes():
    x = nd.asarray(np.arange(6))
    with nd.config(FALLBACK="error"):
        assert np.add(x, 1, dtype=np.dtypes.Float32DType).dtype == np.float32
        assert np.add.reduce(x, dtype=np.dtypes.Float64DType) == 15.0


@spmd(1, 3)
def test_ufuncs_and_reductions_are_the_engines():
    data = np.arange(24.0).reshape(4, 6)
    x = nd.asarray(data)
    with nd.config(FALLBACK="error"), forbid_gathers():
        kept = [
            np.add(x, x),
            np.add(x, 1, dtype="f4", casting="unsafe", subok=True),
            np.add.reduce(x),
            np.add.reduce(x, 1, None, None, True),
            np.maximum.reduce(x, axis=(0, 1)),
            np.logical_and.reduce(x, axis=0, where=data > 3),
        ]
    expected = [
        np.add(data, data),
        np.add(data, 1, dtype="f4", casting="unsafe"),
        np.add.reduce(data),
        np.add.reduce(data, 1, None, None, True),
        np.maximum.reduce(data, axis=(0, 1)),
        np.logical_and.reduce(data, axis=0, where=data > 3),
    ]
    for ours, theirs in zip(kept, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours.gather() if isinstance(ours, nd.DistArray) else ours, theirs)
    out = nd.empty((6,))
    assert np.add.reduce(x, out=out) is out
    assert np.array_equal(out.gather(), data.sum(0))


@spmd(1, 3)
def test_what_the_engine_cannot_do_is_gathered():
    data = np.arange(1.0, 7.0)
    x = nd.asarray(data)
    with nd.config(FALLBACK="silent"):
        assert np.array_equal(np.subtract.reduce(x), np.subtract.reduce(data))
        assert np.array_equal(np.hypot.accumulate(x).gather(), np.hypot.accumulate(data))
        assert np.array_equal(np.hypot.reduceat(x, [0, 3]).gather(), np.hypot.reduceat(data, [0, 3]))
        assert np.array_equal(np.hypot.outer(x, [1, 2]).gather(), np.hypot.outer(data, [1, 2]))
        made = np.add(x, np.array([1, 2, 3, 4, 5, 6], object))
        assert made.dtype == object and made.gather().tolist() == (data + np.arange(1, 7)).tolist()
        called = np.frompyfunc(lambda a: a + 1, 1, 1)(x)
        assert called.dtype == object and called.gather().tolist() == (data + 1).tolist()
        assert np.add(x, 1, dtype=object).dtype == object
        assert np.vecdot(x, x) == np.vecdot(data, data)


@spmd(1, 3)
def test_at_writes_back():
    data = np.zeros(5)
    x = nd.asarray(data)
    indices = nd.asarray([0, 1, 1, 4])
    with nd.config(FALLBACK="silent"):
        assert np.add.at(x, indices, 1.0) is None
        np.add.at(data, np.array([0, 1, 1, 4]), 1.0)
        assert np.array_equal(x.gather(), data)
        mine = before = np.zeros(5)
        np.add.at(mine, indices, nd.asarray([1.0, 2.0, 3.0, 4.0]))
        np.negative.at(x, indices)
    assert mine is before and mine.tolist() == [1.0, 5.0, 0.0, 0.0, 4.0]
    np.negative.at(data, np.array([0, 1, 1, 4]))
    assert np.array_equal(x.gather(), data)


@spmd(1, 2)
def test_numba_ufuncs():
    numba = pytest.importorskip("numba")

    @numba.vectorize
    def twice(a):
        return 2 * a

    @numba.vectorize(["float64(float64, float64)"])
    def mixed(a, b):
        return a - b

    x = nd.asarray(np.arange(4.0))
    with nd.config(FALLBACK="error"):
        assert np.array_equal(twice(x).gather(), 2 * np.arange(4.0))
        assert np.array_equal(mixed(x, 1.0).gather(), np.arange(4.0) - 1)
        assert twice(nd.asarray([1 + 2j])).gather().tolist() == [2 + 4j]
        assert np.array_equal(mixed(1, x).gather(), 1 - np.arange(4.0))


def test_errors_are_numpys():
    x = nd.asarray(np.arange(4.0))
    for attempt in (
        lambda a: np.add(a, np.ones(3)),
        lambda a: np.bitwise_and(a, 1),
        lambda a: np.add(a, 1, out=np.empty(4, int)),
        lambda a: np.add.reduce(a, axis=3),
        lambda a: np.sum(a, axis=7),
        lambda a: np.interp(a, [1, 2], [1, 2, 3]),
        lambda a: np.add(a, 1, nonsense=2),
        lambda a: np.sum(a, nonsense=2),
    ):
        with pytest.raises(Exception) as theirs:
            attempt(np.arange(4.0))
        with nd.config(FALLBACK="silent"), pytest.raises(type(theirs.value)) as ours:
            attempt(x)
        assert str(ours.value) == str(theirs.value)


def test_like():
    made = np.zeros((3, 2), like=nd.asarray([1.0]))
    assert isinstance(made, nd.DistArray) and made.shape == (3, 2)


def test_a_found_rule_costs_few_calls(table):
    """Speed by counting: Python calls between NumPy's protocol and the rule."""

    @registry.implements(np.unwrap)
    def unwrap(p, discont=None, axis=-1, *, period=6.283185307179586):
        return None

    x = nd.asarray([1.0])
    names = []
    sys.setprofile(lambda frame, event, argument: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        protocol.array_function(nd.DistArray, np.unwrap, (nd.DistArray,), (x,), {})
    finally:
        sys.setprofile(None)
    assert names == ["array_function", "apply", "unwrap"]


def test_loops_for_records_that_take_no_output_are_gathered():
    add_triplet = pytest.importorskip("numpy._core._struct_ufunc_tests").add_triplet
    records = np.array([(1, 2, 3)] * 4, dtype="u8,u8,u8")
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
        found = add_triplet(nd.asarray(records), nd.asarray(records))
        np.testing.assert_array_equal(found.gather(), add_triplet(records, records))


def test_arguments_that_hold_arrays_inside_of_others_are_not_flat():
    x = nd.arange(3.0)
    for values in ([], [1, "a", None, np.float64, np.add, 2.5, True], [x, np.dtype("f8"), np.ones(2)], [x, x.T]):
        assert operands.all_flat(values)
    for inside in ([x], (x, 1), {"a": x}, [], slice(x, None), object()):
        assert not operands.all_flat([x, inside]) and not operands.all_flat([inside, 1])


def test_arguments_in_words():
    """By which calls on several ranks are compared: all but what is written to, and by the names of keywords."""
    written, scale = np.zeros(3), 2.5
    words = words_of((1, written, "name"), {"axis": 0, "out": (written,), "size": 3, "where": True}, [written], True)
    assert [word.partition("=")[0] for word in words[-3:]] == ["axis", "size", "where"]
    assert len(words) == 5 and not any("out" in word for word in words)
    changed = [
        words_of((1, written, "name"), {"axis": 0, "size": 3, "where": True} | {name: scale}, [written], True)
        for name in ("axis", "size", "where")
    ]
    assert all(other != words for other in changed)
    assert words_of((), {"size": written}, [written], True) == []


@spmd(1, 3)
@pytest.mark.parametrize(
    ("call", "rest"),
    [
        (np.moveaxis, (0, 0)), (np.broadcast_to, ((2, 3),)), (np.transpose, ((0, 1),)), (np.reshape, ((2, 3),)),
        (np.rot90, (4,)), (np.flip, ((),)), (np.expand_dims, ((),)), (np.expand_dims, (0,)), (np.swapaxes, (0, 1)),
    ],
)  # fmt: skip
def test_views_have_the_first_argument_as_base(call, rest):
    """Also those that look at all of it, as it does."""
    x, plain = nd.arange(6.0).reshape(2, 3).copy(), np.arange(6.0).reshape(2, 3).copy()
    assert call(plain, *rest).base is plain and call(x, *rest).base is x
    for made in np.split(x, 1):
        assert made.base is x
