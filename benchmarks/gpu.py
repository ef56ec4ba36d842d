"""Programs on devices against plain CuPy, the same NumPy functions on both: the goals for GPUs.

python benchmarks/gpu.py [--quick] [--save]                     one rank, side by side with CuPy on the same device
numpy-dist run -n 4 benchmarks/gpu.py [--quick] [--save]        several ranks, on as many devices as there are

With another backend (NUMPY_DIST_BACKEND=fake) the script is only tried: NumPy stands for CuPy; figures mean nothing.
"""

import argparse
import importlib
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("NUMPY_DIST_BACKEND", "cupy")

import harness  # noqa: E402
import numpy as np  # noqa: E402
from harness import Comparison  # noqa: E402
from options_functions import prices  # noqa: E402
from stencil_functions import relax  # noqa: E402

import numpy_dist  # noqa: E402
from numpy_dist import engine  # noqa: E402

ROUNDS = 7


@dataclass(frozen=True)
class GPUCase:
    """A program on the arrays that `make(size)` returns.

    Attributes
    ----------
    moved : callable or None
        The bytes that a perfect program would move through the device's memory, for ``size``.
    goal, beside : str
        For the share of the copy bandwidth, and for the time beside plain CuPy's.
    """

    title: str
    work: Callable[..., Any]
    make: Callable[[Any], tuple]
    size: Any
    quick: Any
    moved: Callable[[Any], int] | None = None
    goal: str = ""
    beside: str = ""


STEPS = 20


def _random(shape: Any) -> tuple:
    return (np.random.default_rng(1).random(shape),)


def _options(count: int) -> tuple:
    rng = np.random.default_rng(1)
    return 50 + 100 * rng.random(count), 50 + 100 * rng.random(count), 0.1 + rng.random(count)


def _step_bytes(shape: tuple[int, int]) -> int:
    return STEPS * 2 * 8 * shape[0] * shape[1]


CASES = [
    GPUCase("stencil 12,264 x 1,000", lambda x: relax(x, STEPS), _random, (12_264, 1000), (300, 200),
         _step_bytes, ">= 0.75", "<= 0.25"),
    GPUCase("stencil 8192 x 8192", lambda x: relax(x, STEPS), _random, (8192, 8192), (400, 400),
         _step_bytes, ">= 0.75", "<= 0.25"),
    GPUCase("Black-Scholes", lambda *x: prices(*x), _options, 10**8, 10**4, None, "", "<= 0.2"),
    GPUCase("matmul", lambda x: x @ x, _random, (8192, 8192), (64, 64), None, "", "<= 1.1"),
    GPUCase("fft along rows", lambda x: np.fft.fft(x, axis=1), _random, (8192, 8192), (64, 64), None, "", "<= 1.1"),
    GPUCase("sort", np.sort, _random, 10**8, 10**4, None, "", "<= 1.1"),
    GPUCase("argsort", np.argsort, _random, 10**8, 10**4),
    GPUCase("median", np.median, _random, 10**8, 10**4),
    GPUCase("cumsum", np.cumsum, _random, 10**8, 10**4),
    GPUCase("x[x > 0.5]", lambda x: x[x > 0.5], _random, 10**8, 10**4),
    GPUCase("inverses", np.linalg.inv, _random, (100_000, 16, 16), (50, 4, 4)),
    GPUCase("sum", lambda x: x.sum(), _random, 10**8, 10**4, lambda n: 8 * n, ">= 0.75", "<= 1.1"),
]  # fmt: skip


class Contender:
    """Runs programs on one kind of arrays, and waits for them."""

    def __init__(self, array: Callable[[np.ndarray], Any], wait: Callable[[], None]) -> None:
        self.array, self.wait = array, wait

    def seconds(self, work: Callable[..., Any], arrays: tuple) -> float:
        self.wait()
        begin = time.perf_counter()
        result = work(*arrays)
        self.wait()
        del result
        return time.perf_counter() - begin


def _ours() -> Contender:
    rt: Any = engine.runtime()

    def wait() -> None:
        engine.flush()
        rt.backend.fence()
        rt.comm.barrier()

    return Contender(lambda x: numpy_dist.asarray(x), wait)


def _plain() -> Contender:
    if engine.runtime().backend.name != "cupy":
        return Contender(np.array, lambda: None)
    cupy = importlib.import_module("cupy")
    return Contender(cupy.asarray, lambda: cupy.cuda.get_current_stream().synchronize())


def _device() -> str:
    if engine.runtime().backend.name != "cupy":
        return "no device"
    runtime = importlib.import_module("cupy").cuda.runtime
    return f"{runtime.getDeviceProperties(0)['name'].decode()}, driver {runtime.driverGetVersion()}"


def bandwidth(plain: Contender, nbytes: int) -> float:
    """Bytes a second that a copy moves, reading and writing."""
    source, target = plain.array(np.zeros(nbytes // 8)), plain.array(np.zeros(nbytes // 8))

    def copy(target: Any, source: Any) -> None:
        target[...] = source

    return 2 * nbytes / min(plain.seconds(copy, (target, source)) for _ in range(ROUNDS))


def measured(case: GPUCase, quick: bool, ours: Contender, plain: Contender | None, speed: float) -> Comparison:
    """One row; sides take turns."""
    size = case.quick if quick else case.size
    made = case.make(size)
    sides = {"ours": ours} if plain is None else {"ours": ours, "plain": plain}
    arrays = {name: tuple(map(side.array, made)) for name, side in sides.items()}
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(3 if quick else ROUNDS + 3):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            rounds[name].append(sides[name].seconds(case.work, arrays[name]))
    kept = {name: times[0 if quick else 3 :] for name, times in rounds.items()}  # the first ones compile
    mine = statistics.median(kept["ours"])
    peer = beside = None
    if plain is not None:
        peer = statistics.median(kept["plain"])
        beside = harness.median_ratio(kept, "ours", "plain")
    share = case.moved(size) / mine / speed if case.moved else None
    return Comparison(
        case.title, None, mine, "ms", share, "of a copy's bandwidth" if case.moved else "", case.goal, peer,
        "plain CuPy's time", beside, case.beside if beside is not None else "",
    )  # fmt: skip


def host_time(quick: bool, ours: Contender) -> Comparison:
    """What a fused group of a small loop costs on the host; a step is one group."""
    steps = 50 if quick else 2000
    grid = ours.array(np.random.default_rng(1).random((200, 200)))
    relax(grid, 50)
    ours.wait()
    begin = time.perf_counter()
    relax(grid, steps)
    engine.flush()
    mine = (time.perf_counter() - begin) / steps
    ours.wait()
    return Comparison("a step of a small loop, on the host", None, mine, "us", mine * 1e6, "us a fused group", "<= 25")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_options(parser, "gpu")
    options = parser.parse_args()
    os.environ.setdefault("NUMPY_DIST_MIN_SHARD_BYTES", "0")
    with numpy_dist.config(MIN_SHARD_BYTES=0):
        rt = engine.runtime()
        ours, plain = _ours(), _plain()
        speed = bandwidth(plain, 1 << 20 if options.quick else 1 << 30)
        alone = plain if rt.size == 1 else None
        rows = [Comparison("a copy's bandwidth, GB/s", None, None, "ms", speed / 1e9, "GB/s")]
        rows += [measured(case, options.quick, ours, alone, speed) for case in CASES]
        rows.append(host_time(options.quick, ours))
    if rt.rank == 0:
        print(f"{rt.size} ranks, backend {rt.backend.name} on {_device()}, transport {rt.transport.name}")
        harness.show(f"gpu-{rt.size}", rows, options)
    else:
        rt.transport  # noqa: B018 - the first use is collective


if __name__ == "__main__":
    main()
