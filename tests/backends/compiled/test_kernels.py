"""Kernels leave the interpreter's bits, and report its events, for every operation, dtype and place in memory."""

from __future__ import annotations

from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from numpy_dist.backends.axes import with_long_rows
from numpy_dist.backends.base import Loop, Step, Temp
from numpy_dist.backends.compiled import backend as backends
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.compiled.repair import _boxes_across
from numpy_dist.ir.ops import COPY, SELECT, op_of

from .loops import ALL_EVENTS, KINDS, arrangements, check, common, values

N = 5000  # several units of a kernel
UFUNCS = sorted(
    {u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None and u.nin <= 2},
    key=lambda u: u.__name__,
)
LONG = [pytest.param(kind, marks=pytest.mark.long) for kind in "bBhHiILfF"]
SOME = [*"?ldD", *LONG]  # the quick sample has one of each sort
STEPS = 16  # of a loop: few kernels, each with many operations


def _dtypes(ufunc: np.ufunc, kinds: list[Any]) -> tuple[np.dtype, ...] | None:
    """The loop's dtypes, where NumPy has a loop that kernels can call."""
    try:
        found = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))
    except TypeError:  # UFuncTypeError: no loop for these dtypes
        return None
    if ufunc is np.power and found[-1].kind in "iu":
        return None  # may raise: see test_tiers
    return found if all(d.char in "".join(KINDS) + "qQ" for d in found) else None


def _elementwise(kind: str, offset: int, count: int) -> list[list[tuple]]:
    """(ufunc, numbers of the arrangements of its inputs, dtypes of outputs), divided into loops."""
    found = []
    for number, ufunc in enumerate(UFUNCS):
        found_dtypes = _dtypes(ufunc, [np.dtype(kind)] * ufunc.nin)
        if found_dtypes is not None:
            for k in range(count):
                first = (number + offset + k) % 5
                second = (2 * number + offset + 3 * k + 1) % 5
                found.append((ufunc, (first, second)[: ufunc.nin], found_dtypes[ufunc.nin :]))
    return [found[start : start + STEPS] for start in range(0, len(found), STEPS)]


def _loop_of(kind: str, part: list[tuple]):
    def build(rng):
        places = list(arrangements(lambda n: values(rng, kind, n), N))
        steps, outs = [], []
        for label, (ufunc, which, dtypes) in enumerate(part):
            made = tuple(np.zeros(N, d) for d in dtypes)
            outs += made
            steps.append(Step(op_of(ufunc), tuple(places[k] for k in which), made, None, {}, label))
        return (N,), steps, outs

    return build


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME)
def test_every_operation(backend: Compiled, kind: str) -> None:
    for part in _elementwise(kind, KINDS.index(kind), 1):
        check(backend, _loop_of(kind, part))


@pytest.mark.long
@pytest.mark.parametrize("kind", [*KINDS, "q", "Q"])
def test_every_operation_in_every_arrangement(backend: Compiled, kind: str) -> None:
    for part in _elementwise(kind, 0, 5):
        check(backend, _loop_of(kind, part))
        check(backend, _loop_of(kind, part), watched=ALL_EVENTS, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["l", "d", "D", pytest.param("f", marks=pytest.mark.long)])
def test_every_operation_with_its_events(backend: Compiled, kind: str) -> None:
    """The kernels are those of `test_every_operation`: what is watched is an argument."""
    met = set()
    for part in _elementwise(kind, KINDS.index(kind), 1):
        met |= {event for _, event in check(backend, _loop_of(kind, part), watched=ALL_EVENTS)}
    assert "divide by zero" in met and (kind == "l" or "invalid value" in met)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOME)
def test_casts(backend: Compiled, source: str) -> None:
    targets = list(KINDS)

    def build(rng, make=common):
        x, y = make(rng, source, N), make(rng, source, 2 * N)[::2]
        outs = [np.zeros(N, t) for t in targets] + [np.zeros(2 * N, t)[::2] for t in targets]
        steps = [Step(COPY, (x if k % 2 else y,), (out,), None, {}, k) for k, out in enumerate(outs)]
        return (N,), steps, outs

    check(backend, build)
    assert check(backend, build, watched=ALL_EVENTS) == set()
    check(backend, lambda rng: build(rng, values))
    events = check(backend, lambda rng: build(rng, values), watched=ALL_EVENTS)
    if source in "fdFD":
        assert {kind for _, kind in events} >= {"invalid value"}


@pytest.mark.slow
@pytest.mark.parametrize("source", "fdFD")
def test_casts_to_unsigned_integers(backend: Compiled, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what does not fit NumPy's result depends on how it was built: NumPy itself makes it, and nothing else."""
    repaired: list[tuple] = []
    repair = backends.repair
    monkeypatch.setattr(backends, "repair", lambda *args: (repaired.append(args), repair(*args)))
    targets = [np.dtype(t) for t in "BHIL"]

    def build(rng, bad=()):
        real = np.dtype(source.lower())
        steps, outs = [], []
        for t in targets:
            limit = 2.0 ** (8 * t.itemsize)
            x = (rng.random(N) * limit * 0.99).astype(source)
            x[:4] = [-0.0, -0.999, np.nextafter(real.type(limit), real.type(0)), 0.5]
            for place, value in zip((700, N - 1), bad, strict=False):
                x[place] = limit if value == "limit" else value
            mask = rng.random(N) < 0.5
            mask[700] = False
            outs += [np.zeros(N, t), np.full(N, 7, t), np.zeros(N, t)]
            steps.append(Step(COPY, (x,), (outs[-3],), None, {}, len(steps)))
            if not bad:
                steps.append(Step(COPY, (x,), (outs[-2],), mask, {}, len(steps)))
                steps.append(Step(op_of(np.add), (x, 0.0), (outs[-1],), None, {"casting": "unsafe"}, len(steps)))
        return (N,), steps, outs

    assert check(backend, build, watched=ALL_EVENTS) == set() and repaired == []
    for bad in (["limit"], [-1.0], [0, np.nan], [np.inf, -np.inf], [-1e30, 1e30]):
        repaired.clear()
        check(backend, lambda rng, b=bad: build(rng, b))
        assert repaired
        check(backend, lambda rng, b=bad: build(rng, b), watched=ALL_EVENTS)


MIXED = [("d", "f"), ("i", "d"), ("b", "H"), ("l", "F"),
         *(pytest.param(*p, marks=pytest.mark.long) for p in ("?l", "fD", "?f", "Bb", "Ii"))]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("first,second", MIXED)
def test_operands_of_two_types(backend: Compiled, first: str, second: str) -> None:
    ufuncs = [np.add, np.multiply, np.divide, np.maximum, np.less, np.equal, np.arctan2, np.logical_and, np.copysign]
    kinds = [np.dtype(first), np.dtype(second)]

    def build(rng):
        x, y = values(rng, first, N), values(rng, second, 2 * N)[::2]
        steps, outs = [], []
        for label, u in enumerate(ufuncs):
            found = _dtypes(u, kinds)
            if found is not None:
                outs.append(np.zeros(N, found[-1]))
                steps.append(Step(op_of(u), (x, y), (outs[-1],), None, {}, label))
        return (N,), steps, outs

    check(backend, build)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME)
def test_scalars(backend: Compiled, kind: str) -> None:
    """Python's scalars take the array's dtype, NumPy's have their own; both change without another kernel."""
    numpys = np.dtype(kind).type
    givens: list[Any] = [True, 3, numpys(1), np.int8(2), np.float32(0.1), np.float64(2.5)]
    if np.dtype(kind).kind in "fc":
        givens += [-0.0, float("nan"), 1e300 if kind in "dD" else 1e30]
    if np.dtype(kind).kind == "c":
        givens += [1 - 2j]
    ufuncs = [np.add, np.multiply, np.true_divide, np.greater, np.minimum]

    def build(rng, factor=1):
        x = values(rng, kind, N)
        steps, outs = [], []
        for given in givens:
            value = type(given)(given * factor) if given == 3 else given
            for k, u in enumerate(ufuncs):
                weak = type(given) if type(given) in (int, float, complex) else np.asarray(given).dtype
                found = _dtypes(u, [x.dtype, weak] if k % 2 else [weak, x.dtype])
                if found is not None:
                    outs.append(np.zeros(N, found[-1]))
                    steps.append(Step(op_of(u), (x, value) if k % 2 else (value, x), (outs[-1],), None, {}, len(outs)))
            outs.append(np.zeros(N, kind))
            given_copy = np.asarray(value)[()]  # the engine's copies have NumPy's scalars
            steps.append(Step(COPY, (given_copy,), (outs[-1],), None, {}, len(outs)))
        return (N,), steps, outs

    check(backend, build)
    kernels = len(backend._tiers)
    check(backend, lambda rng: build(rng, 7))
    assert len(backend._tiers) == kernels


@pytest.mark.parametrize("kind", ["d", *LONG])
def test_masks_and_choices(backend: Compiled, kind: str) -> None:
    def build(rng):
        x, y = values(rng, kind, N), values(rng, kind, 2 * N)[::2]
        mask, other = rng.random(N) < 0.5, (rng.random(3 * N) < 0.5)[::3]
        kept, twice, wide = values(rng, kind, N), values(rng, kind, 2 * N)[1::2], np.zeros(N, "D")
        chosen, mixed, last = (np.zeros(N, kind) for _ in range(3))
        inner, test = Temp(0, x.dtype), Temp(1, np.dtype(bool))
        steps = [
            Step(COPY, (y,), (kept,), mask),
            Step(COPY, (x[0],), (twice,), other),  # a scalar, below two masks
            Step(COPY, (x,), (twice,), mask),
            Step(SELECT, (mask, x, y), (chosen,)),
            Step(op_of(np.equal), (x, y), (test,)),
            Step(SELECT, (test, y, chosen), (inner,)),
            Step(SELECT, (other, inner, x[1]), (mixed,)),
            Step(COPY, (kept,), (wide,)),
            Step(op_of(np.logical_or), (mask, other), (test,)),
            Step(COPY, (mixed,), (last,)),
            Step(COPY, (x,), (last,), test),
        ]
        return (N,), [Step(s.op, s.inputs, s.outputs, s.where, {}, k) for k, s in enumerate(steps)], [
            kept, twice, wide, chosen, mixed, last,
        ]  # fmt: skip

    check(backend, build)


@pytest.mark.parametrize("kind", ["l", "d", *LONG])
def test_outputs_that_are_inputs(backend: Compiled, kind: str) -> None:
    def build(rng):
        x, y, z = values(rng, kind, N), values(rng, kind, 2 * N)[::2], values(rng, kind, N)[::-1]
        t = Temp(0, x.dtype)
        steps = [
            Step(op_of(np.add), (x, y), (x,)),
            Step(op_of(np.multiply), (x, x), (t,)),
            Step(op_of(np.subtract if kind != "?" else np.logical_xor), (y, t), (y,)),
            Step(op_of(np.square), (z,), (z,)),
            Step(op_of(np.multiply), (z, x), (z,)),
            Step(COPY, (y,), (x,)),
            Step(op_of(np.conjugate), (y,), (y,)),
        ]
        return (N,), [Step(s.op, s.inputs, s.outputs, None, {}, k) for k, s in enumerate(steps)], [x, y, z]

    check(backend, build)
    check(backend, build, watched=ALL_EVENTS)


@pytest.mark.parametrize("kind", ["f", "d"])
def test_several_outputs(backend: Compiled, kind: str) -> None:
    def build(rng):
        x, y = values(rng, kind, N), values(rng, kind, 3 * N)[::3]
        parts = [np.zeros(N, kind) for _ in range(5)]
        parts += [np.zeros(2 * N, kind)[::2], np.zeros(N, "i"), np.zeros(N, kind)]
        temp = Temp(0, x.dtype)
        steps = [
            Step(op_of(np.modf), (x,), (parts[0], parts[1]), None, {}, 0),
            Step(op_of(np.divmod), (x, y), (parts[2], parts[5]), None, {}, 1),
            Step(op_of(np.frexp), (y,), (parts[3], parts[6]), None, {}, 2),
            Step(op_of(np.modf), (y,), (temp, parts[7]), None, {}, 3),
            Step(op_of(np.ldexp), (temp, parts[6]), (parts[4],), None, {}, 4),
        ]
        return (N,), steps, parts

    check(backend, build)
    check(backend, build, watched=ALL_EVENTS)


SHAPES = [(), (1, 1), (70000,), (4000, 3), (61, 83), (11, 13, 17), (2, 3, 5, 7),
          *(pytest.param(s, marks=pytest.mark.long) for s in ((1,), (7,), (1, 300), (300, 1), (3, 9000), (2500, 5),
                                                              (9, 1, 40), (6, 1, 5, 300)))]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("place", ["C", "F", "views"])
def test_shapes(backend: Compiled, shape: tuple[int, ...], place: str) -> None:
    def array(rng, k):
        if place != "views":
            return np.array(rng.random(shape), order=place)
        base = np.asarray(rng.random([2 * n + 4 for n in shape]))
        key = [slice(1 + k, 1 + k + 2 * n, 2) if a % 2 else slice(1 + k, 1 + k + n) for a, n in enumerate(shape)]
        return base[(*key, ...)]

    def build(rng):
        x, y, out, last = (array(rng, k) for k in range(4))
        row = np.broadcast_to(rng.random(shape[-1:]), shape)
        column = np.broadcast_to(rng.random((*shape[:-1], 1) if shape else ()), shape)
        t, u = Temp(0, x.dtype), Temp(1, x.dtype)
        steps = [
            Step(op_of(np.add), (x, row), (t,)),
            Step(op_of(np.exp), (t,), (u,)),
            Step(op_of(np.multiply), (u, column), (out,)),
            Step(op_of(np.subtract), (y, out), (y,)),
            Step(op_of(np.divide), (t, y), (last,)),
        ]
        return shape, steps, [x, y, out, last]

    check(backend, build)


@pytest.mark.parametrize("shape", [(3000,), (64, 80), (9, 20, 30)], ids=str)
def test_stencils(backend: Compiled, shape: tuple[int, ...]) -> None:
    """Operands at an offset in one allocation share a row pointer; reversed and transposed ones do not."""

    def build(rng):
        base = rng.random([n + 8 for n in shape])
        center = tuple(slice(4, 4 + n) for n in shape)

        def at(axis, shift):
            return base[tuple(slice(s.start + shift * (a == axis), s.stop + shift * (a == axis))
                              for a, s in enumerate(center))]  # fmt: skip

        total: Any = base[center]
        steps, count = [], 0
        for axis in range(len(shape)):
            for shift in (-1, 1, -4, 4):
                steps.append(Step(op_of(np.add), (total, at(axis, shift)), (Temp(count, base.dtype),)))
                total, count = Temp(count, base.dtype), count + 1
        back = base[tuple(slice(3 + n, 3, -1) for n in shape)]
        out, other = np.zeros(shape), np.asfortranarray(rng.random(shape))
        steps += [Step(op_of(np.multiply), (total, back), (out,)), Step(op_of(np.add), (other, total), (other,))]
        return shape, steps, [base, out, other]

    check(backend, build)


def test_work_of_several_threads(backend: Compiled) -> None:
    """Far more units than a thread takes at once; with events in some of them only."""

    def build(rng, special=False):
        x, y = rng.random(400_000) + 1, rng.random(400_000) + 1
        if special:
            x[[3, 150_000, 399_999]] = 0
            y[[70_000, 399_998]] = -1
        t, out = Temp(0, x.dtype), np.zeros(400_000)
        steps = [
            Step(op_of(np.divide), (1.0, x), (t,), None, {}, 0),
            Step(op_of(np.sqrt), (y,), (out,), None, {}, 1),
            Step(op_of(np.add), (t, out), (x,), None, {}, 2),
        ]
        return x.shape, steps, [x, y, out]

    for _ in range(3):
        assert check(backend, build, watched=ALL_EVENTS) == set()
        events = check(backend, lambda rng: build(rng, True), watched=ALL_EVENTS)
        assert events == {(0, "divide by zero"), (1, "invalid value")}
    assert check(backend, lambda rng: build(rng, True), watched=frozenset(("invalid",))) == {(1, "invalid value")}


@pytest.mark.parametrize("shape", [(70_001, 3), (30, 1000, 2), (200, 300, 1, 2)], ids=str)
@pytest.mark.parametrize("special", [False, True])
def test_short_rows(backend: Compiled, shape: tuple[int, ...], special: bool) -> None:
    """Rows too short to be begun one by one are computed across, in many units, some of which have to be done again."""

    def build(rng):
        x, y, z = rng.random(shape) + 1, rng.random(shape) + 1, rng.random((*shape, 2))[..., ::-1][..., 1]
        if special:
            for place in (5, 4_001, x.size // 2, x.size - 1):
                x.reshape(-1)[place] = 0
            y.reshape(-1)[7::9_001] = -1
        row = np.broadcast_to(rng.random(shape[-1:]), shape)
        column = np.broadcast_to(rng.random((*shape[:-1], 1)), shape)
        t, u = Temp(0, x.dtype), Temp(1, x.dtype)
        steps = [
            Step(op_of(np.divide), (row, x), (t,), None, {}, 0),
            Step(op_of(np.sqrt), (y,), (u,), None, {}, 1),
            Step(op_of(np.add), (t, u), (x,), None, {}, 2),
            Step(op_of(np.multiply), (x, column), (z,), None, {}, 3),
        ]
        loop = Loop(shape, steps, lambda *event: None)
        assert with_long_rows(loop) is not loop
        return shape, steps, [x, y, z]

    events = check(backend, build, watched=ALL_EVENTS)
    assert events == ({(0, "divide by zero"), (1, "invalid value")} if special else set())


@pytest.mark.parametrize("shape", [(3, 40), (2, 3, 7, 5), (1, 5, 1, 9), (4, 11, 1)], ids=str)
@pytest.mark.parametrize("width", [1, 4, 9, 100])
def test_boxes_of_units_across_rows(shape: tuple[int, ...], width: int) -> None:
    """They cover the elements of the units, each once, for any first and last one."""
    for axis in range(1, len(shape)):
        lines, inner = prod(shape[:axis]), prod(shape[axis:])
        tiles = -(-inner // width)
        block: Any = SimpleNamespace(units=lines * tiles, tiles=tiles, inner=inner, width=width)
        for first in range(block.units):
            for end in {first + 1, min(first + 2 * lines + 1, block.units), block.units}:
                wanted = np.zeros((lines, inner), int)
                for tile, row in (divmod(unit, lines) for unit in range(first, end)):
                    wanted[row, tile * width : (tile + 1) * width] += 1
                covered = np.zeros(shape, int)
                for box in _boxes_across(shape, block, first, end):
                    covered[box] += 1
                assert np.array_equal(covered, wanted.reshape(shape))


@pytest.mark.parametrize("place", ["contiguous", "strided", "rows"])
def test_nothing_is_overwritten_before_the_report(backend: Compiled, place: str) -> None:
    """Units that stop are done again from their inputs, also where these are the outputs."""

    def build(rng):
        shape = (50, 90) if place == "rows" else (9000,)
        base = rng.random((50, 100) if place == "rows" else 18000) + 1
        x = base[:, 3:93] if place == "rows" else base[::2] if place == "strided" else base[:9000]
        y = rng.random(shape) + 1
        y.reshape(-1)[4321], x[-1] = 0, 1e200
        t = Temp(0, x.dtype)
        steps = [
            Step(op_of(np.multiply), (x, x), (t,), None, {}, 0),
            Step(op_of(np.divide), (t, y), (x,), None, {}, 1),
            Step(op_of(np.add), (x, y), (y,), None, {}, 2),
        ]
        return shape, steps, [x, y]

    assert check(backend, build, watched=ALL_EVENTS) == {(0, "overflow"), (1, "divide by zero")}


def test_comparing_nan_is_no_event(backend: Compiled) -> None:
    def build(rng):
        x, y = values(rng, "d", N), values(rng, "d", N)
        ufuncs = [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.maximum, np.minimum,
                  np.fmax, np.fmin, np.isnan, np.isfinite, np.signbit, np.logical_and]  # fmt: skip
        outs = [np.zeros(N, u.resolve_dtypes((x.dtype,) * u.nin + (None,))[-1]) for u in ufuncs]
        steps = [Step(op_of(u), (x, y)[: u.nin], (outs[k],), None, {}, k) for k, u in enumerate(ufuncs)]
        return (N,), steps, outs

    assert check(backend, build, watched=ALL_EVENTS) == set()


@pytest.mark.parametrize("kind", ["b", "i", "l"])
def test_quotients_of_integers_that_overflow(backend: Compiled, kind: str) -> None:
    """NumPy raises this flag by the C library, which may do so elsewhere than arithmetic does."""

    def build(rng, divisor):
        x = np.full(N, 7, kind)
        x[4321] = np.iinfo(kind).min
        outs = [np.zeros(N, kind) for _ in range(3)]
        steps = [
            Step(op_of(np.floor_divide), (x, divisor), (outs[0],), None, {}, 0),
            Step(op_of(np.divmod), (x, divisor), tuple(outs[1:]), None, {}, 1),
        ]
        return (N,), steps, outs

    for divisor in (-1, np.full(N, -1, kind)):
        events = check(backend, lambda rng, d=divisor: build(rng, d), watched=ALL_EVENTS)
        assert events == {(0, "overflow"), (1, "overflow")}
    assert check(backend, lambda rng: build(rng, 3), watched=ALL_EVENTS) == set()


def test_run_again_on_other_memory(backend: Compiled) -> None:
    """What `run` returns needs addresses and scalars only."""
    x, out = np.arange(5000.0), np.zeros(5000)
    loop = Loop((5000,), [Step(op_of(np.multiply), (x, 2.0), (out,))], lambda label, kind: None)
    repeat = backend.run(loop)
    assert repeat is not None and np.array_equal(out, 2 * x)
    assert repeat.scalars == [(0, 1)]
    y, other = np.arange(5000.0) + 7, np.zeros(5000)
    arrays = [y, other]
    addresses = [arrays[number].ctypes.data for number in repeat.operands]
    assert repeat.again(addresses, [3.0], lambda: loop) == []
    assert np.array_equal(other, 3 * y) and np.array_equal(out, 2 * x)


def test_a_python_int_that_does_not_fit_is_refused_when_run_again(backend: Compiled) -> None:
    x, out = np.arange(200, dtype="u1"), np.zeros(200, bool)
    loop = Loop((200,), [Step(op_of(np.less), (x, 100), (out,))], lambda label, kind: None)
    repeat = backend.run(loop)
    assert repeat is not None and np.array_equal(out, x < 100)
    addresses = [[x, out][number].ctypes.data for number in repeat.operands]
    assert repeat.again(addresses, [300], lambda: loop) is None
    assert repeat.again(addresses, [150], lambda: loop) == [] and np.array_equal(out, x < 150)


# -- random loops ---------------------------------------------------------------------------------------------------

SAFE = [np.add, np.multiply, np.maximum, np.minimum, np.equal, np.less, np.logical_or, np.true_divide, np.negative,
        np.absolute, np.square, np.sqrt, np.exp, np.sin, np.sign, np.bitwise_and, np.floor, np.isfinite]  # fmt: skip


def _random_loop(seed: int):
    """A loop of random steps over arrays, temporaries and scalars, valid by construction."""

    def build(_):
        rng = np.random.default_rng(seed)
        ndim = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(1, [9000, 70, 20][ndim - 1], ndim))
        kinds = rng.choice(["d", "d", "f", "l", "i", "B", "?", "D"], 3)

        def array(kind):
            flip = rng.choice([1, 1, 1, 2, -1], ndim)
            extents = [n * abs(f) for n, f in zip(shape, flip, strict=True)]
            x = values(rng, kind, int(np.prod(extents))).reshape(extents, order=rng.choice(["C", "C", "F"]))
            return x[tuple(slice(None, None, f) for f in flip)]

        arrays = [array(kind) for kind in rng.choice(kinds, 4)]
        present: list[Any] = list(arrays)
        steps: list[Step] = []
        temps = 0
        unread: set[int] = set()  # arrays whose values nobody has used: overwriting them would leave a result unused
        for label in range(int(rng.integers(2, 14))):
            ufunc = SAFE[rng.integers(len(SAFE))]
            inputs: list[Any] = [present[rng.integers(len(present))] for _ in range(ufunc.nin)]
            if ufunc.nin == 2 and rng.random() < 0.2:
                inputs[1] = 3 if inputs[0].dtype.kind in "iu" else 0.5
            if inputs[0].dtype.kind == "b" and ufunc.nin == 2 and not hasattr(inputs[1], "dtype"):
                inputs[1] = np.float32(2)
            dtypes = _dtypes(ufunc, [x.dtype if hasattr(x, "dtype") else type(x) for x in inputs])
            if dtypes is None:
                continue
            unread -= {id(x) for x in inputs}
            targets = [a for a in arrays if np.can_cast(dtypes[-1], a.dtype, "same_kind") and id(a) not in unread]
            if targets and rng.random() < 0.4:
                out: Any = targets[rng.integers(len(targets))]
                unread.add(id(out))
            else:
                out = Temp(temps, dtypes[-1])
                present.append(out)
                temps += 1
            steps.append(Step(op_of(ufunc), tuple(inputs), (out,), None, {}, label))
        read = {id(x) for s in steps for x in s.inputs}
        for x in present[4:]:  # nothing is left unused
            if id(x) not in read:
                out = np.zeros(shape, x.dtype)
                arrays.append(out)
                steps.append(Step(COPY, (x,), (out,), None, {}, 99))
        return shape, steps, arrays

    return build


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random_loops(backend: Compiled, seed: int) -> None:
    check(backend, _random_loop(seed))
    check(backend, _random_loop(seed), watched=ALL_EVENTS)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_many_random_loops(backend: Compiled, block: int) -> None:
    for seed in range(1000 + 30 * block, 1030 + 30 * block):
        check(backend, _random_loop(seed))
        check(backend, _random_loop(seed), watched=ALL_EVENTS)
