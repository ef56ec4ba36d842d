"""Loops that together have every operation and type of the op table, and every shape of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.cuda.lowering import lower
from numpy_dist.backends.graph import Unsupported, build
from numpy_dist.backends.memory import HOST
from numpy_dist.ir.ops import COPY, SELECT, op_of

KINDS = "? b B h H i I l L e f d F D".split()
UNARY = """negative positive absolute fabs sign square reciprocal sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos
    tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians deg2rad rad2deg floor ceil trunc
    rint signbit isnan isinf isfinite logical_not invert bitwise_count conjugate modf""".split()
BINARY = """add subtract multiply divide floor_divide remainder fmod divmod power float_power arctan2 hypot logaddexp
    logaddexp2 copysign nextafter heaviside maximum minimum fmax fmin equal not_equal less less_equal greater
    greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd
    lcm""".split()
FOLDED = """add multiply minimum maximum fmin fmax logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor""".split()


def nasty(kind: str, n: int, seed: int) -> np.ndarray:
    """Values of a dtype, with its limits, zeros of both signs, infinities, NaN, and numbers between them."""
    rng, dtype = np.random.default_rng(seed), np.dtype(kind)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        special = np.array([0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min, limits.max // 2], dtype)
        x = rng.integers(limits.min, limits.max, n, dtype=dtype, endpoint=True)
        x[::2] = rng.choice(special, len(x[::2]))
        x[1::4] = rng.integers(0, 80, len(x[1::4])).astype(dtype)
        if dtype.kind == "i":
            x[3::8] = -rng.integers(0, 80, len(x[3::8])).astype(dtype)
        return x
    real = np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype
    limit = np.finfo(real)
    numbers = [0.0, -0.0, 0.5, 1, -1, 2, 3, -7, 1e-3, np.pi, np.inf, -np.inf, np.nan, limit.max, -limit.max, limit.tiny]
    special = np.array([*numbers, limit.smallest_subnormal, limit.eps, 2.5, 1.5, -2.5], real)
    x = (rng.standard_normal(n) * 10).astype(real)
    x[::2] = rng.choice(special, len(x[::2]))
    if dtype.kind != "c":
        return x
    z = np.empty(n, dtype)
    z.real, z.imag = x, np.roll(x, 5)
    return z


def has_kernel(loop: Loop) -> bool:
    """Whether an operation is in the table."""
    try:
        graph = build(loop, lambda x: isinstance(x, np.ndarray), lambda x: (HOST.address(x), x.strides))
        lower(graph, 1, small=True)
    except Unsupported:
        return False
    return True


def on_one_type(kind: str, n: int = 4096) -> tuple[Loop, dict[str, tuple[np.ndarray, ...]], list[str], tuple]:
    """A loop of all operations of one type; its outputs by name, and the operations without a kernel."""
    x, y = nasty(kind, n, 1), nasty(kind, n, 2)
    steps, outputs, without = [], {}, []
    for name in (*UNARY, *BINARY):
        ufunc = getattr(np, name)
        inputs = (x,) if ufunc.nin == 1 else (x, y)
        try:
            dtypes = ufunc.resolve_dtypes((*(a.dtype for a in inputs), *(None,) * ufunc.nout))[ufunc.nin :]
        except TypeError:
            continue  # NumPy has no such operation
        outs = tuple(np.empty(n, dtype) for dtype in dtypes)
        step = Step(op_of(ufunc), inputs, outs)
        if has_kernel(Loop((n,), [step], ignore)):
            steps.append(step)
            outputs[name] = outs
        else:
            without.append(name)
    return Loop((n,), steps, ignore), outputs, without, (x, y)


def ignore(label: int, kind: str) -> None:
    """Nobody is told of floating-point events."""


def casts(source: str, n: int = 512) -> tuple[Loop, list[tuple[np.ndarray, np.ndarray]]]:
    """Every cast of a type, of values that the target can hold where NumPy does not define the others."""
    steps, pairs = [], []
    for target in KINDS:
        x = nasty(source, n, 3)
        if np.dtype(source).kind in "fc" and np.dtype(target).kind == "u":
            x = (np.random.default_rng(4).random(n) * 200).astype(source)
        out = np.empty(n, target)
        steps.append(Step(COPY, (x,), (out,)))
        pairs.append((x, out))
    return Loop((n,), steps, ignore), pairs


def shapes() -> dict[str, tuple[Loop, list[np.ndarray]]]:
    """Loops of all shapes, and the arrays that they write."""
    rng = np.random.default_rng(5)

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    made: dict[str, tuple[Loop, list[np.ndarray]]] = {}

    def add(name: str, shape: tuple[int, ...], steps: list[Any], *outs: np.ndarray) -> None:
        made[name] = Loop(shape, steps, ignore), list(outs)

    g, out = random(70, 90), np.zeros((70, 90))
    t = [Temp(k, np.dtype(float)) for k in range(4)]
    sides = (g[:-2, 1:-1], g[2:, 1:-1]), (g[1:-1, :-2], g[1:-1, 2:])
    stencil = [Step(op_of(np.add), pair, (t[k],)) for k, pair in enumerate(sides)]
    stencil += [Step(op_of(np.add), (t[0], t[1]), (t[2],)), Step(op_of(np.multiply), (t[2], 0.25), (out[1:-1, 1:-1],))]
    add("stencil", (68, 88), stencil, out)
    x, y, z = random(40, 3, 50), random(40, 1, 50), np.empty((40, 3, 50))
    add("broadcast", z.shape, [Step(op_of(np.subtract), (x, np.broadcast_to(y, x.shape)), (z,))], z)
    w = np.empty((30, 20))
    add("strided and reversed", w.shape, [Step(op_of(np.add), (random(60, 40)[::-2, ::2], random(20, 30).T), (w,))], w)
    f, h = np.asfortranarray(random(33, 44)), np.empty((33, 44), order="F")
    add("Fortran order", f.shape, [Step(op_of(np.multiply), (f, np.float64(3)), (h,))], h)
    records = np.zeros(50, [("count", "i4"), ("weight", "f8"), ("wave", "c16"), ("flag", "?"), ("half", "f2")])
    records["weight"], records["wave"] = random(50), random(50) + 1j
    double = np.empty(50)
    steps = [Step(op_of(np.multiply), (records["weight"], 2.0), (double,)),
             Step(op_of(np.add), (records["wave"], records["weight"]), (records["wave"],)),
             Step(op_of(np.negative), (records["half"],), (records["half"],))]  # fmt: skip
    add("packed records", (50,), steps, double, records["wave"], records["half"])
    total = np.empty((1,))
    add("reduced: packed records", (25,), [ReduceStep(op_of(np.add), records["weight"][::2], total, (0,))], total)
    one = np.empty(())
    add("no axes", (), [Step(op_of(np.add), (np.array(2.0), 1.5), (one,))], one)
    narrow = np.empty((5000, 2), np.float32)
    add("narrow", narrow.shape, [Step(op_of(np.add), (random(5000, 2).astype("f4"), 1), (narrow,))], narrow)
    a, q, r = random(300), np.empty(300), np.empty(300)
    steps: list[Any] = [Step(op_of(np.divmod), (a, 0.7), (q, r)), Step(op_of(np.add), (q, a), (a,))]
    add("two outputs, in place", (300,), steps, q, r, a)
    mask, kept = random(200) > 0, random(200)
    add("where=", (200,), [Step(op_of(np.sqrt), (random(200) ** 2,), (kept,), mask)], kept)
    chosen = np.empty(200, np.float32)
    add("select", (200,), [Step(SELECT, (mask, random(200), 3), (chosen,))], chosen)
    for name, shape, axes in [
        ("all", (300, 400), (0, 1)), ("all, one axis", (100_003,), (0,)), ("rows", (37, 1000), (1,)),
        ("columns", (1000, 37), (0,)), ("short rows", (999, 5), (1,)), ("middle", (7, 301, 11), (1,)),
        ("one element", (1,), (0,)), ("outer axes", (11, 40, 6), (0, 1)),
    ]:  # fmt: skip
        x = random(*shape)
        partial = np.empty([1 if axis in axes else n for axis, n in enumerate(shape)])
        squares, most = np.empty(shape), np.empty(partial.shape)
        steps = [Step(op_of(np.square), (x,), (squares,)), ReduceStep(op_of(np.add), squares, partial, axes)]
        steps.append(ReduceStep(op_of(np.maximum), x, most, axes))
        add(f"reduced: {name}", shape, steps, squares, partial, most)
    x, partial = np.asfortranarray(random(50, 60)), np.empty((50, 1))
    add("reduced: Fortran order", (50, 60), [ReduceStep(op_of(np.add), x, partial, (1,))], partial)
    x, partial = random(50, 600), np.empty((50, 1))
    add("reduced: where=", x.shape, [ReduceStep(op_of(np.minimum), x, partial, (1,), x > 0)], partial)
    return made


def reductions(kind: str) -> tuple[list[Loop], list[tuple[str, np.ndarray, np.ndarray]]]:
    """Reductions of one type by everything that folds: along rows, by blocks of threads, and along columns."""
    loops, found = [], []
    for shape, axis in (((3, 700), 1), ((130, 4), 0)):
        for name in FOLDED:
            x = nasty(kind, shape[0] * shape[1], 6).reshape(shape)
            if x.dtype.kind in "fc" and name in ("add", "multiply"):
                x = np.random.default_rng(7).random(shape).astype(kind) + np.dtype(kind).type(0.5)
            ufunc = getattr(np, name)
            try:
                wanted = ufunc.reduce(x, axis=axis, keepdims=True)
            except TypeError:
                continue
            partial = np.empty_like(wanted)
            loop = Loop(shape, [ReduceStep(op_of(ufunc), x, partial, (axis,))], ignore)
            if has_kernel(loop):
                loops.append(loop)
                found.append((f"{name}, axis {axis}", partial, wanted))
    return loops, found
