"""Two ranks of `numpy-dist doctor` that send each other messages; rank 0 prints how long they took, as JSON."""

from __future__ import annotations

import json
import statistics
import time

import numpy as np

from numpy_dist.comm.base import Communicator
from numpy_dist.comm.detect import get_communicator

SHORT, LONG = 8, 4 << 20  # bytes
WARM_UP = 5


def round_trips(comm: Communicator, nbytes: int, count: int) -> list[float]:
    """Seconds of each round trip between ranks 0 and 1 but the first few. Collective: a message each way for each."""
    message, none = np.zeros(nbytes, np.uint8), ()
    other = 1 - comm.rank
    seconds = []
    for _ in range(WARM_UP + count):
        begin = time.perf_counter()
        for sender in (0, 1):
            there = ((other, message),)
            comm.exchange(*((there, none) if comm.rank == sender else (none, there)))
        seconds.append(time.perf_counter() - begin)
    return seconds[WARM_UP:]


def main() -> None:
    """Both ranks call it."""
    comm = get_communicator()
    if comm.size != 2:
        raise SystemExit(f"the launcher should have started 2 ranks, and MPI sees {comm.size}")
    latency = statistics.median(round_trips(comm, SHORT, 100)) / 2
    bandwidth = LONG / (statistics.median(round_trips(comm, LONG, 10)) / 2)
    if comm.rank == 0:
        print(json.dumps({"latency": latency, "bandwidth": bandwidth}))


if __name__ == "__main__":
    main()
