"""How fast this rank's threads copy memory: the limit beside which a profile shows what loops achieve."""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np

from numpy_dist.engine.memory.limits import Limits
from numpy_dist.parallel.threads import run_together

MOST_BYTES = 32 << 20  # of each of two arrays
ROUNDS = 4

_lock = threading.Lock()
_measured: dict[int, float] = {}


def copy_speed(threads: int) -> float:
    """Bytes per second that a copy reads and writes; measured once in a process, in some hundredths of a second.

    Parameters
    ----------
    threads : int
        How many copy.
    """
    with _lock:
        if threads not in _measured:
            _measured[threads] = _measure(threads)
        return _measured[threads]


def _measure(threads: int) -> float:
    room = min(MOST_BYTES, Limits().room().available // 32)
    count = max(threads, room // 8)
    source, target = np.ones(count), np.ones(count)  # written once, so that the memory is there
    points = [count * part // threads for part in range(threads + 1)]
    parts = [slice(low, high) for low, high in zip(points, points[1:], strict=False)]
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        run_together([partial(np.copyto, target[part], source[part]) for part in parts])
        seconds.append(time.perf_counter() - begin)
    return 2 * source.nbytes / min(seconds)
