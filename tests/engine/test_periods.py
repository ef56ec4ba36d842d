"""Programs are cut at recurring call sites: a loop is planned once, keeps no temporary, and takes constant memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.engine.executing import prepared
from numpy_dist.engine.planning.fuse import MOST_IN_A_LOOP
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.scheduling import program, schedule
from numpy_dist.engine.scheduling.periods import SHORTEST as SHORTEST_PERIOD
from numpy_dist.engine.scheduling.program import MOST_STATEMENTS

from .tiers import run_tier

RANKS = pytest.mark.parametrize("ranks", [1, 2])


Planned = dict[int, tuple[int, int]]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """For each rank how many schedules and local plans were worked out."""
    counts: Planned = defaultdict(lambda: (0, 0))
    plan_group = prepared.plan_group

    class Schedule(schedule.Schedule):
        def __init__(self, runtime: Any, *args: Any) -> None:
            schedules, plans = counts[runtime.rank]
            counts[runtime.rank] = schedules + 1, plans
            super().__init__(runtime, *args)

    def counting(group: Group, statements: Any, slots: Any, states: Any) -> Any:
        schedules, plans = counts[group.rank]
        counts[group.rank] = schedules, plans + 1
        return plan_group(group, statements, slots, states)

    monkeypatch.setattr(schedule, "Schedule", Schedule)
    monkeypatch.setattr(prepared, "plan_group", counting)
    return counts


def _start(asarray: Callable) -> list:
    rng = np.random.default_rng(7)
    return [asarray(rng.random((12, 9))), asarray(rng.random((12, 9)))]


def _run(ranks: int, step: Callable[[list, int], None], warm: int, more: int, planned: Planned) -> list:
    """Run a loop on NumPy and on shards, with equal results; nothing is planned after the first `warm` steps.

    Returns
    -------
    list of Counters
        What each rank did in the last `more` steps.
    """
    expected = _start(np.asarray)
    for k in range(warm + more):
        step(expected, k)

    def on_rank() -> list:
        arrays = _start(numpy_dist.asarray)
        runtime, most = engine.runtime(), 0
        for k in range(warm + more):  # one loop: a second one would have other call sites
            if k == warm:
                before = planned[runtime.rank]
                runtime.counters.reset()
            step(arrays, k)
            most = max(most, len(runtime.program._pending))
        counters = type(runtime.counters)(**vars(runtime.counters))
        assert planned[runtime.rank] == before
        assert most < MOST_STATEMENTS
        return [counters, [x.gather() for x in arrays]]

    found = [outcome.result for outcome in run_tier(ranks, "never", "/nonexistent", on_rank)]
    for _, arrays in found:
        for got, want in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)
    return [counters for counters, _ in found]


def _body(statements: int) -> Callable[[list, int], None]:
    """A step of so many statements, each at a place of its own; its first array is bound anew."""
    lines = ["def step(arrays, k):", "    x, y = arrays"]
    left = statements - 1
    while left:
        lines.append("    x = x + y * 0.25" if left % 3 == 2 else f"    x = x - {left / 256}")
        left -= 2 if left % 3 == 2 else 1
    lines.append("    arrays[0] = x * 0.25")
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"<a step of {statements}>", "exec"), namespace)
    return namespace["step"]


PHASES = 1  # ways in which periods cut a loop: where it begins


@RANKS
@pytest.mark.parametrize("statements", [1, 2, 5, 20, 31, 32, 33, 40, 64, 100, 127])
def test_a_loop_is_planned_once(ranks: int, statements: int, planned: Planned) -> None:
    periods = PHASES + 4
    steps = -(-SHORTEST_PERIOD // statements) * periods
    for counters in _run(ranks, _body(statements), steps, steps, planned):
        assert counters.statements == steps * statements
        assert counters.fetches == counters.gathers == 0
    assert len(planned) == ranks
    for schedules, plans in planned.values():  # also for the loop's beginning, and for what is pending at its end
        assert schedules <= PHASES + 3
        assert plans <= (PHASES + 3) * -(-statements // MOST_IN_A_LOOP)


@RANKS
@pytest.mark.parametrize("statements", [4, 16, 40, 100])
def test_temporaries_of_a_loop_are_contracted(ranks: int, statements: int, planned: Planned) -> None:
    """Of a period only what the next one reads is stored: here one array."""
    length = max(SHORTEST_PERIOD, statements)
    steps = 16 * length // statements
    for counters in _run(ranks, _body(statements), steps, steps, planned):
        assert counters.statements == 16 * length
        loops = 16 * -(-length // MOST_IN_A_LOOP)
        assert counters.loops == counters.writes == loops
        assert counters.contracted == 16 * length - loops


@RANKS
def test_statements_in_place(ranks: int, planned: Planned) -> None:
    def step(arrays: list, k: int) -> None:
        x, y = arrays
        average = x[:-2] + x[2:] - 2 * x[1:-1]
        x[1:-1] += 0.1 * average
        y *= 0.99
        y += x

    for counters in _run(ranks, step, 40, 80, planned):
        assert counters.stored_temporaries == 0


def _damped(x: Any, factor: float) -> Any:
    half = x * factor
    return half + x * 0.1


@RANKS
def test_a_helper_that_is_called_twice(ranks: int, planned: Planned) -> None:
    def step(arrays: list, k: int) -> None:
        x, y = arrays
        first = _damped(x, 0.5)
        arrays[1] = _damped(y, 0.25) + first * 0.1
        arrays[0] = _damped(first, 0.75)

    for counters in _run(ranks, step, 40, 80, planned):
        assert counters.contracted > 10 * counters.writes  # a cut may lie between its two halves


@RANKS
def test_a_long_helper_that_is_called_twice_is_no_loop(ranks: int, planned: Planned) -> None:
    """Its second call recurs nowhere: the period is the whole step."""
    helper = _body(20)

    def step(arrays: list, k: int) -> None:
        x, y = arrays
        first, second = [x, y], [y, x]
        helper(first, k)
        helper(second, k)
        arrays[0] = first[0] * 0.5 + second[0]

    for counters in _run(ranks, step, 10, 20, planned):
        assert counters.statements == 20 * 42
        assert counters.loops == counters.writes == 20
    assert all(schedules <= 4 for schedules, _ in planned.values())


@RANKS
@pytest.mark.parametrize("statements", [1, 6, 40])
def test_a_value_is_asked_for_in_each_step(ranks: int, statements: int, planned: Planned) -> None:
    body = _body(statements)
    totals = []

    def step(arrays: list, k: int) -> None:
        body(arrays, k)
        total = float(arrays[0].sum())
        totals.append(total)
        arrays[1] = arrays[1] * (1 + 1e-3 * np.tanh(total))

    for counters in _run(ranks, step, 10, 30, planned):
        assert counters.stored_temporaries == 0


@RANKS
def test_a_value_is_asked_for_now_and_then(ranks: int, planned: Planned) -> None:
    body = _body(9)

    def step(arrays: list, k: int) -> None:
        body(arrays, k)
        if k % 10 == 9:
            assert np.isfinite(float(arrays[0].max()))

    _run(ranks, step, 60, 120, planned)


@RANKS
def test_nested_short_loops(ranks: int, planned: Planned) -> None:
    def step(arrays: list, k: int) -> None:
        for _ in range(4):
            for n in range(3):
                arrays[0] = arrays[0] * 0.9 + n
            arrays[1] = arrays[1] * 0.5 + arrays[0]

    for counters in _run(ranks, step, 60, 60, planned):
        assert counters.contracted > counters.writes


@RANKS
def test_steps_that_alternate(ranks: int, planned: Planned) -> None:
    even, odd = _body(34), _body(50)
    _run(ranks, lambda arrays, k: (odd if k % 2 else even)(arrays, k), 20, 40, planned)


@RANKS
def test_recursion(ranks: int, planned: Planned) -> None:
    def halve(x: Any, depth: int) -> Any:
        if depth == 0:
            return x * 0.5
        return halve(x, depth - 1) * 0.9 + x * 0.1

    def step(arrays: list, k: int) -> None:
        arrays[0] = halve(arrays[0], 6) + arrays[1]

    _run(ranks, step, 40, 40, planned)


@RANKS
def test_generators(ranks: int, planned: Planned) -> None:
    def states(x: Any) -> Iterator[Any]:
        while True:
            x = np.sqrt(x * 2 + 1) - 0.5
            yield x

    running: dict[int, Iterator[Any]] = {}

    def step(arrays: list, k: int) -> None:
        if k == 0:
            running[id(arrays)] = states(arrays[0])
        arrays[1] = arrays[1] * 0.5 + next(running[id(arrays)])

    _run(ranks, step, 60, 60, planned)
    running.clear()


@RANKS
def test_what_is_kept_from_each_step_is_stored(ranks: int, planned: Planned) -> None:
    """A period is executed late, but what a handle refers to stays."""

    def on_rank() -> list:
        x = numpy_dist.asarray(np.ones(50))
        kept = []
        for k in range(200):
            y = x * k
            x = x + 1
            if k % 20 == 0:
                kept.append(y)
        return [float(y[3]) for y in kept]

    for outcome in run_tier(ranks, "never", "/nonexistent", on_rank):
        assert outcome.result == [(k + 1.0) * k for k in range(0, 200, 20)]


@pytest.mark.parametrize("ranks,steps", [(1, 4000), (2, 1500), pytest.param(1, 100_000, marks=pytest.mark.long),
                                         pytest.param(3, 100_000, marks=pytest.mark.long)])  # fmt: skip
def test_memory_is_constant(ranks: int, steps: int, planned: Planned) -> None:
    def on_rank() -> list:
        x, y = _start(numpy_dist.asarray)
        runtime = engine.runtime()
        pool, program = runtime.pool, runtime.program
        marks = []
        for k in range(steps):
            z = x * 0.5 + y
            x = z - y * 0.25
            y = y * 0.999 + 0.001
            if k % (steps // 20) == steps // 20 - 1:
                sizes = len(program._pending), len(program._periods.sites)
                marks.append((pool.held + pool.free, *sizes, planned[runtime.rank]))
        return marks

    for outcome in run_tier(ranks, "never", "/nonexistent", on_rank):
        sizes, pending, sites, plans = zip(*outcome.result, strict=True)
        assert max(sizes) <= 1.5 * max(sizes[:3]) and max(sizes) < 40 * 12 * 9 * 8
        assert max(pending) <= 3 * (SHORTEST_PERIOD + 7)
        assert max(sites) <= 7
        assert all(p == plans[1] for p in plans[2:])


@RANKS
@pytest.mark.parametrize("looped", [True, False])
def test_arrays_that_come_in_are_given_back(ranks: int, looped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop, or a program without loops, that reads arrays one after the other holds few of them."""
    n, few = 1000, 8
    monkeypatch.setattr(program, "LARGE", few * program.COMES_IN * 8 * n // ranks)
    monkeypatch.setattr(program, "MOST_BYTES", 3 * program.LARGE)

    def on_rank() -> list:
        rt = engine.runtime()
        rt.program._knows_room = True
        marks = []
        for k in range(200):
            x = numpy_dist.asarray(np.full(n, float(k)))
            exec(compile("y = x * 2\ny += x\ndel y", f"<{0 if looped else k}>", "exec"), {"x": x})
            del x
            marks.append(rt.pool.held)
        return marks

    for outcome in run_tier(ranks, "never", "/nonexistent", on_rank):
        assert max(outcome.result) <= (3 * few + 2) * 8 * n / ranks + 16 * n


@RANKS
@pytest.mark.parametrize("steps_held_back", [1, 2])
def test_periods_of_large_results_are_short(
    ranks: int, steps_held_back: int, planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop over large arrays is cut where a step begins, not where too many bytes are pending."""
    step_bytes = 4 * 12 * 9 * 8
    monkeypatch.setattr(program, "LARGE", steps_held_back * step_bytes // ranks)
    monkeypatch.setattr(program, "MOST_BYTES", (2 * steps_held_back + 1) * step_bytes // ranks)
    for counters in _run(ranks, _body(4), 8, 24, planned):
        assert counters.loops == counters.writes == 24 // steps_held_back  # one array a period is stored


@RANKS
@pytest.mark.parametrize("room", [0, 1 << 30])
def test_results_may_be_pending_where_there_is_memory(ranks: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_BYTES", 3 * 12 * 9 * 8 // ranks)
    monkeypatch.setattr(program, "share_of_memory", lambda runtime: room)

    def on_rank() -> tuple[int, int, bool]:
        x, y = _start(numpy_dist.asarray)
        counters = engine.runtime().counters
        counters.reset()
        a = x * 2 + 1
        b = np.sqrt(a * y)
        c = b - a
        equal = np.array_equal(c.gather(), np.sqrt((x.gather() * 2 + 1) * y.gather()) - (x.gather() * 2 + 1))
        return counters.loops, counters.writes, equal

    for outcome in run_tier(ranks, "never", "/nonexistent", on_rank):
        loops, writes, equal = outcome.result
        assert equal
        assert loops == (1 if room else 2)
        assert writes == (3 if room else 4)
