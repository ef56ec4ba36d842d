"""What a device's own library computes: shards stay on the device where whole lines, or whole matrices, lie there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.fake.memory import FakeMemory
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

RNG = np.random.default_rng(5)
GRID, LINE = RNG.standard_normal((17, 24)), RNG.standard_normal(301)
WAVES = (GRID + 1j * GRID[::-1]).astype("c8")
WORK: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "sort rows": (lambda x: np.sort(x, axis=1), (GRID,)),
    "sort columns": (lambda x: np.sort(x, axis=0, kind="stable"), (GRID,)),
    "sort in another memory order": (lambda x: np.sort(x.T, axis=1), (GRID,)),
    "fft": (np.fft.fft, (GRID,)),
    "fft of other lengths": (lambda x: np.fft.rfft(x, 30, axis=0, norm="ortho"), (GRID,)),
    "inverse": (lambda x: np.fft.ifft(x, axis=0), (WAVES,)),
}
ALONE = {
    "sort of one axis": (np.sort, (LINE,)),
    "fft of one axis": (np.fft.fft, (LINE,)),
    "product": (np.matmul, (GRID, GRID.T.copy())),
    "product of complex": (lambda x, y: x @ y, (WAVES, WAVES.T.copy())),
}


def on_device(ranks: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    with config(BACKEND="fake", MIN_SHARD_BYTES=0, FALLBACK="error"):
        return run_simulated(ranks, function, *args)


def computed(function: Callable[..., Any], arrays: tuple[np.ndarray, ...], split: int | None) -> tuple[Any, int]:
    """The result, and the bytes that went to the host for it."""
    given = [numpy_dist.asarray(x, split=split) for x in arrays]
    engine.flush()
    memory: Any = engine.runtime().backend.memory
    before = memory.downloaded
    made = function(*given)
    engine.force(made)
    moved = memory.downloaded - before
    return made.gather(), moved


@pytest.mark.parametrize("name", [*WORK, *ALONE])
def test_shards_stay_on_the_device(name):
    function, arrays = (WORK | ALONE)[name]
    wanted = function(*arrays)
    ((found, moved),) = on_device(1, computed, function, arrays, None)
    assert moved == 0
    assert found.dtype == wanted.dtype and found.strides == wanted.strides
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if wanted.dtype == "c8" else 1e-12, atol=1e-5)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", [*WORK, *ALONE])
def test_results_are_numpys_on_several_ranks(name, ranks):
    function, arrays = (WORK | ALONE)[name]
    wanted = function(*arrays)
    for split in range(arrays[0].ndim):
        for found, _ in on_device(ranks, computed, function, arrays, split):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-5 if wanted.dtype == "c8" else 1e-12, atol=1e-5)


@pytest.mark.parametrize("name", ["sort rows", "fft"])
def test_whole_lines_stay_there_on_several_ranks(name):
    function, arrays = WORK[name]
    assert [moved for _, moved in on_device(3, computed, function, arrays, 0)] == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["M8[s]", "S3"])
def test_what_the_library_does_not_know_is_computed_on_the_host(dtype):
    values = np.arange(60).astype(dtype).reshape(6, 10)[:, ::-1].copy()
    ((found, moved),) = on_device(1, computed, lambda x: np.sort(x, axis=1), (values,), None)
    assert moved == values.nbytes and np.array_equal(found, np.sort(values, axis=1))


def test_sorting_by_another_rule_is_numpys(monkeypatch):
    """A library that sorts in one way only is asked for values only."""
    asked: list[dict] = []
    original = FakeMemory.computes
    monkeypatch.setattr(FakeMemory, "computes", lambda self, dtype: asked.append({}) or original(self, dtype))
    values = np.array([(2, 1.0), (1, 3.0), (2, 0.5)] * 4, [("a", "i4"), ("b", "f8")]).reshape(4, 3)
    ((found, _),) = on_device(1, computed, lambda x: np.sort(x, axis=1, order="b"), (values,), None)
    assert np.array_equal(found, np.sort(values, axis=1, order="b")) and not asked
