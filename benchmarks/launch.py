"""What it costs to launch a kernel on the threads of a rank, against calling the same kernel directly.

What the table has under "NumPy" is the plain call, through ctypes.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Comparison, main

from numpy_dist.backends.compiled import threads
from numpy_dist.backends.compiled.compiler import Compiler
from numpy_dist.backends.compiled.threads import KERNEL, ThreadPool
from numpy_dist.backends.compiled.threads_count import cpus

NOTHING = """
def kernel(block, first, last):
    return 0
"""
# A unit is 4096 numbers, which stay in a core's cache.
WORK = """
from numba import carray
from numpy_dist.backends.compiled.intrinsics import pointer_float64
def kernel(block, first, last):
    for unit in range(first, last):
        values = carray(pointer_float64(block + 32768 * unit), (4096,))
        for i in range(4096):
            values[i] = values[i] * 0.5 + 1.0
    return 0
"""
UNITS = 32


def timed(call: Callable[[], Any], number: int, pause: float) -> float:
    """Seconds of a call: the mean of `number` calls after a pause."""
    if pause:
        time.sleep(pause)
    begin = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - begin) / number


def compare(
    case: str, plain: Callable[[], Any], launch: Callable[[], Any], *, repeats: int, number: int, pause: float = 0.0
) -> Comparison:
    """The medians of two calls that take turns, and how much more the second one takes."""
    seconds = [(timed(plain, number, pause), timed(launch, number, pause)) for _ in range(repeats)]
    first, second = (statistics.median(times) for times in zip(*seconds, strict=True))
    more = statistics.median(launched - called for called, launched in seconds)
    return Comparison(case, first, second, "us", more * 1e6, "us more than a plain call")


def measure(quick: bool) -> list[Comparison]:
    count = max(2, len(cpus()))
    values = np.zeros(UNITS * 4096)
    address = values.ctypes.data
    repeats, number = (20, 100) if quick else (300, 1000)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(directory, 1 << 30)
        nothing, work = compiler.compile(NOTHING), compiler.compile(WORK)
        compiler.compile(threads.launch_source())
        for name, pool in {
            "1 thread": ThreadPool(1, compiler),
            f"{count} threads": ThreadPool(count, compiler),
            f"{count} threads, pinned": ThreadPool(count, compiler, pin=True),
        }.items():
            for case, kernel, units, turns, pause in (
                ("nothing, back to back", nothing, count, number, 0.0),
                ("nothing, after 2 ms", nothing, count, 1, 0.002),
                (f"{UNITS} x 4096 numbers", work, UNITS, max(1, number // 50), 0.0),
            ):
                plain = partial(KERNEL(kernel), address, 0, units)
                launch = partial(pool.run, kernel, address, units, 1)
                rows.append(compare(f"{name}: {case}", plain, launch, repeats=repeats, number=turns, pause=pause))
            pool.close()
        compiler.close()
    return rows


if __name__ == "__main__":
    main("launch", measure)
