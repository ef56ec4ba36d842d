"""Indexing: basic indices are views that alias, masks are native, and errors are NumPy's."""

from __future__ import annotations

import enum
import operator
import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.spmd_testing import run_simulated, spmd

from .oracle import check

A = np.arange(6 * 7 * 3.0).reshape(6, 7, 3)
B = np.arange(23)
NEW = np.newaxis


class Words(tuple):
    """Indices that are a tuple, though not exactly one."""


class Index:
    """What counts as an integer, and is none."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


BASIC = [
    (), ..., 0, -1, 3, slice(None), slice(1, None), slice(None, None, -1), slice(4, 1, -2), slice(2, 2), NEW, (0, 1),
    (0, 1, 2), (-1, -1, -1), (..., 0), (0, ...), (0, 1, 2, ...), (slice(1, 4), NEW, slice(None, None, 2)),
    (slice(None), 2), (..., NEW), (slice(5, None, -1), 3, slice(1, 3)), np.int64(2), (np.int8(1), np.int32(2)),
    np.array(2), (np.array(1), slice(1, 3)), Words((1, slice(2))), Words((slice(1, 3),)), Words((0, 1, 2)), Words(),
]  # fmt: skip
WRONG = [6, -7, (0, 7), (0, 0, 0, 0), (..., ...), 1.5, "x", (slice(None),) * 4, slice(0, 3, 0), {}, object]


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_indices_read(key):
    check(lambda a: a[key], A, flags=True)


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_indices_write(key):
    def body(a):
        a[key] = -1
        a[key] = a[key] * 2

    check(body, A, ranks=(2, 3))


@pytest.mark.parametrize("key", WRONG, ids=str)
def test_errors_of_wrong_indices(key):
    check(lambda a: a[key], A, ranks=(2,))

    def body(a):
        a[key] = 1

    check(body, A, ranks=(2,))


@pytest.mark.parametrize("index", [np.uint8(1), np.int16(-2), Index(1)], ids=repr)
def test_what_counts_as_an_integer_makes_views(index):
    def body(a):
        row, part = a[index], a[index, 2:5]
        row += 7
        part[...] *= 2
        return row, part, np.shares_memory(a, a[index])

    check(body, A)


def test_views_alias():
    def body(a):
        rows, column = a[1:4], a[:, 2]
        inner = rows[1:].transpose(2, 0, 1)[1]
        inner[...] = 0
        rows[0] += 100
        column[::2] = a[1::2, 3]
        return rows, column, inner

    check(body, A, flags=True)


def test_overlapping_assignment():
    def body(a, b):
        a[1:] = a[:-1]
        a[:, 1:] += a[:, :-1]
        b[::-1] = b
        b[2:] = b[:-2] * 2

    check(body, A, B)


@pytest.mark.parametrize(
    "value", [1, 2.7, [1, 2, 3], [[1], [2], [3], [4], [5], [6], [7]], np.arange(3.0), np.ones((1, 1, 7, 3)), True]
)
def test_assigned_values_broadcast(value):
    def body(a):
        a[2] = value

    check(body, A, ranks=(2,))
    check(body, A.astype("i4"), ranks=(2,))


@pytest.mark.parametrize(
    "value", ["abc", [1, 2], np.ones((7, 2)), None, 300, -1, 1j, float("nan"), "12", [[1, 2], [3]], {}]
)
@pytest.mark.parametrize("dtype", ["f8", "u1", "i8"])
def test_assigned_values_that_do_not_fit(value, dtype):
    def body(a):
        a[2] = value

    check(body, np.zeros((4, 7, 3), dtype), ranks=(2,))


class Code(enum.IntEnum):
    BIG = 300


class Real(float):
    """A number of a derived class, as the three below."""


class Complex(complex):
    pass


class Text(str):
    pass


class Listed(list):
    pass


class Convertible:
    def __array__(self, dtype=None, copy=None):
        return np.asarray(300, dtype)


SCALARS = [
    np.float64(1e308), np.float64("inf"), np.float32("nan"), np.float16("inf"), np.longdouble(1e300), np.int64(300),
    np.uint8(250), np.datetime64("2020-01-01"), np.timedelta64("NaT"), np.complex64(3), np.str_("7"), np.str_("x"),
    "1.5", 2**70, 1e308, [300], [1e308], [1, 2], [[4]], [], (3,), range(2), None, object, np.array(np.nan),
    np.array([300]), Code.BIG, Real("nan"), Complex(1j), Text("x"), Listed([300]), Listed([1, 2]), Convertible(),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("key", [(1, 2, 0), 4, (2, 3, 1, ...), ..., slice(1, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["i1", "i8", "u1", "?", "f2", "c8", "S3", "M8[D]"])
def test_scalars_are_converted_as_numpy_does(dtype, key):
    """By ``int`` for signed integers, by ``str`` for strings, else by casts; sequences as such for one element."""
    for value in SCALARS:

        def body(a, value=value):
            a[key] = value
            a[key] = value  # by the schedule of the first

        check(body, np.zeros((6, 7, 3), dtype), ranks=(2,))


@pytest.mark.parametrize("key", [1, (2, ...), slice(1, 2), ...], ids=str)
def test_objects_are_kept_as_they_are(key):
    for value in SCALARS:

        def body(a, value=value):
            a[key] = value
            return repr(a.tolist())

        check(lambda a, body=body: body(a.astype(object)), np.zeros(4), ranks=(2,), fallback="silent")


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_numbers_of_pythons_are_cast_by_kind(casting):
    for dtype in ("f4", "i4"):
        for value in (1, 1.5, True, 1j):
            check(lambda a, value=value: np.copyto(a, value, casting=casting), np.zeros(5, dtype), ranks=(2,))


def test_one_element_is_assigned_to_an_array_without_axes():
    def body(a):
        a[3, 4, 1, ...] = a[5, 2, :1]
        np.copyto(a[0, 0, 0, ...], a[5, :1, 2])
        a[1, 1, 1, ...][...] = a[:1, :1, :1]

    check(body, A)


def test_read_only():
    def body(a):
        a.flags.writeable = False
        b = a[1:]
        with pytest.raises(ValueError):
            a[0] = 1
        with pytest.raises(ValueError):
            b[0] = 1
        with pytest.raises(ValueError):
            b[b > 0] = 1
        with pytest.raises(ValueError):
            b += 1
        return b.flags.writeable

    check(body, A)
    check(lambda a: operator.setitem(a.diagonal(), 0, 1), np.zeros((3, 3)))
    check(lambda a: a.flags.writeable, A)


def test_masks():
    m = A[..., 0] > 40
    check(lambda a: a[a > 30], A)
    check(lambda a, m: a[m], A, m)
    check(lambda a, m: a[m, 1], A, m)
    check(lambda a, m: a[m, 1:], A, m)
    check(lambda a: a[a[:, 0, 0] > 20], A)
    check(lambda a: a[[True, False, True, False, True, False]], A)
    check(lambda a: a[np.arange(6) % 2 == 0], A)
    check(lambda a: a[a < -5], A)


@pytest.mark.slow
def test_masks_write():
    m = A[..., 0] > 40

    def body(a, m):
        a[a > 90] = 0
        a[m] = [1, 2, 3]
        a[m, 1] = 7
        a[np.arange(6) % 2 == 0] *= -1
        a[a < -20] = np.arange((a < -20).sum())

    check(body, A, m)
    check(lambda a: operator.setitem(a, a > 3, [1.0, 2.0]), A, ranks=(2,))
    check(lambda a: operator.setitem(a, np.ones((6, 6), bool), 1), A, ranks=(2,))
    check(lambda a: operator.setitem(a, a > 3, Code.BIG), A.astype("i1"), ranks=(2,))


def test_scalar_masks_and_empty_lists():
    for key in (True, False, np.True_, [], (True, 1)):
        check(lambda a, key=key: a[key], A, fallback="silent", ranks=(2,))


def test_integer_arrays():
    i = np.array([[3, 1], [0, -1]])
    for key in (i, [2, 0, 1], (i, i), (slice(None), i), (i, NEW, 0), (..., [0, 2])):
        check(lambda a, key=key: a[key], A, ranks=(2,))

        def body(a, key=key):
            a[key] = -1
            a[key] += 2

        check(body, A, ranks=(2,))
    check(lambda a, i: a[i], B, np.array([3, 1, 22]))
    check(lambda a: a[[99]], B)


def test_an_index_that_is_a_distributed_scalar():
    def body(a, i):
        return a[i], a[i, 1:]

    check(body, A, np.array(2))


def test_structured():
    s = np.zeros(9, [("x", "i4"), ("y", "f8", 2)])

    def body(s):
        s["x"] = np.arange(9)
        s["y"][:, 1] = 2.5
        s["x"][2:4] += 10
        return s["x"], s[["x"]]["x"], s["y"][3], s[4]["x"], s[4].item()[0]

    check(body, s)
    check(lambda s: s["z"], s)


def test_iteration_len_and_in():
    check(lambda b: [float(v) * 2 for v in b], B)
    check(lambda b: [type(v) for v in b], B)
    check(lambda a: [row.sum() for row in a[..., 0]], A)
    check(lambda a: (len(a), len(a[0]), 3.0 in a, -3.0 in a, None in a), A)
    check(lambda a: iter(a[0, 0, 0, ...]), A)
    check(lambda a: len(a[0, 0, 0, ...]), A)

    def changing(b):
        for i, v in enumerate(b):
            b[min(i + 1, 22)] = v + 1
        return b

    check(changing, B)
    check(lambda a: [x for x in np.ones(3) if x in a], A)


def test_iteration_fetches_blocks():
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            b = nd.asarray(np.arange(5000))
            before = nd.engine.counters().gathers
            assert sum(int(v) for v in b) == 5000 * 4999 // 2
            assert nd.engine.counters().gathers - before < 5

    from numpy_dist import engine

    nd.engine = engine
    run_simulated(2, body)


def test_an_array_without_axes_is_read_again_and_again():
    from numpy_dist import engine

    def body():
        x = nd.asarray(np.array(5.0)).redistribute(engine.runtime().replicated_layout(()))
        assert [x.ravel()[0] for _ in range(12)] == [5.0] * 12

    run_simulated(2, body)


def test_flat():
    check(lambda a: (list(a.flat)[::10], a.flat[5], a.flat[3:9:2], len(a.flat)), A)
    check(lambda a: a.T.flat[7], A)

    def body(a):
        a.flat[4] = -1
        a.flat[7:11] = [5, 6]
        a.T.flat[3] = 99
        a[1].flat = 8

    check(body, A)


@spmd(1, 2, 3)
def test_records_are_detached_and_say_so():
    with nd.config(MIN_SHARD_BYTES=0):
        x = nd.asarray(np.zeros(5, "i4,f8"))
        for record in (x[1], next(iter(x)), x[1:][0]):
            with pytest.raises(ValueError, match="read-only"):
                record["f0"] = 7
        x[2] = x[1]
        assert x[1].item() == (0, 0.0) and not (x["f0"] == 7).any()


@pytest.mark.parametrize("value", [[0, 0, -1, 5], [[4], ["x"], [1], [2]], [-1, 1, 2, 3], [1, 2, 3, 256]])
def test_what_was_assigned_before_an_element_of_a_list_raised(value):
    theirs = np.full((4, 1), 9, np.uint8)
    x = nd.asarray(theirs.copy())
    target = slice(None) if isinstance(value[0], list) else (slice(None), 0)
    for array in (theirs, x):
        with pytest.raises((OverflowError, ValueError)):
            array[target] = value
    assert np.array_equal(x.gather(), theirs) and not (theirs == 9).all() or value[0] == -1


def test_derived_arrays_are_assigned_as_numpy_assigns_them():
    matrix = np.asmatrix([[1.0, 2.0, 3.0, 4.0]])
    masked = np.ma.array([4.0, 5.0, 6.0, 7.0], mask=[0, 1, 0, 0])

    def caught(x):
        errors = []
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            x[:] = masked
            x[:] = matrix
            x[[3, 1, 0, 2]] = matrix
            x[2] = np.ma.masked  # asked for a number, which it warns of
            for value in (matrix[:, :1], matrix):  # before 2.4, NumPy takes one element, and warns of it
                try:
                    x[1] = value
                except ValueError as error:
                    errors.append(str(error))
            x[1:2] = matrix[:, 1:2]
        assert errors and errors[-1].startswith("setting an array element")
        return errors, [(w.category, str(w.message)) for w in found], np.array(x)

    def body():
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
            (*told, values), (*expected_told, expected) = caught(nd.asarray(np.zeros(4))), caught(np.zeros(4))
            assert told == expected_told
            np.testing.assert_array_equal(values, expected)

    for n in (1, 2):
        run_simulated(n, body)


KEYS_THAT_DO_NOT_FIT = [1.0, [1.5], "a", (0, 0), 10**9, slice(1.5), np.array([1.5]), {}, slice(0, 2)]


@pytest.mark.parametrize("key", KEYS_THAT_DO_NOT_FIT, ids=repr)
@pytest.mark.parametrize("length", [6, 200_000])
def test_read_only_arrays_say_so_before_they_look_at_indices(key, length):
    x = nd.asarray(np.zeros(length))
    x.flags.writeable = False
    with pytest.raises(ValueError, match="^assignment destination is read-only$"):
        x[key] = [1, 2, 3]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, out: np.cumsum(x, 1, out=out),
        lambda x, out: np.sum(x, 1, out=out[:, 0]),
        lambda x, out: np.median(x, 1, out=out[:, 0]),
        lambda x, out: np.maximum.accumulate(x, out=out),
        lambda x, out: np.matmul(x, x, out=out),
        lambda x, out: np.dot(x, x, out=out),
        lambda x, out: np.choose(np.zeros(4, int), [x], out=out),
    ],
)
@spmd(1, 3)
def test_read_only_outputs_say_so(write):
    values, out = np.ones((4, 4)), np.ones((4, 4))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only|not acceptable"):  # versions have other words
        write(values, out)
    with nd.config(MIN_SHARD_BYTES=0):
        out = nd.asarray(out)
        out.flags.writeable = False
        with pytest.raises(ValueError, match="^output array is (read-only|not acceptable)"):
            write(nd.asarray(values), out)


@pytest.mark.parametrize("length", [60, 20_000, 200_000])
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("step", [2, 4, -3])
def test_what_is_assigned_is_read_before_it_is_overwritten(length, pending, step):
    """NumPy overwrites part of it, where strides differ: ours is the same however long the array."""
    values = np.arange(float(length))
    some, first = slice(None, None, step), slice(1, 1 + len(values[::step]))
    x, y = nd.asarray(values), nd.asarray(values)
    if pending:
        x += 0
        y += 0
    x[first] = x[some]
    y[some] = y[first]
    expected = values.copy()
    expected[first] = values[some]
    assert np.array_equal(x.gather(), expected)
    expected = values.copy()
    expected[some] = values[first]
    assert np.array_equal(y.gather(), expected)
