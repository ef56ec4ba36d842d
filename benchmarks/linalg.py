"""Linear algebra of one matrix: two ranks of one thread, and one process of two, against NumPy's two threads;
the memory that ranks take beside NumPy's; and how many words a product moves at up to 1,024 ranks. All in one run.

python benchmarks/linalg.py [--quick] [--save] [--only product qr ...]

A machine of two cores is meant, with nobody else on it.
"""

import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

if len(sys.argv) < 2 or sys.argv[1].startswith("-"):  # ranks have been told how many threads they have
    for _name in ("NUMPY_DIST_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "2")

import harness
import moving_counts
import numpy as np
from harness import Comparison, median_ratio, take_turns
from moving import memory_of
from ranks import Ranks, at_each_turn, note

RANKS, MORE_RANKS = 2, 4


@dataclass(frozen=True)
class MatrixCase:
    """A function of the arrays that `make(size)` returns; of goals without a number there is no row.

    Attributes
    ----------
    title : str
    work, make : callable
    size, quick : int
        Of the figures, and where it is only to be seen that they come.
    ranks, alone : str
        The goals of two ranks, and of one process of two threads, in times NumPy's speed.
    compared : callable
        What of the result does not depend on rounding.
    with_memory : bool
        Whether the memory of ranks is compared with that of NumPy.
    """

    title: str
    work: Callable[..., Any]
    make: Callable[[int], tuple]
    size: int
    quick: int
    ranks: str
    alone: str = ""
    compared: Callable[[Any], Any] = lambda found: found
    with_memory: bool = False


def _two(size: int) -> tuple:
    generator = np.random.default_rng(1)
    return generator.random((size, size)), generator.random((size, size))


def _definite(size: int) -> tuple:
    matrix = np.random.default_rng(1).standard_normal((size, size))
    return (matrix @ matrix.T / size + np.eye(size),)


def _symmetric(size: int) -> tuple:
    matrix = np.random.default_rng(1).standard_normal((size, size))
    return (matrix + matrix.T,)


def _square(size: int) -> tuple:
    return (np.random.default_rng(1).standard_normal((size, size)),)


def _tall(size: int) -> tuple:
    return (np.random.default_rng(1).standard_normal((size, 32)),)


CASES = {
    "product": MatrixCase("a @ b", np.matmul, _two, 3000, 300, ">= 0.9", ">= 0.97"),
    "qr": MatrixCase("QR", np.linalg.qr, _square, 3000, 300, ">= 0.8", compared=lambda found: found.R),
    "cholesky": MatrixCase("Cholesky factor", np.linalg.cholesky, _definite, 3000, 300, ">= 0.8"),
    "solve": MatrixCase(
        "solve, one right-hand side", lambda a: np.linalg.solve(a, a[:, 0]), _definite, 3000, 300, ">= 0.8"
    ),
    "tall_qr": MatrixCase(
        "QR, 32 columns", np.linalg.qr, _tall, 2 * 10**6, 20_000, ">= 1.5", compared=lambda found: found.R
    ),
    "tall_svd": MatrixCase(
        "singular vectors, 32 columns", lambda a: np.linalg.svd(a, full_matrices=False), _tall, 2 * 10**6, 20_000,
        ">= 1.5", compared=lambda found: found.S,
    ),
    "eigh": MatrixCase(
        "eigenvectors", np.linalg.eigh, _symmetric, 1500, 300, ">= 0.35", compared=lambda found: found.eigenvalues,
        with_memory=True,
    ),
    "svd": MatrixCase(
        "singular vectors", np.linalg.svd, _square, 1500, 300, ">= 0.35", compared=lambda found: found.S,
        with_memory=True,
    ),
    "eigvalsh": MatrixCase("eigenvalues", np.linalg.eigvalsh, _symmetric, 1500, 300, ">= 0.35"),
    "svdvals": MatrixCase("singular values", np.linalg.svdvals, _square, 1500, 300, ">= 0.35"),
    "fft2": MatrixCase("fft2", np.fft.fft2, _square, 4096, 256, ">= 1.5", ">= 1.7"),
}  # fmt: skip


def on_a_rank(path: str, name: str, size: int, plain: bool) -> None:
    """A check against NumPy, then the memory that the function takes, then the function at each turn."""
    from numpy_dist import asarray, engine

    case = CASES[name]
    arrays = case.make(size)
    arguments = list(arrays) if plain else [asarray(x) for x in arrays]

    def work() -> Any:
        made = case.work(*arguments)
        engine.flush()
        return made

    expected, found = (case.compared(made) for made in (case.work(*arrays), work()))
    found = found.gather() if engine.is_handle(found) else found
    if not np.allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()):
        raise SystemExit(f"{case.title} on ranks differs from NumPy's")
    del expected, found, arrays
    note(path, memory_of(work, arguments)[0])
    at_each_turn(path, work)


def measure(name: str, quick: bool) -> list[Comparison]:
    """The rows of a case: two ranks, their memory, and one process."""
    case = CASES[name]
    size, repeats = (case.quick, 3) if quick else (case.size, 7)
    arguments = case.make(size)
    title = f"{case.title}, {size:,}"

    def numpys() -> Any:
        return case.work(*arguments)

    with Ranks(RANKS, __file__, name, size, "ours") as ranks:
        peak = max(ranks.notes())
        rows = [_row(f"{title}, {RANKS} ranks", numpys, ranks.work, repeats, case.ranks)]
    if case.with_memory:
        with Ranks(1, __file__, name, size, "numpy") as alone:
            theirs = max(alone.notes())
        with Ranks(MORE_RANKS, __file__, name, size, "ours") as more:
            least = max(more.notes())
        meaning = "x NumPy's memory"
        rows.append(Comparison(f"  most memory of {RANKS} ranks", theirs, peak, "MiB", peak / theirs, meaning, "<= 1"))
        meaning = f"x that of {RANKS} ranks"
        rows.append(Comparison(f"  of {MORE_RANKS} ranks", theirs, least, "MiB", least / peak, meaning, "<= 0.99"))
    if case.alone:
        from numpy_dist import asarray, engine

        ours = [asarray(x) for x in arguments]

        def work() -> None:
            case.work(*ours)
            engine.flush()

        rows.append(_row(f"{title}, one process", numpys, work, repeats, case.alone))
    return rows


def _row(title: str, numpys: Callable[[], Any], ours: Callable[[], Any], repeats: int, goal: str) -> Comparison:
    seconds = take_turns({"numpy": numpys, "ours": ours}, repeats=repeats)
    middle = {who: statistics.median(times) for who, times in seconds.items()}
    figure = median_ratio(seconds, "numpy", "ours")
    return Comparison(title, middle["numpy"], middle["ours"], "ms", figure, "x NumPy's speed", goal)


if __name__ == "__main__":
    if len(sys.argv) == 5 and not sys.argv[1].startswith("-"):
        on_a_rank(sys.argv[1], sys.argv[2], int(sys.argv[3]), plain=sys.argv[4] == "numpy")
    else:
        harness.run_cases("linalg", __doc__, CASES, measure, moving_counts.rows_of_products)
