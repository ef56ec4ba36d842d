"""The programs of `programs` on NumPy, on numpy_dist and by hand with Numba: sizes, goals, and how they are timed."""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import handwritten
import numpy as np
import programs
from harness import HERE, Comparison, median_ratio, take_turns
from ranks import Ranks
from stencil_functions import plate, relax

import numpy_dist
from numpy_dist import engine

SECONDS = 8.0
"""About how long NumPy may take for all rounds of one case."""


@dataclass(frozen=True)
class ProgramCase:
    """One program at one size.

    Attributes
    ----------
    name, title : str
        For ``--only``, and for the table.
    program : callable
        Plain NumPy; its counterpart in `handwritten` has the same name.
    make : callable
        ``make(size)`` returns the program's arguments but for `steps`.
    size, quick : int
        Extent of the arrays, in earnest and to see that it runs.
    goal : str
        Of NumPy's time divided by ours.
    beside : str
        Of our time divided by that of the hand-written counterpart.
    exact : bool
        Whether the results must be NumPy's to the last bit.
    steps : int
        Steps or iterations in one sample, given to the program; 0 if it has none.
    ranks : str
        Goal of the time with one rank for each thread divided by that of one process; empty: not run.
    """

    name: str
    title: str
    program: Callable[..., Any]
    make: Callable[[int], tuple]
    size: int
    quick: int
    goal: str
    beside: str = ""
    exact: bool = True
    steps: int = 0
    ranks: str = ""


def _uniform(count: int, low: float = 0.0, high: float = 1.0) -> Callable[[int], tuple]:
    def make(size: int) -> tuple:
        generator = np.random.default_rng(1)
        return tuple(generator.uniform(low, high, size) for _ in range(count))

    return make


def _options(size: int) -> tuple:
    generator = np.random.default_rng(1)
    return (*(generator.uniform(low, high, size) for low, high in [(10, 50), (10, 50), (0.5, 2)]), 0.02, 0.3)


def _scores(size: int) -> tuple:
    return (np.random.default_rng(1).standard_normal((size, 2000)),)


def _square(size: int) -> tuple:
    return (np.random.default_rng(1).random((size, size)),)


def _cube(size: int) -> tuple:
    return (np.random.default_rng(1).random((size + 2,) * 3),)


def _points(size: int) -> tuple:
    generator = np.random.default_rng(1)
    middles = generator.uniform(-5, 5, (8, 4))
    points = middles[generator.integers(0, 8, size)] + generator.standard_normal((size, 4))
    return points, points[:8].copy()


def _substances(size: int) -> tuple:
    u, v = np.ones((size + 2, size + 2)), np.zeros((size + 2, size + 2))
    middle = slice(size // 2 - size // 8, size // 2 + size // 8)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    return u, v


def _plate(size: int) -> tuple:
    return (plate(size),)


LONG, NOT_BEHIND = 4 * 10**7, ">= 0.909"
CASES = (
    ProgramCase("stencil", "5-point stencil", relax, _plate, 4000, 500, ">= 8", "<= 1.15", steps=10, ranks="<= 1.25"),
    ProgramCase("smooth27", "27-point stencil", programs.smooth27, _cube, 256, 40, ">= 8", steps=1),
    ProgramCase("black_scholes", "Black-Scholes", programs.black_scholes, _options, 10**7, 10**5, ">= 6"),
    ProgramCase("softmax", "softmax of rows of 2,000", programs.softmax, _scores, 10_000, 100, ">= 4", exact=False),
    *(
        ProgramCase(function.__name__, title, function, _uniform(count), LONG, 10**6, goal, exact=exact)
        for function, title, count, goal, exact in [
            (programs.squared_distance, "((x - y)**2).sum()", 2, ">= 3", False),
            (programs.variance, "var", 1, ">= 3", False),
            (programs.deviation, "std", 1, ">= 3", False),
            (programs.total, "sum", 1, NOT_BEHIND, False),
            (programs.average, "mean", 1, NOT_BEHIND, False),
            (programs.smallest, "min", 1, NOT_BEHIND, True),
            (programs.largest, "max", 1, NOT_BEHIND, True),
        ]
    ),
    ProgramCase("circle", "sin(x)**2 + cos(x)**2", programs.circle, _uniform(1, -10, 10), 2 * 10**7, 10**5, ">= 1.9"),
    ProgramCase("multiply_add", "a*b + c", programs.multiply_add, _uniform(3), 10**7, 10**6, ">= 1.9", "<= 1.2"),
    ProgramCase(
        "cg", "conjugate gradients", programs.conjugate_gradients, _square, 1000, 200, ">= 5", exact=False, steps=20
    ),
    ProgramCase("k_means", "k-means, 8 centres", programs.k_means, _points, 10**6, 10**5, ">= 3", exact=False, steps=5),
    ProgramCase("gray_scott", "Gray-Scott", programs.gray_scott, _substances, 2000, 300, ">= 5", steps=10),
    ProgramCase("small", "5-point stencil in cache", relax, _plate, 200, 200, ">= 2.5", steps=2000),
)


def _arguments(case: ProgramCase, size: int, steps: int, convert: Callable[[np.ndarray], Any]) -> tuple:
    """New arguments of a program."""
    arguments = (convert(x) if isinstance(x, np.ndarray) else x for x in case.make(size))
    return (*arguments, *((steps,) if steps else ()))


def _check(case: ProgramCase, who: str, expected: Any, result: Any, exact: bool) -> None:
    for theirs, own in zip(_as_arrays(expected), _as_arrays(result), strict=True):
        if exact and not np.array_equal(theirs, own):
            raise SystemExit(f"{case.title}: {who}'s result is not NumPy's to the last bit")
        if theirs.shape != own.shape or not np.allclose(theirs, own, rtol=1e-9, atol=1e-12):
            raise SystemExit(f"{case.title}: {who}'s result differs from NumPy's")


def _as_arrays(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple | list) else [result]
    return [x.gather() if engine.is_handle(x) else np.asarray(x) for x in parts]


def measure(case: ProgramCase, quick: bool, threads: int) -> list[Comparison]:
    """The rows of a case: one, and one more where it is run on ranks too."""
    size, steps = (case.quick, min(case.steps, 20)) if quick else (case.size, case.steps)
    by_numpy, by_us, by_hand = (_arguments(case, size, steps, how) for how in (_own, numpy_dist.asarray, _own))
    hand = getattr(handwritten, case.program.__name__)(*by_hand)

    def ours() -> Any:
        result = case.program(*by_us)
        engine.flush()
        return result

    begin = time.perf_counter()
    expected = case.program(*by_numpy)
    once = time.perf_counter() - begin
    _check(case, "numpy_dist", expected, ours(), case.exact)
    _check(case, "the hand-written code", expected, hand(), False)
    del expected
    candidates = {"numpy": lambda: case.program(*by_numpy), "hand": hand, "ours": ours}
    with ExitStack() as stack:
        if case.ranks:
            candidates["ranks"] = stack.enter_context(Ranks(threads, str(HERE / "engine_ranks.py"), size, steps)).work
        for _ in range(3):  # until every kernel is there, those that the second run needs included
            for name in ("ours", "ranks"):
                candidates.get(name, lambda: None)()
        seconds = take_turns(candidates, repeats=3 if quick else min(15, max(5, round(SECONDS / once))))
    return _rows(case, f"{case.title}, {_extent(size, steps)}", seconds, threads)


def _own(x: np.ndarray) -> np.ndarray:
    return x


def _extent(size: int, steps: int) -> str:
    text = f"{size:.0e}".replace("e+0", "e") if size >= 10**5 and size % 10**5 == 0 else str(size)
    return text + (f", {steps} steps" if steps else "")


def _rows(case: ProgramCase, title: str, seconds: dict[str, list[float]], threads: int) -> list[Comparison]:
    middle = {name: statistics.median(times) for name, times in seconds.items()}

    def row(name: str, ours: str, goal: str, peer: str, peer_name: str, target: str) -> Comparison:
        speed, beside = median_ratio(seconds, "numpy", ours), median_ratio(seconds, ours, peer)
        figures = middle["numpy"], middle[ours], "ms", speed, "x NumPy's speed", goal
        return Comparison(name, *figures, middle[peer], peer_name, beside, target)

    rows = [row(title, "ours", case.goal, "hand", "hand-written", case.beside)]
    if case.ranks:
        rows.append(row(f"{title}, {threads} ranks", "ranks", "", "ours", "one process", case.ranks))
    return rows
