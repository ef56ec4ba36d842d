"""Operations with a mask: what stands where it is false stays, and is neither computed nor reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numpy_dist.backends.base import ReduceStep, Step, Temp
from numpy_dist.backends.compiled import backend as backends
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.ir.ops import COPY, SELECT, op_of

from .loops import ALL_EVENTS, KINDS, check, values
from .test_kernels import SOME, STEPS, UFUNCS, _dtypes

N = 5000


def _operations(kind: str) -> list[list[tuple]]:
    found = []
    for ufunc in UFUNCS:
        dtypes = _dtypes(ufunc, [np.dtype(kind)] * ufunc.nin)
        if dtypes is not None and not (
            dtypes[-1].kind == "f" and ufunc.__name__ in ("minimum", "maximum", "fmin", "fmax")
        ):
            found.append((ufunc, dtypes[ufunc.nin :]))
    few = STEPS // 2  # each has intermediate results of its own
    return [found[start : start + few] for start in range(0, len(found), few)]


def _loop(kind: str, part: list[tuple], change: Any = None):
    """Every operation, into what is there already, where a mask says so."""

    def build(rng):
        x, y = values(rng, kind, N), values(rng, kind, 2 * N)[::2]
        masks = [rng.random(N) < 0.5, (rng.random(3 * N) < 0.5)[::3], np.broadcast_to(rng.random(1) < 0.5, (N,))]
        if change is not None:
            masks = masks[:1]
            x, y = change(x, y, masks[0])
        steps, outs = [], []
        for label, (ufunc, dtypes) in enumerate(part):
            made = tuple(values(rng, d.char, N) for d in dtypes)
            outs += made
            steps.append(Step(op_of(ufunc), (x, y)[: ufunc.nin], made, masks[label % len(masks)], {}, label))
        return (N,), steps, outs

    return build


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME)
def test_every_operation(backend: Compiled, kind: str) -> None:
    for part in _operations(kind):
        check(backend, _loop(kind, part))
        check(backend, _loop(kind, part), watched=ALL_EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["l", "d", "D", pytest.param("f", marks=pytest.mark.long)])
def test_what_is_left_out_raises_nothing(backend: Compiled, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros, infinities, NaN and the like below the mask stop no kernel: the interpreter need not repair."""
    repaired = []
    monkeypatch.setattr(backends, "repair", lambda *args: repaired.append(args))

    def change(x, y, mask):
        return np.where(mask, 1, x).astype(x.dtype), np.where(mask, 1, np.roll(x, 3) * 0).astype(x.dtype)

    for part in _operations(kind):
        quiet = [(u, d) for u, d in part if u is not np.arctanh]  # at 1
        with np.errstate(all="ignore"):
            check(backend, _loop(kind, quiet, change), watched=ALL_EVENTS)
    assert repaired == []
    check(backend, _loop(kind, [(np.add, (np.dtype(kind),))] * 3, change), watched=ALL_EVENTS)


def test_division_below_a_mask(backend: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    """The typical use: where there are no zeros, of several types and scalars, into a new and into an old result."""
    repaired = []
    repair = backends.repair
    monkeypatch.setattr(backends, "repair", lambda *args: (repaired.append(args), repair(*args)))

    def build(rng, zeros):
        x, y, small = rng.random(N), rng.random(N), rng.integers(0, 3, N, "i2")
        y[::3] = 0
        used = (y != 0) & (small != 0)
        used[10] |= zeros
        y[10] = 0 if zeros else 1
        given, out, root, chosen, total = rng.random(N), np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(1)
        mask, ratio = Temp(0, np.dtype(bool)), Temp(1, x.dtype)
        steps = [
            Step(op_of(np.logical_and), (used, True), (mask,), None, {}, 0),
            Step(op_of(np.divide), (x, y), (ratio,), mask, {}, 1),
            Step(op_of(np.divide), (1.0, y), (given,), mask, {}, 2),
            Step(op_of(np.divide), (small, small), (out,), mask, {}, 3),
            Step(op_of(np.log), (y,), (root,), mask, {}, 4),
            Step(op_of(np.subtract), (given, x), (given,), mask, {}, 5),
            ReduceStep(op_of(np.add), ratio, total, (0,), mask, 6),
            Step(SELECT, (mask, ratio, 0.0), (chosen,), None, {}, 7),
        ]
        return (N,), steps, [given, out, root, total, chosen]

    assert check(backend, lambda rng: build(rng, False), watched=ALL_EVENTS) == set()
    assert repaired == []
    events = check(backend, lambda rng: build(rng, True), watched=ALL_EVENTS)
    assert {(1, "divide by zero"), (2, "divide by zero"), (4, "divide by zero")} <= events and repaired


# An operation, its inputs, the dtype of its result, and an element for which it meets an event.
EVENTFUL = {
    "divide": (np.divide, lambda x: (1.0, x), "d", 0.0),
    "square root": (np.sqrt, lambda x: (x,), "d", -1.0),
    "multiply": (np.multiply, lambda x: (x, x), "d", 1e300),
    "subtract": (np.subtract, lambda x: (x, x), "d", np.inf),
    "rounded root": (np.sqrt, lambda x: (x,), "f", -1.0),
    "logarithm": (np.log, lambda x: (x,), "d", 0.0),
    "narrow": (COPY, lambda x: (x,), "f", 1e300),
    "truncate": (COPY, lambda x: (x,), "l", np.nan),
}


@pytest.mark.parametrize(
    "what", ["divide", *(pytest.param(name, marks=pytest.mark.slow) for name in EVENTFUL if name != "divide")]
)
def test_what_is_not_chosen_is_computed(backend: Compiled, what: str) -> None:
    """Events are met where a mask hides the result, or little of it is asked for, also at the end of vector code."""
    operation, inputs, kind, special = EVENTFUL[what]
    n, number = N + 3, np.dtype(kind).type

    def build(place, bad):
        hidden = np.zeros(n, bool)
        hidden[place] = True
        made = [Temp(k, np.dtype(kind)) for k in range(8)]
        outs = [np.zeros(n, "?" if k > 4 else kind) for k in range(7)]
        one, two, inner = number(1), number(2), made[7]
        uses = [
            [Step(SELECT, (hidden, two, made[0]), (outs[0],), None, {}, 10)],
            [Step(SELECT, (~hidden, made[1], two), (outs[1],), None, {}, 11)],
            [Step(COPY, (two,), (made[2],), hidden, {}, 12), Step(COPY, (made[2],), (outs[2],), None, {}, 13)],
            [Step(op_of(np.add), (made[3], one), (outs[3],), ~hidden, {}, 14)],
            [
                Step(SELECT, (hidden, one, made[4]), (inner,), None, {}, 15),
                Step(SELECT, (hidden, inner, two), (outs[4],), None, {}, 16),
            ],
            [Step(op_of(np.equal), (made[5], number(0)), (outs[5],), None, {}, 17)],
            [Step(op_of(np.logical_and), (made[6], hidden), (outs[6],), None, {}, 18)],
        ]
        steps = []
        for k, use in enumerate(uses):
            x = np.ones(n)
            x[place] = special if k == bad else 1
            op = operation if operation is COPY else op_of(operation)
            steps += [Step(op, inputs(x), (made[k],), None, {}, k), *use]
        return (n,), steps, outs

    for place in (5, -1):
        for bad in range(7):
            events = check(backend, lambda rng, p=place, b=bad: build(p, b), watched=ALL_EVENTS)
            assert {label for label, _ in events if label < 10} == {bad}


@pytest.mark.parametrize("kind", ["l", "d"])
def test_a_mask_and_the_result_among_the_inputs(backend: Compiled, kind: str) -> None:
    def build(rng):
        x, y, flags = values(rng, kind, N), values(rng, kind, N), rng.random(N) < 0.5
        twice = rng.random(N) < 0.5
        steps = [
            Step(op_of(np.multiply), (x, y), (x,), flags, {}, 0),
            Step(op_of(np.floor_divide), (x, y), (x,), twice, {}, 1),
            Step(op_of(np.logical_not), (flags,), (flags,), twice, {}, 2),
            Step(COPY, (y,), (x,), flags, {}, 3),
        ]
        return (N,), steps, [x, flags]

    check(backend, build)
    check(backend, build, watched=ALL_EVENTS)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_with_other_numbers(backend: Compiled, kind: str) -> None:
    for seed in range(1, 4):
        for part in _operations(kind):
            check(backend, _loop(kind, part), watched=ALL_EVENTS, seed=seed)
