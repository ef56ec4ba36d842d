"""Moving and selecting data, and factoring one matrix: two ranks of one thread against NumPy, in one run; the memory
that the ranks take; and how many messages a rank would send at up to 1,024 ranks.

python benchmarks/moving.py [--quick] [--save] [--only sort median ...]

NumPy has one thread, unless OMP_NUM_THREADS and OPENBLAS_NUM_THREADS say otherwise.
"""

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import moving_counts
import numpy as np
from harness import Comparison, median_ratio, take_turns
from ranks import Ranks, at_each_turn, note

RANKS = 2


@dataclass(frozen=True)
class OperationCase:
    """An operation on the arrays that `make(size)` returns."""

    title: str
    work: Callable[..., Any]
    make: Callable[[int], tuple]
    size: int
    goal: str
    compared: Callable[[Any], Any] = lambda found: found
    """What of the result is compared with NumPy's: signs of singular vectors are anybody's."""


def _uniform(size: int) -> tuple:
    return (np.random.default_rng(1).random(size),)


def _numbers(size: int) -> tuple:
    return (np.random.default_rng(1).integers(0, 100_000, size),)


def _square(size: int) -> tuple:
    return (np.random.default_rng(1).random((size, size)),)


def _definite(size: int) -> tuple:
    matrix = np.random.default_rng(1).standard_normal((size, size))
    return (matrix @ matrix.T / size + np.eye(size),)


def _symmetric(size: int) -> tuple:
    matrix = np.random.default_rng(1).standard_normal((size, size))
    return (matrix + matrix.T,)


def _tall(size: int) -> tuple:
    return (np.random.default_rng(1).standard_normal((size, 32)),)


def _positions(size: int) -> tuple:
    generator = np.random.default_rng(1)
    return generator.random(size), generator.integers(0, size, size)


def _gather(x: Any, i: Any) -> Any:
    return x[i]


def _scatter(x: Any, i: Any) -> Any:
    x[i] = x
    return x


TEN_MILLIONS, FORTY_MILLIONS = 10**7, 4 * 10**7
CASES = {
    "sort": OperationCase("sort", np.sort, _uniform, TEN_MILLIONS, ">= 1.6"),
    "argsort": OperationCase("argsort", np.argsort, _uniform, TEN_MILLIONS, ">= 1.6"),
    "median": OperationCase("median", np.median, _uniform, FORTY_MILLIONS, ">= 2"),
    "percentile": OperationCase("percentile, 5 of them", lambda x: np.percentile(x, [1, 25, 50, 75, 99]), _uniform,
                       FORTY_MILLIONS, ">= 2"),
    "unique": OperationCase("unique", np.unique, _numbers, TEN_MILLIONS, ">= 1.5"),
    "bincount": OperationCase("bincount", np.bincount, _numbers, TEN_MILLIONS, ">= 1.5"),
    "histogram": OperationCase(
        "histogram, 50 bins", lambda x: np.histogram(x, 50)[0], _uniform, TEN_MILLIONS, ">= 1.5"
    ),
    "cumsum": OperationCase("cumsum", np.cumsum, _uniform, TEN_MILLIONS, ">= 1.3"),
    "transpose": OperationCase("copy of the transpose", lambda x: x.T.copy(), _square, 5000, ">= 1.3"),
    "mask": OperationCase("boolean mask", lambda x: x[x > 0.5], _uniform, TEN_MILLIONS, ">= 1.3"),
    "gather": OperationCase("x[i]", _gather, _positions, TEN_MILLIONS, ">= 1.3"),
    "scatter": OperationCase("x[i] = y", _scatter, _positions, TEN_MILLIONS, ">= 1.3"),
    "solve": OperationCase("solve, one right-hand side", lambda a: np.linalg.solve(a, a[:, 0]), _definite, 3000, ""),
    "inverse": OperationCase("inverse", np.linalg.inv, _definite, 3000, ""),
    "cholesky": OperationCase("Cholesky factor", np.linalg.cholesky, _definite, 3000, ""),
    "qr": OperationCase("QR", np.linalg.qr, _square, 3000, "", lambda found: found.R),
    "eigh": OperationCase("eigenvectors", np.linalg.eigh, _symmetric, 1500, "", lambda found: found.eigenvalues),
    "svd": OperationCase("singular vectors", np.linalg.svd, _square, 1500, "", lambda found: found.S),
    "tall_qr": OperationCase("QR, 32 columns", np.linalg.qr, _tall, 2 * 10**6, "", lambda found: found.R),
    "tall_svd": OperationCase("singular vectors, 32 columns", lambda a: np.linalg.svd(a, full_matrices=False), _tall,
                              2 * 10**6, "", lambda found: found.S),
}  # fmt: skip


def on_a_rank(path: str, name: str, size: int) -> None:
    """First a check against NumPy, then the memory that the operation takes, then the operation at each turn."""
    import numpy_dist
    from numpy_dist import engine

    case = CASES[name]
    arguments = [numpy_dist.asarray(x) for x in case.make(size)]

    def work() -> Any:
        made = case.work(*arguments)
        engine.flush()
        return made

    expected = case.compared(case.work(*case.make(size)))
    found = case.compared(work())
    found = found.gather() if engine.is_handle(found) else found
    if name not in ("argsort", "scatter") and not np.allclose(found, expected, rtol=1e-9):
        raise SystemExit(f"{case.title} on ranks differs from NumPy's")
    del expected, found
    note(path, memory_of(work, arguments))
    at_each_turn(path, work)


def memory_of(work: Callable[[], Any], arguments: list[Any]) -> tuple[int, int]:
    """The most bytes that a rank has at a time, its arguments included; and those of its arguments and results."""
    from numpy_dist import engine

    def held(arrays: list[Any]) -> int:
        ours = sum(engine.shard(x).nbytes for x in arrays if engine.is_handle(x))
        return ours + sum(x.nbytes for x in arrays if isinstance(x, np.ndarray))

    engine.runtime().pool.clear()
    inputs = held(arguments)
    before = _status("VmRSS") - inputs
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    made = work()
    peak = _status("VmHWM") - before
    outputs = [x for x in (made if isinstance(made, tuple) else (made,)) if not any(x is y for y in arguments)]
    return peak, inputs + held(outputs)


def _status(name: str) -> int:
    """A number of bytes that Linux tells of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def measure(name: str, quick: bool) -> list[Comparison]:
    """The rows of a case: its speed, and its memory."""
    case = CASES[name]
    size = case.size // (10 if case.make in (_square, _definite, _symmetric) else 100) if quick else case.size
    arguments = case.make(size)
    with Ranks(RANKS, __file__, name, size) as ranks:
        peak, share = max(ranks.notes(), key=lambda pair: pair[0] / pair[1])
        candidates = {"numpy": lambda: case.work(*arguments), "ours": ranks.work}
        seconds = take_turns(candidates, repeats=3 if quick else 7)
    middle = {who: statistics.median(times) for who, times in seconds.items()}
    figure, title = median_ratio(seconds, "numpy", "ours"), f"{case.title}, {size:.0e}"
    return [
        Comparison(title, middle["numpy"], middle["ours"], "ms", figure, "x NumPy's speed", case.goal),
        Comparison(
            "  most memory of a rank", None, peak, "MiB", peak / share, "x its part of inputs and outputs", "<= 3"
        ),
    ]


if __name__ == "__main__":
    if len(sys.argv) == 4 and not sys.argv[1].startswith("-"):
        on_a_rank(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        harness.run_cases("moving", __doc__, CASES, measure, moving_counts.rows)
