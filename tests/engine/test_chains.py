"""Loops over the same rows run together, some rows at a time, with the bytes and warnings of loops by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.compiled import chained
from numpy_dist.engine.executing.chain import Chain
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.engine.planning.links import MOST, Link, _same, chains_of
from numpy_dist.layout.regions import Box
from numpy_dist.settings import config

from .random_programs import random_rows
from .test_random_programs import _run as run_random_program
from .tiers import compare_tiers, run_tier

RANKS = pytest.mark.parametrize("ranks", [1, 3])


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chains of small loops, in many steps."""
    monkeypatch.setattr(chained, "SMALLEST", 0)
    monkeypatch.setattr(chained, "STEP_BYTES", 1 << 10)
    yield


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _standardised(x: Any) -> Any:
    moved = x - x.mean(axis=1)[:, None]
    return moved / np.sqrt((moved * moved).mean(axis=1))[:, None]


def _in_place(x: Any) -> Any:
    x = x + 1
    x -= x.max(axis=1, keepdims=True)
    x *= x.sum(axis=1, keepdims=True)
    return x


def _of_three_axes(x: Any) -> Any:
    x = x.reshape(len(x) // 2, 2, -1)
    return x - x.max(axis=(1, 2), keepdims=True)


def _widths(x: Any) -> Any:
    """The difference takes the memory of the largest over before these are there."""
    return x.max(axis=1) - x.min(axis=1)


FUNCTIONS = [_softmax, _standardised, _in_place, _of_three_axes, _widths]


def _repeated(function: Any, values: np.ndarray, times: int = 3) -> tuple[list[np.ndarray], int]:
    """The results of a function that runs again and again, and how often loops ran together."""
    x = numpy_dist.asarray(values, split=0)
    backend: Any = engine.runtime().backend
    before, results = getattr(backend, "chained", 0), []
    for _ in range(times):
        made = function(x)
        engine.flush()
        results.append(made.gather())
    return results, getattr(backend, "chained", 0) - before


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape, kind", [((300, 33), "d"), ((24, 5000), "d"), ((60, 2048), "f")], ids=str)
def test_bytes(ranks: int, function: Any, shape: tuple[int, int], kind: str, kernel_cache: str) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(kind)
    _, plain = compare_tiers(ranks, kernel_cache, lambda: _repeated(function, values)[0])
    for result in plain.result:
        expected = function(values)
        rounding = 100 * np.finfo(kind).eps
        np.testing.assert_allclose(result, expected, rtol=rounding, atol=rounding * np.abs(expected).mean())
    for outcome in run_tier(ranks, "first", kernel_cache, _repeated, function, values):
        assert outcome.result[1] >= 2


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("function", FUNCTIONS)
def test_bytes_of_loops_that_are_too_small(ranks: int, function: Any, kernel_cache: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(chained, "SMALLEST", 1 << 40)
    values = np.random.default_rng(0).standard_normal((300, 33))
    _, plain = compare_tiers(ranks, kernel_cache, lambda: _repeated(function, values)[0])
    for result in plain.result:
        np.testing.assert_allclose(result, function(values), rtol=1e-11)


@RANKS
@pytest.mark.parametrize("place", [0, 159])
def test_events_are_met_at_their_statements(ranks: int, place: int, kernel_cache: str) -> None:
    values = np.random.default_rng(0).standard_normal((300, 33))
    values[place, 5] = np.inf  # inf - inf
    values[(place + 130) % 300] = np.nan
    values[(place + 61) % 300] = 1e308  # the sum overflows

    def work() -> list[np.ndarray]:
        return [*_repeated(_softmax, values)[0], *_repeated(_in_place, values)[0]]

    _, plain = compare_tiers(ranks, kernel_cache, work)
    assert len(plain.said) > 1
    np.testing.assert_array_equal(plain.result[0], _quiet(_softmax, values))
    for outcome in run_tier(ranks, "first", kernel_cache, _repeated, _softmax, values):
        assert outcome.result[1] >= 2


def _quiet(function: Any, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return function(values)


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("seed", range(9))
def test_random_rows(ranks: int, seed: int, kernel_cache: str) -> None:
    program = random_rows(seed)

    def work() -> list[np.ndarray]:
        return [array for _ in range(3) for array in run_random_program(program)]

    compare_tiers(ranks, kernel_cache, work)


@pytest.mark.slow
def test_random_rows_run_together(kernel_cache: str) -> None:
    def work(program: list[tuple]) -> int:
        for _ in range(2):
            run_random_program(program)
        return engine.runtime().backend.chained  # type: ignore[attr-defined]

    together = [run_tier(1, "first", kernel_cache, work, random_rows(seed))[0].result for seed in range(9)]
    assert sum(count > 0 for count in together) >= 4


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (((0, 3), (1, 2)), ((0, 3), (1, 2)), True),
        (((0, 3), (1, 2)), ((0, 3), (1, 3)), False),
        (((0, 3),), None, False),
        (((0, 3),), ((3, 3),), False),
        (((2, 2), (0, 5)), ((0, 4), (1, 1)), True),
        (((2, 2),), None, True),
        (None, None, True),
    ],
)
def test_boxes_with_the_same_elements(a: Box | None, b: Box | None, same: bool) -> None:
    assert _same(a, b) is _same(b, a) is same


def test_what_is_not_aligned_is_not_run_together(kernel_cache: str) -> None:
    def shifted(x: Any) -> Any:
        moved = x - x.max(axis=1, keepdims=True)
        top = moved.sum(axis=1, keepdims=True)
        return moved[1:] * top[:-1]

    values = np.random.default_rng(0).standard_normal((300, 33))
    outcome = run_tier(1, "first", kernel_cache, _repeated, shifted, values)[0]
    np.testing.assert_allclose(outcome.result[0][-1], shifted(values), rtol=1e-12)


def test_what_comes_before_a_lack_of_memory_is_computed(kernel_cache: str) -> None:
    def work() -> tuple[list[np.ndarray], int]:
        values = np.random.default_rng(0).standard_normal((300, 33))
        x, results = numpy_dist.asarray(values, split=0), []
        take = Pool.take

        def fails(pool: Pool, nbytes: int) -> Any:
            if lacking and nbytes == values.nbytes:
                lacking.pop()
                if not lacking:
                    raise MemoryError
            return take(pool, nbytes)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Pool, "take", fails)
            for turn in range(3):
                lacking = [0, 0] * (turn == 2)
                top = x.max(axis=1, keepdims=True)
                moved = x - top
                sums = moved.sum(axis=1, keepdims=True)
                try:
                    parts = moved / sums
                    engine.flush()
                except MemoryError:
                    lacking = [1]
                del parts
                results = [top.gather(), moved.gather(), sums.gather()]
        top_, moved_ = values.max(axis=1, keepdims=True), values - values.max(axis=1, keepdims=True)
        for got, want in zip(results, (top_, moved_, moved_.sum(axis=1, keepdims=True)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        return results, len(lacking)

    assert run_tier(1, "first", kernel_cache, work)[0].result[1] == 1


def test_the_explanation_says_so() -> None:
    x = numpy_dist.asarray(np.ones((300, 33)), split=0)
    with numpy_dist.explain_program() as explanation:
        _softmax(x)
        engine.flush()
    assert str(explanation).count("follows   the loop before") == 2


ROWS = (0, 1, 0)


def _link(written: set[int], touched: dict[int, Any], rows: tuple[int, int] = (0, 8)) -> Link:
    return Link(rows, {slot: {where} for slot, where in touched.items()}, written)


def test_sums_of_which_several_ranks_had_copies_are_linked_on_one() -> None:
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(np.ones((4, 5)), split=1)
        with numpy_dist.explain_program() as listing:
            ((x - x.sum(axis=1, keepdims=True)) * 3).gather()
    assert "1 copies" in str(listing) and str(listing).count("follows   the loop before") == 1


def test_chains_of_links() -> None:
    first, second = _link({1}, {0: ROWS, 1: ROWS}), _link({2}, {0: ROWS, 1: ROWS, 2: ROWS})
    assert [c[:2] for c in chains_of([first, second])] == [(0, 2)]
    assert [c[:2] for c in chains_of([None, first, second, None])] == [(1, 3)]
    assert not list(chains_of([first, None, second]))
    assert not list(chains_of([first, _link({2}, {1: ROWS, 2: ROWS}, rows=(0, 7))]))
    assert not list(chains_of([first, _link({2}, {1: (0, 1, 1), 2: ROWS})]))  # the row before
    assert not list(chains_of([first, _link({2}, {1: None, 2: ROWS})]))
    assert not list(chains_of([first, _link({0}, {0: (0, 1, 1)})]))  # writes what the first reads, elsewhere


def test_only_what_is_written_must_be_aligned() -> None:
    (chain,) = chains_of([_link({1}, {0: (0, 1, 1), 1: ROWS}), _link({2}, {0: ROWS, 1: ROWS, 2: ROWS})])
    assert chain.aligned == {1, 2}


def test_chains_are_bounded() -> None:
    links = [_link({k + 1}, {k: ROWS, k + 1: ROWS}) for k in range(2 * MOST + 1)]
    assert [c[:2] for c in chains_of(links)] == [(0, MOST), (MOST, 2 * MOST)]


class _Group(dict):
    """A group and its only plan, which may fail: its loop waits for no other, since its kernel lacks arguments."""

    def __init__(self, number: int, error: type[BaseException] | None = None) -> None:
        super().__init__({(): self})
        self.group, self.number, self.results, self.error = self, number, [], error
        repeat = SimpleNamespace(chain=None, has_rows=lambda rows: True, fill=lambda: False)
        self.parts = [SimpleNamespace(repeat=repeat, shape=(4,), arguments=lambda own, storages: ())]
        self.plan = SimpleNamespace(of=lambda kind: ())

    def facts(self, storages: Any) -> tuple:
        return ()

    def begin(self, work: Any, number: int) -> None:
        if self.error is not None:
            raise self.error

    def end(self, work: Any) -> None:
        pass


def test_a_group_that_fails_is_not_finished_by_the_one_before() -> None:
    for error in (MemoryError, KeyboardInterrupt):
        finished: list[int] = []
        runtime = SimpleNamespace(execution=SimpleNamespace(finish=finished.append))
        groups: Any = [_Group(0), _Group(1), _Group(2, error)]
        with pytest.raises(error):
            Chain(groups, frozenset()).run(runtime, [[], [], []], [])
        assert finished == [1, 2]
