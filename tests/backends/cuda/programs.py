"""Programs as users write them, on the fake device, by generated kernels instead of the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.cuda.runner import Launch, run
from numpy_dist.backends.cuda.source import DeviceKernel
from numpy_dist.backends.fake.arrays import FakeArray
from numpy_dist.backends.fake.backend import FakeDevice
from numpy_dist.backends.graph import Unsupported
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated


def work(array: Callable[[np.ndarray], Any]) -> list[Any]:
    """What is computed."""
    rng = np.random.default_rng(1)
    x, y = (array(rng.standard_normal((40, 30))) for _ in range(2))
    grid = array(rng.random((40, 30)))
    for _ in range(3):
        flow = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        grid[1:-1, 1:-1] = 0.25 * flow
    call = np.exp(-x * x / 2) * np.where(y > 0, np.sqrt(np.abs(y)), 0.5) + np.log1p(np.abs(x)) ** 1.5
    spread = ((call - call.mean()) ** 2).sum(axis=0)
    narrow = (x[::2].astype(np.float32) + y[1::2].astype(np.float32)).max(axis=1)
    image = array(rng.integers(0, 255, (40, 30), dtype=np.uint8))
    mixed = (image // 3 + image[::-1] % 7).astype(np.int16) << 2
    turned = x.T * y.T[:, ::-1]
    x[2:, 3:] *= y[:-2, :-3]
    waves = (x + 1j * y) * np.conj(x[::-1] - 1j * y)
    return [grid, call, spread, narrow, mixed, turned, x, waves, waves.sum(axis=1), np.hypot(x, y).min(), x.sum()]


def on_device(ranks: int, patch: pytest.MonkeyPatch, launch: Launch) -> tuple[list[Any], list[str]]:
    """Run the program with kernels that are started by `launch` when the device is waited for.

    Returns
    -------
    results, refused
        Of each rank; and why loops had no kernel.
    """
    refused: list[str] = []
    original = FakeDevice.run

    def by_kernels(self: FakeDevice, loop: Any) -> Any:
        def later(kernel: DeviceKernel, words: np.ndarray, grid: tuple[int, int]) -> None:
            self.memory.stream.put(launch, kernel, words, grid)

        try:
            return run(loop, self.memory, FakeArray, later)
        except Unsupported as reason:
            refused.append(str(reason))
            return original(self, loop)

    def on_rank() -> list[Any]:
        results = work(numpy_dist.asarray)
        engine.flush()
        return [r.gather() if isinstance(r, numpy_dist.DistArray) else r for r in results]

    settings = {"BACKEND": "fake", "MIN_SHARD_BYTES": 0, "FALLBACK": "error"}
    with patch.context() as patched, config(**settings), np.errstate(all="ignore"):
        patched.setattr(FakeDevice, "run", by_kernels)
        return run_simulated(ranks, on_rank), refused


def collect(ranks: int, patch: pytest.MonkeyPatch) -> tuple[dict[str, DeviceKernel], list[Any], list[str]]:
    """All kernels that the program needs, by name; what it computes without them means nothing."""
    kernels: dict[str, DeviceKernel] = {}
    results, refused = on_device(ranks, patch, lambda kernel, words, grid: kernels.setdefault(kernel.name, kernel))
    return kernels, results, refused
