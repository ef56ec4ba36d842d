"""Measuring a machine for `numpy-dist plan --measure`; run as a module it is the child that times one process."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import log2
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.cli.doctor.children import ask
from numpy_dist.cli.doctor.ping import LONG, SHORT, round_trips
from numpy_dist.comm.detect import get_communicator
from numpy_dist.engine.memory.limits import Limits
from numpy_dist.errors import LauncherError
from numpy_dist.parallel.threads import run_together
from numpy_dist.scaling.machine import MachineSpeeds, speeds_of

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

PATIENCE = 300.0  # seconds for the child, which compiles its kernels where they are not on disk
SECONDS, ROUNDS = 0.3, 5  # for each thing that is measured, and how often at least
SIDE = 1024  # of the matrices that are multiplied
STEPS = 200  # of the statements whose arrays are small
SIZES = [1 << shift for shift in range(18, 29, 2)]  # bytes that a loop reads and writes: 256 KiB to 256 MiB
KEYS, SAMPLES, WAVES = 1 << 18, 1 << 20, 512  # that are sorted; random numbers; along each axis of a transform
COLUMNS, ROW, LONG_ROW = 16, 4, 256  # of tall matrices; elements of short rows, and of long ones
TALLEST = 1 << 23  # elements of a tall matrix that no cache holds
LENGTH = 1 << 24  # of arrays that are copied
ELEMENTS = 1 << 16  # whose operations are measured: they stay in the cache

# Of each operation an expression of numbers between 0 and 1 that can be repeated, how often it is, and those alike.
OPERATIONS: dict[str, tuple[Callable[[Any], Any], int, str]] = {
    "add": (lambda x: x + 0.01, 8, "subtract negative positive"),
    "multiply": (lambda x: x * 1.01, 8, "square"),
    "absolute": (np.absolute, 8, "fabs"),
    "where": (lambda x: np.where(x > 0.5, x, 0.3), 8, ""),
    "maximum": (lambda x: np.maximum(x, 0.2), 8, "minimum fmax fmin"),
    "less": (lambda x: (x < 0.5) * 1.0, 8, "less_equal greater greater_equal equal not_equal"),
    "divide": (lambda x: 0.5 / x, 4, ""),
    "sqrt": (np.sqrt, 4, ""),
    "exp": (np.exp, 1, "exp2"),
    "log": (np.log, 1, "log2 log10"),
    "sin": (np.sin, 1, ""),
    "cos": (np.cos, 1, ""),
    "tan": (np.tan, 1, ""),
    "tanh": (np.tanh, 1, "sinh cosh"),
    "arctan": (np.arctan, 1, "arcsin arccos"),
    "arctan2": (lambda x: np.arctan2(x, 0.5), 1, ""),
    "power": (lambda x: x**1.5, 1, "float_power"),
    "log1p": (np.log1p, 1, ""),
    "expm1": (np.expm1, 1, ""),
    "floor_divide": (lambda x: x // 0.3, 1, ""),
    "remainder": (lambda x: x % 0.3, 1, "fmod"),
}


def measure(hosts: str = "") -> MachineSpeeds:
    """The speeds of this machine: children measure, one after the other, for half a minute.

    A copy and element-wise loops on all threads of one process, in memory and in caches, operations, a matrix product,
    a sort, a transform, random numbers, small statements, and messages between two ranks, by the communicator of every
    job.

    Parameters
    ----------
    hosts : str
        Two hosts, as ``numpy-dist run --hosts`` takes them, on which these ranks are; default: on this machine.

    Raises
    ------
    LauncherError
        If one of them fails; the message is its own.
    """
    settings = {"NUMPY_DIST_COMPILE": "first", "NUMPY_DIST_COMPILE_AFTER": "0"}
    module = ["-m", "numpy_dist.cli.measuring"]
    found: dict[str, Any] = {}
    where = ["--hosts", hosts] if hosts else []
    for command in (module, ["-m", "numpy_dist", "run", "-n", "2", *where, "--", *module]):
        answer = ask(command, PATIENCE, **settings)
        if answer.problem is not None:
            raise LauncherError(f"this machine could not be measured: {answer.problem}")
        found |= json.loads(answer.lines[-1])
    memory = float(Limits().room().total)
    return speeds_of(found | {"name": platform.node() or "this machine", "memory": memory}, "what was measured")


class SpeedMeter:
    """Times of one process, medians of some rounds.

    With one thread it is processor time that is taken: what else runs on the machine then counts for little.
    """

    def __init__(self, threads: int) -> None:
        self.clock = time.process_time if threads == 1 else time.perf_counter

    def typical(self, work: Callable[[], object]) -> float:
        """Seconds of the middle one of the rounds after the first two, which compile and take memory."""
        work()
        work()
        found: list[float] = []
        end = time.perf_counter() + SECONDS
        while len(found) < ROUNDS or time.perf_counter() < end:
            begin = self.clock()
            work()
            found.append(self.clock() - begin)
        return median(found)

    def python(self) -> dict[str, float]:
        """Of statements whose arrays are too small to matter, of loops besides, and of numbers that go to Python."""
        import numpy_dist
        from numpy_dist import engine

        x, y = numpy_dist.zeros(64), numpy_dist.ones(64)

        def together() -> None:  # all statements are one loop
            for _ in range(STEPS):
                x[1:] -= y[:-1]
                x[1:] += y[:-1]
            numpy_dist.wait(x)

        plate = numpy_dist.zeros((16, 16))

        def apart() -> None:  # a step of a plate, and its edges: what a statement reads was written by the one before
            for _ in range(STEPS // 10):
                plate[1:-1, 1:-1] = (plate[1:-1, 2:] + plate[1:-1, :-2] + plate[2:, 1:-1] + plate[:-2, 1:-1]) / 4
                plate[:, -1] = plate[:, -2]
                plate[:, 0] = plate[:, 1]
                plate[0] = plate[1]
            numpy_dist.wait(plate)

        statement = self.typical(together) / (2 * STEPS)
        runtime = engine.runtime()
        counts: dict[str, int] = getattr(runtime.backend, "counts", {})
        before = runtime.counters.statements, sum(counts.values())
        apart()
        statements = runtime.counters.statements - before[0]
        loops = sum(counts.values()) - before[1] or 4 * (STEPS // 10)  # where nobody counts them
        loop = (self.typical(apart) - statements * statement) / loops
        value = self.typical(lambda: float(y.sum()))
        return {
            "statement_seconds": statement,
            "loop_seconds": max(loop, 1e-9),
            "value_seconds": max(value - loop - statement, 1e-9),
        }

    def stencil(self, side: int) -> float:
        """Of one step on a square, with all that it takes."""
        import numpy_dist

        x, y = numpy_dist.ones((side, side)), numpy_dist.zeros((side, side))

        def step() -> None:
            y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
            numpy_dist.wait(y)

        return self.typical(step)

    def bandwidths(self) -> list[tuple[float, float]]:
        """By the bytes that a stencil reads and writes, how many in a second, without what it takes when it is tiny."""
        sizes = [nbytes for nbytes in SIZES if nbytes < Limits().room().available // 8]
        sides = [int((nbytes / 16) ** 0.5) for nbytes in sizes]
        tiny = self.stencil(8)
        found = []
        for side in sides:
            seconds = self.stencil(side)
            found.append((16.0 * side * side, 16 * side * side / max(seconds - tiny, 0.1 * seconds)))
        return found

    def rates(self) -> dict[str, float]:
        """Results of each operation in a second, without what reading, writing and Python take."""
        import numpy_dist

        x, few = (numpy_dist.asarray(np.linspace(0.1, 0.9, n)) for n in (ELEMENTS, 16))
        y, least = numpy_dist.zeros(ELEMENTS), numpy_dist.zeros(16)

        def of(operation: Callable[[object], object], repeats: int, source: object, target: Any) -> float:
            def work() -> None:
                made = source
                for _ in range(repeats):
                    made = operation(made)
                target[:] = made
                numpy_dist.wait(target)

            return self.typical(work)

        found: dict[str, float] = {}
        for name, (operation, repeats, alike) in OPERATIONS.items():
            seconds = of(operation, repeats, x, y)
            rate = repeats * ELEMENTS / max(seconds - of(operation, repeats, few, least), 0.1 * seconds)
            found |= dict.fromkeys((name, *alike.split()), rate)
        whole, part = self.typical(lambda: float(x.sum())), self.typical(lambda: float(few.sum()))
        found["a reduction"] = ELEMENTS / max(whole - part, 0.1 * whole)
        return found | self.row_rates()

    def row_rates(self) -> dict[str, float]:
        """Rows that may be begun in a second: by short rows and long ones, of as many elements."""
        import numpy_dist

        def of(work: Callable[[object, object, np.ndarray], object], row: int) -> float:
            rows = numpy_dist.asarray(np.linspace(0.1, 0.9, ELEMENTS).reshape(-1, row))
            target, center = numpy_dist.zeros(rows.shape), np.ones(row)
            return self.typical(lambda: work(rows, target, center))

        def repeated(rows: object, target: Any, center: np.ndarray) -> None:
            target[:] = rows - center
            numpy_dist.wait(target)

        def reduced(rows: Any, target: object, center: object) -> None:
            numpy_dist.wait(rows.sum(axis=1))

        more, found = ELEMENTS // ROW - ELEMENTS // LONG_ROW, {}
        for name, work in (("a row", repeated), ("a reduced row", reduced)):
            short, long = of(work, ROW), of(work, LONG_ROW)
            found[name] = more / max(short - long, 0.01 * short)
        return found

    def function(self) -> float:
        """Of a function that is no loop, called for a tiny array."""
        import numpy_dist

        x = numpy_dist.ones(64)
        return self.typical(lambda: np.sort(x))


def _pair(comm: Communicator) -> dict[str, float]:
    """What two ranks measure together: messages, and a small collective, without its latency. Collective."""
    latency = _undisturbed(round_trips(comm, SHORT, 200)) / 2
    seconds = []
    for _ in range(200):
        begin = time.perf_counter()
        comm.allgather((1.0, ()))
        seconds.append(time.perf_counter() - begin)
    return {
        "latency": latency,
        "network_bandwidth": LONG / (_undisturbed(round_trips(comm, LONG, 20)) / 2),
        "collective_seconds": max(_undisturbed(seconds) - latency, 1e-9),
    }


def _undisturbed(seconds: Sequence[float]) -> float:
    """Of times that other programs on the cores have made longer, one of the shortest."""
    return sorted(seconds)[len(seconds) // 20]


def main() -> None:
    """Print what was measured, as JSON: alone what one process can, and of two ranks their messages."""
    comm = get_communicator()
    found = _alone() if comm.size == 1 else _pair(comm)
    if comm.rank == 0:
        print(json.dumps(found))


def _functions() -> dict[str, tuple[float, Callable[[], object]]]:
    """Functions that are no loops: how much each does, and a call of it."""
    import numpy_dist

    rows = SAMPLES // COLUMNS
    tall, vector = numpy_dist.asarray(np.random.default_rng(1).random((rows, COLUMNS))), np.ones(COLUMNS)
    tallest = numpy_dist.ones((TALLEST // COLUMNS, COLUMNS))
    short = numpy_dist.asarray(np.random.default_rng(1).random((SAMPLES // ROW, ROW)))
    return {
        "product_bandwidth": (8.0 * TALLEST, lambda: tallest @ vector),
        "factor_flops": (2.0 * SAMPLES * COLUMNS, lambda: np.linalg.qr(tall)),
        "making_rate": (SAMPLES, lambda: numpy_dist.linspace(0.0, 1.0, SAMPLES)),
        "row_rate": (SAMPLES // ROW, lambda: np.argmin(short, axis=1)),
    }


def _alone() -> dict[str, object]:
    import numpy_dist
    from numpy_dist.backends.compiled.threads_count import thread_count
    from numpy_dist.settings import config

    threads = thread_count(config.NUM_THREADS)
    meter = SpeedMeter(threads)
    source, target = np.ones(LENGTH), np.ones(LENGTH)
    cuts = [slice(LENGTH * part // threads, LENGTH * (part + 1) // threads) for part in range(threads)]
    copies = [partial(np.copyto, target[cut], source[cut]) for cut in cuts]
    left = np.ones((SIDE, SIDE))
    generator = numpy_dist.random.default_rng(1)
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        keys = numpy_dist.asarray(np.random.default_rng(1).random(KEYS))
        waves = numpy_dist.asarray(np.random.default_rng(1).random((WAVES, WAVES)) + 0j)
        function = meter.function()

        def rate(amount: float, work: Callable[[], object]) -> float:
            seconds = meter.typical(work)
            return amount / max(seconds - function, 0.1 * seconds)

        # First: what is freed later stays with the process, and new arrays then take no new pages.
        functions = {name: rate(amount, work) for name, (amount, work) in _functions().items()}
        bandwidths = meter.bandwidths()
        return {
            "copy_bandwidth": 2 * source.nbytes / meter.typical(lambda: run_together(copies)),
            "kernel_bandwidth": bandwidths[-1][1],
            "bandwidths": bandwidths,
            "flops": 2 * SIDE**3 / meter.typical(lambda: left @ left),
            **meter.python(),
            "function_seconds": function,
            "sort_rate": rate(KEYS * log2(KEYS), lambda: np.sort(keys)),
            "transform_flops": rate(5 * WAVES**2 * 2 * log2(WAVES), lambda: np.fft.fft2(waves)),
            "random_rate": rate(SAMPLES, lambda: generator.random(SAMPLES)),
            "operation_rates": meter.rates(),
            **functions,
        }


if __name__ == "__main__":
    main()
