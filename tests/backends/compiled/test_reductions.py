"""Kernels reduce along the same tree as the interpreter: their results have the same bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from numpy_dist.backends.base import ReduceStep, Step, Temp
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.summation import CHUNK, Trailing, trailing
from numpy_dist.ir.ops import op_of

from .loops import ALL_EVENTS, check, values

# Iteration spaces and reduced axes: one chunk and many, whole chunks and rests, many short results, long rows.
SPACES = [
    ((1,), (0,)),
    ((CHUNK,), (0,)),
    ((5000,), (0,)),
    ((100, 70), (0, 1)),
    ((100, 70), (1,)),
    ((3, 5000), (1,)),
    ((2048, 2), (0, 1)),
    ((300, 4), (1,)),
    ((7, 9, 3), (2,)),
    ((40, 30, 20), (1, 2)),
    ((40, 30, 20), (2,)),
    ((2, 3, 1, 900), (1, 2, 3)),
]
PLACES = ("C", "inner", "F", "reversed", "repeated")
OPS = (np.add, np.maximum, np.multiply)


def _reduce(shape: tuple[int, ...], axes: tuple[int, ...], place: str, kind: str, masked: bool, ops: Sequence[np.ufunc],
            special: bool = False, before: bool = True):  # fmt: skip
    """A loop that reduces an array and a temporary, each by some of the operations."""

    def build(rng):
        size = [n + 4 for n in shape]
        base = (values if special else _small)(rng, kind, int(np.prod(size))).reshape(size)
        x = base[tuple(slice(2, 2 + n) for n in shape)]
        if place == "C":
            x = np.ascontiguousarray(x)
        elif place == "reversed":
            x = x[..., ::-1]
        elif place == "repeated":
            x = np.broadcast_to(x[..., :1], shape)
        y = np.array(_small(rng, kind, int(np.prod(shape))).reshape(shape), order="F" if place == "F" else "C")
        mask = rng.random(shape) < 0.5 if masked else None
        out, temp = np.zeros(shape, kind), Temp(0, np.dtype(kind))
        steps: list[Step | ReduceStep] = []
        if before:
            steps += [Step(op_of(np.add), (x, y), (temp,), None, {}, 0)]
            steps += [Step(op_of(np.square), (temp,), (out,), None, {}, 1)]
        partials = []
        for k, ufunc in enumerate(ops):
            partial = np.full(tuple(1 if a in axes else n for a, n in enumerate(shape)), 7, kind)
            partials.append(partial)
            steps.append(ReduceStep(op_of(ufunc), temp if before and k % 2 else x, partial, axes, mask, 10 + k))
        return shape, steps, [*partials, out, base]

    return build


def _small(rng, kind, n):
    return (rng.random(n) * 3).astype(kind) if kind != "?" else rng.random(n) < 0.9


@pytest.mark.parametrize("shape,axes", SPACES, ids=str)
@pytest.mark.parametrize("place", PLACES)
def test_spaces(backend: Compiled, shape: tuple[int, ...], axes: tuple[int, ...], place: str) -> None:
    for masked in (False, True):
        check(backend, _reduce(shape, axes, place, "d", masked, OPS, before=not masked))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["f", "l", "D"])
@pytest.mark.parametrize("shape,axes", SPACES, ids=str)
def test_spaces_of_other_types(backend: Compiled, shape: tuple[int, ...], axes: tuple[int, ...], kind: str) -> None:
    for place in PLACES:
        for masked in (False, True):
            for before in (False, True):
                check(backend, _reduce(shape, axes, place, kind, masked, OPS, before=before))


EVERY = (np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or, np.bitwise_or,
         np.bitwise_and, np.bitwise_xor, np.hypot, np.gcd, np.lcm, np.logaddexp)  # fmt: skip


def _has_loop(ufunc: np.ufunc, kind: str) -> bool:
    try:
        return ufunc.resolve_dtypes((np.dtype(kind),) * 2 + (None,))[-1] == np.dtype(kind)
    except TypeError:  # UFuncTypeError: no loop for this dtype
        return False


@pytest.mark.parametrize("kind", [*"?ldD", *(pytest.param(k, marks=pytest.mark.long) for k in "bBhHiILfF")])
def test_every_operation(backend: Compiled, kind: str) -> None:
    ops = [u for u in EVERY if _has_loop(u, kind)]
    assert len(ops) >= 4
    for special in (False, True):
        for shape, axes in (((3, 5000), (1,)), ((300, 40), (0, 1)), ((700, 6), (1,))):
            check(backend, _reduce(shape, axes, "inner", kind, False, ops, special, before=kind not in "?"))
    check(backend, _reduce((3, 5000), (1,), "inner", kind, True, ops, True, before=False))


@pytest.mark.parametrize("shape,axes", [((9000,), (0,)), ((5, 3000), (1,)), ((900, 7), (1,))], ids=str)
def test_events_are_reported_for_the_statement(backend: Compiled, shape: tuple[int, ...], axes: tuple) -> None:
    """Overflow within a chunk, and where chunks meet; what is reduced stays as it was."""

    def build(rng, where):
        x = rng.random(shape)
        x.reshape(-1)[list(where)] = 1.6e308
        partial, out = np.zeros([1 if a in axes else n for a, n in enumerate(shape)]), np.zeros(shape)
        temp = Temp(0, x.dtype)
        steps = [
            Step(op_of(np.multiply), (x, 1.0), (temp,), None, {}, 0),
            Step(op_of(np.sqrt), (temp,), (x,), None, {}, 1),
            Step(op_of(np.negative), (temp,), (out,), None, {}, 2),
            ReduceStep(op_of(np.add), temp, partial, axes, None, 3),
        ]
        return shape, steps, [x, out, partial]

    assert check(backend, lambda rng: build(rng, [5]), watched=ALL_EVENTS) == set()
    for where in ([4, 5], [3000 % shape[-1], 3000 % shape[-1] + 1]):
        assert check(backend, lambda rng, w=where: build(rng, w), watched=ALL_EVENTS) == {(3, "overflow")}
    far = [10, shape[-1] - 2] if shape[-1] > CHUNK else [0, 6]
    assert check(backend, lambda rng: build(rng, far), watched=ALL_EVENTS) == {(3, "overflow")}
    assert check(backend, lambda rng: build(rng, far), watched=frozenset(("divide",))) == set()


def test_an_invalid_sum_is_reported_once_and_right(backend: Compiled) -> None:
    def build(rng):
        x = rng.random((4, 3000))
        x[2, 100], x[2, 2900] = np.inf, -np.inf
        partial = np.zeros((4, 1))
        return x.shape, [ReduceStep(op_of(np.add), x, partial, (1,), None, 8)], [partial, x]

    assert check(backend, build, watched=ALL_EVENTS) == {(8, "invalid value")}


def test_the_tree_does_not_depend_on_threads(kernels) -> None:
    x = np.random.default_rng(5).random((3, 300_000)) * np.logspace(-9, 9, 300_000)

    def build(rng):
        partial = np.zeros((3, 1))
        return x.shape, [ReduceStep(op_of(np.add), x, partial, (1,))], [partial]

    for threads in (1, 2, 3):
        made = Compiled(kernels, threads, "first")
        check(made, build)
        made.pool.close()


def test_trees() -> None:
    assert trailing((4, 5), (1,)) == Trailing(4, 5)
    assert trailing((4, 5), (0, 1)) == Trailing(1, 20)
    assert trailing((4, 5), (0,)) is None
    assert trailing((4, 1), (0,)) == Trailing(1, 4)  # an axis of one element lies where we want it
    assert trailing((1, 5), (0,)) == Trailing(5, 1)
    tree = Trailing(3, CHUNK + 1)
    assert (tree.chunks, tree.units) == (2, 6)
    assert [tree.bounds(unit) for unit in range(2)] == [(0, CHUNK), (CHUNK, CHUNK + 1)]
    short = Trailing(1000, 3)
    assert short.together == CHUNK // 3
    bounds = [short.bounds(unit) for unit in range(short.units)]
    assert bounds[0][0] == 0 and bounds[-1][1] == 3000
    assert all(a[1] == b[0] for a, b in zip(bounds, bounds[1:], strict=False))
