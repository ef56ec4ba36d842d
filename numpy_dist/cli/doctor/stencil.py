"""A child of `numpy-dist doctor`: a 5-point stencil beside a copy of the same array, as JSON.

Both read each element and write one: a stencil of one pass over memory takes about as long as the copy.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import numpy_dist
from numpy_dist.backends.compiled.threads_count import thread_count
from numpy_dist.engine.memory.limits import Limits
from numpy_dist.settings import config

MOST_BYTES = 128 << 20  # of one array: more than the caches of most machines
ARRAYS = 4  # of that size are there at once
ROUNDS = 5


def _best(work: Callable[[], object]) -> float:
    """Seconds of the fastest round; the first two compile and take memory."""
    seconds = []
    for _ in range(2 + ROUNDS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds[2:])


def _side() -> int:
    """How long each side of the array is: all arrays together take a quarter of what memory is free."""
    room = min(MOST_BYTES, Limits().room().available // (4 * ARRAYS))
    return max(64, int((room // 8) ** 0.5))


def main() -> None:
    """Measure both on the threads that a single rank has."""
    side, threads = _side(), thread_count(config.NUM_THREADS)
    source = np.ones((side, side))
    target = np.empty_like(source)
    x = numpy_dist.asarray(source)
    y = numpy_dist.zeros((side, side))

    def stencil() -> None:
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        numpy_dist.wait(y)

    nbytes = 2 * source.nbytes
    cuts = [slice(side * part // threads, side * (part + 1) // threads) for part in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        copied = _best(lambda: list(pool.map(lambda rows: np.copyto(target[rows], source[rows]), cuts)))
    computed = _best(stencil)
    if float(y[1, 1]) != 1.0:
        raise SystemExit(f"the stencil of ones gives {float(y[1, 1])}, and should give 1")
    answer = {"stencil": nbytes / computed, "copy": nbytes / copied, "threads": threads, "backend": config.BACKEND}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
