"""Programs that walk over an array, against NumPy in the same process and in turn.

    python benchmarks/walking.py                              # one process
    numpy-dist run -n 2 benchmarks/walking.py                 # each rank has NumPy on one thread beside it

Every walk goes over the whole array once: over rows and columns, a triangle, a tridiagonal system along rows, eight
elements at a time, and Gram-Schmidt's process. The first call, in which a copy is made with several ranks, is shown
beside the later ones, of which the median is compared. All results are compared with NumPy's on every rank.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("NUMPY_DIST_BACKEND", "auto")

import numpy as np
from harness import Comparison, table


def rows(x: Any, b: Any) -> None:
    for i in range(1, len(x)):
        x[i] = 0.5 * x[i - 1] + b[i]


def triangle(x: Any, b: Any) -> None:
    for i in range(1, len(x)):
        x[i, :i] += 0.25 * x[i - 1, :i]


def columns(x: Any, b: Any) -> None:
    for j in range(1, x.shape[1]):
        x[:, j] = 0.5 * x[:, j - 1] + b[:, j]


def tridiagonal(x: Any, b: Any) -> None:
    n = x.shape[1]
    for j in range(1, n - 1):
        x[1:-1, j] = -0.25 / (0.5 * x[1:-1, j - 1] + 2.0)
        b[1:-1, j] = (b[1:-1, j] - 0.5 * b[1:-1, j - 1]) * x[1:-1, j]
    for j in range(n - 2, 0, -1):
        b[1:-1, j] -= x[1:-1, j] * b[1:-1, j + 1]


def eights(x: Any, b: Any) -> None:
    for k in range(0, x.shape[1] - 8, 8):
        x[1, k : k + 8] = 0.5 * x[0, k : k + 8] + b[1, k : k + 8]


def gram_schmidt(x: Any, b: Any) -> None:
    for k in range(x.shape[1]):
        x[:, k] /= np.sqrt(np.dot(x[:, k], x[:, k]))
        for j in range(k + 1, min(k + 4, x.shape[1])):
            x[:, j] -= np.dot(x[:, k], x[:, j]) * x[:, k]


GOALS: dict[tuple[Callable[[Any, Any], None], int], tuple[float | None, float | None]] = {
    (rows, 4000): (0.85, 0.6),
    (triangle, 4000): (0.85, 0.6),
    (columns, 4000): (2.0, 1.0),
    (tridiagonal, 4000): (2.0, 1.0),
    (eights, 4000): (0.45, None),
    (rows, 400): (0.7, None),
    (triangle, 400): (0.7, None),
    (columns, 400): (0.7, None),
    (tridiagonal, 400): (0.7, None),
    (gram_schmidt, 400): (0.7, None),
}
"""Walks over square arrays, and which part of NumPy's speed is wanted in one process and on two ranks."""


def measure(walk: Callable[[Any, Any], None], size: int, calls: int, goals: tuple[float | None, float | None]) -> Any:
    """The first call's seconds, and the comparison of the later ones."""
    import numpy_dist
    from numpy_dist import engine

    x, b = np.random.default_rng(0).random((2, size, size)) + 0.5
    mine, other = numpy_dist.asarray(x), numpy_dist.asarray(b)

    def ours() -> None:
        walk(mine, other)
        engine.force(mine, other)

    seconds: dict[Callable[[], None], list[float]] = {(lambda: walk(x, b)): [], ours: []}
    for _ in range(calls):
        for call, taken in seconds.items():
            begin = time.perf_counter()
            call()
            taken.append(time.perf_counter() - begin)
    assert np.allclose(mine.gather(), x, rtol=1e-10), walk
    assert np.allclose(other.gather(), b, rtol=1e-10), walk
    numpys, taken = seconds.values()
    ratio = statistics.median(a / o for a, o in zip(numpys[1:], taken[1:], strict=True))
    wanted = goals[mine.comm.size > 1] if mine.comm.size < 3 else None
    target = "" if wanted is None else f">= {wanted:g}"
    name = f"{walk.__name__}, {size} x {size} (first call: {taken[0]:.2f} s)"
    medians = statistics.median(numpys[1:]), statistics.median(taken[1:])
    return Comparison(name, *medians, "ms", ratio, "x NumPy's speed", target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=7, help="of each walk (default %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="WALK", help="of these names")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import numpy_dist

    made = [
        measure(walk, size, options.calls, goals)
        for (walk, size), goals in GOALS.items()
        if not options.only or walk.__name__ in options.only
    ]
    if not numpy_dist.zeros(1).comm.rank:
        print(table(made))


if __name__ == "__main__":
    main()
