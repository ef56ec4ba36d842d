"""Loops that overwrite what they read: kernels store at once, and give back what was there where a flag is raised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.compiled.form import lower
from numpy_dist.backends.compiled.passes import PassPlan, plan_passes
from numpy_dist.ir.ops import COPY, op_of

from .loops import ALL_EVENTS, Build, check


def _advance(
    shape: tuple[int, ...], kind: str, faults: bool = False, total: str = "square", cut: bool = False
) -> Build:
    """``x += 2 * d; r -= 3 * i`` and a sum of the new `r`, or of its squares, as conjugate gradients have it."""

    def build(rng):
        wide = (*shape[:-1], shape[-1] + 5)
        bases = [(rng.random(wide if cut else shape) * 9 + 1).astype(kind) for _ in range(4)]
        x, r, d, i = (base[..., 2 : 2 + shape[-1]] if cut else base for base in bases)
        if faults:
            d.flat[[3, 4999 % d.size]] = np.finfo(kind).max
            i.flat[-1] = np.inf
            r.flat[-1] = np.inf
        p, q, s = (Temp(k, np.dtype(kind)) for k in range(3))
        axes = tuple(range(len(shape)))
        steps: list[Step | ReduceStep] = [
            Step(op_of(np.multiply), (2, d), (p,), None, {}, 0),
            Step(op_of(np.add), (x, p), (x,), None, {}, 1),
            Step(op_of(np.multiply), (3, i), (q,), None, {}, 2),
            Step(op_of(np.subtract), (r, q), (r,), None, {}, 3),
        ]
        arrays = [x, r]
        if total:
            partial = np.zeros((1,) * len(shape), kind)
            if total == "square":
                steps.append(Step(op_of(np.multiply), (r, r), (s,), None, {}, 4))
            steps.append(ReduceStep(op_of(np.add), s if total == "square" else r, partial, axes, None, 5))
            arrays.append(partial)
        return shape, steps, arrays

    return build


def _plan(build: Callable) -> PassPlan:
    shape, steps, _ = build(np.random.default_rng(0))
    return plan_passes(lower(Loop(shape, steps, lambda label, kind: None, ALL_EVENTS)).form)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(7,), (2048,), (9000,), (30, 998), (5, 3), (2, 3, 700)], ids=str)
@pytest.mark.parametrize("total", ["", "plain", "square"])
@pytest.mark.parametrize("cut", [False, True])
def test_updates_and_their_sums(backend: Compiled, shape: tuple[int, ...], total: str, cut: bool) -> None:
    assert check(backend, _advance(shape, "d", total=total, cut=cut), watched=ALL_EVENTS) == set()
    expected = {(0, "overflow"), (3, "invalid value")}
    assert check(backend, _advance(shape, "d", True, total, cut), watched=ALL_EVENTS) >= expected


@pytest.mark.slow
def test_integers_and_single_precision(backend: Compiled) -> None:
    assert check(backend, _advance((9000,), "l"), watched=ALL_EVENTS) == set()
    assert (0, "overflow") in check(backend, _advance((9000,), "f", True), watched=ALL_EVENTS)


def test_floats_are_saved_and_integers_are_not() -> None:
    plan = _plan(_advance((9000,), "d"))
    assert len(plan.undo.restores) == 2 and not plan.commit.stores
    plan = _plan(_advance((9000,), "l"))
    assert not plan.undo.restores and not plan.commit.stores


def test_what_is_summed_is_computed_behind_the_stores() -> None:
    first, second = _plan(_advance((9000,), "d")).passes
    assert len(first.stores) == 2 and len(second.reloads) == 1 and len(second.nodes) == 1
    first, second = _plan(_advance((9000,), "d", total="plain")).passes
    assert len(first.stores) == 2 and len(second.reloads) == 1 and not second.nodes
    (only,) = _plan(_advance((9000,), "d", total="")).passes
    assert len(only.stores) == 2


def test_what_is_read_later_on_is_overwritten_last(backend: Compiled) -> None:
    """A call of NumPy's own loop reads an operand after a native pass has a new value for it."""

    def build(rng):
        x, y, z = (rng.random(5000) + 1 for _ in range(3))
        x[4000] = 1e300
        t = Temp(0, x.dtype)
        steps = [
            Step(op_of(np.sin), (y,), (t,), None, {}, 0),
            Step(op_of(np.arctan2), (x, t), (z,), None, {}, 1),
            Step(op_of(np.multiply), (x, x), (x,), None, {}, 2),
        ]
        return (5000,), steps, [x, z]

    assert check(backend, build, watched=ALL_EVENTS) == {(2, "overflow")}
    assert _plan(build).commit.stores or _plan(build).undo.restores


def test_a_call_reads_what_is_overwritten_afterwards(backend: Compiled) -> None:
    def build(rng):
        x, y = ((rng.random(5000) + 1).astype("D") for _ in range(2))
        mask, t = rng.random(5000) < 0.5, Temp(0, x.dtype)
        x[4000] = 1e300
        steps = [
            Step(op_of(np.multiply), (x, x), (t,), None, {}, 0),
            Step(COPY, (t,), (x,), None, {}, 1),
            Step(COPY, (y,), (x,), mask, {}, 2),
        ]
        return (5000,), steps, [x]

    assert {kind for _, kind in check(backend, build, watched=ALL_EVENTS)} >= {"overflow"}
    assert _plan(build).undo.restores


def test_a_sum_of_the_old_values(backend: Compiled) -> None:
    def build(rng):
        x, y = rng.random(5000), rng.random(5000)
        t, partial = Temp(0, x.dtype), np.zeros(1)
        steps = [
            Step(op_of(np.multiply), (x, y), (t,), None, {}, 0),
            Step(op_of(np.subtract), (y, x), (x,), None, {}, 1),
            ReduceStep(op_of(np.add), t, partial, (0,), None, 2),
        ]
        return (5000,), steps, [x, partial]

    assert check(backend, build, watched=ALL_EVENTS) == set()
