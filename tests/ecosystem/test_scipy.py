"""SciPy: ufuncs natively, filters and convolutions with halos, transforms by its backends, solvers."""

import re
from itertools import product

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage as ndimage
import scipy.signal as signal
import scipy.sparse.linalg as solvers
import scipy.special

import numpy_dist as nd
from numpy_dist.spmd_testing import forbid_gathers
from tests.ecosystem.comparing import VALUES, same

pytestmark = pytest.mark.spmd
PLUGINS = "scipy"


@pytest.mark.parametrize("name", "erf gamma gammaln digamma expit logit j0 ndtr xlogy binom".split())
def test_special_ufuncs(name):
    ufunc = getattr(scipy.special, name)
    with forbid_gathers(), nd.config(PLUGINS="none"):
        made = ufunc(*[nd.asarray(VALUES)] * ufunc.nin)
    assert np.array_equal(made.gather(), ufunc(*[VALUES] * ufunc.nin))


def test_special_functions():
    for axis in (None, 0, 1):
        same(lambda x, axis=axis: scipy.special.softmax(x, axis=axis))
        same(lambda x, axis=axis: scipy.special.log_softmax(x, axis=axis))
        same(lambda x, axis=axis: scipy.special.logsumexp(x, axis=axis))
    same(lambda x: scipy.special.logsumexp(x, axis=1, keepdims=True))


FILTERS = {
    "gaussian": lambda x, mode: ndimage.gaussian_filter(x, (1.3, 0.7), mode=mode),
    "gaussian of one axis": lambda x, mode: ndimage.gaussian_filter1d(x, 2, axis=0, order=1, mode=mode),
    "uniform": lambda x, mode: ndimage.uniform_filter(x, (3, 4), mode=mode),
    "uniform of one axis": lambda x, mode: ndimage.uniform_filter1d(x, 4, axis=0, mode=mode, origin=1),
    "median": lambda x, mode: ndimage.median_filter(x, size=3, mode=mode),
    "median with an origin": lambda x, mode: ndimage.median_filter(x, size=(4, 3), mode=mode, origin=1),
    "maximum": lambda x, mode: ndimage.maximum_filter(x, footprint=[[1, 0, 1], [0, 1, 1]], mode=mode),
    "minimum of one axis": lambda x, mode: ndimage.minimum_filter1d(x, 4, axis=0, mode=mode, origin=-1),
    "convolve": lambda x, mode: ndimage.convolve(x, np.arange(12.0).reshape(3, 4), mode=mode, cval=2.0),
    "correlate": lambda x, mode: ndimage.correlate(x, np.arange(12.0).reshape(4, 3), mode=mode),
    "correlate of one axis": lambda x, mode: ndimage.correlate1d(x, [1, 2, 3, 4.0], axis=0, mode=mode),
    "percentile": lambda x, mode: ndimage.percentile_filter(x, 30, size=3, mode=mode),
    "laplace": lambda x, mode: ndimage.laplace(x, mode=mode),
}


@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant"])
@pytest.mark.parametrize("name", FILTERS)
def test_filters(name, mode):
    with forbid_gathers():
        made = FILTERS[name](nd.asarray(VALUES), mode)
    np.testing.assert_allclose(made.gather(), FILTERS[name](VALUES, mode), atol=1e-12)


def test_more_filters():
    for mode in ("reflect", "wrap"):
        same(lambda x, mode=mode: ndimage.sobel(x, 0, mode=mode))
        same(lambda x, mode=mode: ndimage.prewitt(x, mode=mode))
    same(lambda x: ndimage.grey_opening(x, size=3))
    same(lambda x: ndimage.median_filter(x, size=3), (VALUES * 100).astype("i4"))
    same(lambda x: ndimage.uniform_filter(x, 3), VALUES.astype("f4"), atol=1e-6)


def test_filters_that_are_left_to_scipy():
    x = nd.asarray(VALUES)
    for call, text in [
        (lambda: ndimage.convolve(x, np.ones((3, 3)), output=np.empty((12, 9))), "an output array"),
        (lambda: ndimage.gaussian_filter(x, 1, mode=["wrap", "nearest"]), "a boundary mode for each axis"),
        (lambda: ndimage.sobel(x, mode="constant"), "a constant boundary"),
    ]:
        with pytest.raises(nd.FallbackError, match=text):
            call()


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "fftconvolve", "oaconvolve", "correlate"])
def test_convolutions(name, mode):
    for kernel in (np.ones((3, 3)), np.arange(8.0).reshape(4, 2), np.ones((1, 5)) * 1j):
        same(lambda x, kernel=kernel: getattr(signal, name)(x, kernel, mode=mode))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "fftconvolve", "oaconvolve", "correlate"])
def test_convolutions_of_two_distributed_arrays(name, mode):
    rng = np.random.default_rng(1)
    function = getattr(signal, name)
    for x, y in [
        (VALUES, rng.random((5, 4))),
        (VALUES, rng.random((12, 9)).astype("f4") + np.complex64(1j)),
        (rng.random(40), rng.random(17)),
        (rng.random((6, 7, 8)).astype("f4"), rng.random((2, 7, 3)).astype("f4")),
    ]:
        with forbid_gathers():
            made = function(nd.asarray(x), nd.asarray(y), mode=mode)
        expected = function(x, y, mode=mode)
        assert made.dtype == expected.dtype
        double = x.dtype == y.dtype == "f8"
        np.testing.assert_allclose(made.gather(), expected, rtol=0, atol=1e-12 if double else 1e-4)
    for wrong in ({"mode": "half"}, {"mode": mode, "other": VALUES[0]}):
        with pytest.raises(ValueError) as theirs:
            function(VALUES, wrong.get("other", VALUES), mode=wrong["mode"])
        with pytest.raises(ValueError) as ours:
            function(nd.asarray(VALUES), nd.asarray(wrong.get("other", VALUES)), mode=wrong["mode"])
        assert str(ours.value) == str(theirs.value)


def test_convolutions_that_are_left_to_scipy():
    x, whole = nd.asarray(VALUES), nd.asarray(np.arange(12).reshape(4, 3))
    for call, text in [
        (lambda: signal.convolve(x, x, method="direct"), "a direct convolution"),
        (lambda: signal.convolve(whole, whole), "whole numbers"),
        (lambda: signal.correlate(x[:4], x), "a second input that is larger"),
        (lambda: signal.fftconvolve(x, x, axes=0), "some axes only"),
    ]:
        with pytest.raises(nd.FallbackError, match=text):
            call()


@pytest.mark.parametrize(
    "name", "fft ifft rfft ihfft fft2 fftn rfftn hfft2 hfftn ihfft2 ihfftn dct idct dst dctn idstn".split()
)
def test_transforms(name):
    same(getattr(scipy.fft, name))


def test_options_of_transforms():
    same(lambda x: scipy.fft.fft(x, axis=0, norm="ortho", workers=1, overwrite_x=True))
    same(lambda x: scipy.fft.dct(x, type=3, axis=0, norm="ortho"))
    same(lambda x: scipy.fft.rfft(x, 8, axis=1))
    same(lambda x: scipy.fft.hfftn(x, s=(4, 6), norm="forward"))
    same(lambda x: scipy.fft.ihfft2(x, norm="ortho", axes=(1, 0)))
    same(lambda x: scipy.fft.fft(x), VALUES.astype("f4"), atol=1e-5)
    with nd.config(PLUGINS="own"), pytest.raises(nd.FallbackError):
        scipy.fft.fft(nd.asarray(VALUES))


ONE_AXIS = [{}, {"n": 0}, {"n": 1}, {"n": 5}, {"axis": 0}, {"axis": 5}, {"norm": "bad"}, {"workers": 0}, {"n": 2.5}]
LENGTHS = [{"s": (4, 3)}, {"s": 3, "axes": 0}, {"s": (-1, 2)}, {"s": (0, 2)}, {"s": (3,)}]
AXES = [{}, {"axes": ()}, {"axes": (1, 1)}, *LENGTHS]


LINES, MATRICES = [(0,), (1,), (4,)], [(0, 3), (2, 1), (1, 3), (5, 4)]
TRANSFORMS = "fft ifft rfft irfft hfft ihfft".split()


@pytest.mark.parametrize(("name", "shape"), [*product([*TRANSFORMS, "dct", "idst"], LINES + MATRICES)])
def test_unusual_arguments_of_transforms(name, shape):
    """What SciPy makes of lines without elements, or of one, and what it says of wrong arguments."""
    of_axes = name + ("2" if len(shape) == 2 and name[0] != "d" and name[1] != "d" else "n")
    calls = [(name, options) for options in ONE_AXIS] + [(of_axes, options) for options in AXES]
    x = np.random.default_rng(0).random(shape)
    for name, options in calls:
        function, error = getattr(scipy.fft, name), None
        try:
            function(x, **options)
        except Exception as raised:
            error = raised
        if error is None:
            same(lambda x, function=function, options=options: function(x, **options), x)
            continue
        with pytest.raises(type(error)) as ours:
            function(nd.asarray(x), **options)
        assert str(ours.value) == str(error)


def _of_one_line():
    """All transforms of all types by all dtypes: of one dtype in turn, and slow of the others."""
    for (i, name), type, (k, kind) in product(enumerate("dct idct dst idst".split()), [1, 2, 3, 4], enumerate("fdFgi")):
        yield pytest.param(name, type, kind, marks=() if (i + type) % 5 == k else pytest.mark.slow)


@pytest.mark.parametrize(("name", "type", "kind"), [*_of_one_line()])
def test_one_line_of_cosines_or_sines(name, type, kind):
    function = getattr(scipy.fft, name)
    rng = np.random.default_rng(0)
    for n in (2, 3, 30, 31):
        line = (9 * rng.standard_normal(n)).astype("d" if kind == "F" else kind)
        line = (line + 1j * rng.standard_normal(n)).astype(kind) if kind == "F" else line
        shorter = {"orthogonalize": True, "n": max(n // 2, 2)}
        for options in ({}, {"norm": "ortho"}, {"norm": "forward", "n": n + 3}, shorter):
            nearly_same(lambda x, options=options: function(x, type, **options), line)
    nearly_same(lambda x: getattr(scipy.fft, name + "n")(x, type, orthogonalize=True), line)
    nearly_same(lambda x: function(x[::-2], type), line)


def nearly_same(call, line):
    """As `same`, to some digits of the largest value."""
    expected = call(line)
    same(call, line, atol=20 * float(np.finfo(expected.dtype).eps * np.abs(expected).max()))


@pytest.mark.parametrize("name", ["dctn", "idstn"])
def test_weights_of_complex_cosines_or_sines(name):
    function = getattr(scipy.fft, name)
    same(lambda x: function(x, orthogonalize=True), VALUES + 1j, atol=1e-9)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_solvers(name):
    matrix = np.diag(np.arange(1.0, 31.0))
    matrix[0, 1] = matrix[1, 0] = 0.3
    a, b = nd.asarray(matrix), nd.asarray(np.ones(30))
    solve = getattr(solvers, name)  # a name that is imported before the plug-in is on stays SciPy's own
    steps, more = [], {"callback_type": "x"} if name == "gmres" else {}
    operator = solvers.LinearOperator((30, 30), matvec=lambda v: a @ v, dtype=float)
    jacobi = solvers.LinearOperator((30, 30), matvec=lambda v: v / np.arange(1.0, 31.0), dtype=float)
    for given in (a, operator):
        with forbid_gathers():
            x, info = solve(given, b, rtol=1e-10, callback=steps.append, **more)
        assert info == 0 and isinstance(x, nd.DistArray) and isinstance(steps[0], nd.DistArray)
        np.testing.assert_allclose(matrix @ x.gather(), np.ones(30), atol=1e-8)
    quick, _ = solve(operator, b, rtol=1e-10, M=jacobi, x0=np.zeros(30))
    np.testing.assert_allclose(quick.gather(), x.gather(), atol=1e-8)
    assert solve(operator, b, maxiter=1, rtol=1e-14)[1] == 1
    assert solve(operator, 0 * b)[1] == 0


@pytest.mark.parametrize("kind", [float, complex])
def test_gmres_of_a_matrix_that_is_not_symmetric(kind):
    rng = np.random.default_rng(0)
    matrix = (rng.standard_normal((60, 60)) + 20 * np.eye(60)).astype(kind)
    if kind is complex:
        matrix += 1j * rng.standard_normal((60, 60))
    b, rests = rng.standard_normal(60), []
    with forbid_gathers():
        x, info = solvers.gmres(nd.asarray(matrix), nd.asarray(b), rtol=1e-9, callback=rests.append,
                                callback_type="pr_norm")
    theirs, _ = solvers.gmres(matrix, b, rtol=1e-9)
    assert info == 0 and x.dtype == kind and rests == sorted(rests, reverse=True)
    np.testing.assert_allclose(x.gather(), theirs, atol=1e-8)
    assert np.linalg.norm(matrix @ x.gather() - b) <= 1e-9 * np.linalg.norm(b)
    for options in ({"restart": 2, "maxiter": 3}, {"maxiter": 4, "callback": rests.append, "callback_type": "legacy"}):
        ours = solvers.gmres(nd.asarray(matrix), nd.asarray(b), rtol=1e-14, **options)
        theirs = solvers.gmres(matrix, b, rtol=1e-14, **options)
        assert ours[1] == theirs[1]
        np.testing.assert_allclose(ours[0].gather(), theirs[0], atol=1e-8)
    with pytest.raises(ValueError, match="Unknown callback_type"):
        solvers.gmres(nd.asarray(matrix), nd.asarray(b), callback_type="y")


def test_a_stencil_as_an_operator():
    """A Laplacian by slices, as in a solver for a field."""

    def laplacian(v):
        grid = np.pad(np.reshape(v, (10, 10)), 1)
        inner = 4 * grid[1:-1, 1:-1] - grid[:-2, 1:-1] - grid[2:, 1:-1] - grid[1:-1, :-2] - grid[1:-1, 2:]
        return np.reshape(inner, (100,))

    operator = solvers.LinearOperator((100, 100), matvec=laplacian, dtype=float)
    b = np.random.default_rng(1).random(100)
    ours, info = solvers.cg(operator, nd.asarray(b), rtol=1e-8)
    theirs, _ = solvers.cg(operator, b, rtol=1e-8)
    assert info == 0
    np.testing.assert_allclose(ours.gather(), theirs, atol=1e-6)


@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve", "oaconvolve"])
@pytest.mark.parametrize("shapes", [((7,), (4,)), ((6, 1), (1, 1)), ((6, 5), (1, 4)), ((2, 1), (1, 3))])
def test_dtypes_and_single_indices_of_convolutions(shapes, name):
    """Two distributed arrays; along axes with a single index SciPy multiplies."""
    for kinds in ("?f", "df", "dd", "ii"):
        for mode in ("full", "same", "valid"):
            rng = np.random.default_rng(0)
            x, y = (rng.integers(0, 4, shape).astype(kind) for shape, kind in zip(shapes, kinds, strict=True))
            function = getattr(signal, name)
            with nd.config(FALLBACK="silent"):
                try:
                    expected = function(x, y, mode=mode)
                except ValueError as error:
                    with pytest.raises(ValueError, match=re.escape(str(error))):
                        function(nd.asarray(x), nd.asarray(y), mode=mode)
                    continue
                found = function(nd.asarray(x), nd.asarray(y), mode=mode)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found.gather(), expected, atol=1e-5)


def _of_no_axis(x):
    return scipy.fft.fftn(x, s=(2, 2), axes=())


def test_transforms_of_no_axis():
    x = np.random.default_rng(0).random((4, 3)) + 1j
    np.testing.assert_array_equal(_of_no_axis(nd.asarray(x)).gather(), _of_no_axis(x))
