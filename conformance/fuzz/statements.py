"""Kinds of statements that programs are made of, each with the weight with which it is drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numpy_dist.conformance.fuzz.writer import Writer, exact, has_nan, ordered

__all__ = ["KINDS", "kind"]

KINDS: dict[Callable[[Writer], object], float] = {}

# Ufuncs whose results do not depend on how their operands lie in memory, nor on the number of ranks.
BINARY = "add subtract maximum minimum floor_divide remainder fmod equal less greater_equal logical_and not_equal"
REAL = "multiply divide copysign heaviside"  # of complex values NumPy's vector loops round otherwise
WHOLE = "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd power"
UNARY = "negative absolute sign floor ceil trunc rint sqrt square logical_not positive conjugate invert"
# Ufuncs of which NumPy has several loops, that round differently.
ROUNDED = "exp log sin cos tanh log1p expm1 arctan cbrt exp2 reciprocal arcsinh"


def kind(weight: float) -> Callable[[Callable[[Writer], object]], Callable[[Writer], object]]:
    """Register a kind of statement."""

    def register(function: Callable[[Writer], object]) -> Callable[[Writer], object]:
        KINDS[function] = weight
        return function

    return register


def _number(x: np.ndarray) -> bool:
    return x.dtype.kind in "biufc"


def _writeable(x: np.ndarray) -> bool:
    return x.flags.writeable and x.size > 0


@kind(3)
def new(w: Writer) -> None:
    """A new array."""
    w.bind(w.description())


@kind(12)
def view(w: Writer) -> None:
    """A view of an array, or of a view."""
    name = w.pick(lambda x: x.ndim)
    if name is None:
        return
    x = w.names[name]
    axes = list(range(x.ndim))
    w.draw.shuffle(axes)
    options = [f"{name}[{w.key(x.shape)}]"] * 8 + [f"{name}.T", f"{name}.transpose({axes})", f"{name}.reshape(-1)"]
    options += [f"np.expand_dims({name}, {w.upto(x.ndim)})", f"{name}.squeeze()", f"np.flip({name})", f"{name}.view()"]
    options += [f"np.moveaxis({name}, {w.upto(x.ndim - 1)}, {w.upto(x.ndim - 1)})", f"{name}.ravel()"]
    options += [f"np.broadcast_to({name}, (2, *{x.shape}))", f"np.atleast_2d({name})", f"{name}.real"]
    options += [f"{name}.reshape({_factors(w, x.size)})", f"{name}.reshape({_factors(w, x.size)}, order='F')"]
    if x.ndim >= 2:
        options += [f"np.diagonal({name})", f"{name}.swapaxes(0, 1)", f"np.rot90({name})", f"{name}.diagonal(1)"]
    if x.shape[-1] > 2:
        options.append(f"np.lib.stride_tricks.sliding_window_view({name}, 2, {x.ndim - 1})")
    if x.dtype.names:
        options += [f"{name}[{w.one(x.dtype.names)!r}]"] * 6 + [f"{name}[['x']]"]
    if x.dtype.kind == "c":
        options += [f"{name}.imag", f"{name}.real"]
    if x.dtype.kind in "iufM" and x.dtype != np.longdouble and not has_nan(x):  # padding, and signs of NaN
        options.append(f"{name}.view({w.one(['i8', 'u1', 'f4', 'i4'])!r})")
    w.bind(w.one(options))


def _factors(w: Writer, size: int) -> tuple[int, ...]:
    divisors = [n for n in range(1, min(size, 13)) if size % n == 0] or [1]
    first = w.one(divisors)
    return w.one([(first, -1), (-1, first), (first, 1, -1), (size,)])


@kind(12)
def elementwise(w: Writer) -> None:
    """An element-wise expression."""
    name = w.pick(_number)
    if name is None:
        return
    x = w.names[name]
    text = name
    for _ in range(w.one([1, 1, 2, 3])):
        draw = w.draw.random()
        if draw < 0.6:
            mate = w.mate(name)
            if not _number(np.asarray(w.value(mate))):
                return
            pool = BINARY + (f" {REAL}" if x.dtype.kind != "c" else "") + (f" {WHOLE}" if x.dtype.kind in "biu" else "")
            operands = [text, mate] if w.chance(0.7) else [mate, text]
            symbol = w.one(["+", "-", "+", "*" if "multiply" in pool else "+", "<", "==", "%"])
            operator = f"({operands[0]} {symbol} {operands[1]})"
            text = operator if w.chance(0.5) else _call(w, w.one(pool.split()), operands)
        elif draw < 0.9:
            text = f"np.{w.one(UNARY.split())}({text})" if x.dtype.kind != "c" else f"-{text}"
        else:
            text = w.one([f"np.where({text} > 0, {text}, {w.scalar('f')})", f"np.clip({text}, -2, 3)", f"abs({text})"])
            text = text if x.dtype.kind != "c" else f"+{name}"
    if x.dtype.kind == "c" and any(word in text for word in ("*", "divide", "%", "abs")):
        w.seal(text)
        return
    w.bind(text)


def _call(w: Writer, ufunc: str, operands: list[str]) -> str:
    """A call of a ufunc, with keywords now and then."""
    words = list(operands)
    if w.chance(0.1):
        words.append(f"dtype={w.one(['f8', 'f4', 'i8', '?'])!r}")
    if w.chance(0.05):
        words.append(f"casting={w.one(['no', 'safe', 'unsafe'])!r}")
    return f"np.{ufunc}({', '.join(words)})"


@kind(3)
def rounded(w: Writer) -> None:
    """A function that may be rounded otherwise."""
    name = w.pick(_number)
    if name is not None:
        w.seal(f"np.{w.one(ROUNDED.split())}({w.one([name, f'{name}[..., ::-1]', f'{name} + 1', f'{name} * 2'])})", 512)


@kind(12)
def in_place(w: Writer) -> None:
    """An in-place operation, on a part that may overlap what is read."""
    name = w.pick(lambda x: _writeable(x) and _number(x))
    if name is None:
        return
    x = w.names[name]
    if x.ndim and w.chance(0.4) and x.shape[0] > 1:  # the same array, shifted
        left, right = w.one([("1:", ":-1"), (":-1", "1:"), ("::2", "::-2"), ("::-1", ":"), ("1:", "::-1")])
        left, right = f"{name}[{left}]", f"{name}[{right}]"
        if w.value(left).shape != w.value(right).shape:
            right = w.scalar(x.dtype.kind)
    else:
        left = f"{name}[{w.key(x.shape)}]" if w.chance(0.5) else name
        right = w.mate(name)
    by_kind = {"b": "|= ^=", "c": "", "f": "*= %= //= /="}
    symbols = ["+=", "-=", *by_kind.get(x.dtype.kind, "*= %= //=").split()]
    if w.chance(0.6):
        w.add(f"{left} {w.one(symbols)} {right}")
        return
    pool = BINARY + (f" {REAL}" if x.dtype.kind != "c" else "")
    masked = w.chance(0.25) and x.dtype.kind != "c" and left == name
    # NumPy writes where the mask is not if an input overlaps an output that it has to cast to.
    masked = masked and not np.shares_memory(x, np.asarray(w.value(right)))
    where = f", where={name} > 0" if masked else ""
    casting = ", casting='unsafe'" if w.chance(0.3) else ""
    text = f"np.{w.one(pool.split())}({right if where else w.one([left, right])}, {right}, out={left}{where}{casting})"
    w.add(text) if w.chance(0.5) else w.bind(text)


@kind(12)
def assign(w: Writer) -> None:
    """An assignment to a part: slices, masks, index arrays with repeats."""
    name = w.pick(_writeable)
    if name is None:
        return
    x = w.names[name]
    draw = w.draw.random()
    if draw < 0.2 and _number(x) and x.dtype.kind != "c":
        key = w.one([f"{name} > 0", f"{name} % 2 == 0", f"({name} < 3) & ({name} > -2)", f"np.isfinite({name})"])
    else:
        key = w.key(x.shape, fancy=draw < 0.55)
    try:
        part = w.value(f"{name}[{key}]")
    except Exception:
        part = x
    shape = np.shape(part)
    others = [f"{y}[{key}]" for y in w.arrays(lambda y: y.shape == x.shape and y.dtype.kind == x.dtype.kind)]
    others += w.arrays(lambda y: y.shape == shape)
    if len(shape) == 1 and 0 < shape[0] < 9 and _number(x):
        others.append(str([w.draw.randint(-3, 9) for _ in range(shape[0])]))
    others += [f"{name}[::-1][{key}]"] if x.ndim and draw > 0.2 else []
    if shape:
        others += [f"{name}[{key}][::-1]"]
    source = w.one(others) if others and w.chance(0.7) else w.scalar(x.dtype.kind)
    if source in w.names and np.may_share_memory(x, w.names[source]):
        source += ".copy()"  # NumPy's assignment by a mask, of all assignments, reads what it has written
    w.add(f"{name}[{key}] {w.one(['=', '=', '=', '+='])} {source}")


@kind(5)
def select(w: Writer) -> None:
    """Elements picked by masks and index arrays."""
    name = w.pick(lambda x: x.ndim and (0 not in x.strides or x.flags.c_contiguous))  # the copy's order is anybody's
    if name is None:
        return
    x = w.names[name]
    options = [f"{name}[{w.key(x.shape, fancy=True)}]"] * 4
    if _number(x) and x.dtype.kind != "c":
        options += [f"{name}[{name} > 0]", f"np.compress({name}.ravel() > 0, {name})", f"{name}[np.nonzero({name})]"]
        options += [f"np.extract({name} > 1, {name})", f"np.argwhere({name})", f"np.flatnonzero({name})"]
    options += [f"np.take({name}, {w._list(x.shape[-1])}, axis=-1, mode={w.one(['raise', 'wrap', 'clip'])!r})"]
    options += [f"np.where({w.mate(name)} == {name}, {name}, {w.mate(name)})"]
    w.bind(w.one(options))


@kind(9)
def reduction(w: Writer) -> None:
    """A reduction, with the arguments that reductions have."""
    name = w.pick(_number)
    if name is None:
        return
    x = w.names[name]
    axis = w.one([None, *range(-1, x.ndim), *([(0, 1)] if x.ndim > 1 else [])])
    words = [name] if axis is None and w.chance(0.5) else [name, f"axis={axis}"]
    exact_anyway = w.one("max min any all argmax argmin ptp count_nonzero".split())
    sums = w.one("sum prod mean cumsum nansum nancumsum".split())
    if w.chance(0.5) and (x.dtype.kind != "c" or exact_anyway in ("any", "all", "count_nonzero")):
        if isinstance(axis, tuple) and exact_anyway.startswith("arg"):
            return
        if w.chance(0.2) and exact_anyway not in ("ptp", "count_nonzero"):
            words.append("keepdims=True")
        w.bind(f"np.{exact_anyway}({', '.join(words)})")
        return
    if w.chance(0.2) and sums in ("sum", "prod"):
        words.append(w.one(["keepdims=True", "initial=2", f"where={name} > 0" if x.dtype.kind != "c" else "initial=1"]))
    if w.chance(0.1):
        words.append(f"dtype={w.one(['f8', 'i8', 'c16'])!r}")
    if "cum" in sums and isinstance(axis, tuple):
        return
    if (
        x.dtype.kind in "iu"
        and float(np.abs(x.astype("f8")).max(initial=0)) * x.size >= 2**53
        and (sums == "mean" or any(word.startswith("dtype") for word in words))
    ):
        return  # added up as floats: the order of the terms decides
    if sums == "prod":
        whole = x.dtype.kind in "biu" and not any(word in ("dtype='f8'", "dtype='c16'") for word in words)
        w.bind(f"np.prod({', '.join(words)})") if whole else w.seal(f"np.prod({', '.join(words)})", 512)
        return
    if not _cancels(x, axis):
        # NumPy adds up one after the other where it tells all sums on the way.
        w.bind_if_exact(f"np.{sums}({', '.join(words)})", name, ulps=256 + x.size * ("cum" in sums))


def _cancels(x: np.ndarray, axis: int | tuple[int, ...] | None) -> bool:
    """Whether some sum of floats is so much smaller than its terms that nothing but their rounding is left of it."""
    if x.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        values = x[...].astype("c16" if x.dtype.kind == "c" else "f8")
        sums, sizes = np.abs(np.nansum(values, axis=axis)), np.nansum(np.abs(values), axis=axis)
        return bool(np.any((sizes > 0) & (sums < 1e-6 * sizes)))


@kind(2)
def spread(w: Writer) -> None:
    """Statistics that are rounded."""
    name = w.pick(lambda x: x.dtype.kind in "biuf" and x.size and np.isfinite(x).all() and np.abs(x).max() < 1e4)
    if name is not None:
        x = w.names[name]
        axis = w.one([None, *range(x.ndim)])
        w.seal(f"np.{w.one(['var', 'std', 'median', 'nanmean', 'nanmedian'])}({name}, axis={axis})", 512)


@kind(6)
def ufunc_method(w: Writer) -> None:
    """Methods of ufuncs."""
    name = w.pick(lambda x: x.dtype.kind in "biuf" and x.ndim)
    if name is None:
        return
    x = w.names[name]
    ufunc = w.one("add maximum minimum multiply logical_or subtract bitwise_xor".split())
    method = w.one("reduce accumulate reduceat outer at".split())
    axis = w.upto(x.ndim - 1)
    whole = x.dtype.kind in "biu" or ufunc in ("maximum", "minimum", "logical_or")
    if method == "at":
        if not _writeable(x):
            return
        key = w._list(x.shape[0])
        value = w.one([w.scalar(x.dtype.kind), f"{name}[{key}]"])
        if whole or exact(x, w.value(value)) and ufunc in ("add", "subtract"):
            w.add(f"np.{ufunc}.at({name}, {key}, {value})")
        return
    if method == "outer":
        other = w.pick(lambda y: y.dtype.kind in "biuf" and y.size * x.size < 300)
        if other is not None:
            w.bind(f"np.{ufunc}.outer({name}, {other})")
        return
    words = [name, f"axis={axis}"]
    if method == "reduceat":
        words.insert(1, str([w.upto(x.shape[axis] - 1) for _ in range(w.upto(4) + 1)]) if x.shape[axis] else "[0]")
    text = f"np.{ufunc}.{method}({', '.join(words)})"
    if whole:
        w.bind(text)
    else:
        w.bind_if_exact(text, name) if ufunc in ("add", "subtract") else w.seal(text, 1024)


@kind(7)
def rearranged(w: Writer) -> None:
    """Arrays put together, sorted, repeated."""
    name = w.pick(lambda x: x.ndim)
    if name is None:
        return
    x = w.names[name]
    other = w.one(w.arrays(lambda y: y.shape[1:] == x.shape[1:] and y.ndim == x.ndim))
    axis = w.upto(x.ndim - 1)
    options = [f"np.concatenate([{name}, {other}])", f"np.stack([{name}, {w.mate(name)}])"]
    options += [f"np.repeat({name}, 2, {axis})", f"np.tile({name}, 2)", f"np.hstack([{name}, {other}])"]
    options += [f"np.pad({name}, 1, mode={w.one(['constant', 'edge', 'reflect', 'wrap'])!r})"]
    options += [f"np.sort({name}, axis={axis}, kind='stable')", f"np.argsort({name}, axis={axis}, kind='stable')"]
    if ordered(x) and ordered(w.names[other]):
        options += [f"np.sort({name}, axis={axis})", f"np.unique({name})", f"np.unique({name}, return_counts=True)"]
        options += [f"np.intersect1d({name}, {other})"] if _number(x) else []
    options += [f"np.delete({name}, {w.key(x.shape[:1])}, 0)", f"np.roll({name}, 2, {axis})"]
    options += [f"np.insert({name}, 1, {w.scalar(x.dtype.kind)}, {axis})"]
    options += [f"np.append({name}, {other})", f"np.array_split({name}, 3)[{w.upto(2)}]", f"np.resize({name}, (3, 4))"]
    if _number(x):
        options += [f"np.diff({name})", f"np.searchsorted(np.sort({name}.ravel()), {w.mate(name)})"]
        options += [f"np.trim_zeros({name}.ravel())", f"np.ediff1d({name})"]
        if x.ndim > 1 or x.size**2 <= w.most:  # a matrix is made of a vector
            options += [f"np.triu({name})", f"np.tril({name}, -1)"]
        options += [f"np.nan_to_num({name})", f"np.isin({name}, [1, 2])"]
    w.bind(w.one(options))


@kind(3)
def products(w: Writer) -> None:
    """Products of matrices, and what is made of them."""
    name = w.pick(lambda x: _number(x) and 0 < x.ndim < 3)
    if name is None:
        return
    x = w.names[name]
    other = w.one(w.arrays(lambda y: _number(y) and 0 < y.ndim < 3 and y.shape[0] == x.shape[-1]) or [f"{name}.T"])
    if x.size // max(x.shape[-1], 1) * (w.value(other).size // max(w.value(other).shape[0], 1)) > w.most:
        return
    if has_nan(x) or has_nan(w.value(other)):  # BLAS leaves out products with 0, here and there
        return
    if x.dtype.kind == "c" and not all((part != 0).all() for part in (x.real, x.imag)):  # zeros' signs are BLAS's
        return
    options = [f"{name} @ {other}", f"np.dot({name}, {other})", f"np.tensordot({name}, {other}, 1)"]
    if (x.size // max(x.shape[-1], 1)) ** 2 <= w.most:
        options += [f"np.inner({name}, {name})"]
    if x.ndim == 2:
        options += [f"np.trace({name})", f"np.einsum('ij->j', {name})"]
        if x.shape[1] ** 2 <= w.most:
            options += [f"np.einsum('ij,ik->jk', {name}, {name})"]
    else:
        options += [f"np.convolve({name}, [1, 2, 1])", f"np.outer({name}[:9], {other}[:9])"]
    w.bind_if_exact(w.one(options), name, other, products=True)


@kind(5)
def in_place_function(w: Writer) -> None:
    """Functions and methods that write into their argument."""
    name = w.pick(_writeable)
    if name is None:
        return
    x = w.names[name]
    scalar = w.scalar(x.dtype.kind)
    options = [f"{name}.fill({scalar})", f"np.copyto({name}, {w.mate(name)}, casting='unsafe')"]
    options += [f"{name}[...] = {scalar}"]
    options += [f"np.put({name}, [0, -1, 0], {scalar})", f"{name}.flat[0] = {scalar}", f"{name}.flat[::2] = {scalar}"]
    if x.ndim:
        how = "" if ordered(x) else ", kind='stable'"
        options += [f"{name}.sort(axis={w.upto(x.ndim - 1)}{how})"] * 2
    if _number(x) and x.dtype.kind != "c":
        options += [f"np.putmask({name}, {name} > 0, {scalar})", f"np.place({name}, {name} < 1, [1, 2])"]
        options += [f"np.copyto({name}, {scalar}, where={name} > 1, casting='unsafe')"]
        options += [f"np.clip({name}, -1, 2, out={name})", f"np.nan_to_num({name}, copy=False)"]
    if x.ndim == 2:
        options.append(f"np.fill_diagonal({name}, {scalar})")
    if x.dtype.kind in "iu":
        options.append(f"np.cumsum({name}.ravel(), out={name}.reshape(-1), dtype={name}.dtype)")
    w.add(w.one(options))


@kind(4)
def seen(w: Writer) -> None:
    """A value that is needed at once."""
    name = w.pick()
    if name is None:
        return
    x = w.names[name]
    other = w.pick()
    options = [f"{name}.tolist()", f"np.shares_memory({name}, {other})", f"len({name})", f"list({name})"]
    options += [f"bool({name})"]
    # Those of an axis with one element, or of none, mean nothing (NumPy's flags.c_contiguous tells of that).
    strides = f"{name}.strides" if min(x.shape, default=2) > 1 else "0"
    options += [f"{name}.shape, {name}.dtype.str, {strides}, {name}.ndim", f"np.array_equal({name}, {other})"]
    options += [f"np.may_share_memory({name}, {other})", f"{name}.item({w.upto(x.size - 1)})"]
    options += [f"{name}.tobytes()"] if x.dtype.char not in "gG" and not has_nan(x) else []  # padding, and signs of NaN
    options += [f"str({name})"] if not w.big else []
    whole = x.base
    # Not of an array that a function has made within, nor views of all of an array, in its shape.
    if whole is None or any(whole is y for y in w.names.values()) and whole.strides != x.strides:
        options += [f"{name}.flags.owndata", f"{name}.base is None"]
    if _number(x) and x.dtype.kind != "c":
        options += [f"float({name}.max())", f"bool(({name} > 0).any())", f"int(np.argmax({name}))", f"3 in {name}"]
    if w.big:
        options = [text for text in options if not any(word in text for word in ("list", "tobytes", "shares"))]
    w.add(f"check(({w.one(options)}))")
