"""Loops for the compiled backend, made twice from one description and run by both tiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.interpreter import Interpreter

KINDS = "? b B h H i I l L f d F D".split()
ALL_EVENTS = frozenset(("divide", "over", "under", "invalid"))

# Makes the shape and the steps of a loop, and the arrays whose memory is compared, from a generator of numbers.
Build = Callable[[np.random.Generator], tuple[tuple[int, ...], Sequence[Step | ReduceStep], list[np.ndarray]]]


def values(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """Values of a dtype, with all that is special: its limits, zeros of both signs, infinities, NaN."""
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, n, dtype=dtype, endpoint=True)
        x[::3] = rng.integers(0, 5, len(x[::3]))
        x[4::31], x[9::37] = limits.min, limits.max
        return x
    x = (rng.standard_normal(n) * 3).astype(dtype if dtype.kind == "f" else dtype.char.lower())
    limit = np.finfo(x.dtype)
    x[5::17], x[7::19], x[11::41] = np.nan, np.inf, -np.inf
    x[3::23], x[4::29], x[13::43], x[15::47] = 0, -0.0, limit.max, limit.smallest_subnormal
    return (x + 1j * np.roll(x, 2)).astype(dtype) if dtype.kind == "c" else x


def common(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """Values of a dtype that fit the others: small, not negative, without anything special."""
    dtype = np.dtype(kind)
    x = rng.random(n) * 100
    return x < 50 if dtype.kind == "b" else x.astype(dtype)


def arrangements(make: Callable[[int], np.ndarray], n: int) -> Iterator[np.ndarray]:
    """`n` elements as they may lie in memory: contiguous, shifted, strided, reversed, one for all."""
    yield make(n)
    yield make(n + 3)[1 : n + 1]
    yield make(3 * n)[::3]
    yield make(n)[::-1]
    yield np.broadcast_to(make(8)[1], (n,))


def whole(x: np.ndarray) -> np.ndarray:
    """The allocation that an array lies in."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def content(x: np.ndarray) -> bytes:
    """The bytes of an allocation. NaN payloads of complex numbers are left out: they depend on NumPy's strides."""
    x = np.ascontiguousarray(x)
    if x.dtype.kind == "c":
        parts = x.view(x.real.dtype).copy()
        parts[np.isnan(parts)] = np.nan
        return parts.tobytes()
    return x.tobytes()


def run(backend: Any, build: Build, seed: int, watched: frozenset[str]) -> tuple[list[np.ndarray], set, Any]:
    """Run a loop; returns the allocations that are compared, the events, and what the backend returned."""
    shape, steps, arrays = build(np.random.default_rng(seed))
    events: set[tuple[int, str]] = set()
    repeat = backend.run(Loop(shape, steps, lambda label, kind: events.add((label, kind)), watched))
    return [whole(x) for x in arrays], events, repeat


def describe(shape: tuple[int, ...], steps: Sequence[Step | ReduceStep]) -> str:
    """A loop in words, for messages."""

    def operand(x: Any) -> str:
        return f"{x.dtype}{x.strides}" if isinstance(x, np.ndarray) else repr(x)

    lines = [f"shape {shape}"]
    for number, s in enumerate(steps):
        if isinstance(s, Step):
            inputs, outputs = ", ".join(map(operand, s.inputs)), ", ".join(map(operand, s.outputs))
            lines.append(f"{number}: {s.op.name}({inputs}) -> {outputs}; where {s.where is not None}")
        else:
            lines.append(f"{number}: {s.op.name}.reduce({operand(s.source)}, {s.axes}); where {s.where is not None}")
    return "\n".join(lines)


def check(backend: Compiled, build: Build, *, watched: frozenset[str] = frozenset(), seed: int = 0) -> set:
    """A loop is compiled, and leaves the same bytes and reports the same events as in the interpreter.

    Returns
    -------
    set
        The events: (label, kind).
    """
    before, reasons = backend.counts["numba"], dict(backend.reasons)
    got, events, _ = run(backend, build, seed, watched)
    shape, steps, _ = build(np.random.default_rng(seed))
    text = describe(shape, steps)
    why = {reason: n for reason, n in backend.reasons.items() if n != reasons.get(reason)}
    assert backend.counts["numba"] == before + 1, f"not compiled: {why}\n{text}"
    wanted, expected, _ = run(Interpreter(), build, seed, watched)
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if content(a) != content(b):
            flat, want = a.reshape(-1), b.reshape(-1)
            differ = np.flatnonzero(flat.view(f"V{a.itemsize}") != want.view(f"V{a.itemsize}"))
            places = f"{len(differ)} of {a.size} elements, first {differ[:5]}"
            raise AssertionError(f"array {number}: {places}: {flat[differ[:5]]} not {want[differ[:5]]}\n{text}")
    assert events == expected, f"events {events ^ expected}\n{text}"
    return events
