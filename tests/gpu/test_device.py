"""One process on a real device: the user's own kernels on a shard, DLPack, memory that is not to be had, packing."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

from ..backends import test_library
from ..backends.cuda.test_packing import DTYPES, parts_of

pytestmark = pytest.mark.gpu


def on_device(ranks: int, function: Any) -> list[Any]:
    with config(BACKEND="cupy", MIN_SHARD_BYTES=0, FALLBACK="error"):
        return run_simulated(ranks, function)


def cupy() -> Any:
    return importlib.import_module("cupy")


DOUBLES = r"""
extern "C" __global__ void doubles(double* x, long long n) {
  long long k = blockDim.x * (long long)blockIdx.x + threadIdx.x;
  if (k < n) x[k] *= 2;
}
"""


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_users_kernel_works_on_a_shard(ranks):
    values = np.arange(10_000.0)

    def on_rank() -> Any:
        x = numpy_dist.asarray(values)
        x += 1
        block = x.local
        assert isinstance(block, cupy().ndarray)
        kernel = cupy().RawKernel(DOUBLES, "doubles")
        kernel((-(-block.size // 256),), (256,), (block, np.int64(block.size)))
        return (x - 1).gather()

    for found in on_device(ranks, on_rank):
        assert np.array_equal(found, (values + 1) * 2 - 1)


def test_a_shard_is_handed_over_without_a_copy():
    def on_rank() -> bool:
        x = numpy_dist.asarray(np.arange(100.0))
        block = x.local
        same = cupy().from_dlpack(block)
        same[3] = -1
        address = block.__cuda_array_interface__["data"][0]
        return address == same.data.ptr and x.gather()[3] == -1

    assert on_device(1, on_rank) == [True]


def test_arrays_of_cupy_come_in_by_either_way():
    def on_rank() -> bool:
        given = cupy().arange(60.0).reshape(20, 3)
        x = numpy_dist.asarray(given)
        given[...] = 0
        return np.array_equal(x.gather(), np.arange(60.0).reshape(20, 3))

    assert on_device(2, on_rank) == [True, True]


def test_memory_that_is_not_to_be_had_leaves_arrays_usable():
    def on_rank() -> tuple[str, bool]:
        x = numpy_dist.asarray(np.arange(1000.0))
        pool = cupy().get_default_memory_pool()
        pool.set_limit(size=pool.total_bytes() + (1 << 20))
        try:
            with pytest.raises(MemoryError) as raised:
                numpy_dist.asarray(np.zeros(1 << 24)).sum()
        finally:
            pool.set_limit(size=0)
        return " ".join(raised.value.__notes__), float(x.sum()) == 499500

    ((told, usable),) = on_device(1, on_rank)
    assert usable and "CuPy's pool holds" in told and "shape (16777216,)" in told


@pytest.mark.parametrize("kind", DTYPES, ids=str)
def test_packing_on_the_device(kind):
    dtype = np.dtype(kind)

    def on_rank() -> bool:
        runtime: Any = engine.runtime()
        memory = runtime.backend.memory
        right = True
        for part in parts_of(dtype):
            whole = memory.empty(part.shape, dtype)
            memory.upload(whole, np.ascontiguousarray(part))
            view = whole[..., ::-1] if part.ndim else whole
            (message,) = memory.pack([[view, whole]], dtype)
            memory.fence()
            wanted = (part[..., ::-1] if part.ndim else part).tobytes() + part.tobytes()
            back = memory.empty(part.shape, dtype)
            memory.unpack([message[part.nbytes :]], [[back]], dtype)
            right &= message.tobytes() == wanted and memory.download(back).tobytes() == part.tobytes()
        return right

    assert on_device(1, on_rank) == [True]


LIBRARY = test_library.WORK | test_library.ALONE


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", LIBRARY)
def test_cupys_library_computes_as_numpy(name, ranks):
    function, arrays = LIBRARY[name]
    wanted = function(*arrays)
    tolerance = 1e-4 if wanted.dtype.char in "fF" else 1e-10
    for found in on_device(ranks, lambda: function(*map(numpy_dist.asarray, arrays)).gather()):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("generator", ["PCG64", "PCG64DXSM", "Philox"])
def test_random_numbers_are_numpys(generator, ranks):
    def samples(random: Any) -> Any:
        return random.Generator(getattr(np.random, generator)(5)).uniform(-1, 2, (1000, 301))

    for found in on_device(ranks, lambda: samples(numpy_dist.random).gather()):
        np.testing.assert_array_equal(found, samples(np.random), strict=True)
