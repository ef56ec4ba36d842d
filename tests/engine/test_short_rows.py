"""Short rows of elements at hand by kernels: the bits of recorded statements, events at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import config, engine
from numpy_dist.backends.compiled.short_rows import KernelRows
from numpy_dist.engine.data import short_rows
from tests.engine.tiers import run_tier

N = 40


def _convolved(x: Any, w: Any, events: bool = False) -> list[Any]:
    found = []
    if events:
        x[3, 8, 33, 1] = w[3, 3, 1, 3] = np.finfo("f4").max
        x[4, 5:7, 30:32] = x[3, 8, 33, 1] / 2.5
    for i, j in ((0, 0), (5, 30), (30, 17)):
        window = x[:, i : i + 10, j : j + 10, :, None]
        products = window * w[None]
        found += [products.sum((1, 2, 3)), (w[None] - window).sum((1, 2, 3)), (1 + window / w).max((1, 2, 3))]
    return [np.asarray(y) for y in found]


@pytest.mark.parametrize("events", [False, True])
def test_windows_are_as_recorded(kernel_cache: str, monkeypatch: pytest.MonkeyPatch, events: bool) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.random((8, N, N, 3), "f4"), rng.random((10, 10, 3, 8), "f4") + 1
    made: list[bool] = []

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            result = call(*args)
            made.append(result is not None)
            return result

        return noted

    for name in ("sums", "computed"):
        monkeypatch.setattr(KernelRows, name, noting(getattr(KernelRows, name)))

    def run(at_once: int) -> list[Any]:
        with config(AT_ONCE=at_once):
            return _convolved(nd.asarray(x.copy()), nd.asarray(w.copy()), events)

    [at_hand] = run_tier(1, "first", kernel_cache, run, 1 << 20)
    assert len(made) == 15 and (False in made) is events and True in made
    made.clear()
    [recorded] = run_tier(1, "never", kernel_cache, run, 0)
    assert not made
    for one, other in zip(at_hand.result, recorded.result, strict=True):
        assert one.tobytes() == other.tobytes() and one.shape == other.shape
    assert {message for message, *_ in at_hand.said} == (
        {"overflow encountered in multiply", "overflow encountered in reduce"} if events else set()
    )
    assert at_hand.said == recorded.said


def test_products_with_replicated_weights_are_numpys(kernel_cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.random((8, 10, 10, 3, 1)), rng.random((1, 10, 10, 3, 8))
    made: list[bool] = []

    def noted(*args: Any, call: Callable[..., Any] = KernelRows.computed) -> Any:
        result = call(*args)
        made.append(result is not None)
        return result

    monkeypatch.setattr(KernelRows, "computed", noted)

    def run() -> list[Any]:
        with config(MIN_SHARD_BYTES=1 << 20):
            weights = nd.asarray(w)
            products = [x * weights, weights - x, weights * np.inf, x * (weights * np.finfo(float).max)]
            return [y.gather() for y in products]

    for ranks in (1, 2):
        made.clear()
        found = run_tier(ranks, "first", kernel_cache, run)
        with np.errstate(over="ignore"):
            expected = [x * w, w - x, w * np.inf, x * (w * np.finfo(float).max)]
        for outcome in found:
            for one, other in zip(outcome.result, expected, strict=True):
                assert one.tobytes() == other.tobytes() and one.strides == other.strides
        assert made.count(True) >= 2 * ranks


@pytest.mark.spmd(ranks=(1,))
def test_other_backends_leave_short_rows_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.runtime(), "backend", object())
    x = np.ones((300, 4))
    assert short_rows.computed(np.add, x, x[:, :1]) is None and short_rows.sums(x[None]) is None
