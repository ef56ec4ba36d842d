"""Programs on simulated ranks with a chosen tier."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.scheduling import schedule
from numpy_dist.settings import config


class Outcome(NamedTuple):
    """What a rank did: the function's result, the warnings as (message, file, line), the tiers' counts."""

    result: Any
    said: list[tuple[str, str, int]]
    counts: dict[str, int]
    reasons: dict[str, int]


def run_tier(ranks: int, when: str, cache: str, function: Callable[..., Any], *args: Any) -> list[Outcome]:
    """Run a function on simulated ranks of the compiled backend, with ``COMPILE=when``."""

    def on_rank() -> Outcome:
        settings: dict[str, object] = {"BACKEND": "numba", "COMPILE": when, "CACHE_DIR": cache, "CACHE_SIZE": 1 << 30}
        with config(MIN_SHARD_BYTES=0, NUM_THREADS=2, **settings):
            backend: Any = engine.runtime().backend
            with warnings.catch_warnings(record=True) as caught, engine.lazily_recorded():
                warnings.simplefilter("always")
                result = function(*args)
                engine.flush()
                engine.runtime().events.tell()
            counts = getattr(backend, "counts", {"numba": 0, "numpy": 0})
            return Outcome(result, messages(caught), counts, getattr(backend, "reasons", {}))

    schedule.SCHEDULES.clear()  # they hold kernels, whatever the setting
    return run_simulated(ranks, on_rank)


def messages(caught: list[warnings.WarningMessage]) -> list[tuple[str, str, int]]:
    """What was said about numbers: (message, file, line)."""
    return sorted({(str(w.message), w.filename, w.lineno) for w in caught if issubclass(w.category, RuntimeWarning)})


def compare_tiers(ranks: int, cache: str, function: Callable[..., Any], *args: Any) -> tuple[list[Outcome], Outcome]:
    """Run a function in both tiers; results must have the same bytes, and the same warnings must be given.

    Returns
    -------
    list of Outcome
        Of the compiled tier, for each rank.
    Outcome
        Of the interpreter's first rank.
    """
    plain = run_tier(ranks, "never", cache, function, *args)
    compiled = run_tier(ranks, "first", cache, function, *args)
    for a, b in zip(plain, compiled, strict=True):
        assert same_bytes(a.result, b.result), f"{ranks} ranks: {a.result}\n{b.result}"
        assert a.said == b.said
        assert a.counts["numba"] == 0
    return compiled, plain[0]


def same_bytes(a: Any, b: Any) -> bool:
    """Whether two results, arrays or scalars in lists, have the same dtypes, shapes and bytes."""
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_bytes, a, b))
    x, y = np.asarray(a), np.asarray(b)
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return False
    if x.dtype.kind == "c":
        return same_bytes(x.real, y.real) and same_bytes(x.imag, y.imag)
    return _canonical(x).tobytes() == _canonical(y).tobytes()


def _canonical(x: np.ndarray) -> np.ndarray:
    """With one NaN: which of two an operation keeps depends on strides, and on the order of a machine's operands."""
    if x.dtype.kind != "f":
        return x
    return np.where(np.isnan(x), np.nan, x).astype(x.dtype)
