"""The ranks of `checks.py`: they do the same with and without the checks, by turns, and note the times."""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import HERE  # noqa: F401 - it makes the examples importable
from ranks import at_each_turn, note
from stencil_functions import plate, relax

import numpy_dist
from numpy_dist import engine

RECORDED = 200  # fewer than the engine's own bound on pending statements (256)
QUICK_ROUNDS = 5


def cases(quick: bool) -> dict[str, tuple[Callable[[], object], int, int]]:
    """Work by name, how many pieces it consists of, and how often it is measured."""
    runtime = engine.runtime()
    side = 200 if quick else 1000
    with numpy_dist.config(MIN_SHARD_BYTES=0):
        small, grid = numpy_dist.asarray(np.ones((30, 30))), numpy_dist.asarray(plate(side))
        x = numpy_dist.asarray(np.linspace(0.0, 1.0, side * side))
    code = compile("\n".join(["z = x + x"] * RECORDED), "<recorded statements>", "exec")

    def record() -> None:
        exec(code, {"x": small})  # noqa: S102 - many call sites are needed
        engine.flush()

    def step() -> None:
        relax(grid, 10)
        engine.flush()

    def dot() -> None:
        for _ in range(10):
            float((x * x).sum())

    def gather() -> None:
        for _ in range(100):
            runtime.comm.allgather(1)

    return {
        "recording and executing z = x + x, 30 x 30": (record, RECORDED, 121),
        "an allgather of a number": (gather, 100, 21),
        f"10 steps of the 5-point stencil, {side} x {side}": (step, 1, 41),
        f"10 times float((x * x).sum()), {side * side} elements": (dot, 1, 121),
    }


def measure(work: Callable[[], object], pieces: int, rounds: int) -> dict[str, Any]:
    """Seconds of a piece in each round, without, with and without again; and what was communicated.

    The second one without tells how much the first differs from the same: what is smaller is not measured.
    Many pieces that do not communicate are timed by the processor's own count, which others on the machine change less.
    """
    runtime = engine.runtime()
    comm, program = runtime.comm, runtime.program
    checks = comm.checks
    seconds: dict[str, list[float]] = {"without": [], "with": [], "again": []}
    clock = time.thread_time if pieces == RECORDED else time.perf_counter
    communicated = {}
    for number in range(-3, rounds):  # a few to warm up
        for name in list(seconds)[:: -1 if number % 2 else 1]:
            comm.checks = program._checks = checks if name == "with" else None
            comm.counters.reset()
            comm.barrier()
            begin = clock()
            work()
            taken = clock() - begin
            communicated[name] = comm.counters.collectives, comm.counters.messages
            if number >= 0:
                seconds[name].append(taken / pieces)
    comm.checks = program._checks = checks
    return {"seconds": seconds, "communicated": communicated}


def noting(rounds: int) -> float:
    """Seconds that it takes to note a statement, by itself; to be called last, as statements are noted many times."""
    program = engine.runtime().program
    with numpy_dist.config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(np.ones((30, 30)))
    exec(compile("\n".join(["z = x + x"] * RECORDED), "<recorded statements>", "exec"), {"x": x})  # noqa: S102
    statements, seconds = list(program.pending), []
    for _ in range(10 * rounds):
        begin = time.thread_time()
        program._checks.executing(statements)
        seconds.append((time.thread_time() - begin) / len(statements))
    return statistics.median(seconds)


def main(path: str, quick: str) -> None:
    found = {
        name: measure(work, pieces, QUICK_ROUNDS if quick == "True" else rounds)
        for name, (work, pieces, rounds) in cases(quick == "True").items()
    }
    if engine.runtime().rank == 0:
        note(path, {"noting": noting(QUICK_ROUNDS if quick == "True" else 61), "cases": found})
    at_each_turn(path, lambda: None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
