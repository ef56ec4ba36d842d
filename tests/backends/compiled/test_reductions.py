"""Kernels reduce along the same tree as the interpreter: their results have the same bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from numpy_dist.backends.base import ReduceStep, Step, Temp
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.summation import CHUNK, ROWS
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
# Rows: few and many, whole blocks and rests, few columns and many, axes that cannot be merged.
SPACES_OF_ROWS = [
    ((3, 5), (0,)),
    ((ROWS, 300), (0,)),
    ((200, 70), (0,)),
    ((70, 5000), (0,)),
    ((3000, 2), (0,)),
    ((3, 200, 30), (1,)),
    ((20, 30, 40), (0, 1)),
    ((130, 3, 40), (0,)),
    ((3, 1, 70, 2, 5), (1, 2)),
    ((2, 3, 30, 5, 900), (2, 3)),
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


# Each space with two places, each place with every class of spaces; all of them by `test_every_space`.
PLACED = [(*s, PLACES[(n + k) % len(PLACES)]) for n, s in enumerate(SPACES + SPACES_OF_ROWS) for k in (0, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("shape,axes,place", PLACED, ids=str)
def test_spaces(backend: Compiled, shape: tuple[int, ...], axes: tuple[int, ...], place: str) -> None:
    for masked in (False, True):
        check(backend, _reduce(shape, axes, place, "d", masked, OPS, before=not masked))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["f", "d", "l", "D"])
@pytest.mark.parametrize("shape,axes", SPACES + SPACES_OF_ROWS, ids=str)
def test_every_space(backend: Compiled, shape: tuple[int, ...], axes: tuple[int, ...], kind: str) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*"?ldD", *(pytest.param(k, marks=pytest.mark.long) for k in "bBhHiILfF")])
def test_every_operation(backend: Compiled, kind: str) -> None:
    ops = [u for u in EVERY if _has_loop(u, kind)]
    assert len(ops) >= 4
    for special in (False, True):
        for shape, axes in (((3, 5000), (1,)), ((300, 40), (0, 1)), ((700, 6), (1,)), ((2, 100, 60), (1,))):
            check(backend, _reduce(shape, axes, "inner", kind, False, ops, special, before=kind not in "?"))
    for shape in ((3, 5000), (100, 60)):
        check(backend, _reduce(shape, (shape[0] == 3,), "inner", kind, True, ops, True, before=False))


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


@pytest.mark.slow
@pytest.mark.parametrize("shape,axes", [((200, 50), (0,)), ((3, 70, 5000), (1,)), ((2, 90, 3, 800), (1,))], ids=str)
@pytest.mark.parametrize("ufunc", [np.add, np.logaddexp])
def test_events_of_rows(backend: Compiled, ufunc: np.ufunc, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Overflow within a block, and where blocks meet; and in what is computed before."""

    def build(rng, rows, special=1.6e308):
        x = rng.random(shape)
        np.moveaxis(x, axes[0], 0)[rows, ..., 1] = special if ufunc is np.add else -np.inf
        partial, out = np.zeros([1 if a in axes else n for a, n in enumerate(shape)]), np.zeros(shape)
        least, temp = partial.copy(), Temp(0, x.dtype)
        steps = [
            Step(op_of(np.multiply), (x, 1.0), (temp,), None, {}, 0),
            Step(op_of(np.sqrt), (temp,), (out,), None, {}, 1),
            ReduceStep(op_of(ufunc), temp, partial, axes, None, 3),
            ReduceStep(op_of(np.minimum), x, least, axes, None, 4),
        ]
        return shape, steps, [x, out, partial, least]

    seen = []
    for rows in ([2], [2, 3], [2, 66], [60, 62]):
        seen.append(check(backend, lambda rng, r=rows: build(rng, r), watched=ALL_EVENTS))
        assert not check(backend, lambda rng, r=rows: build(rng, r), watched=frozenset(("divide",)))
    if ufunc is np.add:
        assert seen == [set(), *[{(3, "overflow")}] * 3]
    else:
        assert all((1, "invalid value") in events for events in seen)
    if ufunc is np.add:
        assert (1, "invalid value") in check(backend, lambda rng: build(rng, [5, 69], -1.0), watched=ALL_EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f", "d"])
def test_nan_of_rows(backend: Compiled, kind: str) -> None:
    """Of both signs: from infinities, and given."""

    def build(rng):
        x = values(rng, kind, 9000).reshape(150, 60)
        x[rng.random(x.shape) < 0.01] = -np.nan
        partials = [np.zeros((1, 60), kind) for _ in OPS]
        steps = [ReduceStep(op_of(u), x, p, (0,), None, k) for k, (u, p) in enumerate(zip(OPS, partials, strict=True))]
        return x.shape, steps, partials

    check(backend, build)
    check(backend, build, watched=ALL_EVENTS)


@pytest.mark.slow
def test_a_called_result_is_added_and_stored(backend: Compiled) -> None:
    """What a called loop computes is stored with a stride, and added to several reductions."""

    def build(rng):
        x, out, temp = rng.random((150, 300)), np.zeros((150, 600)), Temp(0, np.dtype("d"))
        partials = [np.zeros((1, 300)) for _ in range(3)]
        steps = [
            Step(op_of(np.exp), (x[:, ::-1],), (out[:, ::2],), None, {}, 0),
            Step(op_of(np.sin), (out[:, ::2],), (temp,), None, {}, 1),
            ReduceStep(op_of(np.add), temp, partials[0], (0,), None, 2),
            ReduceStep(op_of(np.maximum), temp, partials[1], (0,), None, 3),
            ReduceStep(op_of(np.multiply), out[:, ::2], partials[2], (0,), None, 4),
        ]
        return x.shape, steps, [out, *partials]

    check(backend, build)


def test_the_tree_does_not_depend_on_threads(kernels) -> None:
    x = np.random.default_rng(5).random((3, 300_000)) * np.logspace(-9, 9, 300_000)

    def build(rng, x, axis):
        partial = np.zeros([1 if a == axis else n for a, n in enumerate(x.shape)])
        return x.shape, [ReduceStep(op_of(np.add), x, partial, (axis,))], [partial]

    for threads in (1, 2, 3):
        made = Compiled(kernels, threads, "first")
        check(made, lambda rng: build(rng, x, 1))
        check(made, lambda rng: build(rng, x.reshape(3, 1000, 300), 1))
        check(made, lambda rng: build(rng, x.reshape(-1, 3), 0))
        made.pool.close()
