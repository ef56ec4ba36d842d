"""DistArray as an ndarray: operators, methods, attributes, conversions."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np

from numpy_dist.conformance.arguments import a, of, plain
from numpy_dist.conformance.case import BLAS, SUMS, Topic

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
        _reason = "Python objects" if _other is None and _name not in (A.__eq__, A.__ne__) else None
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
         declines="an ndarray as output")  # fmt: skip
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
case(A.__repr__, a(40, 60, dtype="i4"), via=repr, materialises=True)
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
        case(A.shape, a(*_shape, view=_view), via=lambda x: [getattr(x, name) for name in ATTRIBUTES if x.size])
        case(
            A.flags,
            a(*_shape, view=_view),
            via=lambda x: [x.flags.c_contiguous, x.flags.f_contiguous, x.flags.writeable],
        )
        case(A.T, a(*_shape, view=_view), via=lambda x: x.T)
        case(A.real, a(*_shape, dtype="c16", view=_view), via=lambda x: (x.real, x.imag))
        case(A.flat, a(*_shape, view=_view), via=lambda x: list(x.flat), materialises=True)
case(A.T, a(3, 4), via=lambda x: x.mT)
case(A.real, a(4, dtype="c16"), a(4), via=lambda x, y: setattr(x, "imag", y))
case(A.real, a(4), via=lambda x: setattr(x, "real", 3))
case(A.real, a(4), via=lambda x: setattr(x, "imag", 3))
case(A.shape, a(6, 4), via=lambda x: x.shape.index(4))
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
                       ("repeat", (2,)), ("searchsorted", (0.0,)), ("put", ([0], 1))):  # fmt: skip
    case(getattr(A, _method), a(7, values="whole"), *_args, via=lambda x, *p, _m=_method: getattr(x, _m)(*p),
         declines="no rule" if _method == "put" else None)  # fmt: skip
for _from in "?bBhHiIlLefdFD":
    for _to in ("?", "i1", "u4", "f4", "c8", "U9"):
        case(A.astype, a(6, 5, dtype=_from), _to, via=lambda x, t: x.astype(t))
case(A.astype, a(6, values="special"), "i4", via=lambda x, t: x.astype(t))
case(A.astype, a(6, dtype="U5"), "f8", via=lambda x, t: x.astype(t))
case(A.astype, of(["1.5", "2"]), "f8", via=lambda x, t: x.astype(t))
case(A.__array__, a(6, 5), via=lambda x: np.asarray(x) + 0, declines="an ndarray is asked for")
