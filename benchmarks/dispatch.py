"""How long NumPy takes from an overridable function to its implementation here: ``python benchmarks/dispatch.py``.

The implementations measured do nothing; what remains is NumPy's protocol and ours. `numpy.add` and an operator of two
replicated arrays of 16 elements, with the arithmetic, stand beside them. The shortest of many short runs, in
microseconds: other work on the machine only adds to it.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import numpy_dist
from numpy_dist import engine
from numpy_dist.dispatch.core import registry


def microseconds(call: Callable[[], object], runs: int = 200, number: int = 200) -> float:
    """The shortest time of a call."""
    call()
    return 1e6 * min(timeit.repeat(call, repeat=runs, number=number)) / number


class Idle:
    """An array of somebody's whose protocols do nothing: what NumPy's own part costs."""

    def __array_function__(self, function: object, types: object, args: object, kwargs: object) -> object:
        return self

    def __array_ufunc__(self, *args: object, **kwargs: object) -> object:
        return self


@contextmanager
def doing_nothing(function: Any, instead: Callable[..., Any]) -> Iterator[None]:
    """Within the block, the first rule of a function is another implementation."""
    rule = registry.lookup(function).rules[0]  # type: ignore[union-attr]
    kept, rule.function = rule.function, instead
    try:
        yield
    finally:
        rule.function = kept


def measured() -> dict[str, float]:
    """Microseconds of each row."""
    with numpy_dist.config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(np.arange(16.0))
    small, idle = numpy_dist.asarray(np.arange(16.0)), Idle()
    assert engine.is_sharded(x) and not engine.is_sharded(small)
    registry.load()
    rows = {"np.flip(x), protocol only": microseconds(lambda: np.flip(idle))}  # type: ignore[call-overload]
    with doing_nothing(np.flip, lambda m, axis=None: m):
        rows["np.flip(x) to its implementation"] = microseconds(lambda: np.flip(x))
        rows["np.flip(x, axis=0) to its implementation"] = microseconds(lambda: np.flip(x, axis=0))
    with doing_nothing(np.cumsum, lambda a, axis=None, dtype=None, out=None: a):
        rows["np.cumsum(x) to its implementation"] = microseconds(lambda: np.cumsum(x))
    array = np.arange(16.0)
    rows["np.add(a, a), ndarray"] = microseconds(lambda: np.add(array, array))
    rows["np.add(x, x), replicated, with the sum"] = microseconds(lambda: np.add(small, small))
    rows["x + x, replicated, with the sum"] = microseconds(lambda: small + small)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--goal", type=float, default=3.0, help="microseconds to an implementation (default: 3)")
    options = parser.parse_args()
    rows = measured()
    for name, value in rows.items():
        print(f"{name:52} {value:6.2f} us")
    slowest = max(value for name, value in rows.items() if "to its implementation" in name)
    print(f"an overridable function reaches its implementation in {slowest:.2f} us; the goal is {options.goal:g} us")


if __name__ == "__main__":
    main()
