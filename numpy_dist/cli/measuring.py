"""Measuring a machine for `numpy-dist plan --measure`; run as a module it is the child that times one process."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
SIDES = (16, 64, 128, 256, 512, 1024)  # the least ones of the matrices that are multiplied
ROWS = 4096  # the most that they have
BURST, BURSTS = 2, 300  # steps of two ranks that are timed together, and how often
PLATE = 512  # cells along each side of the plate that two ranks share: inside and edges are loops of their own
SWEPT = 1 << 22  # bytes that are copied before each step: what Python needs is then as far away as in large programs
MOST_COPIES = 16  # processes that measure at the same time
STEPS = 200  # of the statements whose arrays are small
SIZES = [1 << shift for shift in range(18, 29, 2)]  # bytes that a loop reads and writes: 256 KiB to 256 MiB
KEYS, SAMPLES, WAVES = 1 << 18, 1 << 20, 512  # that are sorted; random numbers; along each axis of a transform
COLUMNS, ROW, LONG_ROW = 16, 4, 256  # of tall matrices; elements of short rows, and of long ones
TALLEST = 1 << 23  # elements of a tall matrix that no cache holds
LENGTH = 1 << 24  # of arrays that are copied
EDGES, TAPS, SQUARE = 64, 32, 256  # of histograms and searches; of a filter; along each side of square matrices
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

# The same of complex numbers, named "complex add" and so on; each gives two results of 8 bytes.
COMPLEX_OPERATIONS: dict[str, tuple[Callable[[Any], Any], int, str]] = {
    "add": (lambda x: x + 0.01, 8, "subtract"),
    "negative": (np.negative, 8, "positive conjugate"),
    "multiply": (lambda x: x * (0.9 + 0.1j), 8, "square"),
    "where": (lambda x: np.where(x.real > 0.5, x, 0.3), 8, ""),
    "divide": (lambda x: 0.5 / x, 4, ""),
    "absolute": (np.absolute, 1, ""),
    "sqrt": (np.sqrt, 1, ""),
    "exp": (np.exp, 1, "log"),
}


def measure(hosts: str = "") -> MachineSpeeds:
    """The speeds of this machine: children measure, for half a minute or a whole one.

    A copy and element-wise loops on all threads of one process, in memory and in caches, operations, matrix products,
    a sort, a transform, random numbers, small statements. Where that process has a part of the cores only, as many of
    them as there is room for measure the same again at the same time. Then two ranks: messages, by the communicator of
    every job, and what Python takes for them.

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
    where = ["--hosts", hosts] if hosts else []

    def told(command: Sequence[str]) -> dict[str, Any]:
        answer = ask(command, PATIENCE, **settings)
        if answer.problem is not None:
            raise LauncherError(f"this machine could not be measured: {answer.problem}")
        return json.loads(answer.lines[-1])  # type: ignore[no-any-return]

    found = told(module)
    copies = min(found["cores"] // found["threads"], MOST_COPIES)
    if copies > 1:  # ranks that have a part of the cores each meet in caches and memory
        with ThreadPoolExecutor(copies) as children:
            found["busy"] = _middle(list(children.map(told, [module] * copies)))
    found |= told(["-m", "numpy_dist", "run", "-n", "2", *where, "--", *module])
    python = found["exchange_seconds"] - found.pop("loops_of_exchange") * found["loop_seconds"]
    found["exchange_seconds"] = max(python, 1e-9)
    memory = float(Limits().room().total)
    return speeds_of(found | {"name": platform.node() or "this machine", "memory": memory}, "what was measured")


def _middle(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of what several processes have measured at the same time the medians."""
    made: dict[str, object] = {}
    for name in found[0].keys() - {"cores", "threads"}:
        values = [each[name] for each in found]
        if isinstance(values[0], dict):
            made[name] = {key: median([value[key] for value in values]) for key in values[0]}
        elif isinstance(values[0], list):
            made[name] = [[place[0][0], median([speed for _, speed in place])] for place in zip(*values, strict=True)]
        else:
            made[name] = median(values)
    return made


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

        def of(operation: Callable[[object], object], repeats: int, source: object, target: Any) -> float:
            def work() -> None:
                made = source
                for _ in range(repeats):
                    made = operation(made)
                target[:] = made
                numpy_dist.wait(target)

            return self.typical(work)

        found: dict[str, float] = {}
        for prefix, table, unit in (("", OPERATIONS, 1.0), ("complex ", COMPLEX_OPERATIONS, 1.0 + 0.1j)):
            sources = x * unit, few * unit
            targets = [numpy_dist.zeros(source.shape, source.dtype) for source in sources]
            for name, (operation, repeats, alike) in table.items():
                seconds, least = (
                    of(operation, repeats, source, target) for source, target in zip(sources, targets, strict=True)
                )
                results = repeats * ELEMENTS * sources[0].dtype.itemsize // 8
                rate = results / max(seconds - least, 0.1 * seconds)
                found |= {prefix + each: rate for each in (name, *alike.split())}
        whole, part = self.typical(lambda: float(x.sum())), self.typical(lambda: float(few.sum()))
        found["a reduction"] = ELEMENTS / max(whole - part, 0.1 * whole)
        return found | self.row_rates()

    def row_rates(self) -> dict[str, float]:
        """Rows that may be begun, summed up and added in a second, and elements of them.

        By short rows and long ones, of as many elements.
        """
        import numpy_dist

        def of(work: Callable[[object, object, np.ndarray], object], row: int, elements: int = ELEMENTS) -> float:
            rows = numpy_dist.asarray(np.linspace(0.1, 0.9, elements).reshape(-1, row))
            target, center = numpy_dist.zeros(rows.shape), np.ones(row)
            return self.typical(lambda: work(rows, target, center))

        def repeated(rows: object, target: Any, center: np.ndarray) -> None:
            target[:] = rows - center
            numpy_dist.wait(target)

        def reduced(rows: Any, target: object, center: object) -> None:
            numpy_dist.wait(rows.sum(axis=1))

        def added(rows: Any, target: object, center: object) -> None:
            numpy_dist.wait(rows.sum(axis=0))

        more, found = ELEMENTS // ROW - ELEMENTS // LONG_ROW, {}
        for name, of_elements, work in (
            ("a row", "", repeated),
            ("a reduced row", "a reduction of rows", reduced),
            ("an added row", "a reduction of columns", added),
        ):
            short, long = of(work, ROW), of(work, LONG_ROW)
            each = max(short - long, 0.01 * short) / more
            found[name] = 1 / each
            if of_elements:
                rest = long - each * (ELEMENTS // LONG_ROW) - of(work, ROW, 4 * ROW)
                found[of_elements] = ELEMENTS / max(rest, 0.1 * long)
        return found

    def function(self) -> float:
        """Of a function that is no loop, called for a tiny array."""
        import numpy_dist

        x = numpy_dist.ones(64)
        return self.typical(lambda: np.sort(x))


def _pair(comm: Communicator) -> dict[str, float]:
    """What two ranks measure together: messages, and what they take beside their latency. Collective."""
    from numpy_dist.backends.compiled.threads_count import thread_count
    from numpy_dist.settings import config

    found = {
        "latency": _undisturbed(round_trips(comm, SHORT, 200)) / 2,
        "network_bandwidth": LONG / (_undisturbed(round_trips(comm, LONG, 20)) / 2),
    }
    meter = PairMeter(comm, found["latency"], thread_count(config.NUM_THREADS))
    found |= meter.python()
    if not comm.nodes and hasattr(os, "sched_setaffinity"):
        found["switch_seconds"] = meter.switch()
    return found


class PairMeter:
    """Times of two ranks; of bursts of steps, one of the shortest.

    With one thread it is processor time, as of one process: it has in it what they do as they wait for each other, and
    not what other programs do on their cores.

    Each is of something with what it is about, less the same without it: a plate for exchanges, whose edges are loops
    of their own, as those of users' arrays are, and arrays that are too small to matter for the others.

    Parameters
    ----------
    comm : Communicator
    latency : float
    threads : int
        Of each rank.
    """

    def __init__(self, comm: Communicator, latency: float, threads: int) -> None:
        import numpy_dist

        self.comm, self.latency = comm, latency
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self._numbers, self._square = numpy_dist.ones((64, 64)), numpy_dist.ones((PLATE, PLATE))

    def halo(self) -> None:
        """A loop that reads what the other rank has."""
        x = self._square
        x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])

    def inside(self) -> None:
        """A loop that reads as much of its own."""
        x = self._square
        x[1:-1, 1:-1] = 0.25 * (x[1:-1, 1:-1] + x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])

    def burst(self, step: Callable[[], object], clock: Callable[[], float] | None = None) -> float:
        """Seconds of a step, and of what comes before it."""
        import numpy_dist

        clock = self.clock if clock is None else clock
        seconds, source, target = [], np.zeros(SWEPT, np.uint8), np.ones(SWEPT, np.uint8)
        for _ in range(2 + BURSTS):
            self.comm.barrier()
            begin = clock()
            for _ in range(BURST):
                np.copyto(target, source)
                step()
                numpy_dist.wait(self._square)
            seconds.append((clock() - begin) / BURST)
        return max(self.comm.allgather(_undisturbed(seconds[2:])))

    def python(self) -> dict[str, float]:
        """Of an exchange, of a collective, and of functions that communicate."""
        import numpy_dist
        from numpy_dist.settings import config

        x, own = self._numbers, np.ones((64, 64))
        single = numpy_dist.ones(64)
        exchange = self.burst(self.halo) - self.burst(self.inside)
        more = self._loops(self.halo) - self._loops(self.inside)
        # The same reduction without the other rank: every rank has a whole copy of so small an array.
        with config(MIN_SHARD_BYTES=1 << 20):
            whole = numpy_dist.asarray(own)
            alone = self.burst(lambda: float(whole.sum()))
            product, ordered = self.burst(lambda: whole @ whole), self.burst(lambda: np.sort(whole, axis=None))
        collective = self.burst(lambda: float(x.sum())) - alone
        counters, spread = self.comm.counters, []
        for step, plain in ((lambda: x @ x, product), (lambda: np.sort(single), ordered)):
            step()
            before = counters.messages, counters.collectives
            step()
            messages, collectives = (counters.messages - before[0], counters.collectives - before[1])
            messages = max(self.comm.allgather(messages))
            spread.append(self.burst(step) - plain - messages * exchange - collectives * collective)
        return {
            "exchange_seconds": exchange - self.latency,
            "loops_of_exchange": more,
            "collective_seconds": max(collective - self.latency, 1e-9),
            "spread_seconds": max(sum(spread) / len(spread), 1e-9),
        }

    def _loops(self, step: Callable[[], object]) -> int:
        """Loops of a step, each in one box."""
        import numpy_dist
        from numpy_dist import engine

        counts: dict[str, int] = getattr(engine.runtime().backend, "counts", {})
        before = sum(counts.values())
        step()
        numpy_dist.wait(self._square)
        return sum(counts.values()) - before

    def switch(self) -> float:
        """What an exchange takes on one core more than both ranks take for it on two."""
        apart = self.burst(self.halo, time.perf_counter)
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(self.comm.bcast(sorted(allowed)))})
            together = self.burst(self.halo, time.perf_counter)
        finally:
            os.sched_setaffinity(0, allowed)
        return max(together - 2 * apart, 1e-9)


def _undisturbed(seconds: Sequence[float]) -> float:
    """Of times that other programs on the cores have made longer, one of the shortest."""
    return sorted(seconds)[len(seconds) // 20]


def main() -> None:
    """Print what was measured, as JSON: alone what one process can, and of two ranks their messages."""
    from numpy_dist.settings import config

    comm = get_communicator()
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
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
        "factor_flops": (2.0 * SAMPLES * COLUMNS, lambda: np.linalg.svdvals(tall)),
        "making_rate": (SAMPLES, lambda: numpy_dist.linspace(0.0, 1.0, SAMPLES)),
        "row_rate": (SAMPLES // ROW, lambda: np.argmin(short, axis=1)),
    }


def _rated_functions() -> dict[str, tuple[float, Callable[[], object]]]:
    """As `_functions`, of the functions in `machine.FUNCTION_RATES`."""
    import numpy_dist

    generator, own = numpy_dist.random.default_rng(1), np.random.default_rng(1)
    x, edges = numpy_dist.asarray(own.random(KEYS)), np.linspace(0.0, 1.0, EDGES)
    mask, places = numpy_dist.asarray(own.random(KEYS) < 0.5), numpy_dist.asarray(own.integers(0, KEYS, KEYS))
    few, square = np.ones(TAPS), own.random((SQUARE, SQUARE)) + SQUARE * np.eye(SQUARE)
    right = own.random(SQUARE)
    return {
        "normal": (KEYS, lambda: generator.normal(size=KEYS)),
        "exponential": (KEYS, lambda: generator.exponential(size=KEYS)),
        "integers": (KEYS, lambda: generator.integers(0, 1000, size=KEYS)),
        "distribution": (KEYS, lambda: generator.gamma(2.0, size=KEYS)),
        "histogram": (KEYS, lambda: np.histogram(x, bins=EDGES)),
        "selection": (KEYS, lambda: np.percentile(x, 50)),
        "search": (KEYS * log2(EDGES), lambda: np.searchsorted(edges, x)),
        "scan": (KEYS, lambda: np.cumsum(x)),
        "selecting": (KEYS, lambda: np.nonzero(mask)),
        "extremes": (KEYS, lambda: np.argmax(x)),
        "picking": (KEYS, lambda: np.take(x, places)),
        "convolution": (KEYS * TAPS, lambda: np.convolve(x, few, "same")),
        "factorisation": (2 / 3 * SQUARE**3, lambda: np.linalg.solve(square, right)),
        "spectrum": (9.0 * SQUARE**3, lambda: np.linalg.eigh(square)),
    }


def _product(side: int) -> tuple[float, Callable[[], object]]:
    """Operations of a product of matrices, the least side of which this is, and a call of it."""
    import numpy_dist

    rows = max(side, min(ROWS, (1 << 22) // side))
    left, right = numpy_dist.ones((rows, side)), np.ones((side, side))
    return 2.0 * rows * side * side, lambda: left @ right


def _alone() -> dict[str, object]:
    import numpy_dist
    from numpy_dist.backends.compiled.threads_count import thread_count
    from numpy_dist.settings import config

    threads, cores = thread_count(config.NUM_THREADS), thread_count(0, environment={})
    meter = SpeedMeter(threads)
    source, target = np.ones(LENGTH), np.ones(LENGTH)
    cuts = [slice(LENGTH * part // threads, LENGTH * (part + 1) // threads) for part in range(threads)]
    copies = [partial(np.copyto, target[cut], source[cut]) for cut in cuts]
    generator = numpy_dist.random.default_rng(1)
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        keys = numpy_dist.asarray(np.random.default_rng(1).random(KEYS))
        waves = numpy_dist.asarray(np.random.default_rng(1).random((WAVES, WAVES)) + 0j)
        function = meter.function()

        def rate(amount: float, work: Callable[[], object], besides: float = 0.0) -> float:
            seconds = meter.typical(work)
            return amount / max(seconds - function - besides, 0.1 * seconds)

        # First: what is freed later stays with the process, and new arrays then take no new pages.
        functions = {name: rate(amount, work) for name, (amount, work) in _functions().items()}
        rated = {name: rate(amount, work) for name, (amount, work) in _rated_functions().items()}
        bandwidths = meter.bandwidths()
        products = [(float(side), rate(*_product(side))) for side in SIDES]
        copied = 2 * source.nbytes / meter.typical(lambda: run_together(copies))
        passes = 2 * 2 * 16 * WAVES**2 / copied  # a transform reads and writes all, once for each axis
        return {
            "copy_bandwidth": copied,
            "kernel_bandwidth": bandwidths[-1][1],
            "bandwidths": bandwidths,
            "product_rates": products,
            "flops": products[-1][1],
            "cores": cores,
            "threads": min(threads, cores),
            **meter.python(),
            "function_seconds": function,
            "sort_rate": rate(KEYS * log2(KEYS), lambda: np.sort(keys)),
            "transform_flops": rate(5 * WAVES**2 * 2 * log2(WAVES), lambda: np.fft.fft2(waves), passes),
            "random_rate": rate(SAMPLES, lambda: generator.random(SAMPLES)),
            "operation_rates": meter.rates(),
            "function_rates": rated,
            **functions,
        }


if __name__ == "__main__":
    main()
