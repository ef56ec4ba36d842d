"""The namespace of the array API standard: complete, arrays for scalars, and the standard's parameters."""

import inspect

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import standard
from numpy_dist.spmd_testing import forbid_gathers, spmd

# https://data-apis.org/array-api/2025.12/API_specification
STANDARD = """
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu
zeros zeros_like astype can_cast finfo iinfo isdtype result_type abs acos acosh add asin asinh atan atan2
atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj
copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf
isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum
minimum multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin
sinh square sqrt subtract tan tanh trunc take take_along_axis matmul matrix_transpose tensordot vecdot
broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape
roll squeeze stack tile unstack argmax argmin count_nonzero nonzero searchsorted where isin unique_all
unique_counts unique_inverse unique_values argsort sort cumulative_prod cumulative_sum max mean min prod std
sum var all any diff e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32
float64 complex64 complex128 __array_namespace_info__ __array_api_version__
""".split()
LINALG = """
cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank
matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()
FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift".split()
ARRAY = """
T mT device dtype ndim shape size __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__
__dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__
__lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__
__sub__ __truediv__ __xor__ to_device
""".split()


def test_it_is_complete():
    assert [name for name in STANDARD if not hasattr(standard, name)] == []
    assert [name for name in LINALG if not hasattr(standard.linalg, name)] == []
    assert [name for name in FFT if not hasattr(standard.fft, name)] == []
    assert [name for name in ARRAY if not hasattr(nd.DistArray, name)] == []


def test_versions_and_inspection():
    x = nd.arange(3)
    assert x.__array_namespace__() is standard is x.__array_namespace__(api_version="2021.12")
    with pytest.raises(ValueError, match="2025.12"):
        x.__array_namespace__(api_version="1999.12")
    info = standard.__array_namespace_info__()
    assert info.devices() == ("cpu",) == (info.default_device(),) and x.device == "cpu"
    assert info.default_dtypes()["real floating"] == standard.float64
    assert info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert {"boolean indexing", "data-dependent shapes"} <= info.capabilities().keys()


@spmd(1, 2, 3)
def test_arrays_in_place_of_scalars():
    x = nd.asarray(np.arange(6.0).reshape(2, 3))
    xp = x.__array_namespace__()
    with nd.config(FALLBACK="error"), forbid_gathers():
        for name in "sum mean max min prod std var all any argmax argmin count_nonzero".split():
            made = getattr(xp, name)(x)
            assert isinstance(made, nd.DistArray) and made.shape == (), name
            assert made == getattr(np, name)(np.arange(6.0)), name
        assert xp.sum(x, axis=0).shape == (3,)
        assert isinstance(xp.vecdot(x[0], x[1]), nd.DistArray)
        assert isinstance(xp.linalg.vector_norm(x), nd.DistArray)
        assert isinstance(xp.linalg.trace(x), nd.DistArray)
    assert float(xp.std(x, correction=1)) == np.arange(6.0).std(ddof=1)
    assert isinstance(xp.add(xp.sum(x), 1), nd.DistArray)


@spmd(1, 3)
def test_what_has_other_parameters_than_in_numpy():
    a = np.array([3.0, 1.0, 2.0, 1.0, 3.0])
    x = nd.asarray(a)
    xp = standard
    assert xp.sort(x, descending=True).gather().tolist() == [3, 3, 2, 1, 1]
    assert xp.argsort(x, descending=True).gather().tolist() == [0, 4, 2, 1, 3]
    assert xp.argsort(x).gather().tolist() == [1, 3, 2, 0, 4]
    assert xp.take(x, nd.asarray([0, 2])).gather().tolist() == [3, 2]
    with pytest.raises(TypeError, match="needs axis="):
        xp.take(xp.reshape(x, (5, 1)), nd.asarray([0]))
    assert xp.clip(xp.asarray([1, 5], dtype=xp.int8), 2).dtype == xp.int8
    assert xp.expand_dims(x).shape == (1, 5) and xp.expand_dims(x, axis=(0, -1)).shape == (1, 5, 1)
    assert xp.finfo(x).bits == 64 and xp.finfo(xp.float32).bits == 32 and xp.iinfo(xp.int8).max == 127
    assert xp.can_cast(x, xp.float32) is False and xp.result_type(x, xp.float32, 1) == xp.float64
    assert xp.round(x).gather().tolist() == a.tolist()
    assert xp.take_along_axis(x, xp.argsort(x)).gather().tolist() == sorted(a)
    assert isinstance(xp.from_dlpack(a), nd.DistArray) and isinstance(xp.asarray(x, copy=True), nd.DistArray)
    assert xp.fft.fftfreq(4, d=0.5).gather().tolist() == np.fft.fftfreq(4, 0.5).tolist()
    assert xp.fft.rfftfreq(4, dtype=xp.float32).dtype == xp.float32
    assert inspect.signature(xp.sort).parameters["axis"].kind is inspect.Parameter.KEYWORD_ONLY


@spmd(1, 2)
def test_other_names_are_numpys():
    assert standard.nansum is np.nansum
    with pytest.raises(AttributeError):
        _ = standard.no_such_name
    assert set(dir(standard)) >= set(standard.__all__)


def test_what_numpy_has_otherwise():
    """Found by the official suite, github.com/data-apis/array-api-tests."""
    xp = standard
    found = xp.finfo(xp.complex64)
    assert type(found.eps) is float and found.dtype == xp.float32 and found.bits == 32
    assert xp.__array_namespace_info__().devices() == ("cpu",)
    values, vectors = xp.linalg.eig(xp.eye(3, dtype=xp.float32))
    assert values.dtype == vectors.dtype == xp.linalg.eigvals(xp.eye(3, dtype=xp.float32)).dtype == xp.complex64
    names = list(inspect.signature(nd.DistArray.__dlpack__).parameters)
    assert names[1:] == ["stream", "max_version", "dl_device", "copy"]
    assert float(np.from_dlpack(xp.asarray(3.0))) == 3.0
