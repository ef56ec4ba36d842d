"""The kernel that packs and unpacks: built by the host's C++ compiler against NumPy, and compiled for a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numpy_dist.backends.cuda import packing
from numpy_dist.backends.cuda.header import HEADER
from numpy_dist.backends.cuda.source import OPTIONS
from numpy_dist.backends.memory import HOST

from . import nvrtc
from .on_host import COMPILER, launcher

UNITS = (1, 2, 4, 8, 16)
DTYPES = ["?", "u1", "i2", "f4", "f8", "c8", "c16", "f2", "S3", "U2", "M8[s]", "V5", "V24", [("a", "i1"), ("b", "f8")]]


@pytest.fixture(scope="module")
def launch(tmp_path_factory) -> Any:
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    kernels = {made.name: made for made in map(packing.kernel, UNITS)}
    return launcher(tmp_path_factory.mktemp("packing"), kernels)


def filled(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.random.default_rng(count).integers(0, 2 if dtype.kind == "b" else 256, count).astype(np.uint8)
    return raw.view(dtype).reshape(shape)


def parts_of(dtype: np.dtype) -> list[np.ndarray]:
    whole, cube = filled((13, 17), dtype), filled((3, 4, 5), dtype)
    views = [
        whole[0],
        whole[:, :2],
        whole[::-3, 1::2],
        whole.T[3:5, ::-1],
        cube.transpose(2, 0, 1)[1:4],
        whole[5, 5, ...],
    ]
    return [*views, cube[:0], cube[..., 2:3], np.broadcast_to(whole[2], (3, 17))]


def with_addresses(parts: list[np.ndarray]) -> list[tuple[int, np.ndarray]]:
    return [(part.ctypes.data, part) for part in parts]


@pytest.mark.parametrize("kind", DTYPES, ids=str)
@pytest.mark.parametrize("copies", [1, 12])
def test_parts_are_packed_one_after_the_other(kind, copies, launch):
    dtype = np.dtype(kind)
    parts = parts_of(dtype) * copies
    (wanted,) = HOST.pack([parts], dtype)
    buffer = np.zeros(wanted.size, np.uint8)
    packing.move(buffer.ctypes.data, with_addresses(parts), True, launch)
    assert np.array_equal(buffer, wanted)
    targets = [np.zeros(part.shape, dtype).copy(order="F") for part in parts]
    packing.move(buffer.ctypes.data, with_addresses(targets), False, launch)
    for target, part in zip(targets, parts, strict=True):
        assert target.tobytes() == part.tobytes()


def prepared(parts: list[np.ndarray]) -> list[Any]:
    return list(packing.launches(64, with_addresses(parts), True))


def test_one_kernel_does_for_many_parts():
    grid = np.zeros((100, 1000))
    assert len(prepared([grid[0], grid[-1], grid[:, 0], grid[:, -1]])) == 1
    assert len(prepared([grid[k : k + 3, 2:5] for k in range(97)])) == 2
    assert prepared([]) == prepared([grid[:0]]) == []


@pytest.mark.parametrize(
    ("part", "unit"),
    [
        (np.zeros((4, 4)), 16),
        (np.zeros((4, 5))[:, ::2], 8),
        (np.zeros(9, "f4")[1:], 4),
        (np.zeros(9, "c16"), 16),
        (np.zeros(9, [("a", "i1"), ("b", "f8")])["b"], 1),
        (np.zeros((6, 8), "i2")[:, 2:6], 4),
        (np.zeros(16, "?")[::2], 1),
    ],
)
def test_units_are_as_large_as_memory_allows(part, unit):
    base = part.ctypes.data
    address = base - base % 64 + 64 + (4 if unit == 4 else 0)
    ((kernel, _, _),) = packing.launches(64, [(address, part)], True)
    assert kernel is packing.kernel(unit)


@pytest.mark.skipif(nvrtc.library() is None, reason="pip install 'numpy-dist[cuda-test]'")
def test_it_compiles_for_a_device():
    for unit in UNITS:
        made = packing.kernel(unit)
        code = nvrtc.compile_source(made.text, ("--gpu-architecture=sm_90", *OPTIONS))
        assert made.text.startswith(HEADER) and made.name.encode() in code
