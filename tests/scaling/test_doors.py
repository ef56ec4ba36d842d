"""Values that steer a program come from the small run, whatever way they go to Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.distarray import DistArray
from numpy_dist.scaling.simulation import plan_rank, small_run
from numpy_dist.settings import config
from tests.scaling.real_runs import taken

ROWS = 240


def _matrix() -> Any:
    """A symmetric matrix that a loop has to compute, with eigenvalues between 1 and 3."""
    places = numpy_dist.arange(ROWS) * 1.0
    return np.exp(-0.5 * (places[:, None] - places) ** 2) + numpy_dist.eye(ROWS)


def gradients() -> Any:
    a, b = _matrix(), numpy_dist.ones(ROWS) * 2.0
    x = numpy_dist.zeros(ROWS)
    r = b - a @ x
    p = r.copy()
    rs = np.vdot(r, r)
    for _ in range(100):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r.dot(r)
        if np.sqrt(new) < 1e-8:
            break
        p = r + new / rs * p
        rs = new
    return x


def gradients_while_there_is_a_rest() -> Any:
    a, b = _matrix(), numpy_dist.ones(ROWS) * 2.0
    x, r = numpy_dist.zeros(ROWS), b
    rs = np.floor(np.vdot(r, r))
    while rs:
        x = x + 0.5 * r
        r = b - a @ x
        rs = np.floor(np.vdot(r, r))
    return x


def power_iteration() -> Any:
    a, v = _matrix(), numpy_dist.linspace(0.1, 1.0, ROWS)
    before = 0.0
    while True:
        v = a @ v
        length = np.linalg.norm(v)
        v /= length
        if abs(length - before) < 1e-4 * length:
            return v
        before = length


def means() -> Any:
    """k-means until labels stop changing."""
    points = np.sin(numpy_dist.arange(2 * ROWS) * 1.7).reshape(ROWS, 2) * 1.0
    centres = np.array([[-0.5, 0.0], [0.5, 0.1], [0.0, 0.6]])
    labels = numpy_dist.full(ROWS, -1)
    while True:
        distances = np.stack([((points - centre) ** 2).sum(axis=1) for centre in centres])
        new = np.argmin(distances, axis=0)
        if np.array_equal(new, labels):
            return labels
        labels = new
        for k in range(3):
            count = int((labels == k).sum())
            if count:
                centres[k] = np.where((labels == k)[:, None], points, 0.0).sum(axis=0).gather() / count


def bisection() -> float:
    x, low, high = np.sqrt(numpy_dist.arange(ROWS) + 1.0), 0.0, 1.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        if (x**middle).sum() > 1000.0:
            high = middle
        else:
            low = middle
    return low


def newton() -> Any:
    x, target = numpy_dist.ones(ROWS) * 2.0, numpy_dist.arange(ROWS) + 1.0
    while not np.allclose(x * x, target):
        x = 0.5 * (x + target / x)
    return x


def waves() -> Any:
    """Steps as long as the largest speed allows."""
    u, time, steps = np.sin(numpy_dist.arange(ROWS) / 20.0) + 1.5, 0.0, []
    while time < 2.0:
        step = 0.5 / np.abs(u).max()
        u[1:-1] -= step * u[1:-1] * (u[2:] - u[:-2]) / 2
        time += step
        steps.append(step)
    return u, steps


def erosion() -> Any:
    heights, steps = np.abs(np.cos(numpy_dist.arange(ROWS) * 1.0)) * 9.0, 0
    while (heights > 1.0).any():
        heights = np.where(heights > 1.0, heights * 0.7, heights)
        steps += 1
    for _ in range(int(heights.max() * 5)):
        heights = np.roll(heights, 1)
    return heights, steps


def selections() -> Any:
    """What is selected is no half of the elements, and ends the loop when nothing is left."""
    x = np.abs(np.cos(numpy_dist.arange(40 * ROWS) * 1.0))
    small = x < 0.3
    part = x[small]
    return part, np.flatnonzero(x > 0.9), x[x > 2.0].size


PROGRAMS = [
    gradients,
    gradients_while_there_is_a_rest,
    power_iteration,
    means,
    bisection,
    newton,
    waves,
    erosion,
]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_do_as_many_steps_as_the_small_run(program, ranks):
    """Of the same size, so that they are those of real runs."""
    values = small_run(program)
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        expected = run_simulated(ranks, taken, program)
        broadcasts: dict[int, list] = {}
        planned = [plan_rank(program, rank, ranks, broadcasts, values=values) for rank in range(ranks)]
    assert [rank.ending for rank in planned] == [""] * ranks
    names = "peak", "messages", "bytes", "collectives"
    assert [{name: getattr(rank, name) for name in names} for rank in planned] == expected
    assert all(rank.values and not any(value.assumed for value in rank.values) for rank in planned)


WAYS = {
    "float": lambda x, y: float(x[:1].sum(keepdims=True).reshape(())),
    "int": lambda x, y: int((x * 3).sum()),
    "bool": lambda x, y: bool((x > 0.5).all(keepdims=True)),
    "if of an array": lambda x, y: 1 if (x > 0.5)[:1] else 2,
    "complex": lambda x, y: complex(y.sum()),
    "index": lambda x, y: operator.index((x * 3).astype(int)[4:5].reshape(())),
    "range": lambda x, y: list(range((x * 3).astype(int).max())),
    "item": lambda x, y: x.item(5),
    "element": lambda x, y: x[5],
    "flat": lambda x, y: x.flat[7],
    "iteration": lambda x, y: [value for value in x[:9]],
    "tolist": lambda x, y: x[3:8].tolist(),
    "gather": lambda x, y: x[:6].gather().tolist(),
    "asarray": lambda x, y: np.asarray(x[:6]).tolist(),
    "comparison": lambda x, y: x.sum() > 5.0,
    "contains": lambda x, y: 1.5 in x * 1.0,
    "vdot": lambda x, y: np.vdot(x, y),
    "dot": lambda x, y: x.dot(y),
    "matmul": lambda x, y: x @ y,
    "inner": lambda x, y: np.inner(x, y),
    "norm": lambda x, y: np.linalg.norm(x),
    "norm of few": lambda x, y: np.linalg.norm(x - y, np.inf),
    "reduce": lambda x, y: np.add.reduce(x),
    "max": lambda x, y: max(x[:5]),
    "argmax": lambda x, y: np.argmax(x),
    "argmin": lambda x, y: y.argmin(),
    "mean": lambda x, y: x.mean(),
    "std": lambda x, y: np.std(x),
    "median": lambda x, y: np.median(x),
    "percentile": lambda x, y: np.percentile(x, 20),
    "average": lambda x, y: np.average(x, weights=y + 2.0),
    "ptp": lambda x, y: np.ptp(x),
    "any": lambda x, y: np.any(x > 0.99),
    "all": lambda x, y: (x > -2).all(),
    "allclose": lambda x, y: np.allclose(x, x * (1.0 + 1e-12)),
    "array_equal": lambda x, y: np.array_equal(x, x.copy()),
    "array_equiv": lambda x, y: np.array_equiv(x, x.copy()),
    "count_nonzero": lambda x, y: np.count_nonzero(x > 0.5),
    "interp": lambda x, y: np.interp(0.3, numpy_dist.arange(ROWS) * 1.0, x),
    "einsum": lambda x, y: np.einsum("i,i->", x, y),
    "tensordot": lambda x, y: float(np.tensordot(x, y, 1)),
    "trace": lambda x, y: np.trace(_matrix()),
    "det": lambda x, y: np.linalg.det(_matrix()[:9, :9]),
    "slogdet": lambda x, y: tuple(np.linalg.slogdet(_matrix()[:9, :9])),
    "cond": lambda x, y: np.linalg.cond(_matrix()[:9, :9]),
    "matrix_rank": lambda x, y: np.linalg.matrix_rank(_matrix()[:, :9]),
    "norm of a matrix": lambda x, y: np.linalg.norm(_matrix()),
    "eigenvalues": lambda x, y: np.linalg.eigvalsh(_matrix()[:9, :9])[-1],
    "singular values": lambda x, y: [*np.linalg.svd(_matrix()[:, :9], compute_uv=False)],
    "least squares": lambda x, y: np.linalg.lstsq(_matrix()[:, :4], y, rcond=None)[2],
    "histogram": lambda x, y: np.histogram(x, 5)[0].tolist(),
    "searchsorted": lambda x, y: np.searchsorted(np.sort(x), 0.5),
    "format": lambda x, y: f"{x.sum():.3f}",
}
if hasattr(np, "vecdot"):  # since NumPy 2.0
    WAYS |= {
        "vector norm": lambda x, y: np.linalg.vector_norm(x),
        "vecdot": lambda x, y: np.vecdot(x, y),
        "trapezoid": lambda x, y: np.trapezoid(x),
    }


@pytest.mark.filterwarnings("ignore::numpy_dist.FallbackWarning")
@pytest.mark.parametrize("way", WAYS)
def test_ways(way: str) -> None:
    """Each gives in a plan what it has given in the small run, on each rank and in the order of the calls."""

    def program(found: list[object]) -> object:
        x = np.sin(numpy_dist.arange(ROWS) * 0.1) * 1.0
        y = np.cos(numpy_dist.arange(ROWS) * 0.3) * 1.0
        for factor in (1.0, 2.0):
            found += [WAYS[way](x * factor, y)]
        return x

    really: list[object] = []
    broadcasts: dict[int, list] = {}
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        values = small_run(lambda: program([]))
        program(really)
        for rank in range(3):
            found: list[object] = []
            plan = plan_rank(lambda found=found: program(found), rank, 3, broadcasts, values=values)
            assert plan.ending == ""
            assert repr(found) == repr(really)
            assert [type(value) for value in found] == [type(value) for value in really]
            assert not any(value.assumed for value in plan.values)


CALLED_BACK: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "piecewise": lambda x, told: np.piecewise(x, [x > 0.2], [lambda part: part * told(part), 0.0]),
    "fromfunction": lambda x, told: numpy_dist.fromfunction(lambda i: i * told(x[:50]), (ROWS,)),
    "apply_over_axes": lambda x, told: np.apply_over_axes(lambda a, axis: a.sum(axis) * told(a), x, [0]),
}


@pytest.mark.filterwarnings("ignore::numpy_dist.FallbackWarning")
@pytest.mark.parametrize("name", CALLED_BACK)
def test_values_that_a_function_asks_for_that_numpy_calls_back(name: str) -> None:
    def program(found: list[float]) -> object:
        def told(part: Any) -> float:
            found.append(float(np.abs(part).max()))
            return found[-1]

        x = np.sin(numpy_dist.arange(ROWS) * 0.1) * 1.0
        made = CALLED_BACK[name](x, told)
        found.append((x * 2.0).max())
        return made

    really: list[float] = []
    found: list[float] = []
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        values = small_run(lambda: program([]))
        program(really)
        plan = plan_rank(lambda: program(found), 1, 3, {0: []}, values=values)
    assert plan.ending == "" and len(really) > 1
    assert found == really and not any(value.assumed for value in plan.values)


def test_the_parts_of_ranks() -> None:
    """On one rank ``x.local`` has the values of the small run; on several it is told that nobody has computed them."""
    given = numpy_dist.array([3.0, 4.0])

    def program(found: list[float]) -> object:
        x = np.sin(numpy_dist.arange(ROWS) * 0.1) * 1.0
        found.append(x.local.max() if x.local.size else 0.0)
        came = numpy_dist.asarray(np.arange(1.0, 9.0))
        found += [came.local.min(), given.local.max(), numpy_dist.ones(3).local.size and (x * 2).max()]
        return x

    really: list[float] = []
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        values = small_run(lambda: program([]))
        program(really)
        for ranks in (1, 3):
            found: list[float] = []
            plan = plan_rank(lambda found=found: program(found), ranks - 1, ranks, {0: []}, values=values)
            assert plan.ending == ""
            assert (found == really) == (ranks == 1) and found[2:] == really[2:]
            assert found[1] == (1.0 if ranks == 1 else 7.0), "what came in has its values"
            assert {value.text: (value.assumed, value.taken) for value in plan.values}[PART] == (
                (0, 2) if ranks == 1 else (2, 0)
            )


PART = "found.append(x.local.max() if x.local.size else 0.0)"


def test_a_loop_that_a_part_steers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numpy_dist.scaling.doors.MOST_ASSUMED", 20)

    def program() -> None:
        x = numpy_dist.ones(3000) * 2.0
        while x.local.max() < 10.0:
            x = x + 1.0

    with config(MIN_SHARD_BYTES=0):
        assert ": 20 values that nobody has computed" in plan_rank(program, 1, 3).ending


def test_what_is_no_value_is_not_replaced() -> None:
    """Shapes are the plan's own, and so are arrays that every rank has, unless they were made of others."""
    seen: list[object] = []

    def program(n: int) -> None:
        x = numpy_dist.ones(n) * 2.0
        known = numpy_dist.array([1.0, n])
        largest = np.linalg.svd(numpy_dist.ones((n, 3)) * x[:, None], compute_uv=False)[0]
        seen.append((np.size(x), len(x), np.shape(x), np.ndim(x), known.max(), float(known[1] * 2), largest))

    values = small_run(lambda: program(2000))
    plan_rank(lambda: program(50_000), 1, 3, values=values)
    assert seen == [(50_000, 50_000, (50_000,), 1, 50_000.0, 100_000.0, pytest.approx((2000 * 3 * 4) ** 0.5))]


@pytest.mark.filterwarnings("ignore::numpy_dist.FallbackWarning")
def test_arrays_and_lists_of_another_length_are_the_plans_own() -> None:
    """What comes after them on the same line is not mistaken for them."""
    seen: list[object] = []

    def program(n: int) -> None:
        x = numpy_dist.ones(n) * 2.0
        for number in (1.0, 2.0):
            seen.append((len(x.gather()), len(x.tolist()), len(list(x)), len(np.asarray(x)), (x * number).sum()))
            seen.append((x.gather(root=0), (x * number).max())[1])
            seen.append([*zip(x[:3], range(2), strict=False)] and (x * number).min())

    values = small_run(lambda: program(300))
    for n in (400, 9000):
        seen.clear()
        with config(MIN_SHARD_BYTES=0):
            assert plan_rank(lambda n=n: program(n), 1, 3, {0: []}, values=values).ending == ""
        assert seen == [(n,) * 4 + (600.0,), 2.0, 2.0, (n,) * 4 + (1200.0,), 4.0, 4.0]


def test_afterwards_numbers_are_those_of_the_option() -> None:
    seen: list[object] = []

    def program(steps: int) -> None:
        x = numpy_dist.ones(3000) * 2.0
        seen.extend([np.vdot(x, x) for _ in range(steps)])
        seen.append(np.array_equal(x, x))

    values = small_run(lambda: program(2))
    with config(MIN_SHARD_BYTES=0):
        plan = plan_rank(lambda: program(4), 1, 3, value=5.0, values=values)
    assert seen == [12_000.0, 12_000.0, 5.0, 5.0, True]
    assert {(v.assumed, v.taken) for v in plan.values} == {(2, 2), (0, 1)}


def test_a_loop_that_a_product_steers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numpy_dist.scaling.doors.MOST_ASSUMED", 20)

    def program() -> None:
        x = numpy_dist.ones(3000) * 2.0
        while np.vdot(x, x) < 10.0:
            x += 1.0

    with config(MIN_SHARD_BYTES=0):
        assert ": 20 values that nobody has computed" in plan_rank(program, 1, 3).ending


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_masks_select_as_much_as_in_the_small_run(ranks: int) -> None:
    values = small_run(selections)
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        really = run_simulated(ranks, taken, selections)
        broadcasts: dict[int, list] = {}
        planned = [plan_rank(selections, rank, ranks, broadcasts, values=values) for rank in range(ranks)]
    for rank, found in zip(planned, really, strict=True):
        assert rank.ending == "" and (rank.messages, rank.collectives) == (found["messages"], found["collectives"])
        assert (rank.peak, rank.bytes) == pytest.approx((found["peak"], found["bytes"]), rel=0.02)
        assert any("as in the small run" in each.what for each in rank.expected)


def test_methods_are_their_own_again() -> None:
    before = dict(vars(DistArray)), DistArray.__getitem__, DistArray.sum
    assert plan_rank(lambda: _matrix()[3, 4], 1, 3).ending == ""
    assert (dict(vars(DistArray)), DistArray.__getitem__, DistArray.sum) == before
