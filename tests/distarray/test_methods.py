"""Methods of DistArray have the outcome of ndarray's."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.spmd_testing import run_simulated, spmd

from .oracle import assert_same, check

rng = np.random.default_rng(3)
I8 = rng.integers(-9, 10, (6, 5))
F8 = rng.integers(-9, 10, (6, 5)) / 4
C16 = F8 + 1j * F8[::-1]
CUBE = rng.integers(0, 9, (4, 5, 3))
NATIVE = [
    "a.sum()", "a.sum(0)", "a.sum(axis=(0, 1))", "a.sum(1, keepdims=True)", "a.sum(0, 'f4')", "a.sum(initial=3)",
    "a.prod(1)", "a.max()", "a.max(0, initial=2)", "a.min(1)", "a.min(axis=-1, keepdims=True)", "a.any()",
    "a.all(1)", "a.mean()", "a.mean(0)", "a.var(0, ddof=1).round(9)", "a.std(1, keepdims=True).round(9)",
    "a.argmax()", "a.argmax(0)", "a.argmin(1)", "a.argmin(axis=1, keepdims=True)", "a.sum(axis=5)", "a[:0].max()",
    "a.sum(where=a > 0)", "a.reshape(5, 6)", "a.reshape((3, 10))", "a.reshape(-1)", "a.reshape(2, -1, order='F')",
    "a.reshape(7)", "a.reshape()", "a.T.reshape(-1)", "a.reshape(5, 6, copy=True)", "a.ravel()", "a.ravel('F')",
    "a.T.ravel()", "a.ravel('K')", "a.flatten()", "a.T.flatten()", "a.flatten('F')", "a.transpose()",
    "a.transpose(1, 0)", "a.transpose((1, 0))", "a.transpose(0, 0)", "a.swapaxes(0, 1)", "a.swapaxes(0, 5)",
    "a.squeeze()", "a[:1].squeeze(0)", "a.squeeze(1)", "a.diagonal()", "a.diagonal(1)", "a.astype('f4')",
    "a.astype('i2')", "a.astype(int, casting='safe')", "a.astype(bool)", "a.astype(a.dtype, copy=False) is a",
    "a.T.astype('f4')", "a.astype('f4', order='F')", "a.copy()", "a.T.copy()", "a.T.copy('K')", "a.copy('F')",
    "a.clip(-1, 1)", "a.clip(min=0)", "a.clip(max=0)", "a.clip(0, max=3)", "a.round()", "a.round(1)", "a.conj()",
    "a.conjugate()", "a.item(7)", "a.item(-1)", "a.item(2, 3)", "a.item((1, 1))", "a.item((8,))",
    "a.item(np.int8(3))", "a.item()", "a[:1, :1].item()",
    "a.item(99)", "a.item('x')", "a.tolist()", "a.tobytes()", "a.T.tobytes()", "a.tobytes('F')", "a.view('i4')",
    "bytes(a.T)", "bytes(a[0, 0, ...])",
    "a.view('u1')[1]", "a.T.view('i4')", "a.view()", "a.view('S3')", "a.dot(a.T)", "a.dot(2)", "a.getfield('i4', 4)",
    "a.to_device('cpu') is a", "a.to_device('gpu')", "a.real", "a.imag", "a.T", "a.mT", "a[0].mT",
    "a.compress([True, False, True], 0)", "a.byteswap().byteswap()",
]  # fmt: skip
GATHERED = [
    "a.argsort()", "a.argsort(0)", "a.argsort(axis=None, stable=True)", "a.argpartition(3)",
    "a.choose([1, 2, 3], mode='clip')", "a.cumsum()", "a.cumsum(1)", "a.cumprod(0, 'f8')", "a.nonzero()",
    "a.repeat(2)", "a.repeat([1, 2, 3, 1, 1, 1], 0)", "np.sort(a, None).searchsorted([2, 3])", "a.take([1, 2])",
    "a.take([[1, 2]], axis=1)", "a.take([99])", "a.trace()", "a.trace(1, 1, 0)",
]  # fmt: skip
CHANGING = [
    "a.fill(3)", "a[1:].fill(2.5)", "a.fill('x')", "a.fill(None)", "a.fill(a)", "a.fill(a[0, :1])",
    "a.fill(a[0, 0, ...])", "a.sort()", "a.sort(0)", "a[:, 1].sort()",
    "a.partition(2)", "a.put([1, 3], [7, 8])", "a.setfield(3, 'i2', 2)", "a.byteswap(True)", "a.real.fill(1)",
    "a.resize(3, 4, refcheck=False)", "a.resize((9, 9), refcheck=False)", "a.T.resize(3)", "a.sort(5)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("expression", NATIVE)
def test_native(expression):
    body = eval(f"lambda a: {expression}")
    for a in (I8, F8):
        check(body, a, ranks=(2, 3), flags=True, fallback="error")


@pytest.mark.parametrize("expression", GATHERED)
def test_gathered_so_far(expression):
    check(eval(f"lambda a: {expression}"), I8, ranks=(2,), fallback="silent")


@pytest.mark.parametrize("expression", CHANGING)
def test_changes_in_place(expression):
    check(eval(f"lambda a: {expression}"), I8.astype("i4"), ranks=(2,), fallback="silent")


def test_out_is_returned():
    def body(a, out):
        assert a.sum(0, out=out) is out
        assert a.sum(0, None, out) is out
        assert a.clip(0, 1, out=a) is a
        return out

    check(body, I8, np.zeros(5, int))
    check(lambda a, out: a.mean(0, out=out) is out, np.zeros((2, 5)), np.zeros(5))

    def plain(a):
        out = np.zeros(5, int)
        assert a.sum(0, out=out) is out
        return out.tolist()

    check(plain, I8)


def test_complex_parts():
    def body(c):
        c.real[1] = 5
        c.imag[:, 2] *= 3
        c.real = c.imag
        return c.real, c.imag, c.conj()

    check(body, C16)
    check(lambda a: setattr(a, "imag", 3), F8)
    check(lambda a: a.imag.flags.writeable, F8)

    def real(a):
        a.real = 3

    check(real, F8)


def test_shape_and_dtype_can_be_set():
    def body(a):
        view = a[...]
        a.shape = (5, 2, 3)
        a[1, 0] = 100
        return view, a

    check(body, I8)
    def private(a):
        a._set_shape((5, 3, 2))
        a._set_dtype("f8")
        return a, a._set_shape((7, 7))

    if hasattr(np.ndarray, "_set_shape"):
        check(private, I8)
    check(lambda a: setattr(a, "dtype", "f8"), I8)
    check(lambda a: setattr(a, "shape", (7, 7)), I8)
    check(lambda a: setattr(a.T, "shape", -1), I8)


def test_metadata():
    names = ["shape", "ndim", "size", "itemsize", "nbytes", "strides", "dtype", "device"]
    for make in (lambda a: a, lambda a: a[1:, ::2], lambda a: a.T, lambda a: a[None]):
        check(lambda a, make=make: [getattr(make(a), n) for n in names], CUBE, ranks=(2,))
        check(lambda a, make=make: [make(a).flags[n] for n in ("C", "F", "WRITEABLE", "ALIGNED")], CUBE, ranks=(2,))


def test_nothing_to_squeeze():
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            x = nd.zeros((3, 4))
            assert x.squeeze() is x and x[None].squeeze().shape == (3, 4)

    run_simulated(2, body)


def test_flags_belong_to_one_array():
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            a, b = nd.zeros((3, 3)), nd.zeros((3, 3))
            a.flags.writeable = False
            assert b.flags.writeable and nd.zeros((3, 3)).flags.writeable
            a.setflags(write=True)
            a[0] = 1

    run_simulated(2, body)


VIEWS = (
    "x.view()", "x.view('f8')", "x[1:]", "x[:]", "x[...]", "x[1:, 2]", "x[:, ::2][1:]", "x[None]", "list(x)[1]", "x.T",
    "x.T.T", "x.mT", "x.real", "x.ravel()", "x.reshape(-1)", "np.reshape(x, (2, -1))", "np.transpose(x)",
    "np.squeeze(x[None])", "x.diagonal()", "np.broadcast_to(x, (2, *x.shape))", "np.split(x, 2)[1]", "np.flip(x)",
    "np.rot90(x)", "np.einsum('ij->ji', x)", "x.copy()", "x + 0", "np.sort(x)", "x[[0, 1]]", "x[x > 3]",
    "np.concatenate([x, x])", "np.nonzero(x)[0]", "np.flatnonzero(x)", "x[[[0], [1]]]", "x[None, [1]]", "x[:, [[1]]]",
    "np.sort(x.T)", "np.repeat(x, 2)", "np.take_along_axis(x, x[:1] * 0, 0)",
)  # fmt: skip


@pytest.mark.parametrize("min_shard_bytes", [0, 10**6])
def test_base(min_shard_bytes):
    def body():
        with nd.config(MIN_SHARD_BYTES=min_shard_bytes):
            array, x = I8.copy(), nd.asarray(I8)
            assert x.base is None
            for call in VIEWS:
                theirs, ours = eval(call, {"np": np, "x": array}), eval(call, {"np": np, "x": x})
                assert (ours.base is x, ours.base is None) == (theirs.base is array, theirs.base is None), call
                assert ours.flags.owndata == theirs.flags.owndata, call
            part, whole = x[1:, 2], x.view()
            del x, theirs, ours
            assert_same(part.base, I8)
            assert_same(whole.base, I8)  # what a rank has collected by now makes no difference
            with pytest.raises(ValueError, match="does not own its data"):
                whole.resize((2, 2))

    run_simulated(2, body)


def test_conversion_to_python_scalars():
    for convert in (bool, int, float, complex, "index"):
        import operator

        f = operator.index if convert == "index" else convert
        for shape in [(), (1,), (1, 1), (2,), (0,)]:
            for dtype in ("f8", "i4", "c16", "U3"):
                check(lambda a, f=f: f(a), np.ones(shape, dtype), ranks=(2,))
                check(lambda a, f=f: f(a[0]), np.ones((3, *shape), dtype), ranks=(2,))
    check(lambda a: [0, 1, 2][a[1, 1]], np.ones((3, 3), int))


def test_format():
    for spec in ("", ".3f", "d"):
        for a in (np.array(2.5), np.array([2.5]), np.arange(5.0)):
            check(lambda a, spec=spec: format(a, spec), a, ranks=(2,))
            check(lambda a, spec=spec: f"{a[..., 0]:.2f}{a.sum():.3f}", np.arange(5.0), ranks=(2,))


def test_copies_and_pickles():
    import copy

    def body(n):
        with nd.config(MIN_SHARD_BYTES=n):
            a = nd.asarray(I8)
            for b in (
                copy.copy(a),
                copy.deepcopy(a),
                pickle.loads(pickle.dumps(a)),
                pickle.loads(pickle.dumps(a[1:].T)).T,
                copy.deepcopy([a, a])[1],
            ):
                assert type(b) is nd.DistArray
                assert (b.layout == a.layout) or b.shape != a.shape
                assert_same(b, I8[-len(b) :])
                b[...] = 0
            assert_same(a, I8)
            assert_same(pickle.loads(a.dumps()), I8)

    for n in (0, 1 << 40):
        run_simulated(3, body, n)


def test_files(tmp_path):
    def body(n):
        with nd.config(MIN_SHARD_BYTES=n):
            a = nd.asarray(I8)
            a.tofile(tmp_path / f"a{n}.bin")
            np.testing.assert_array_equal(np.fromfile(tmp_path / f"a{n}.bin", I8.dtype), I8.ravel())
            a.tofile(tmp_path / f"a{n}.txt", sep=",")
            a.dump(tmp_path / f"a{n}.pickle")
            with open(tmp_path / f"a{n}.pickle", "rb") as file:
                assert_same(pickle.load(file), I8)
            with pytest.raises(FileNotFoundError):
                a.tofile(tmp_path / "no folder" / "x")
            buffer = io.BytesIO()
            a.dump(buffer)

    for n in (0, 1 << 40):
        run_simulated(2, body, n)


def test_asarray_gathers_with_a_warning():
    def body():
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="warn"):
            a = nd.asarray(I8)
            with pytest.warns(nd.FallbackWarning, match="gather"):
                plain = np.asarray(a)
            assert type(plain) is np.ndarray and (plain == I8).all()
            with nd.config(FALLBACK="silent"):
                assert np.asarray(a, "f4").dtype == "f4"
                assert np.array(a).flags.writeable
            with pytest.raises(ValueError, match="copy"):
                np.asarray(a, copy=False)
            with nd.config(FALLBACK="error"), pytest.raises(nd.FallbackError):
                np.asarray(a)
            assert (a.gather() == I8).all()
            root = a.gather(root=1)
            assert (root is None) == (a.comm.rank != 1)

    run_simulated(2, body)
    small = nd.asarray(np.arange(3))
    with nd.config(FALLBACK="error"):
        assert np.asarray(small).tolist() == [0, 1, 2]
        small.gather()[0] = 9
        assert small.tolist() == [0, 1, 2]


@pytest.mark.host_memory
def test_local_and_redistribute():
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            a = nd.asarray(I8, split=0)
            rows = a.local
            assert rows.shape == (3, 5)
            rows *= 2
            b = a.redistribute(split=1)
            assert b.layout.cut_axes == (1,) and a.layout.cut_axes == (0,)
            assert_same(a, I8 * 2)
            assert_same(b, I8 * 2)
            c = nd.asarray(CUBE).redistribute(mesh=(1, 2))
            assert c.layout.mesh.shape == (1, 2)
            assert_same(c.redistribute(nd.asarray(CUBE).layout), CUBE)
            with pytest.raises(AttributeError, match="local"):
                a.data  # noqa: B018
            with pytest.raises(AttributeError, match="local"):
                a.ctypes  # noqa: B018
            with pytest.raises(BufferError, match="local"):
                np.from_dlpack(a)
            with pytest.raises(nd.UnsupportedError):
                a.view(np.matrix)

    run_simulated(2, body)


class Reading(np.ndarray):
    """Class of arrays that looks at its elements as soon as it is made."""

    def __array_finalize__(self, whole):
        self.sum()


@pytest.mark.parametrize("how", [(Reading,), ("f8", Reading)], ids=["type", "dtype and type"])
@spmd(2)
def test_a_subclass_never_sees_an_array_without_memory(how):
    with nd.config(MIN_SHARD_BYTES=0), pytest.raises(nd.UnsupportedError, match="another array class"):
        nd.asarray(CUBE).view(*how)


def test_the_class_is_not_called():
    with pytest.raises(TypeError, match="asarray"):
        nd.DistArray((3,))
    assert nd.DistArray[int, np.dtype]
