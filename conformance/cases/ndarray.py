"""DistArray as an ndarray: operators, methods, attributes, conversions."""

from __future__ import annotations

import copy
import operator
import os
import pickle

import numpy as np

from numpy_dist.conformance.arguments import TemporaryFile, a, of, plain
from numpy_dist.conformance.case import BLAS, SUMS, Topic
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION

TOPIC = Topic("The array object")
case = TOPIC.case
A = np.ndarray

BINARY = {
    A.__add__: operator.add, A.__sub__: operator.sub, A.__mul__: operator.mul, A.__truediv__: operator.truediv,
    A.__floordiv__: operator.floordiv, A.__mod__: operator.mod, A.__divmod__: divmod, A.__pow__: operator.pow,
    A.__lshift__: operator.lshift, A.__rshift__: operator.rshift, A.__and__: operator.and_, A.__or__: operator.or_,
    A.__xor__: operator.xor, A.__lt__: operator.lt, A.__le__: operator.le, A.__eq__: operator.eq, A.__ne__: operator.ne,
    A.__gt__: operator.gt, A.__ge__: operator.ge,
}  # fmt: skip
INPLACE = {
    A.__iadd__: operator.iadd, A.__isub__: operator.isub, A.__imul__: operator.imul, A.__itruediv__: operator.itruediv,
    A.__ifloordiv__: operator.ifloordiv, A.__imod__: operator.imod, A.__ipow__: operator.ipow,
    A.__ilshift__: operator.ilshift, A.__irshift__: operator.irshift, A.__iand__: operator.iand,
    A.__ior__: operator.ior, A.__ixor__: operator.ixor,
}  # fmt: skip
UNARY = {A.__neg__: operator.neg, A.__pos__: operator.pos, A.__abs__: abs, A.__invert__: operator.invert}
BITS = (A.__lshift__, A.__rshift__, A.__and__, A.__or__, A.__xor__, A.__ilshift__, A.__irshift__, A.__iand__, A.__ior__,
        A.__ixor__)  # fmt: skip
OTHERS = (
    plain(6, 5),
    plain(5),
    2,
    2.5,
    True,
    [1, 2, 3, 4, 5],
    np.float32(1.5),
    np.int64(3),
    np.array(2),
    1j,
    None,
    "x",
)

for _name, _operator in BINARY.items():
    _dtype = "i4" if _name in BITS else "f8"
    _values = "bits" if _name in BITS else "positive" if _name is A.__pow__ else "mixed"
    case(_name, a(6, 5, dtype=_dtype, values=_values), a(6, 5, dtype=_dtype, values=_values), via=_operator)
    case(_name, a(6, 5, dtype=_dtype, values=_values), a(4, 5, dtype=_dtype, values=_values), via=_operator)
    case(_name, a(6, 5, dtype="?"), a(5, dtype="?"), via=_operator)
    case(_name, a(6, 5, dtype="u1"), 300, via=_operator)
    case(_name, a(6, 5, dtype="u1"), a(6, 5, dtype="i1", values="positive"), via=_operator)
    case(_name, a(dtype=_dtype, values=_values), a(dtype=_dtype, values=_values), via=_operator)
    for _other in OTHERS:
        if _name in BITS and isinstance(_other, type(plain())):
            _other = plain(*_other.shape, dtype="i4", values="bits")
        _reason = "arrays of dtype object" if _other is None and _name not in (A.__eq__, A.__ne__) else None
        case(_name, a(6, 5, dtype=_dtype, values=_values), _other, via=_operator, declines=_reason)
        case(_name, _other, a(6, 5, dtype=_dtype, values=_values), via=_operator, declines=_reason)
for _name, _operator in INPLACE.items():
    _dtype = "i4" if _name in BITS else "f8"
    _values = "bits" if _name in BITS else "positive"
    case(_name, a(6, 5, dtype=_dtype, values=_values), a(6, 5, dtype=_dtype, values=_values), via=_operator)
    case(_name, a(6, 5, dtype=_dtype, values=_values), a(5, dtype=_dtype, values=_values), via=_operator)
    case(_name, a(5, dtype=_dtype, values=_values), a(6, 5, dtype=_dtype, values=_values), via=_operator)
    case(_name, a(6, 5, dtype="i4", values="bits"), a(5, values="positive"), via=_operator)
    case(_name, a(6, 5, dtype="f4", values="positive"), a(5, values="positive"), via=_operator)
    case(_name, a(6, 5, dtype="u1"), 300, via=_operator)
    for _other in (2, 2.5, [1, 2, 3, 4, 5], 1j, None):
        case(_name, a(6, 5, dtype=_dtype, values=_values), _other, via=_operator)
    case(_name, plain(6, 5, dtype=_dtype, values=_values), a(6, 5, dtype=_dtype, values=_values), via=_operator,
         declines="its output is an ndarray")  # fmt: skip
    case(_name, a(6, 5, dtype=_dtype, values=_values), a(3, 5, dtype=_dtype, values=_values),
         via=lambda x, y, f=_operator: f(x[::2], y))  # fmt: skip
for _name, _operator in UNARY.items():
    for _dtype in ("f8", "i4", "?", "c16", "u1"):
        case(_name, a(6, 5, dtype=_dtype), via=_operator)
for _exponent in (0, 1, 2, 3, 0.5, -1, -2, 1.0, 2.0, 2.5, 1j):
    for _dtype in ("f8", "f4", "i4", "c16", "?"):
        case(
            A.__pow__,
            a(13, dtype=_dtype, values="positive" if _dtype == "f8" else "mixed"),
            _exponent,
            via=operator.pow,
        )
        case(A.__ipow__, a(13, dtype=_dtype, values="ones"), _exponent, via=operator.ipow)
case(A.__pow__, a(3), 2, 5, via=pow)
case(A.__matmul__, a(6, 5), a(5, 3), via=operator.matmul, tolerance=BLAS)
case(A.__matmul__, a(6, 5), 2, via=operator.matmul)
case(A.__imatmul__, a(5, 5, values="whole"), a(5, 5, values="whole"), via=operator.imatmul)
for _left, _right in (((3,), (3,)), ((3, 3), (3,)), ((3,), (3, 3)), ((3, 3), (3, 1)), ((1, 3), (3, 3)),
                      ((3, 3, 3), (3, 3)), ((3, 3), (2, 3, 3)), ((1, 3, 3), (2, 3, 3)), ((3, 3), ()), ((), (3, 3)),
                      ((3, 2), (3, 3))):  # fmt: skip
    case(A.__imatmul__, a(*_left, values="whole"), a(*_right, values="whole"), via=operator.imatmul)
case(A.__eq__, a(5), a(4), via=operator.eq)
case(A.__lt__, a(5, dtype="U3"), a(5, dtype="U3"), via=operator.lt)
case(A.__add__, a(5, dtype="M8[s]"), np.timedelta64(3, "h"), via=operator.add)
case(A.__sub__, a(5, dtype="M8[s]"), a(5, dtype="M8[s]"), via=operator.sub)

for _convert in (bool, int, float, complex, operator.index, len, str, repr, list, hash):
    for _array in (of(2.0), of(3), of([2.5]), of([[7]]), a(3), a(0), of(True), a(2, 3), of([1])):
        case(A.__bool__ if _convert is bool else A.__float__, _array, via=lambda x, f=_convert: f(x),
             materialises=True)  # fmt: skip
case(A.__iter__, a(3, 4), via=lambda x: [row + 1 for row in x], materialises=True)
case(A.__iter__, a(3), via=lambda x: list(x), materialises=True)
case(A.__iter__, a(2, 3), via=lambda x: [v for row in x for v in row], materialises=True)
case(A.__iter__, of(1.0), via=lambda x: list(x), materialises=True)
case(A.__contains__, a(6, 5, dtype="i4"), 3, via=lambda x, v: v in x)
case(A.__contains__, of([1, 2, 3]), 2, via=lambda x, v: v in x)
case(A.__format__, of(2.5), ".3f", via=format, materialises=True)
case(A.__format__, a(3), "", via=format, materialises=True)
case(A.__format__, a(3), ".3f", via=format, materialises=True)
case(A.__str__, a(6, 5), via=str, materialises=True)
case(A.__repr__, a(6, 5), via=repr, materialises=True)
# As for subclasses, the text may name the class: what follows is NumPy's.
case(A.__repr__, a(40, 60, dtype="i4"), via=lambda x: repr(x).partition("(")[2].split(), materialises=True)
case(A.__repr__, a(0, 3), via=repr, materialises=True)
case(A.__str__, a(3, dtype="M8[D]"), via=str, materialises=True)
case(A.__len__, a(6, 5), via=len)
case(A.__len__, of(1), via=len)
case(A.__copy__, a(6, 5), via=copy.copy)
case(A.__deepcopy__, a(6, 5), via=copy.deepcopy)
case(A.__reduce__, a(6, 5), via=lambda x: pickle.loads(pickle.dumps(x)), materialises=True)

ATTRIBUTES = ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides")
for _shape in ((6, 5), (), (0, 3)):
    for _view in ("whole", "fortran", "strided"):
        for _name in ATTRIBUTES:
            case(getattr(A, _name), a(*_shape, view=_view), via=lambda x, n=_name: getattr(x, n) if x.size else None)
        case(
            A.flags,
            a(*_shape, view=_view),
            via=lambda x: [x.flags.c_contiguous, x.flags.f_contiguous, x.flags.writeable],
        )
        case(A.T, a(*_shape, view=_view), via=lambda x: x.T)
        case(A.real, a(*_shape, dtype="c16", view=_view), via=lambda x: (x.real, x.imag))
        case(A.flat, a(*_shape, view=_view), via=lambda x: list(x.flat), materialises=True)
case(A.mT, a(3, 4), via=lambda x: x.mT)
case(A.mT, a(4), via=lambda x: x.mT)
case(A.imag, a(4, dtype="c16"), a(4), via=lambda x, y: setattr(x, "imag", y))
case(A.real, a(4), via=lambda x: setattr(x, "real", 3))
case(A.imag, a(4), via=lambda x: setattr(x, "imag", 3))
case(A.imag, a(4), via=lambda x: x.imag)
case(A.shape, a(6, 4), via=lambda x: x.shape.index(4))
case(A.shape, a(6, 4), via=lambda x: setattr(x, "shape", (3, 5)))
case(A.dtype, a(6, 4), via=lambda x: setattr(x, "dtype", "i8"))
if hasattr(A, "_set_shape"):  # since NumPy 2.5
    case(A._set_shape, a(6, 4), (3, 8), via=lambda x, s: x._set_shape(s))
    case(A._set_shape, a(6, 4), (3, 7), via=lambda x, s: x._set_shape(s))
    case(A._set_dtype, a(6, 4), np.dtype("i8"), via=lambda x, t: x._set_dtype(t))
case(A.dtype, a(6, 4), via=lambda x: x.dtype.newbyteorder())
case(A.strides, a(6, 4, dtype="f4"), via=lambda x: setattr(x, "strides", (3,)))
case(A.base, a(6, 4), via=lambda x: (x[1:].base is None, x.copy().base))
case(A.base, a(6, 4), via=lambda x: x.copy("F").base)
case(A.device, a(6, 4), via=lambda x: x.device)
case(A.flags, a(6, 4), via=lambda x: [str(x.copy(o).flags) for o in "CF"])
case(A.flags, a(6, 4), via=lambda x: [str(x.copy()[1:, ::2].flags), x.copy().flags.num, x.T.copy().flags["FORC"]])
case(A.flags, a(6, 4), via=lambda x: setattr(x[1:].flags, "owndata", True))
case(A.flags, a(6, 4), via=lambda x: x.flags["NO SUCH"])
case(A.setflags, a(6, 4), via=lambda x: np.broadcast_to(x, (2, 6, 4)).__setitem__(0, 1))
case(A.flat, a(6, 4), via=lambda x: [x.flat < 0, x.flat >= 1, x.flat == 0, x.flat != x.ravel()])
case(A.flat, a(6, 4), via=lambda x: [(f := x.flat).index, next(f), f.index, f.coords, len(f)], materialises=True)
case(A.flat, a(6, 4), via=lambda x: x.flat[3])
case(A.flat, a(6, 4), via=lambda x: setattr(x, "flat", 3))

X = a(6, 5, values="whole")
for _method, _args, _kwargs in (
    ("sum", (), {}), ("sum", (1,), {}), ("prod", (), {"axis": 0}), ("max", (), {}), ("min", (1,), {}), ("any", (), {}),
    ("all", (0,), {}), ("argmax", (), {}), ("argmin", (1,), {}), ("mean", (), {"axis": 1, "keepdims": True}),
    ("round", (1,), {}), ("clip", (-1, 2), {}), ("trace", (), {}), ("diagonal", (1,), {}), ("transpose", (), {}),
    ("transpose", (1, 0), {}), ("transpose", ((1, 0),), {}), ("swapaxes", (0, 1), {}), ("reshape", (3, 10), {}),
    ("reshape", ((10, 3),), {}), ("reshape", (-1,), {"order": "F"}), ("ravel", (), {}), ("ravel", ("F",), {}),
    ("flatten", (), {}), ("flatten", ("F",), {}), ("squeeze", (), {}), ("copy", (), {}), ("copy", ("F",), {}),
    ("astype", ("i4",), {}), ("astype", ("f8",), {"copy": False}), ("astype", ("i4",), {"casting": "safe"}),
    ("astype", ("c16",), {"order": "F"}), ("conj", (), {}), ("conjugate", (), {}), ("fill", (3,), {}),
    ("item", (2, 3), {}),
    ("item", (7,), {}), ("item", (), {}), ("tolist", (), {}), ("nonzero", (), {}), ("dot", (of([1, 2, 3, 4, 5]),), {}),
    ("sum", (), {"axis": (0, 1)}), ("sum", (), {"axis": 3}), ("sum", (), {"dtype": "i4"}),
    ("view", (), {}), ("view", ("i8",), {}), ("view", ("i4",), {}), ("view", ("u1",), {}), ("tobytes", (), {}),
    ("compress", ([True, False, True],), {"axis": 0}), ("std", (), {"ddof": 1}), ("var", (0,), {}),
    ("setflags", (), {"write": False}),
):  # fmt: skip
    case(
        getattr(A, _method),
        X,
        *_args,
        **_kwargs,
        tolerance=SUMS,
        via=lambda x, *p, _m=_method, **k: getattr(x, _m)(*p, **k),
        materialises=_method in ("tolist", "tobytes"),
    )
for _method, _args in (("cumsum", ()), ("cumprod", ()), ("sort", ()), ("argsort", ()), ("take", ([0, 2],)),
                       ("repeat", (2,)), ("searchsorted", (3.0,)), ("put", ([0], 1))):  # fmt: skip
    _values = {"argsort": "distinct", "searchsorted": "sorted"}.get(_method, "whole")
    case(getattr(A, _method), a(7, values=_values), *_args, via=lambda x, *p, _m=_method: getattr(x, _m)(*p))
for _from in "?bBhHiIlLefdFD":
    for _to in ("?", "i1", "u4", "f4", "c8", "U9"):
        case(A.astype, a(6, 5, dtype=_from), _to, via=lambda x, t: x.astype(t))
case(A.astype, a(6, values="special"), "i4", via=lambda x, t: x.astype(t))
case(A.astype, a(6, dtype="U5"), "f8", via=lambda x, t: x.astype(t))
case(A.astype, of(["1.5", "2"]), "f8", via=lambda x, t: x.astype(t))
for _unit in ("s", "D"):
    for _short in ("S6", "U6", "U40"):
        case(A.astype, of(123, f"M8[{_unit}]"), _short, via=lambda x, t: x.astype(t))
        case(A.astype, of([1, 123], f"M8[{_unit}]"), _short, via=lambda x, t: x.astype(t))
for _dtype in "dDG":
    for _array in (of(1, _dtype), a(5, dtype=_dtype)):
        case(A.__add__, _array, 10**400, via=operator.add)
        case(A.__mul__, _array, -(10**400), via=operator.mul)
        case(A.__lt__, _array, 10**400, via=operator.lt)
        case(A.__add__, _array, int(np.finfo(float).max) + 1, via=operator.add)
for _text, _kind in (("1.5", "f8"), (b"1.5", "f2"), ("12", "i4"), ("1.5", "i4")):
    case(A.astype, of(_text), _kind, via=lambda x, t: x.astype(t))
case(A.swapaxes, a(4, 3), 1, 1, via=lambda x, *axes: x.swapaxes(*axes).flags.owndata)
case(A.choose, a(5, dtype="i4", values="ones"), np.void(0), a(5), via=lambda x, *p: x.choose(*p))
case(A.choose, a(5, dtype="i4", values="ones"), a(5), 3.5, via=lambda x, *p: x.choose(*p, mode="wrap"))
for _texts in (["2020-01-31", "2021"], ["2020-01-31T12", "2021-05", "NaT"], ["2020-01-31", "no date"]):
    case(A.astype, of(_texts), "M8", via=lambda x, t: x.astype(t), declines="the unit of dates depends on all texts")
    case(A.astype, of(_texts), "M8[s]", via=lambda x, t: x.astype(t))
case(A.__array_ufunc__, a(6, 5), via=lambda x: x.__array_ufunc__(np.add, "__call__", x, 1))
case(A.__array_function__, a(6, 5), via=lambda x: x.__array_function__(np.flip, (type(x),), (x,), {}))
case(A.__array_wrap__, a(3), plain(6, 5), via=lambda x, y: x.__array_wrap__(y) + 0)
case(A.__array_wrap__, a(3), np.array(2.0), via=lambda x, y: x.__array_wrap__(y, None, True))
case(A.__complex__, of(2.5), via=complex, materialises=True)
case(A.__complex__, a(3), via=complex, materialises=True)
case(A.__int__, of([2.5]), via=int, materialises=True)
case(A.__int__, of([1, 2]), via=int, materialises=True)
case(A.__index__, of(3), via=operator.index, materialises=True)
case(A.__index__, of([3]), via=operator.index, materialises=True)
case(A.__delitem__, a(3), via=lambda x: operator.delitem(x, 0))
case(A.__array_namespace__, of([0.5, 2.25, -4.0]), via=lambda x: float(x.__array_namespace__().sum(x)))
case(A.__dlpack_device__, a(3), via=lambda x: tuple(map(int, x.__dlpack_device__())))
for _dtype in ("f8", "i4", "u2", "c8", "M8[s]", "U3"):
    case(A.byteswap, a(6, 5, dtype=_dtype), via=lambda x: x.byteswap())
    case(A.byteswap, a(6, 5, dtype=_dtype), via=lambda x: x.byteswap(inplace=True))
case(A.getfield, a(6, 5), "i4", 4, via=lambda x, t, o: x.getfield(t, o))
case(A.getfield, a(6, 5), "i4", 6, via=lambda x, t, o: x.getfield(t, o))
case(A.setfield, a(6, 5), 3, "i2", 2, via=lambda x, v, t, o: x.setfield(v, t, o))
case(A.partition, a(7, values="distinct"), 3, via=lambda x, k: np.sort(x) if x.partition(k) is None else 0)
case(A.partition, a(7, values="distinct"), 9, via=lambda x, k: x.partition(k))
case(A.partition, a(3, 4, values="distinct"), 1, None, via=lambda x, *p: x.partition(*p))
for _axis in (0, None, 1.0):
    case(A.sort, a(3, 4, values="distinct"), axis=_axis, via=lambda x, axis: x.sort(axis=axis))
case(A.argpartition, a(7, values="distinct"), 3, via=lambda x, k: x[x.argpartition(k)[k]])
case(A.choose, a(5, dtype="i4", values="ones"), [a(5), a(5)], via=lambda x, c: x.choose(c, mode="clip"))
case(A.resize, a(6, 5), via=lambda x: (y := x.copy(), y.resize((3, 4), refcheck=False))[0])
case(A.resize, a(6, 5), via=lambda x: (y := x.copy(), y.resize(7, 7, refcheck=False))[0])
case(A.resize, a(6, 5), via=lambda x: (y := x.copy()[...], y.resize(5, 6), y.base.fill(3))[0])
case(A.resize, a(10, 0), via=lambda x: (y := x[...], y.resize((0, 100)))[0])
case(A.ravel, a(5), "F", via=lambda x, order: x.ravel(order).flags.owndata)
case(A.flat, a(*(1,) * 33), via=lambda x: x.flat)
case(A.resize, a(6, 5), via=lambda x: x.T[1:].resize(3, refcheck=False))
case(A.to_device, a(6, 5), "cpu", via=lambda x, d: x.to_device(d))
case(A.to_device, a(6, 5), "cuda", via=lambda x, d: x.to_device(d))
case(A.dumps, a(6, 5), via=lambda x: pickle.loads(x.dumps()), materialises=True)
case(A.dump, a(6, 5), via=lambda x: x.dump(os.devnull), materialises=True)
case(A.tofile, a(6, 5), TemporaryFile(), via=lambda x, f: x.tofile(f), materialises=True)
case(A.tofile, a(6, 5), TemporaryFile(), ",", "%.3f", via=lambda x, *f: x.tofile(*f), materialises=True)
case(A.__array__, a(6, 5), via=lambda x: np.asarray(x) + 0, declines="an ndarray was asked for")

# Spellings of `order`, and what is none of them.
for _order in ("c", "f", "a", "k", b"F", None, "Z", "fortran", 3):
    case(A.copy, a(6, 5), _order, via=lambda x, order: x.copy(order))
    case(A.astype, a(6, 5), _order, via=lambda x, order: x.T.astype("f4", order=order))
    case(A.flatten, a(6, 5), _order, via=lambda x, order: x.flatten(order))
    case(A.ravel, a(6, 5), _order, via=lambda x, order: x.T.ravel(order))
    case(np.copy, a(6, 5), _order)
    case(np.add, a(6, 5), a(6, 5), order=_order)
    case(np.ravel_multi_index, (of([0, 1, 2]), of([3, 1, 0])), (3, 4), order=_order)

# What is assigned to a single element is no sequence.
for _value in ([3], (3,), [[3]], [], np.array([3]), np.array([[3.0]]), range(1)):
    for _key in ((0, 0), (0, 0, ...), (0, 0, None)):
        case(A.__setitem__, a(6, 5), _key, _value, via=operator.setitem)
for _value in ([[1, 2, 3, 4, 5]], [[[1]]], np.ones((1, 5)), range(5)):
    case(A.__setitem__, a(6, 5), 0, _value, via=operator.setitem)
case(A.__setitem__, a(6, 5), (0, 0), a(2, 2), via=operator.setitem)
case(A.__setitem__, a(), (), [3], via=operator.setitem)

# Casts of what is assigned to a part of complex numbers.
for _value in (1j, [1, 2j, 3, 4], "a", True, 1e300):
    case(A.real, a(3, 4, dtype="c8"), _value, via=lambda x, value: setattr(x, "real", value))
    case(A.imag, a(3, 4, dtype="c8"), _value, via=lambda x, value: setattr(x, "imag", value))
case(A.real, a(3, 4, dtype="c16"), a(4, dtype="c16"), via=lambda x, y: setattr(x, "real", y))

# Odd indices of iterators, and iterators as arguments.
for _key in (99, -99, [99], (1, 2), (1,), (slice(1, 3),), (), [], [1.5], 1.5, True, None, "a", [[1, 2]], range(3), {1}):
    if NUMPY_VERSION >= (2, 4):  # before, one of them ends the process
        case(A.flat, a(6, 4), _key, via=lambda x, key: x.T.flat[key])
        case(A.flat, a(6, 4), _key, via=lambda x, key: operator.setitem(x.T.flat, key, 9))
case(A.flat, a(6, 4, values="whole"), via=lambda x: np.sum(x.T.flat))
case(A.flat, a(6, 4), via=lambda x: np.add(x.flat, x.ravel()))
case(A.flat, a(6, 4), via=lambda x: x.ravel() + x.T.flat)
case(A.flat, a(6, 4), via=lambda x: np.add(x.ravel(), 1, out=x.flat))
case(A.flat, a(6, 4), via=lambda x: np.concatenate([x.flat, x.T.flat]))

# Records are compared field by field.
_PAIR = np.dtype("i4,f8")
for _compare in (operator.eq, operator.ne):
    case(A.__eq__, a(7, dtype=_PAIR, values="mixed"), via=lambda x, f=_compare: f(x, x[::-1]))
    case(A.__eq__, a(7, dtype=_PAIR), a(2, 1, dtype=np.dtype("i8,f4")), via=_compare)
    case(A.__eq__, a(7, dtype=_PAIR), a(2, dtype=_PAIR), via=_compare)
    case(A.__eq__, a(7, dtype=_PAIR), a(7, dtype=np.dtype([("f1", "f8"), ("f0", "i4")])), via=_compare)
    for _other in (None, 0, "a", (0, 0.0), np.zeros((), _PAIR)[()]):
        case(A.__eq__, a(7, dtype=_PAIR), _other, via=_compare)
    _nested = a(2, 3, dtype=np.dtype([("a", "f8", (2, 2)), ("b", [("c", "M8[s]")])]))
    case(A.__eq__, _nested, via=lambda x, f=_compare: f(x, x[:, ::-1]))

# Errors.
for _shape in ((-1, 3), ("a",), (1.5,), (2, None), (np.int64(3),), ((),), ([2, 3],), (None,)):
    case(A.resize, a(6, 5), _shape, via=lambda x, shape: (y := x.copy(), y.resize(*shape, refcheck=False), y.shape)[2])
case(A.resize, a(6, 5), via=lambda x: x.resize(30, check=True))
case(A.byteswap, a(6, 5), via=lambda x: (x.setflags(write=False), x.byteswap(inplace=True)))
for _reduce in (A.var, A.std):
    case(_reduce, a(6, 5), via=lambda x, f=_reduce.__name__: getattr(x, f)(correction=1))
for _out in (3, [3], "a"):
    case(np.add, a(6, 5), 1, out=_out)
    case(np.add.reduce, a(6, 5), out=_out)
    case(A.sum, a(6, 5), via=lambda x, out=_out: x.sum(out=out))
    for _function in (np.sum, np.max, np.argmax, np.cumsum, np.std, np.median, np.trace, np.round):
        case(_function, a(6, 5), out=_out)
    case(np.take, a(6, 5), [0], out=_out)
    case(np.stack, [a(6, 5), a(6, 5)], out=_out)
    case(np.einsum, "ij->i", a(6, 5), out=_out)
    case(np.dot, a(6, 5), a(5), out=_out)

# The truth of records, and of other elements that are no numbers.
for _array in (
    a(7, dtype=_PAIR, values="mixed"), of([(0, 0.0), (3, 4.0), (0, np.nan), (0, -0.0)], _PAIR), _nested,
    of([("", 0), ("0", 0), (" ", 0), ("", 1)], np.dtype("U2,i1")), of([b"", b"a", b"\0b", b""], "V2"),
    of(["", "a", " ", ""], "U2"), of(["", "a", ""], "T"), of([0, 1, 0], "M8[s]"),
):  # fmt: skip
    for _function in (np.nonzero, np.count_nonzero, np.argwhere):
        case(_function, _array)
    if NUMPY_VERSION >= (2, 2):  # before, it reads one element after the other
        case(np.trim_zeros, _array)
    case(np.count_nonzero, _array, axis=0)
case(np.bincount, of([1, 2, 2**64 - 1], "u8"))

# As many axes as NumPy has, but for the one that a view may need.
_DEEP = (1,) * 60 + (2, 2, 2)
for _function in (np.linalg.det, np.linalg.inv, np.fft.fft):
    case(_function, a(*_DEEP, values="definite", view="flipped"), tolerance=BLAS)
case(A.__matmul__, a(*_DEEP, values="whole", view="flipped"), via=lambda x: x @ x)
case(np.apply_along_axis, np.sum, 62, a(*_DEEP, values="whole", view="flipped"))
case(np.einsum, "...i->...", a(*_DEEP, values="whole", view="flipped"), declines="more axes than there are letters")
for _function in (np.sum, np.sort, np.cumsum):
    case(_function, a(*_DEEP, values="whole", view="flipped"), axis=62)
for _left, _right in (("i8", "f8"), ("f8", "c16"), ("?", "i8")):
    case(A.__imatmul__, a(5, 4, dtype=_left), a(4, 4, dtype=_right), via=operator.imatmul)
