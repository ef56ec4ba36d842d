"""The speed of each rank, measured: sweeps over memory and matrix products, while all other ranks do the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.comm.portable import first_error, portable_error
from numpy_dist.parallel.threads import run_together

if TYPE_CHECKING:
    from numpy_dist.backends.library import Library
    from numpy_dist.backends.memory import Memory
    from numpy_dist.comm.base import Communicator

__all__ = ["rank_speeds"]

SECONDS = 0.1  # of each of the two, in each round: as long as a control group's period, in which a quota is spent
ROUNDS = 3
LENGTH, SIDE = 1 << 19, 192  # 4 MiB for each array that is swept; the sides of the matrices


def rank_speeds(comm: Communicator, memory: Memory, threads: int, library: Library | None) -> list[float]:
    """The speed of each rank, the same list on all ranks. Collective: a barrier and an allgather.

    Parameters
    ----------
    comm : Communicator
    memory : Memory
        Where the rank computes: a device is measured by what runs on it.
    threads : int
        How many threads the rank's loops have.
    library : Library or None
        What multiplies matrices where the rank's shards lie; None where NumPy does.

    Returns
    -------
    list of float
        The geometric mean of sweeps and of products in a second, so that neither of them counts more. Of some rounds
        it is the median: what disturbs a rank for a moment does not count, and what shares its cores all the time does.

    Raises
    ------
    Exception
        On all ranks, what one of them has met: there is no memory, for example.
    """
    comm.barrier()
    speed, failure = 0.0, None
    try:
        speed = _speed(_on_host(threads) if memory.on_host else _on_device(memory), _product(memory, library))
    except Exception as error:  # whatever it is, the others must not wait for this rank
        failure = error
    told = comm.allgather((portable_error(failure), speed))
    found = first_error((error for error, _ in told), comm.rank, failure)
    if found is not None:
        raise found[1]
    return [each for _, each in told]


def _speed(sweep: Callable[[], object], product: Callable[[], object]) -> float:
    """The median of the rounds."""
    for work in (sweep, product):  # the first time takes memory, and starts threads
        work()
    found = [(_rate(sweep) * _rate(product)) ** 0.5 for _ in range(ROUNDS)]
    return sorted(found)[ROUNDS // 2]


def _rate(work: Callable[[], object]) -> float:
    """How often something is done in a second."""
    count, begin = 0, time.perf_counter()
    while (now := time.perf_counter()) < begin + SECONDS or not count:
        work()
        count += 1
    return count / (now - begin)


def _on_host(threads: int) -> Callable[[], object]:
    """A stencil of one dimension on the rank's threads."""
    source, target = np.ones(LENGTH), np.ones(LENGTH)
    bounds = [1 + (LENGTH - 2) * part // threads for part in range(threads + 1)]

    def smooth(low: int, high: int) -> None:
        made = target[low:high]
        np.add(source[low - 1 : high - 1], source[low + 1 : high + 1], out=made)
        np.multiply(made, 0.5, out=made)

    def part(low: int, high: int) -> Callable[[], object]:
        return lambda: smooth(low, high)

    parts = [part(low, high) for low, high in zip(bounds, bounds[1:], strict=False)]
    return lambda: run_together(parts)


def _on_device(memory: Memory) -> Callable[[], object]:
    """A copy within the device's memory."""
    source, target = (memory.empty((LENGTH,), np.dtype(float)) for _ in range(2))
    memory.upload(source, np.ones(LENGTH))

    def sweep() -> None:
        memory.copy(target, source)
        memory.fence()

    return sweep


def _product(memory: Memory, library: Library | None) -> Callable[[], object]:
    """A product of matrices, by the device's library or by NumPy."""
    ones = np.ones((SIDE, SIDE))
    if library is None:
        product = np.empty_like(ones)
        return lambda: np.matmul(ones, ones, out=product)
    matrix = library.upload(ones)

    def multiply() -> None:
        library.matmul(matrix, matrix)
        memory.fence()

    return multiply
