"""Measuring a machine for `numpy-dist plan --measure`; run as a module it is the child that times one process."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable

import numpy as np

from numpy_dist.cli.doctor import gathering
from numpy_dist.cli.doctor.children import ask
from numpy_dist.engine.memory.limits import Limits
from numpy_dist.errors import LauncherError
from numpy_dist.scaling.machine import MachineSpeeds

PATIENCE = 120.0  # seconds for the child
SIDE, ROUNDS = 1024, 5  # of the matrices that are multiplied
STEPS, STATEMENTS = 400, 3  # of the loop whose arrays are small, and in each step


def measure() -> MachineSpeeds:
    """The speeds of this machine: children measure, one after the other, for some seconds.

    A copy and an element-wise loop on all threads of one process, a matrix product, small statements, and messages
    between two ranks on this machine, by the communicator of every job.

    Raises
    ------
    LauncherError
        If one of them fails; the message is its own.
    """
    streams = gathering.stencil()
    _check(streams.problem)
    answer = ask(["-m", "numpy_dist.cli.measuring"], PATIENCE)
    _check(answer.problem)
    alone = json.loads(answer.lines[-1])
    messages = gathering.ping()
    _check(messages.problem)
    return MachineSpeeds(
        name=platform.node() or "this machine",
        copy_bandwidth=streams.copy,
        kernel_bandwidth=streams.stencil,
        flops=alone["flops"],
        latency=messages.latency,
        network_bandwidth=messages.bandwidth,
        statement_seconds=alone["statement_seconds"],
        memory=float(Limits().room().total),
    )


def _check(problem: str | None) -> None:
    if problem is not None:
        raise LauncherError(f"this machine could not be measured: {problem}")


def _best(work: Callable[[], object]) -> float:
    """Seconds of the fastest round after the first."""
    seconds = []
    for _ in range(1 + ROUNDS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:])


def main() -> None:
    """Time matrix products, and statements whose arrays are too small to matter."""
    import numpy_dist
    from numpy_dist.settings import config

    left = np.ones((SIDE, SIDE))
    product = _best(lambda: left @ left)
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        x = numpy_dist.zeros(1000)

        def statements() -> None:
            for _ in range(STEPS):
                x[:] = x * 0.5 + 1.0
            numpy_dist.wait(x)

        small = _best(statements)
    answer = {"flops": 2 * SIDE**3 / product, "statement_seconds": small / (STEPS * STATEMENTS)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
