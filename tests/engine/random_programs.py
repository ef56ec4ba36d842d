"""Random programs of views, in-place statements and reductions, run on NumPy and on shards from one description."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

BINARY = [np.add, np.subtract, np.multiply, np.maximum, np.minimum]
UNARY = [np.negative, np.abs, np.square, np.sqrt, np.exp]


def random_view(rng: random.Random, a: np.ndarray) -> Any:
    """A random chain of view operations that fits an array of this shape: a list of (name, argument)."""
    chain = []
    shape = list(a.shape)
    probe = a
    for _ in range(rng.randint(0, 3)):
        kind = rng.choice(["slice", "slice", "transpose", "newaxis", "index", "flip", "reshape", "diagonal"])
        if kind in ("slice", "flip") and probe.ndim:
            key = []
            for n in probe.shape:
                start, stop = sorted((rng.randint(0, n), rng.randint(0, n)))
                if stop - start < 2 and n > 2:
                    start, stop = 0, n - rng.randint(0, 1)
                step = rng.choice([1, 1, 1, 2, 3]) if kind == "slice" else -1
                key.append(
                    slice(start, stop, step)
                    if step > 0
                    else slice(None, None, -1)
                    if rng.random() < 0.5
                    else slice(None)
                )
            op = ("getitem", tuple(key))
        elif kind == "transpose":
            axes = list(range(probe.ndim))
            rng.shuffle(axes)
            op = ("transpose", tuple(axes))
        elif kind == "newaxis" and probe.ndim < 4:
            op = ("expand", rng.randint(0, probe.ndim))
        elif kind == "index" and probe.ndim > 1 and 0 not in probe.shape:
            op = ("getitem", (rng.randrange(probe.shape[0]),))
        elif kind == "reshape" and probe.ndim:
            op = ("reshape", (-1,))
        elif kind == "diagonal" and probe.ndim == 2 and min(probe.shape) > 1:
            op = ("diagonal", None)
        else:
            continue
        try:
            new = apply_view(probe, [op])
        except ValueError:
            continue
        if new.size == 0:
            continue
        chain.append(op)
        probe = new
    del shape
    return chain


def apply_view(a: np.ndarray, chain: list) -> np.ndarray:
    """Apply a chain; views only (a reshape that would copy raises ValueError)."""
    for name, argument in chain:
        if name == "getitem":
            a = a[(*argument, ...)]
        elif name == "transpose":
            a = a.transpose(argument)
        elif name == "expand":
            a = np.expand_dims(a, argument)
        elif name == "reshape":
            a = a.reshape(argument, copy=False)
        else:
            a = np.diagonal(a)
    return a


def random_program(seed: int, statements: int = 12) -> list[tuple]:
    """A program as data: statements over numbered arrays, each with views; valid for NumPy by construction."""
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 9) for _ in range(rng.choice([1, 2, 2, 2, 3])))
    dtypes = ["f8", "f8", "f4", "i8", "c16"] if rng.random() < 0.3 else ["f8"]
    program: list[tuple] = [("new", 0, shape, rng.choice(dtypes), rng.choice("CF"))]
    arrays = [fresh(0, shape, program[0][3], program[0][4])]
    if rng.random() < 0.7:
        program.append(("new", 1, shape, rng.choice(dtypes), "C"))
        arrays.append(fresh(1, shape, program[1][3], "C"))
    parts = rng.choice([0.0, 0.1, 0.6])
    for _ in range(rng.randint(3, statements)):
        step = _random_part(rng, arrays) if rng.random() < parts else _random_step(rng, arrays)
        if step is not None:
            program.append(step)
    return program


def _random_step(rng: random.Random, arrays: list[np.ndarray]) -> tuple | None:
    target = rng.randrange(len(arrays))
    chain = random_view(rng, arrays[target])
    view = apply_view(arrays[target], chain)
    if view.size == 0 or not view.flags.writeable:
        return None
    kinds = [
        "assign",
        "assign",
        "binary",
        "binary",
        "unary",
        "in place",
        "sum",
        "max",
        "mask",
        "drop",
        "rebind",
        "rebind",
    ]
    kind = rng.choice(kinds)
    other = rng.randrange(len(arrays))
    other_chain = random_view(rng, arrays[other])
    step: tuple
    if kind == "assign":
        step = ("assign", target, chain, other, other_chain)
    elif kind == "binary":
        step = ("binary", rng.randrange(len(BINARY)), target, chain, other, other_chain, rng.choice([None, 2, 0.5]))
    elif kind == "unary":
        step = ("unary", rng.randrange(len(UNARY)), target, chain)
    elif kind == "in place":
        step = ("in place", rng.randrange(len(BINARY)), target, chain, other, other_chain)
    elif kind in ("sum", "max"):
        axis = rng.choice([None, *range(view.ndim)])
        step = (kind, target, chain, axis, rng.random() < 0.5)
    elif kind == "rebind":
        same = [number for number, x in enumerate(arrays) if x.shape == arrays[target].shape]
        step = ("rebind", rng.randrange(len(BINARY)), target, rng.choice(same), rng.choice([None, 0.5]))
    elif kind == "mask":
        step = ("mask", target, chain, rng.random())
    else:
        if len(arrays) < 3:
            return None
        step = ("drop", target)
    return _performed(arrays, step)


def _performed(arrays: list[np.ndarray], step: tuple) -> tuple | None:
    """The step, done by NumPy; None where NumPy refuses it."""
    try:
        with np.errstate(all="ignore"):
            perform(arrays, step, NumpySide())
    except (ValueError, TypeError):
        return None
    return step


def _random_part(rng: random.Random, arrays: list[np.ndarray]) -> tuple | None:
    """``a[box] op= b[shifted box]``: runs of these are what shares a loop whose space is divided into cells."""
    target = rng.choice([rng.randrange(len(arrays)), len(arrays) - 1, len(arrays) - 1])
    shape = arrays[target].shape
    other = rng.choice([number for number, x in enumerate(arrays) if x.shape == shape])
    box, shifted = [], []
    for n in shape:
        lo, hi = rng.choice([(0, n), (0, n), (1, n), (0, n - 1), (1, n - 1), (n // 3, n - n // 4)])
        lo, hi = (lo, hi) if hi > lo else (0, n)
        move = rng.choice([m for m in (-1, 0, 0, 0, 1) if lo + m >= 0 and hi + m <= n])
        box.append(slice(lo, hi))
        shifted.append(slice(lo + move, hi + move))
    step = (
        "in place",
        rng.randrange(len(BINARY)),
        target,
        [("getitem", tuple(box))],
        other,
        [("getitem", tuple(shifted))],
    )
    return _performed(arrays, step)


def random_rows(seed: int, statements: int = 10) -> list[tuple]:
    """A program whose loops share their rows: reductions along the other axes, and what is computed with them."""
    rng = random.Random(seed)
    shape = rng.choice([(300, 40), (301, 7, 9), (130, 300), (130, 300), (9, 2048), (7, 2049), (5, 5000), (40, 1, 600)])
    program: list[tuple] = [("new", 0, shape, rng.choice(["f8", "f8", "f4", "i8", "c16"]), "C")]
    arrays = [fresh(*program[0][1:])]
    for _ in range(rng.randint(4, statements)):
        wide = [number for number, x in enumerate(arrays) if x.shape == shape]
        narrow = [number for number, x in enumerate(arrays) if x.shape != shape] or [0]
        target, other = rng.choice([0, wide[-1]]), rng.choice([narrow[-1], narrow[-1], rng.randrange(len(arrays))])
        kind = rng.choice(["reduce"] * 3 + ["binary", "in place"] * 3 + ["unary", "shifted", "rebind"])
        step: tuple = ("binary", rng.randrange(len(BINARY)), target, [], other, [], None)
        if kind == "reduce":
            step = (rng.choice(["sum", "max"]), target, [], len(shape) - 1, True)
        elif kind == "unary":
            step = ("unary", rng.randrange(3), target, [])
        elif kind == "in place":
            step = ("in place", rng.randrange(len(BINARY)), target, [], other, [])
        elif kind == "shifted":  # a row that needs others
            step = ("binary", 0, target, [("getitem", (slice(None, None, -1),))], other, [], None)
        elif kind == "rebind":
            step = ("rebind", rng.randrange(len(BINARY)), target, rng.choice(wide), None)
        done = _performed(arrays, step)
        if done is not None:
            program.append(done)
    return program


def fresh(number: int, shape: tuple[int, ...], dtype: str, order: str) -> np.ndarray:
    """The start value of an array."""
    values = np.random.default_rng(number + 11).integers(-9, 9, shape).astype(dtype)
    return np.array(values, order=order)  # type: ignore[call-overload]


class NumpySide:
    """NumPy itself."""

    def view(self, a: Any, chain: list) -> Any:
        """A view."""
        return apply_view(a, chain)

    def call(self, ufunc: np.ufunc, *inputs: Any, out: Any = None) -> Any:
        """An element-wise operation; ``exp`` of elements in ascending order: NumPy has other bits for reversed ones."""
        return ufunc(*(np.array(x) if ufunc is np.exp else x for x in inputs), out=out)

    def assign(self, target: Any, value: Any, where: Any = True) -> None:
        """``target[...] = value``."""
        np.copyto(target, value, casting="unsafe", where=where)

    def reduce(self, ufunc: np.ufunc, a: Any, axis: int | None, keepdims: bool) -> Any:
        """A reduction."""
        return ufunc.reduce(a, axis=axis, keepdims=keepdims)


def perform(arrays: list, step: tuple, side: Any) -> None:
    """Run one statement on the arrays of one side."""
    kind = step[0]
    if kind == "assign":
        _, target, chain, other, other_chain = step
        side.assign(side.view(arrays[target], chain), side.view(arrays[other], other_chain))
    elif kind == "binary":
        _, which, target, chain, other, other_chain, scalar = step
        second = side.view(arrays[other], other_chain) if scalar is None else scalar
        arrays.append(side.call(BINARY[which], side.view(arrays[target], chain), second))
    elif kind == "unary":
        arrays.append(side.call(UNARY[step[1]], side.view(arrays[step[2]], step[3])))
    elif kind == "in place":
        _, which, target, chain, other, other_chain = step
        view = side.view(arrays[target], chain)
        side.call(BINARY[which], view, side.view(arrays[other], other_chain), out=view)
    elif kind == "rebind":
        _, which, target, other, scalar = step
        arrays[target] = side.call(BINARY[which], arrays[target], arrays[other] if scalar is None else scalar)
    elif kind in ("sum", "max"):
        ufunc = np.add if kind == "sum" else np.maximum
        result = side.reduce(ufunc, side.view(arrays[step[1]], step[2]), step[3], step[4])
        if not isinstance(result, np.generic):
            arrays.append(result)
    elif kind == "mask":
        view = side.view(arrays[step[1]], step[2])
        shape = view.shape if isinstance(view, np.ndarray) else view._array.shape
        where = np.random.default_rng(int(step[3] * 1e6)).random(shape) < 0.5
        side.assign(view, 7, where=where)
    elif kind == "drop":
        arrays.pop(step[1])
