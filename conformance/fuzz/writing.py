"""Statements that write where others do not: outputs of functions, attributes, containers, memory at odd addresses."""

from __future__ import annotations

import contextlib

import numpy as np

from numpy_dist.conformance.fuzz.statements import kind
from numpy_dist.conformance.fuzz.writer import Writer, exact, has_nan, ordered

__all__: list[str] = []

_UFUNCS = "add subtract maximum minimum logical_and less not_equal".split()


def _targets(w: Writer, like: np.ndarray) -> list[str]:
    """Parts of arrays that have the shape of a result, and dtypes that it may be cast to."""
    parts = (
        "",
        "[0]",
        "[-1]",
        "[::-1]",
        "[1:]",
        "[:-1]",
        "[::2]",
        "[..., 0]",
        "[..., ::-1]",
        "[..., 1:]",
        ".T",
        "[:1]",
    )
    found = []
    for name in w.arrays(lambda x: x.flags.writeable and x.dtype.kind in "biufc"):
        for part in parts:
            with contextlib.suppress(Exception):
                made = w.value(name + part)
                if isinstance(made, np.ndarray) and made.shape == like.shape and made.flags.writeable:
                    found += [name + part] * (3 if made.dtype == like.dtype else 1)
    return found


@kind(8)
def output(w: Writer) -> None:
    """A function whose result is written to a part of an array, perhaps of one that it reads."""
    name = w.pick(lambda x: x.dtype.kind in "biuf" and x.ndim and x.size)
    if name is None:
        return
    x = w.names[name]
    axis, other = w.upto(x.ndim - 1), w.mate(name)
    axes = w.one([axis, axis, None, tuple(range(x.ndim))])
    keep = ", keepdims=True" if w.chance(0.2) else ""
    mask = f"{name} > 0"
    fold = w.one(["max", "min", "any", "all", "sum"])
    more = w.one(["", "", f", where={mask}, initial=1"]) if fold in ("max", "min", "sum") else ""
    options = [f"np.{fold}({name}, axis={axes}{keep}{more}"] * 3
    options += [f"np.{w.one(_UFUNCS)}({name}, {other}"] * 2
    options += [f"np.take({name}, {w._list(x.shape[axis])}, axis={axis}", f"np.clip({name}, -1, {other}"]
    options += [f"np.cumsum({name}, axis={axis}", f"np.maximum.accumulate({name}, axis={axis}"]
    options += [f"np.minimum.reduceat({name}, [0, {w.upto(x.shape[axis] - 1)}], axis={axis}"]
    if x[0].size ** 2 <= w.most:
        options.append(f"np.logical_or.outer({name}[0], {name}[-1]")
    options += [f"np.compress([True, False, True], {name}, axis={axis}"]
    options += [f"np.argmax({name}, axis={axis}", f"np.round({name}, {w.upto(1)}", f"np.ptp({name}, axis={axis}"]
    if x.ndim == 2:
        options.append(f"np.einsum('ij->j', {name}")
        if max(x.shape) ** 2 <= w.most:
            options += [f"np.matmul({name}, {name}.T", f"np.dot({name}.T, {name}"]
    text = w.one(options)
    sums = any(word in text for word in ("sum", "matmul", "dot"))
    if sums and not exact(x, products="matmul" in text or "dot" in text):
        return
    with contextlib.suppress(Exception):
        made = np.asarray(w.value(text + ")"))
        targets = _targets(w, made)
        target = w.one(targets) if targets and w.chance(0.8) else f"np.zeros_like({name}, shape={made.shape})"
        if "take" in text and w.names[name].size and np.may_share_memory(x, w.value(target)):
            text += ", mode='raise'"  # only then NumPy reads all of it before it writes
        if "compress" in text and np.may_share_memory(x, w.value(target)):
            return
        casting = ", casting='unsafe'" if text.split("(")[0][3:] in _UFUNCS and w.chance(0.5) else ""
        written = f"{text}, out={target}{casting})"
        w.bind(written) if w.chance(0.7) else w.add(written)


@kind(2)
def outputs(w: Writer) -> None:
    """A ufunc of two results, which are written to arrays that may be its operands."""
    name = w.pick(lambda x: x.dtype.kind in "iuf" and x.flags.writeable and x.size)
    if name is None or has_nan(w.names[name]):
        return
    x = w.names[name]
    same = w.one(w.arrays(lambda y: y.shape == x.shape and y.dtype == x.dtype and y.flags.writeable))
    outs = w.one([f"({name}, None)", f"(None, {name})", f"({name}, {same}.copy())", f"({name}.copy(), {name})"])
    call = f"np.divmod({name}, {w.one(['3', '2', f'{same}'])}" if w.chance(0.7) else f"np.modf({name}"
    w.bind(f"{call}, out={outs})")


@kind(5)
def attribute(w: Writer) -> None:
    """An attribute that is set, or memory that is written through an iterator."""
    name = w.pick(lambda x: x.flags.writeable and x.size and x.dtype.kind in "biufc")
    if name is None:
        return
    x = w.names[name]
    scalar, mate = w.scalar(x.dtype.kind), w.one(w.arrays(lambda y: y.dtype == x.dtype))
    apart = f"{mate}.copy()" if np.may_share_memory(x, w.names[mate]) else mate  # `flat` reads what it has written
    options = [f"{name}.flat = {scalar}", f"{name}.flat = {apart}"]
    options += [f"{name}.flat[{w.upto(x.size - 1)}:] = {apart}.ravel()"]
    options += [f"{name}.flat[{w._list(x.size)}] = {scalar}", f"{name}.real = {scalar}", f"{name}.real = {mate}"]
    options += [f"{name}.shape = {x.shape[::-1]}", f"{name}.shape = (-1,)", f"{name}.shape = (1, *{name}.shape)"]
    options += [f"{w.fresh()} = {name}[...]; {w.fresh()} = {name}.view(); {name}.setflags(write=False)"]
    if x.dtype.kind == "c":
        options += [f"{name}.imag = {scalar}", f"{name}.imag = {mate}.real", f"{name}.imag[...] += 1"] * 2
    if x.dtype.kind in "iu":
        options += [f"{name}.byteswap(inplace=True)"]
    if x.ndim and ordered(x) and not has_nan(x):
        axis = w.upto(x.ndim - 1)
        order = f"np.argsort({name}, axis={axis}, kind='stable')"
        options += [f"np.put_along_axis({name}, {order}, {mate if mate == name else scalar}, {axis})"]
        options += [f"for k in range(2):\n    {name}.sort(axis={axis})\n    {name}[...] = {name}[::-1]"]
    w.add(w.one(options))


@kind(4)
def container(w: Writer) -> None:
    """Arrays in lists, dictionaries and attributes, where they are updated, exchanged and taken out again."""
    name = w.pick(lambda x: x.ndim and x.flags.writeable and x.dtype.kind in "iuf")
    if name is None:
        return
    x = w.names[name]
    mate = w.one(w.arrays(lambda y: y.shape == x.shape and y.dtype == x.dtype))
    held, one, other = f"box{w.number}", w.fresh(), w.fresh()
    update = w.one(["+= 1", "-= 2", f"+= {held}[1][::-1]", f"= {held}[1] + {held}[0]", f"= {held}[1][..., ::-1]"])
    inner = w.one([f"{held}[0][1:] {update if '[' not in update else '+= 1'}", f"{held}[0] {update}"])
    lines = [
        f"{held}.reverse()",
        f"{held}[0], {held}[1] = {held}[1], {held}[0]",
        inner,
        f"{held}.append({held}.pop(0))",
    ]
    w.draw.shuffle(lines)
    body = "\n".join(f"    {line}" for line in lines[: w.upto(2) + 2])
    text = f"{held} = [{name}, {mate}]\nfor k in range({w.one([2, 3, 6])}):\n{body}\n{one}, {other} = {held}"
    w.add(text)
    if w.chance(0.3):
        w.add(f"del {held}")


@kind(2)
def stencil(w: Writer) -> None:
    """Sweeps over two arrays that are exchanged, and long chains of statements that nobody looks at in between."""
    name = w.pick(lambda x: x.ndim and x.shape[0] > 2 and x.dtype.kind in "iu" and x.flags.writeable)
    if name is None or w.big:
        return
    one, other = w.fresh(), w.fresh()
    step = w.one([f"{other}[1:-1] = {one}[2:] - {one}[:-2]", f"{other}[1:-1] += {one}[:-2]; {other}[0] = {one}[-1]"])
    times = w.one([3, 3, 5, 5, 20, 20, 150])
    look = w.one(["", "", f"\n    if k % 7 == 3: check({one}[1])"])
    sweep = f"{one}, {other} = {name}.copy(), {name}.copy()\nfor k in range({times}):\n    {step}{look}"
    w.add(f"{sweep}\n    {one}, {other} = {other}, {one}")


@kind(2)
def odd_address(w: Writer) -> None:
    """Integers and dates that begin at any byte, or have the other byte order."""
    code = w.one(["i2", "i4", "i8", "u4", ">i4", ">i2", "m8[s]"])
    size = np.dtype(code).itemsize
    count = 4000 if w.big else w.one([3, 8, 12])
    first = w.upto(size)
    made = w.bind(f"array(a({count * size + 8}, dtype='u1', values='bits'), {w.upto(99)})")
    if made is not None:
        w.bind(f"{made}[{first}:{first + count * size}].view({code!r})")


@kind(2)
def line_function(w: Writer) -> None:
    """Functions of the user's that write into their line, or return the same buffer each time."""
    name = w.pick(lambda x: x.ndim > 1 and x.size and x.dtype.kind in "iuf" and ordered(x) and not has_nan(x))
    if name is None:
        return
    function = w.one(
        [
            "lambda line: line.sort() or line[::-1]",
            "lambda line, buffer=[0] * 3: buffer.__setitem__(0, int(line[0] > 0)) or buffer",
            "lambda line: line[::2]",
            "lambda line: line.max()",
        ]
    )
    w.bind(f"np.apply_along_axis({function}, {w.upto(w.names[name].ndim - 1)}, {name})")
