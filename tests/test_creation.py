"""Creation functions make NumPy's arrays, bit for bit, each rank its part."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.spmd_testing import forbid_gathers, run_simulated

from .distarray.oracle import assert_same, outcome

EXPRESSIONS = [
    "np.zeros(7)", "np.zeros((3, 5), 'i4')", "np.zeros((3, 5), order='F')", "np.ones((4, 2), complex)",
    "np.zeros(())", "np.zeros((0, 3))", "np.zeros(-1)", "np.zeros(2.5)", "np.zeros('x')", "np.zeros((2, -1))",
    "np.zeros(3, 'nonsense')", "np.zeros(np.int8(3))", "np.ones(3, bool)", "np.zeros(5, 'U3')",
    "np.zeros(5, object)", "np.zeros(4, [('x', 'i4')])", "np.full((3, 4), 7)", "np.full(5, 2.5)",
    "np.full((2, 3), [1, 2, 3])", "np.full(3, 300, 'u1')", "np.full(3, 'abc')", "np.full((2, 3), [1, 2])",
    "np.full((3, 4), True, order='F')", "np.full(4, 1.7, int)", "np.arange(10)", "np.arange(10.5)",
    "np.arange(2, 30, 3)", "np.arange(30, 2, -4)", "np.arange(0, 1, 0.1)", "np.arange(0.1, 5.3, 0.37, dtype='f4')",
    "np.arange(1, 0)", "np.arange(5, dtype='u1')", "np.arange(0, 6, dtype='f2')", "np.arange(0, 5j, 1j)",
    "np.arange(0, 5, 1 + 0j)", "np.arange(3, 9, dtype='M8[D]')", "np.arange(0, 5, 0)", "np.arange('x')",
    "np.arange(0, 1e10, 1e9)", "np.arange(np.float32(0), 3)", "np.arange(start=2, stop=7)", "np.arange(stop=7)",
    "np.arange(2**63, 2**63 + 5, dtype='u8')", "np.arange(0, float('nan'))", "np.arange(True)",
    "np.linspace(0, 1, 13)", "np.linspace(2, 5, 11, endpoint=False)", "np.linspace(0, 1, 7, dtype='f4')",
    "np.linspace(0, 9, 14, dtype=int)", "np.linspace(0, 1, 1)", "np.linspace(0, 1, 0)", "np.linspace(0, 1, -1)",
    "np.linspace(3, 3, 9)", "np.linspace(0, 5e-324, 9)", "np.linspace(0, 1, 9, retstep=True)",
    "np.linspace([0, 1], [2, 3], 5)", "np.linspace(0, 1j, 9)", "np.linspace(np.float32(0.1), 0.7, 9)",
    "np.linspace(0, np.float32(0.3), 11)", "np.linspace(1, 0, 2)", "np.logspace(0, 2, 9)",
    "np.logspace(0, 2, 9, base=2, dtype='f4')", "np.geomspace(1, 1000, 7)", "np.eye(5)", "np.eye(4, 6, 1)",
    "np.eye(4, 6, -2, 'i2')", "np.eye(5, order='F')", "np.eye(3, 4, 9)", "np.identity(4, int)", "np.tri(4)",
    "np.tri(4, 6, 1, int)", "np.tri(5, 3, -2)", "np.indices((3, 4))", "np.indices((3, 4), sparse=True)",
    "np.indices((2, 3), 'f4')", "np.indices(())", "np.fromfunction(lambda i, j: i * 10 + j, (4, 5))",
    "np.fromfunction(lambda i: np.sin(i), (9,), dtype=int)", "np.mgrid[0:5]", "np.mgrid[0:5, 2:9:2]",
    "np.mgrid[-1:1:5j, 0:3]", "np.array([1, 2, 3])", "np.array([[1, 2.5], [3, 4]])", "np.array(5)",
    "np.array([1, 2], 'f4')", "np.array([[1, 2], [3]])", "np.array('x')", "np.array([1, 2], ndmin=3)",
    "np.array([], int)", "np.asarray((1, 2, 3), order='F')", "np.array([1, 'a'])", "np.array([None, 1])",
    "np.asarray(range(5))", "np.ascontiguousarray(3)", "np.asfortranarray([[1, 2], [3, 4]])",
    "np.require([1, 2], 'f4', ['C', 'W'])", "np.frombuffer(b'abcdefgh', 'i4')",
    "np.fromiter((i * i for i in range(9)), int)", "np.fromstring('1 2 3', sep=' ')", "np.loadtxt(['1 2', '3 4'])",
    "np.genfromtxt(['1,2', '3,'], delimiter=',')", "np.array([1, 2], copy=True)",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_values_are_numpys(expression):
    expected, _ = outcome(lambda: eval(expression), [])

    def body(n):
        with nd.config(MIN_SHARD_BYTES=n, FALLBACK="error"), forbid_gathers():
            got, _ = outcome(lambda: eval(expression, {"np": nd, "expected": expected}), [])
        assert_same(got, expected, expression, flags=True)

    for ranks, threshold in ((1, 0), (3, 0), (2, 1 << 40)):
        run_simulated(ranks, body, threshold)


@pytest.mark.parametrize(
    "expression",
    [
        "np.zeros(9)",
        "np.arange(9)",
        "np.linspace(0, 1, 9)",
        "np.eye(4)",
        "np.array([1, 2, 3])",
        "np.fromfunction(lambda i: i, (5,))",
    ],
)
def test_large_arrays_are_cut(expression):
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            x = eval(expression, {"np": nd})
            assert engine.is_sharded(x) and x.local.size < x.size
        assert not engine.is_sharded(eval(expression, {"np": nd}))

    run_simulated(2, body)


def test_creation_through_like():
    expressions = [
        "np.zeros((3, 4), like=x)", "np.ones(3, 'f4', like=x)", "np.empty(3, like=x)", "np.full(3, 2.5, like=x)",
        "np.arange(2, 9, like=x)", "np.array([1, 2], like=x)", "np.asarray([[1, 2]], 'f4', like=x)",
        "np.asanyarray(3, like=x)", "np.eye(3, k=1, like=x)", "np.identity(3, like=x)", "np.tri(3, like=x)",
        "np.fromfunction(lambda i: i + 1, (4,), like=x)", "np.fromiter([1, 2], int, like=x)",
        "np.frombuffer(b'ab', 'u1', like=x)", "np.fromstring('1 2', sep=' ', like=x)",
        "np.ascontiguousarray([1], like=x)", "np.asfortranarray([1], like=x)", "np.require([1], like=x)",
        "np.loadtxt(['1'], like=x)", "np.genfromtxt(['1'], like=x)",
    ]  # fmt: skip

    def body(n):
        with nd.config(MIN_SHARD_BYTES=n):
            x = nd.zeros(3)
            for expression in expressions:
                got = eval(expression, {"np": np, "x": x})
                ours = eval(expression, {"np": nd, "x": x})
                if "empty" in expression:
                    got[...], ours[...] = 0, 0
                expected = (
                    eval(expression.replace(", like=x", ""), {"np": np}) if "empty" not in expression else np.zeros(3)
                )
                assert_same(got, expected, expression)
                assert_same(ours, expected, expression)
                plain = eval(expression, {"np": nd, "x": np.zeros(3)})
                assert type(plain) is np.ndarray, expression

    run_simulated(2, body, 0)
    run_simulated(1, body, 1 << 40)


@pytest.mark.parametrize(
    "make", [lambda a: a, lambda a: a.T, lambda a: a[1:, ::2], lambda a: a.transpose(1, 2, 0), lambda a: a[:1, :1, :1]]
)
def test_arrays_like_others(make):
    a = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4))
    expressions = [
        "np.zeros_like(x)", "np.ones_like(x, 'i4')", "np.full_like(x, 7)", "np.full_like(x, [1.5], 'i8')",
        "np.zeros_like(x, order='C')", "np.zeros_like(x, order='F')", "np.zeros_like(x, order='A')",
        "np.zeros_like(x, shape=(2, 5))", "np.ones_like(x, shape=(3, 1, 2))", "np.empty_like(x).shape",
        "np.empty_like(x, 'f4').dtype", "np.zeros_like(x, shape=-1)",
    ]  # fmt: skip

    def body(n):
        with nd.config(MIN_SHARD_BYTES=n, FALLBACK="error"):
            theirs = make(a)
            for expression in expressions:
                expected, _ = outcome(lambda expression=expression: eval(expression, {"np": np, "x": theirs}), [])
                for names in ({"np": np, "x": make(nd.asarray(a))}, {"np": nd, "x": theirs}):
                    got, _ = outcome(lambda expression=expression, names=names: eval(expression, names), [])
                    assert_same(got, expected, expression, flags=True)
                    if isinstance(expected, np.ndarray):
                        assert got.strides == expected.strides or 1 in expected.shape

    run_simulated(3, body, 0)
    run_simulated(2, body, 1 << 40)


def test_like_follows_the_layout():
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            x = nd.zeros((6, 4), split=1)
            assert np.zeros_like(x).layout == x.layout
            assert np.ones_like(x.T).layout == x.T.layout
            assert np.zeros_like(x[2:, ::-1]).layout == x[2:, ::-1].layout

    run_simulated(2, body)


def test_split_and_mesh():
    def body():
        for make in (
            nd.zeros,
            nd.empty,
            lambda s, **k: nd.full(s, 1, **k),
            lambda s, **k: nd.asarray(np.ones(s), **k),
            lambda s, **k: nd.eye(*s, **k),
        ):
            x = make((6, 8), split=1)
            assert x.layout.cut_axes == (1,) and x.local.shape == (6, 2)
            assert make((6, 8), mesh=(2, 2)).local.shape == (3, 4)
        with pytest.raises(ValueError):
            nd.zeros((3, 4), split=2)
        with pytest.raises(ValueError):
            nd.zeros((3, 4), mesh=(3, 1))

    run_simulated(4, body)


def test_asarray_of_our_own():
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            x = nd.arange(12.0).reshape(3, 4)
            assert nd.asarray(x) is x and nd.asarray(x, float) is x and nd.ascontiguousarray(x) is x
            assert nd.array(x) is not x
            assert_same(nd.asarray(x, "i4"), np.arange(12, dtype="i4").reshape(3, 4))
            assert nd.asfortranarray(x).flags.f_contiguous
            assert nd.asarray(x, split=1).layout.cut_axes == (1,)
            with pytest.raises(ValueError, match="copy"):
                nd.asarray(x, "f4", copy=False)
            with pytest.raises(ValueError, match="copy"):
                nd.asarray(np.ones(3), copy=False)
            nested = nd.array([[x[0], x[1]], [x[1], np.zeros(4)]])
            assert_same(nested, np.array([[[0, 1, 2, 3], [4, 5, 6, 7]], [[4, 5, 6, 7], [0, 0, 0, 0.0]]]))

    run_simulated(2, body)


def test_arrays_of_unlike_shapes():
    shapes = [(3, 2), (4, 2)], [(3, 2), ()], [(3, 2), (3, 5)], [[(3,), (4,)], [(3,), (4,)]], [[(3, 2), (4,)], (2,)]

    def made(namespace, shape, dtype):
        def of(shape):
            return [of(each) for each in shape] if isinstance(shape, list) else namespace.zeros(shape)

        return namespace.array(of(shape), dtype)

    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            for shape in shapes:
                for dtype in (None, "f4", object):
                    expected, got = (outcome(made, [m, shape, dtype])[0] for m in (np, nd))
                    if isinstance(expected, Exception):
                        assert_same(got, expected, f"{shape} {dtype}")
                        continue
                    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
                    for ours, theirs in zip(got.gather().flat, expected.flat, strict=True):
                        assert type(ours) is list if type(theirs) is list else np.shape(ours) == np.shape(theirs)

    run_simulated(2, body)


def test_asarray_copies():
    for n in (0, 1 << 40):
        with nd.config(MIN_SHARD_BYTES=n):
            a = np.arange(5.0)
            x = nd.asarray(a)
            a[0] = 99
            assert x.gather()[0] == 0
            x[1] = -1
            assert a[1] == 1


def test_root():
    a = np.arange(20.0).reshape(4, 5)

    def body(n):
        rank = engine.runtime().rank
        with nd.config(MIN_SHARD_BYTES=n):
            assert_same(nd.asarray(a if rank == 1 else None, root=1), a)
            assert_same(nd.array(a.T if rank == 0 else None, "f4", root=0), a.T.astype("f4"))
            assert nd.asarray(a if rank == 1 else None, root=1, split=1).layout.cut_axes == (1,)
            for bad in (
                lambda: nd.asarray(None, root=1),
                lambda: nd.asarray([[1], [2, 3]], root=0),
                lambda: nd.asarray(a, root=9),
            ):
                with pytest.raises(ValueError):
                    bad()

    run_simulated(3, body, 0)
    run_simulated(2, body, 1 << 40)


def test_ranks_that_disagree_are_found():
    def body():
        rank = engine.runtime().rank
        with nd.config(CHECK="on"):
            nd.asarray(np.ones(3))
            with pytest.raises(
                nd.DivergenceError,
                match=r"rank\(s\) 2 differ from rank 0 \(the same shapes and dtypes, but other values",
            ):
                nd.asarray(np.ones(3) * (1 + rank // 2))
            with pytest.raises(nd.DivergenceError, match="shape"):
                nd.asarray(np.ones(3 + rank))
            with pytest.raises(nd.DivergenceError):
                nd.asarray([None] * (rank + 1))

    run_simulated(3, body)


class Dataset:
    """What h5py and zarr datasets have in common."""

    def __init__(self, array):
        self._array, self.shape, self.dtype, self.read = array, array.shape, array.dtype, 0

    def __getitem__(self, key):
        block = self._array[key]
        self.read += block.nbytes
        return block

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("read whole")


def test_anything_that_can_be_sliced_is_read_by_parts():
    a = np.arange(48.0).reshape(8, 6)

    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            source = Dataset(a)
            x = nd.asarray(source)
            assert source.read == a.nbytes // 4
            assert_same(x, a)
            assert_same(nd.asarray(Dataset(a), "f4", split=0), a.astype("f4"))
        assert_same(nd.asarray(Dataset(a)), a)

    run_simulated(4, body)


def test_memory_maps_are_read_by_parts(tmp_path):
    a = np.arange(4000.0).reshape(40, 100)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "f.npy", np.asfortranarray(a))
    a.tofile(tmp_path / "a.bin")
    read = []

    class Counting(np.memmap):
        def __getitem__(self, key):
            found = super().__getitem__(key)
            read.append(found.nbytes)
            return found

    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            for name in ("a", "f"):
                source = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
                x = nd.asarray(source)
                assert_same(x, a, flags=False)
                assert x.flags.f_contiguous == source.flags.f_contiguous
            read.clear()
            nd.asarray(np.load(tmp_path / "a.npy", mmap_mode="r").view(Counting))
            assert max(read) == a.nbytes // 4
            assert_same(nd.fromfile(tmp_path / "a.bin"), a.ravel())
            assert_same(nd.fromfile(str(tmp_path / "a.bin"), "f4", count=10, offset=8), a.ravel()[1:6].view("f4"))

    run_simulated(4, body)


def test_from_local():
    def body():
        rank = engine.runtime().rank
        block = np.full((rank + 1, 2), rank)
        assert_same(nd.from_local(block), np.repeat(np.arange(3), [1, 2, 3])[:, None] + np.zeros((1, 2), int))
        x = nd.from_local(block.T, axis=-1)
        assert x.layout.cut_axes == (1,) and x.shape == (2, 6)
        assert (x.local == rank).all()
        block[...] = 9
        assert (x.local == rank).all()
        assert nd.from_local(np.zeros((0, 2)) if rank else np.ones((3, 2))).shape == (3, 2)
        assert nd.from_local(np.zeros((0, 2))).shape == (0, 2)
        assert nd.from_local(np.array([None] * rank, object)).tolist() == [None] * 3
        wrong = [
            (lambda: nd.from_local(np.zeros((2, 2 + rank))), "another axis"),
            (lambda: nd.from_local(np.zeros(2, "f4" if rank else "f8")), "dtypes"),
            (lambda: nd.from_local(np.zeros((1,) * (1 + rank))), "numbers of axes"),
            (lambda: nd.from_local(3), "no axis"), (lambda: nd.from_local(np.zeros(2), axis=1), "out of bounds"),
            (lambda: nd.from_local(np.zeros((2, 2)), axis=rank), "different axes"),
            (lambda: nd.from_local([[1], [2, 3]] if rank == 1 else [1]), "rank 1 is no array"),
        ]  # fmt: skip
        for function, text in wrong:
            with pytest.raises(ValueError, match=text):
                function()

    run_simulated(3, body)


def test_long_ranges_have_the_bits_of_numpys():
    rng = np.random.default_rng(5)

    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            for case in cases:
                for function in ("arange", "linspace"):
                    if case[function] is not None:
                        ours, theirs = getattr(nd, function)(*case[function]), getattr(np, function)(*case[function])
                        np.testing.assert_array_equal(ours.gather().view("u1"), theirs.view("u1"), err_msg=str(case))

    cases = []
    for _ in range(40):
        start, step, n = rng.normal() * 10, rng.normal(), int(rng.integers(3, 3000))
        dtype = rng.choice(["f8", "f4", "f2", "c16", "c8"])
        with np.errstate(all="ignore"):
            arange = (start, start + n * step, step, None, dtype)
        cases.append({"arange": None, "linspace": (start, start + step, n, bool(n % 2), False, dtype)})
        cases.append({"arange": arange[:3], "linspace": None})
    run_simulated(3, body)
    with nd.config(MIN_SHARD_BYTES=0), np.errstate(all="ignore"):
        for dtype in ("f8", "f4", "f2", "c16", "c8", "i4", "u1"):
            for start, stop, step in ((0.1, 700.3, 0.37), (5, -400, -1.7), (3, 200, 2)):
                theirs, _ = outcome(lambda s=start, e=stop, d=step, k=dtype: np.arange(s, e, d, dtype=k), [])
                ours, _ = outcome(lambda s=start, e=stop, d=step, k=dtype: nd.arange(s, e, d, dtype=k), [])
                assert_same(ours, theirs)


@pytest.mark.parametrize("value", [2j, np.complex64(2j), 1e300, np.float64(1e300), np.nan, 3])
@pytest.mark.parametrize("kind", ["f4", "i4"])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (0, 2)])
def test_a_value_that_does_not_fit_warns_as_often_as_numpys(shape, kind, value):
    def messages(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
            engine.runtime().program.run()
        return [(w.category, str(w.message)) for w in caught]

    plain = np.zeros(shape, kind)
    with nd.config(MIN_SHARD_BYTES=0):
        ours = nd.asarray(plain)
        expected = messages(lambda: np.full(shape, value, kind))
        assert messages(lambda: nd.full(shape, value, kind)) == expected
        expected = messages(lambda: np.full_like(plain, value))
        assert messages(lambda: np.full_like(ours, value)) == expected
