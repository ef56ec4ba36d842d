"""What goes wrong easily: promotion, aliasing, emptiness, truth, conversions, NaN. Each is a case of its own."""

from __future__ import annotations

import copy
import operator

import numpy as np

from numpy_dist.conformance.arguments import a, of, plain, plain_of
from numpy_dist.conformance.case import BLAS, SUMS, Topic

TOPIC = Topic("What goes wrong easily")
case = TOPIC.case
A = np.ndarray

# Python's scalars are weak, and must fit.
for _dtype in ("u1", "i1", "u2", "f2", "f4", "?", "c8"):
    for _other in (300, -1, 1, 2.5, 1e300, True, 2j, np.float64(2.5), np.int8(3), np.uint64(3)):
        case(A.__add__, a(6, 5, dtype=_dtype), _other, via=operator.add)
        case(A.__iadd__, a(6, 5, dtype=_dtype), _other, via=operator.iadd)
        case(A.__lt__, a(6, 5, dtype=_dtype), _other, via=operator.lt)
for _other in (1e300, -1e39, 10**40, 1e39 + 1j, 2 + 1e300j, np.inf, np.nan, 65519.0, 65520.0):
    case(np.multiply, a(6, 5, dtype="f2"), _other)
    case(np.less, a(6, 5, dtype="c8"), _other)
    case(np.where, a(6, 5, dtype="?"), a(6, 5, dtype="f4"), _other)
    case(np.where, a(6, 5, dtype="?"), _other, a(6, 5, dtype="c8"))
case(np.allclose, a(6, dtype="f2"), a(6, dtype="f2"), rtol=1e9)
case(A.__neg__, a(6, dtype="?"), via=operator.neg)
case(A.__sub__, a(6, dtype="?"), a(6, dtype="?"), via=operator.sub)
case(A.__pow__, a(6, dtype="i4", values="ones"), -1, via=operator.pow)
case(A.__pow__, a(6, dtype="i4", values="ones"), a(6, dtype="i4"), via=operator.pow)
case(A.__floordiv__, a(6, dtype="i4"), 0, via=operator.floordiv)
case(A.__mod__, a(6), 0.0, via=operator.mod)
case(A.__itruediv__, a(6, dtype="i4"), 2, via=operator.itruediv)
case(A.__iadd__, a(6, dtype="i4"), a(6), via=operator.iadd)
case(A.__setitem__, a(6, dtype="i4"), via=lambda x: operator.setitem(x, slice(None), 2.7))
case(A.__setitem__, a(6, dtype="u1"), via=lambda x: operator.setitem(x, 0, 300))
case(A.__setitem__, a(6, dtype="i4"), via=lambda x: operator.setitem(x, 0, np.nan))
case(A.__setitem__, a(6), via=lambda x: operator.setitem(x, 0, 1j))

# Sums of small integers and booleans widen; means of float16 do not overflow.
for _dtype in ("i1", "u1", "i2", "u4", "?", "f2"):
    case(np.sum, a(300, dtype=_dtype, values="ones"), tolerance=SUMS)
    case(np.prod, a(30, dtype=_dtype, values="ones"))
    case(np.mean, a(300, dtype=_dtype, values="ones"), tolerance=SUMS)
    case(np.cumsum, a(300, dtype=_dtype, values="ones"))
case(np.mean, a(70_000, dtype="f2", values="ones"))
case(np.sum, a(70_000, dtype="f2", values="ones"))
case(np.add.reduce, a(300, dtype="u1", values="ones"), dtype="u1")
case(np.multiply.reduce, a(30, dtype="i1", values="large"), dtype="i1")

# Scalars or views.
case(A.__getitem__, a(6), via=lambda x: [x[0], x[0, ...], x[()], x[...]])
case(A.__getitem__, a(6), via=lambda x: x[0, ...].__setitem__((), 7))
case(A.__getitem__, of(2.5), via=lambda x: [x[()], x[...]])
case(A.__getitem__, a(6, 5), via=lambda x: [x[1, 2], x[np.int64(1), 2], x[1, 2, ...]])
case(A.__getitem__, a(4, 3, 5), via=lambda x: x[[0], :, [1]])
_TIMES = np.frompyfunc(lambda x, y: x * y, 2, 1, identity=1)
case(np.ufunc.reduce, a(3, 4), via=lambda x: _TIMES.reduce(x, axis=(0, 1)), declines="Python objects")
for _index in ((9, []), ([], -9), ([[]], 5), (9, [1, 2], [1, 2, 0]), ([9], 8), ([], [9])):
    case(A.__getitem__, a(4, 3, 5), via=lambda x, index=_index: x[index])
    case(A.__setitem__, a(4, 3, 5), via=lambda x, index=_index: operator.setitem(x, index, 1))
case(A.__getitem__, a(4, 3, 5), via=lambda x: x[0.0:, 0.0])
case(A.__getitem__, a(4, 3, 5), via=lambda x: x[0.0:, 0, :])
case(A.__setitem__, a(4, 3, 5), via=lambda x: operator.setitem(x, (slice(0.5), "a"), 1))
case(A.__getitem__, a(4, 3, 5), via=lambda x: x[0, :, [1, 2]])
case(A.__getitem__, a(4, 3, 5), via=lambda x: x[:, [0, 2], [1, 1]])
case(A.__getitem__, a(4, 3, 5), via=lambda x: x[[[0], [1]], :, [1, 2]])
case(A.__getitem__, a(6, 5), via=lambda x: x[True])
case(A.__getitem__, a(6, 5), via=lambda x: [x[:, None].shape, x[::-1, ::-2], x[10:], x[-100:2]])
case(A.__getitem__, a(6, 5), via=lambda x: x[1.0])
case(A.__getitem__, a(6, 5), via=lambda x: x[7])
case(A.__getitem__, a(6, 5), via=lambda x: x[0, 0, 0])
case(A.__getitem__, a(6, 5), via=lambda x: x["f"])

# The same memory on both sides, and the same cell several times.
for _move in (
    lambda x: np.add(x[1:], x[:-1], out=x[1:]),
    lambda x: np.add(x[:-1], x[1:], out=x[:-1]),
    lambda x: np.add(x, x.T, out=x),
    lambda x: np.copyto(x[1:], x[:-1]),
    lambda x: operator.iadd(x[:, 1:], x[:, :-1]),
    lambda x: operator.setitem(x, slice(None), x[::-1]),
    lambda x: operator.setitem(x, (slice(None), slice(1, None)), x[:, :-1]),
    lambda x: np.negative(x[::-1], out=x),
):
    case(np.add, a(5, 5, values="whole"), via=_move)
case(A.__setitem__, a(6), via=lambda x: operator.setitem(x, [0, 0, 2, 0], [1, 2, 3, 4]))
case(A.__setitem__, a(6), via=lambda x: operator.setitem(x, [0, 0], x[[0, 0]] + 1))
case(np.add.at, a(6, values="whole"), [0, 0, 2], 1.0)
case(np.add, a(5), a(5), out=a(3, 5))
case(np.add, a(3, 5), a(3, 5), out=a(5))
case(np.add, a(5), a(5), out=a(5, dtype="i4"))
case(np.add, a(5), a(5), out=a(5), where=of([True, False, True, False, True]))
for _shape in ((5,), (0,), (2, 5)):  # what a complex output has is cast to the loop's real dtype, with a warning
    case(np.maximum, a(*_shape, dtype="f2"), a(*_shape), out=a(*_shape, dtype="c16"), where=a(*_shape, dtype="?"))
case(np.sqrt, a(3, 5, values="positive"), out=a(3, 5), where=of([True, False, True, False, True]))
case(np.sum, a(6, 5, values="whole"), axis=0, out=a(5), where=of([[True], [False]] * 3))

# A mask of another dtype than bool is an error on every rank, whatever its values.
for _mask in (a(5, dtype="i4", values="ones"), a(5, values="zeros"), plain(5, dtype="i4", values="ones")):
    case(np.add, a(6, 5), 1.0, out=a(6, 5), where=_mask)
    case(np.add.outer, a(6), a(5), out=a(6, 5), where=_mask)
    case(np.add.reduce, a(6, 5), where=_mask)
    case(np.subtract.reduce, a(6, 5), where=_mask)
    case(np.max, a(6, 5), axis=1, initial=1.0, where=_mask)
    for _function in (np.sum, np.mean, np.var, np.any, np.nansum):
        case(_function, a(6, 5), axis=0, where=_mask)

# Nothing at all.
for _function in (np.sum, np.prod, np.all, np.any, np.max, np.min, np.argmax, np.mean, np.var, np.median, np.ptp,
                  np.cumsum, np.sort, np.unique, np.nonzero, np.count_nonzero, np.concatenate, np.vstack):  # fmt: skip
    _empty = [a(0, 3), a(0, 3)] if _function in (np.concatenate, np.vstack) else a(0, 3)
    case(_function, _empty)
    if _function not in (np.unique, np.nonzero, np.vstack):
        case(_function, _empty, axis=0)
        case(_function, _empty, axis=1)
case(np.max, a(0), initial=3.0)
case(np.linalg.norm, a(0))
case(np.dot, a(3, 0), a(0, 4))
case(np.concatenate, [])

# Truth and conversions.
for _array in (a(0), of([1.0]), of([0.0]), a(2), of(1.0), of([[2.0]])):
    case(A.__bool__, _array, via=bool, materialises=True)
    case(A.__float__, _array, via=float, materialises=True)
    case(A.__bool__, _array, via=lambda x: not x, materialises=True)
    case(A.__bool__, _array, via=lambda x: 1 if x else 2, materialises=True)
case(A.__eq__, a(4), via=lambda x: x == None)  # noqa: E711
case(A.__ne__, a(4), via=lambda x: x != None)  # noqa: E711
case(A.__eq__, a(4), via=lambda x: x == "text")
case(A.__eq__, a(4), via=lambda x: [1, 2, 3, 4] == x)
case(A.__eq__, a(4), via=lambda x: x == (1, 2))
case(A.__contains__, of([1.0, np.nan]), via=lambda x: [np.nan in x, 1 in x, "x" in x])
case(np.array, a(4), via=lambda x: np.array(x, copy=True, like=x))
case(np.array, a(4), via=lambda x: np.array([x, x], like=x))
case(A.__array__, a(4), via=lambda x: np.array(x, copy=True) + 0, declines="an ndarray was asked for")
case(A.__array__, a(4), via=lambda x: _without_copy(x))
case(A.__array__, a(4), via=lambda x: np.array([x, x]) + 0, declines="an ndarray was asked for")
case(A.__array__, a(4, values="whole"), via=lambda x: np.sum([x, x]), declines="an ndarray was asked for")
case(A.__copy__, a(4), via=lambda x: copy.copy(x) is x)

# NaN: ordering, ties, extremes.
for _function in (np.max, np.min, np.argmax, np.argmin, np.nanmax, np.nanargmin, np.sort, np.median, np.unique):
    case(_function, a(40, values="nans"))
    if _function not in (np.sort, np.unique):  # they leave open which of equal zeros comes first
        case(_function, a(40, values="special"))
    case(_function, a(9, 8, values="nans"), axis=0) if _function is not np.unique else None
case(np.argsort, a(40, values="nans"), kind="stable")
case(np.argmax, of([1, 3, 3, 1, 3] * 3))
case(np.argmin, of([3, 1, 1, 3, 1] * 3))
case(np.argmax, of([False, True, True] * 4))
case(np.searchsorted, of([1, 2, 2, 2, 3, 3, 9]), of([2, 3, 0, 10]), side="right")
case(np.maximum, a(40, values="nans"), a(40, values="nans"))
case(np.fmax, of([1.0, np.nan, 2.0]), of([np.nan, np.nan, 1.0]))
case(np.isclose, of([np.nan, np.inf, 1.0]), of([np.nan, np.inf, 1.0 + 1e-9]), equal_nan=True)
case(np.array_equal, a(9, values="nans"), a(9, values="nans"))


def _steered(x):
    """A loop that a NaN in a maximum ends, on every rank alike."""
    steps, largest = 0, np.max(np.abs(x))
    while largest > 1 and steps < 5:
        x = x / 2
        largest, steps = np.max(np.abs(x)), steps + 1
    return steps


case(np.max, a(40, values="nans"), via=_steered)
case(np.max, a(40), via=_steered)


def _changed_after_use(d, buffer):
    """An ndarray that its owner changes after it was used."""
    d += buffer
    buffer[:] = 0
    e = d * buffer
    buffer[:] = 2
    return e + buffer


case(A.__iadd__, a(6, 5), plain(5), via=_changed_after_use)

# Times.
case(A.__sub__, a(6, dtype="M8[D]"), np.datetime64("2020-01-01"), via=operator.sub)
case(A.__add__, a(6, dtype="M8[D]"), np.timedelta64(5, "h"), via=operator.add)
case(A.__add__, a(6, dtype="M8[D]"), a(6, dtype="M8[D]"), via=operator.add)
case(A.__lt__, a(6, dtype="M8[D]", values="special"), np.datetime64("NaT", "D"), via=operator.lt)
case(np.max, a(9, dtype="M8[s]", values="special"))
case(np.mean, a(9, dtype="m8[s]"))
case(np.sort, a(9, dtype="M8[s]", values="special"))

# Singular matrices, and the types of tuples.
case(np.linalg.inv, of([[1.0, 2.0], [2.0, 4.0]]))
case(np.linalg.solve, of(np.zeros((3, 3))), of(np.ones(3)))
case(np.linalg.cholesky, of([[1.0, 2.0], [2.0, 1.0]]))
_DEFINITE = a(4, 4, values="definite")
for _function, _array in ((np.linalg.eigh, _DEFINITE), (np.linalg.svd, a(4, 3)), (np.linalg.qr, a(4, 3))):
    case(_function, _array, via=lambda x, f=_function: type(f(x)).__name__)
case(np.linalg.slogdet, _DEFINITE, via=lambda x: type(np.linalg.slogdet(x)).__name__)
case(np.unique_all, of([3, 1, 3, 2]), via=lambda x: type(np.unique_all(x)).__name__)
case(np.matmul, a(3, 4), a(3, 4))
case(np.matmul, a(3, 4), 2.0)
case(np.matmul, a(0, 4), a(4, 0), tolerance=BLAS)

# Text, and floating-point errors as exceptions.
case(A.__repr__, a(40, 60, dtype="i4"), via=lambda x: repr(x).partition("(")[2].split(), materialises=True)
case(A.__repr__, a(0, 3), via=repr, materialises=True)
case(A.__repr__, a(3, dtype="f4"), via=lambda x: f"{x!r} {x}", materialises=True)


def _raising(what):
    def run(x):
        with np.errstate(**{what: "raise"}):
            return {"divide": lambda: 1 / x, "invalid": lambda: np.sqrt(x), "over": lambda: np.exp(x * 1e4)}[what]()

    return run


for _what in ("divide", "invalid", "over"):
    case(A.__rtruediv__, of([0.0, -1.0, 4.0]), via=_raising(_what))
    case(A.__rtruediv__, of([1.0, 0.25, 4.0]), via=_raising(_what))

# Masked arrays, and subclasses.


def _without_copy(x):
    """An array that lies in the argument's memory; shards do not, and say what NumPy says of such."""
    try:
        return isinstance(np.array(x, copy=False), np.ndarray)
    except ValueError as error:
        return str(error).startswith("Unable to avoid copy")


def _mixed(x, y):
    """A subclass's result; it is refused where one of ours takes part, which the subclass knows nothing of."""
    try:
        return isinstance(np.equal(x, y), np.ndarray)  # which all dtypes have
    except TypeError as error:
        return "all returned NotImplemented" in str(error) and any(type(v).__name__ == "DistArray" for v in (x, y))


def _letters(x, word):
    letters = np.zeros_like(x, dtype="c")
    letters[0] = word
    letters[1, 2:4] = b"y"
    letters[2, 1] = word
    return letters


for _word in ("ashes", b"ashes", np.str_("ashes"), np.bytes_(b"ashes"), "as", np.str_("a")):
    case(A.__setitem__, a(3, 5), _word, via=_letters)


def _masked(x):
    return np.ma.masked_array(x.gather() if hasattr(x, "gather") else x, mask=[True, False, False, True])


case(A.__array__, a(4), via=lambda x: np.ma.getmaskarray(_masked(x) + 1), materialises=True)
case(A.__array_ufunc__, plain_of([1.0, 2.0]), via=lambda x: type(x.view(np.matrix) * 2.0).__name__)

for _class in (np.matrix, np.recarray):
    case(A.__array_ufunc__, a(4), plain(4), via=lambda x, y, c=_class: _mixed(x, y.view(c)), materialises=True)
    case(A.__array_ufunc__, a(4), plain(4), via=lambda x, y, c=_class: _mixed(y.view(c), x), materialises=True)

# What derived cases (`variants`) have found.
for _function in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft):
    for _array in (a(19), a(1), a(22), a(24, dtype="f2"), a(24, dtype="g"), a(23, dtype="g")):
        case(_function, _array, tolerance=BLAS)
        case(_function, _array, 30, norm="ortho", tolerance=BLAS)
for _dtype in ("S3", "U5", "M8[s]", "m8[ms]"):
    case(np.imag, a(4, 3, dtype=_dtype))
    case(np.isreal, a(4, 3, dtype=_dtype))
    case(np.result_type, a(3, dtype=_dtype), a(3, dtype=_dtype), "f2")
    case(np.geomspace, a(3, dtype=_dtype), 9.0, 5)
    case(np.linspace, 1.0, a(3, dtype=_dtype), 4)
    case(np.trim_zeros, a(6, dtype=_dtype))
for _dtype, _value in (("u1", 3), ("u1", 300), ("i4", 2.5), ("?", 3), ("f4", 3), ("S3", "a"), ("i1", np.int64(3))):
    case(np.copyto, a(6, 5, dtype=_dtype), _value)
_SPANS = of([[3, "NaT", 4], [1, 2, 5]], "m8[s]")
for _other in (a(3, 4, dtype="m8[s]"), a(3, dtype="m8[ms]"), a(3, dtype="i4")):
    case(np.dot, _SPANS, _other)
case(np.vdot, a(4, dtype="m8[s]"), a(4, dtype="m8[s]"))
case(np.vdot, a(4, dtype="M8[s]"), a(4, dtype="M8[s]"))
case(np.round, a(), 2)
case(np.round, of(3), 1)
case(np.round, a(7, 5, view="fortran"), 2)
case(np.i0, a(9, dtype="S3"))
case(np.i0, of(["1", "2.5", "3"]))
case(np.polyadd, a(4, dtype="U5"), a(3, dtype="U5"))
case(np.strings.replace, a(6, dtype="?"), "e", "EE")
for _dtype in ("S5", "U5"):
    case(np.strings.replace, a(dtype=_dtype), "a", [["b"], ["longer than these"]], a(3, dtype="i8"))
    case(np.multiply, a(4, dtype=_dtype), 2**62, out=a(4, dtype=_dtype))
    case(np.strings.replace, a(3, dtype=_dtype), old=["a", "l", "e"], new="X")
case(np.ediff1d, a(9, dtype="?"), to_begin=0, to_end=[1, 2])
case(np.put_along_axis, a(4, 5), of([[0], [1], [2], [3]]), a(4, 3), 1)
case(np.put_along_axis, a(4, 5, view="fortran"), of([0, 17]), a(2), None)
case(np.bitwise_and.reduce, a(0, dtype="u8"))
case(np.bitwise_and.reduce, a(4, 0, dtype="u1"), axis=1)
case(np.fmod.reduceat, of([3, 6, -9, 6, -1, 0], "i2"), [0, 3, 1, 5])
case(np.fmod.reduceat, of([3, 6, 0, 6, -1, 0, 2, 1], "i2"), [0, 3, 6])
case(np.equal.reduceat, a(1), [0, 3])
case(np.minimum.reduceat, a(4, 0), [0, 3, 1], axis=0)
case(np.floor_divide.at, of([3, 4, 5, 6]), [0, 2, 2, -1], of([0, 1, 0, 2]))
case(np.divide.at, of([3.0, 4.0, 5.0, 6.0]), [0, 2, 2, -1], of([0.0, 1.0, 0.0, 2.0]))
case(np.divide.at, of([[3.0, 4.0], [5.0, 6.0]]), ([0, 1], [1, 1]), 0.0)
case(A.__eq__, a(), via=lambda x: x == None)  # noqa: E711
case(A.__ne__, a(), via=lambda x: x != None)  # noqa: E711
case(A.__matmul__, a(6, 5, dtype="M8[s]"), 2, via=operator.matmul)
case(A.imag, a(), via=lambda x: setattr(x, "imag", 1))
case(A.item, of([5]), via=lambda x: np.sum(x, keepdims=True).view("m8[s]").item(), materialises=True)
case(np.cov, a(0, 7))
case(np.corrcoef, a(0, 7))

# Results own their memory where axes of extent 1 are summed; what is stored in an output is cast as it is allowed.
for _subscripts in ("ij->i", "ij->j", "ij", "ji", "ij->ij", "ij->", "i...->..."):
    case(np.einsum, _subscripts, a(6, 1), tolerance=SUMS)
    case(np.einsum, _subscripts, a(1, 5), optimize=True, tolerance=SUMS)
case(np.einsum, a(6, 5), [1, 0])
case(np.einsum, "ij,ik->i", a(6, 1), a(6, 1))
case(np.einsum, "ij->ji", a(6, 5), dtype="c16", order="C")
case(np.einsum, "a->a", a(5, dtype="c16"), out=a(5), casting="unsafe")
case(np.einsum, "a->a", a(5, values="whole"), out=a(5, dtype="i8"), casting="unsafe")
case(np.einsum, "a,a->a", a(5), a(5), out=a(5, dtype="f2"), dtype="c8", casting="unsafe")
case(np.einsum, "a->a", a(5), out=a(5, dtype="i8"))
case(np.einsum, "ab->ab", a(2, 1), out=a(2, 3))
case(np.einsum, "ab->ab", a(2, 3), out=a(2, 1))
case(np.einsum, "a->", of([100] * 9, "i1"), out=of(0, "i8"))

# Signs of zeros.
_MINUS = of([-0.0, -0.0, -0.0])
for _dtype in ("f2", "f4", "f8", "g", "c8", "c16"):
    _zeros = of(-np.zeros((9, 2)), _dtype)
    case(np.sum, _zeros)
    case(np.sum, _zeros, axis=0, initial=-0.0)
    case(np.add.reduce, _zeros, axis=1, initial=-0.0, where=of([True, False]))
    case(np.mean, _zeros, axis=0)
    case(np.nansum, _zeros, initial=-0.0)
    case(np.prod, _zeros, initial=-1)
    case(np.einsum, "ij->i", of(-np.zeros((9, 1)), _dtype))
    case(np.einsum, "ij,ij->ij", _zeros, of(np.ones((9, 2)), _dtype))
    case(np.dot, of([-0.0], _dtype), of([1.0], _dtype))
    case(np.dot, _zeros, of(1.0, _dtype))
    case(np.vdot, of([-0.0], _dtype), of([1.0], _dtype))
    case(np.inner, _zeros, of([1.0, 1.0], _dtype))
case(np.sum, _MINUS, initial=complex(-0.0, -0.0), dtype="c16")
case(np.sum, a(3, dtype="i4", values="zeros"), initial=-0.0, dtype="f8")
case(np.sum, _MINUS, initial=-0.0, out=of(3.0))
case(np.sum, of([-0.0, 1.0, -1.0]), initial=-0.0)
case(np.sum, of([[-0.0, 0.0], [-0.0, -0.0]]), axis=1, initial=-0.0)
case(np.sum, a(0), initial=-0.0)
case(np.sum, a(0, 3, dtype="c8"), axis=0, initial=complex(0.0, -0.0))

# Arguments that are no arrays, or none of the usual ones.
_TEXTS = of(["a", "bcd", "efghij"])
for _other in ("q", "missing", b"q", np.str_("longer than"), of("xyz")):
    case(np.where, of([True, False, True]), _TEXTS, _other)
case(np.where, of([True, False]), None, None, declines="arrays of Python objects")
case(np.where, of([True, False]), None, 1, declines="arrays of Python objects")
case(np.where, None, 0, of([1, 2]))
case(np.where, "", of([1, 2]), 5)
case(np.where, of([True, False]), of([1, 2]))
case(np.putmask, a(3, dtype="i8"), of([True, False, True]), of([1.7, 2.7, 3.7]))
case(np.putmask, a(3, dtype="i8"), of([True, False, True]), [1.7, 2.7, 3.7])
case(np.putmask, a(3), of([True, False, True]), of([1 + 2j, 2, 3]))
case(np.put, a(6, dtype="i8"), [0, 1], of([1.5, 2.5]))
for _index in (1.9, [0, 1, 2.5, 1], np.nan, np.inf, 1 + 2j, [[1.5], [2]], "1", None, np.array([1.5])):
    case(np.take, a(6), _index)
    case(np.put, a(6), _index, 7)
case(np.take_along_axis, None, of([0, 1]), axis=0)
case(np.take_along_axis, of([0, 1]), None, axis=0)
for _k in (0.0, 0.5, -1.5, np.float32(1), None, "1"):
    case(np.tril, a(3, 4), _k)
    case(np.triu, a(3, 4), _k)
    case(np.tril_indices_from, a(3, 4), _k)
    case(np.triu_indices_from, a(3, 4), _k)
for _function in (np.tril, np.triu):
    case(_function, a(4))
    case(_function, a(2, 3, 0))
for _nothing in (of([]), [], np.zeros(0)):
    case(np.fill_diagonal, a(3, 3), _nothing)
    for _key in (slice(None), [1, 2], slice(0, 9, 4), 1, np.arange(9) % 2 == 0):
        case(A.flat, a(3, 3), _key, _nothing, via=lambda x, key, v: x.flat.__setitem__(key, v))
for _key in (slice(None), [1, 2, 3], np.arange(9) % 2 == 0):
    for _some in ([5, 6], [5, 6, 7, 8, 9, 10], [[5], [6]], 5):
        case(A.flat, a(3, 3), _key, _some, via=lambda x, key, v: x.flat.__setitem__(key, v))
case(np.median, of([7, 1, 5, 3]), overwrite_input=True)
case(np.median, of([[7.0, 1.0, 5.0], [3.0, 2.0, 9.0]]), axis=1, overwrite_input=True)

# As many warnings as there are rows without a number.
_EMPTY_ROWS = of([[np.nan, np.nan, np.nan], [1.0, np.nan, 2.0], [np.nan, np.nan, np.nan], [3.0, 4.0, 5.0]])
for _axis in (0, 1, (0, 1), None):
    case(np.nanmedian, _EMPTY_ROWS, axis=_axis)
    case(np.nanmedian, a(6, 5, values="nans"), axis=_axis)
    case(np.nanquantile, _EMPTY_ROWS, [0.2, 0.5], axis=_axis)
    case(np.nanpercentile, _EMPTY_ROWS, 30, axis=_axis, method="lower")
case(np.nanmedian, of(np.full((5, 700), np.nan)), axis=1)
case(np.nanmedian, of(np.full((5, 3), np.nan)), axis=1, keepdims=True)
case(np.nanmax, _EMPTY_ROWS, axis=1)

# The loops for updates by index go by their own names in warnings, and raise other flags than the loop for any index.
for _ufunc in (np.maximum, np.minimum, np.fmax, np.add):
    case(_ufunc.at, of([np.nan, np.inf, 1.0]), [0, 1, 1, 2], of([1.0, -np.inf, np.nan, np.nan]))
    case(_ufunc.at, of([np.nan, np.inf, 1.0]), slice(None), of([1.0, -np.inf, np.nan]))
    case(_ufunc.at, of([np.nan, np.inf, 1.0]), True, of([1.0, -np.inf, np.nan]))
    case(_ufunc.at, of([[np.nan], [np.inf]]), ([0, 1, 1], [0, 0, 0]), of([1.0, -np.inf, np.nan]))

# Reductions without identity refuse axes of no elements, also where there is nothing to be made.
for _ufunc in (np.maximum, np.fmin, np.subtract, np.logaddexp, np.bitwise_and):
    for _axis in (0, 1, None):
        case(_ufunc.reduce, a(0, 0, dtype="i4"), axis=_axis)
case(np.min, a(0, 2, 0), axis=0)
case(np.max, a(0, 2, 0), axis=1)

# A cast is told of once, and where NumPy casts: of no element, or of one that is not chosen, it does not.
case(A.flat, a(dtype="f4"), via=lambda x: operator.setitem(x.flat, 0, 1e300))
case(A.flat, a(3, dtype="f4"), via=lambda x: operator.setitem(x.flat, 1, np.float64(1e300)))
for _array in (a(dtype="u4"), a(1, dtype="u4"), a(0, dtype="u4"), a(2, dtype="u4")):
    for _source in (np.inf, 1e30, -1, 1j, "a", (), [3]):
        for _casting in ("unsafe", "same_kind"):
            case(np.copyto, _array, _source, casting=_casting)
            case(np.copyto, _array, _source, casting=_casting, where=False)
            case(np.copyto, _array, _source, where=a(dtype="?", values="zeros"), casting=_casting)
case(np.copyto, a(2, dtype="f4"), 1j)

# A value that does not fit is told of before indices that are out of bounds.
for _key in ([0, 9], ([0, 9], [0, 7]), (slice(None), [0, 9]), (None, [0, 9, -9])):
    case(A.__setitem__, a(4, 5), _key, via=lambda x, key: operator.setitem(x, key, np.ones((7, 3))))
    case(A.__setitem__, a(4, 5), _key, via=lambda x, key: operator.setitem(x, key, "text"))
    case(A.__setitem__, a(4, 5), _key, via=lambda x, key: operator.setitem(x, key, 1))

# Results are views where NumPy's are, and in its memory order.
for _array in (a(3, 4), a(3, 4, view="fortran"), a(1, 1), a(0, 0), a(0, 3)):
    for _function in (
        lambda x: x[np.zeros((2, 1), int)] if len(x) else None,
        lambda x: x[:, np.zeros((2, 1), int)] if x.size else None,
        lambda x: x[None, [0]] if len(x) else None,
        lambda x: np.take_along_axis(x, np.zeros((1, 1), int), 0) if len(x) else None,
        lambda x: np.sort(x, axis=0),
        lambda x: np.repeat(x, 2, axis=0),
    ):
        case(A.base, _array, _function, via=lambda x, f: (y := f(x)) is not None and (y.base is None, y.flags.owndata))
for _view in ("whole", "fortran", "backwards"):
    for _axis in (0, 1, 2):
        case(np.maximum.reduceat, a(2, 3, 4, view=_view), [1, 0, 1], axis=_axis)
        case(np.maximum.reduceat, a(1, 2, 2, view=_view), [0], axis=_axis)
case(np.tile, a(0, 0), 0, via=lambda x, n: np.tile(np.diagonal(x), n))
case(np.tile, a(0), 0, via=lambda x, n: np.tile(np.lib.stride_tricks.sliding_window_view(x, 0), n))
case(np.multiply.reduce, a(17, dtype="f2"), via=lambda x: np.multiply.reduce(x, where=x > 9))  # the first one is not
case(np.prod, a(6, 5, dtype="f2", values="whole"), via=lambda x: np.prod(x, axis=1, where=x > 1))
case(np.putmask, a(0, 0), via=lambda x: np.putmask(np.diagonal(x), [], []))
case(np.putmask, a(3, 3), via=lambda x: np.putmask(np.diagonal(x), [1], [1]))
case(np.place, a(3, 3), via=lambda x: np.place(np.diagonal(x), [1], [1]))
case(np.square.at, a(0, 0), via=lambda x: np.square.at(np.diagonal(x), []))
for _value in (2**70, "a", [2**70]):  # what is wrong with a mask comes first
    case(np.ndarray.__setitem__, a(6, dtype="i8"), _value, via=lambda x, v: x.__setitem__(x[:5] > 0, v))
case(np.logical_and, a(3, dtype=[("x", "f8"), ("n", "i4")]), via=lambda x: np.logical_and(x, x))
for _same in (np.transpose, np.ravel, np.permute_dims, lambda x: x.reshape(x.shape), lambda x: np.reshape(x, -1)):
    case(np.ndarray.reshape, a(7), via=lambda x, f=_same: f(x).flags.owndata)
case(np.tile, a(0, 0), (1, 1), via=lambda x, n: np.tile(np.diagonal(x), n))

# Masks without elements fit axes of any extent; what cannot be cast is refused before anything is written.
_NO_MASK = np.zeros(0, bool)
for _key in (_NO_MASK, (slice(None), _NO_MASK), (slice(None), None, _NO_MASK), (_NO_MASK, [0]), (_NO_MASK, 0),
             np.zeros((0, 5), bool), np.zeros((0, 4), bool), np.zeros((2, 0), bool)):  # fmt: skip
    case(A.__getitem__, a(2, 5), _key, via=lambda x, key: x[key])
    case(A.__setitem__, a(2, 5), _key, via=lambda x, key: operator.setitem(x, key, 3.0))
    case(A.__setitem__, a(2, 5), _key, via=lambda x, key: operator.setitem(x, key, np.ones(7)))
for _source in (np.zeros(3, [("x", "f8"), ("n", "i4")]), np.zeros((), [("x", "f8"), ("n", "i4")])):
    for _dtype in ("u8", "m8[s]", "S3", "V4"):
        case(A.__setitem__, a(3, dtype=_dtype, values="zeros") if _dtype != "V4" else of(np.zeros(3, "V4")), _source,
             via=lambda x, source: operator.setitem(x, ..., source))  # fmt: skip

# A mask that leaves out the first factor of a product that is taken in NumPy's order.
_FACTORS = of([-3.293, 0.323, -5.57, -0.3386, -0.1693], "f2")
for _mask in (of([False, True, False, False, False]), of([False] * 5)):
    case(np.prod, _FACTORS, where=_mask)
    case(np.prod, _FACTORS, where=_mask, initial=2)
case(np.prod, of([[300.0, 300.0, 300.0]] * 4, "f2"), axis=1, where=of([False, True, False]))

# Records that no loop takes: told before anything runs, and alike on every rank.
_RECORDS = np.dtype([("x", "f8"), ("n", "i4")])
for _function in (np.logical_and, np.logical_or, np.logical_xor):
    for _shape in ((), (1,), (3,), (2, 2), (0,)):
        case(_function, a(*_shape, dtype=_RECORDS), a(*_shape, dtype=_RECORDS))
        case(_function, a(*_shape, dtype=_RECORDS), a(*_shape))
        case(_function, a(*_shape), a(*_shape, dtype=_RECORDS))
    case(_function, a(dtype=_RECORDS), a(dtype=_RECORDS), out=a(1, 1))
    case(_function, a(3, dtype=np.dtype([("x", "f8")])), a(3))
for _shape in ((), (1,), (3,), (0,)):
    case(np.where, a(*_shape, dtype=_RECORDS), 1, 2)
    case(A.astype, a(*_shape, dtype=_RECORDS), bool, via=lambda x, kind: x.astype(kind))
    case(A.astype, a(*_shape), "i4", via=lambda x, kind: x.astype(kind, casting="safe"))

# NumPy writes into what is read-only, where one axis is indexed by an array; here that is so of no elements alone.
for _function in (np.square, np.negative):
    case(_function.at, a(0, 0), via=lambda x, f=_function: f.at(np.diagonal(x), []))
    case(_function.at, a(3, 3), via=lambda x, f=_function: f.at(np.diagonal(x), []))
    case(_function.at, a(3, 3), via=lambda x, f=_function: f.at(np.broadcast_to(x, (2, 3, 3)), []))
case(np.add.at, a(3, 3), via=lambda x: np.add.at(np.broadcast_to(x, (2, 3, 3)), [0], 1.0))
case(np.add.at, a(3), via=lambda x: np.add.at(np.broadcast_to(x, (3,)), ..., 1.0))

# Errors of shapes name the operands as they were given; errors of an index come before those of a value.
if hasattr(np, "matvec"):
    case(np.matvec, a(2, 0, 5), a(0, 5))
    case(np.vecmat, a(4, 2), a(5, 2, 3))
case(np.vecdot, a(4, 3), a(5, 2, 3))
for _operation in (operator.eq, operator.ne):
    case(A.__eq__, a(0), a(2, dtype="m8[s]"), via=_operation)
    case(A.__eq__, a(2, dtype="U3"), a(3, 1, 3), via=_operation)
for _mask in (of([True]), of([True, False, True]), of([False, False, False])):
    case(A.__setitem__, a(3, dtype="i8"), _mask, via=lambda x, mask: operator.setitem(x, mask, 1e300))
    case(A.__setitem__, a(3, dtype="i8"), _mask, via=lambda x, mask: operator.setitem(x, mask, "text"))

# A mask of another shape is refused by the reduction, in its words.
case(np.prod, a(2), where=of(np.ones(0, bool)))
case(np.nanprod, a(2), where=of(np.ones(3, bool)))
