"""Random numbers of the kernel: built by the host's C++ compiler against NumPy, bit for bit; compiled for a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numpy_dist.backends.cuda import random
from numpy_dist.backends.cuda.source import OPTIONS

from . import nvrtc
from .on_host import COMPILER, build_whole

GENERATORS = ["PCG64", "PCG64DXSM", "Philox"]


@pytest.fixture(scope="module")
def launch(tmp_path_factory) -> Any:
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    return build_whole(tmp_path_factory.mktemp("random"), [random.kernel(name) for name in GENERATORS])


MANY = random._BLOCKS * 256 + 1000  # more than one for each thread
CASES = [(count, drawn) for count in (1, 2, 255, 256, 257, 5000) for drawn in (0, 1, 2, 3, 4, 1001)]


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize(("count", "drawn"), [*CASES, (MANY, 0), (MANY, 3)])
def test_numbers_are_numpys(name, count, drawn, launch):
    generator = np.random.Generator(getattr(np.random, name)(2026))
    generator.bit_generator.random_raw(drawn, output=False)
    found = np.full(count + 2, -1.0)
    random.uniform(found.ctypes.data + 8, count, generator.bit_generator.state, 0.0, 1.0, launch)
    assert found[0] == found[-1] == -1.0
    np.testing.assert_array_equal(found[1:-1], generator.random(count), strict=True)


@pytest.mark.parametrize("name", GENERATORS)
def test_bounds_are_numpys(name, launch):
    generator = np.random.Generator(getattr(np.random, name)(7))
    found = np.empty(1000)
    random.uniform(found.ctypes.data, 1000, generator.bit_generator.state, -3.7, 11.3 + 3.7, launch)
    np.testing.assert_array_equal(found, generator.uniform(-3.7, 11.3, 1000), strict=True)


def test_counters_carry(launch):
    generator = np.random.Philox(1)
    state = generator.state
    state["state"]["counter"][:] = 2**64 - 2, 2**64 - 1, 2**64 - 1, 5
    generator.state = state
    found = np.empty(40)
    random.uniform(found.ctypes.data, 40, state, 0.0, 1.0, launch)
    np.testing.assert_array_equal(found, np.random.Generator(generator).random(40), strict=True)


@pytest.mark.skipif(nvrtc.library() is None, reason="pip install 'numpy-dist[cuda-test]'")
@pytest.mark.parametrize("name", GENERATORS)
def test_it_compiles_for_a_device(name):
    made = random.kernel(name)
    assert made.name.encode() in nvrtc.compile_source(made.text, ("--gpu-architecture=sm_90", *OPTIONS))
