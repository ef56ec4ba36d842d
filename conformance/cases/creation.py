"""Array creation: through ``like=``, from arrays of ours, and of the same shape as one."""

from __future__ import annotations

import io

import numpy as np

from numpy_dist.conformance.arguments import a, of, plain
from numpy_dist.conformance.case import Topic
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION

TOPIC = Topic("Array creation")
case = TOPIC.case
LIKE = a(3, 4)

for _args, _kwargs in (((5,), {}), (((3, 4),), {"dtype": "i4"}), (((2, 3),), {"order": "F"}), (((),), {}), ((0,), {})):
    for _function in (np.zeros, np.ones):
        case(_function, *_args, **_kwargs, like=LIKE)
    case(np.empty, *_args, **_kwargs, like=LIKE, values=False)
case(np.zeros, -1, like=LIKE)
case(np.full, (3, 5), 2.5, like=LIKE)
case(np.full, 4, 7, dtype="f4", like=LIKE)
case(np.full, (3, 5), [1, 2, 3, 4, 5], like=LIKE)
for _args in ((7,), (2, 9), (2, 9, 3), (9, 2, -2), (0.0, 1.0, 0.3), (5, 2), (0,)):
    case(np.arange, *_args, like=LIKE)
case(np.arange, 5, dtype="c8", like=LIKE)
case(np.arange, 0, 5, 0, like=LIKE)
case(np.arange, np.datetime64("2020-01-01"), np.datetime64("2020-02-01"), like=LIKE)
case(np.eye, 4, like=LIKE)
case(np.eye, 3, 5, 1, like=LIKE)
case(np.eye, 5, 3, -2, dtype="i2", order="F", like=LIKE)
case(np.identity, 4, like=LIKE)
case(np.identity, 4, dtype="?", like=LIKE)
case(np.tri, 4, like=LIKE)
case(np.tri, 3, 5, -1, dtype="i4", like=LIKE)
case(np.fromfunction, lambda i, j: i + 2 * j, (3, 4), like=LIKE)
case(np.fromfunction, lambda i, j: i == j, (3, 3), dtype=int, like=LIKE)
case(np.frombuffer, b"abcdefgh" * 3, dtype="i4", like=LIKE)
case(np.frombuffer, b"abcdefgh" * 3, "u1", 5, 2, like=LIKE)
case(np.fromiter, range(9), "f4", like=LIKE, via=lambda it, dtype, like: np.fromiter(iter(it), dtype, like=like))
case(np.fromiter, range(9), "i8", 4, like=LIKE)
case(np.fromstring, "1 2 3 4", sep=" ", like=LIKE)
case(np.fromstring, "1,2,x", sep=",", like=LIKE)
case(np.loadtxt, ["1 2 3", "4 5 6"], like=LIKE)
case(np.loadtxt, ["1,2", "4,5"], delimiter=",", unpack=True, like=LIKE)
case(np.genfromtxt, ["1 2 3", "4 5 6"], like=LIKE)
case(np.genfromtxt, ["1,,3", "4,5,6"], delimiter=",", filling_values=-1, like=LIKE)
case(
    np.loadtxt,
    ["1 2 3", "4 5 x"],
    like=LIKE,
    via=lambda rows, like: np.loadtxt(io.StringIO("\n".join(rows)), like=like),
)

for _function in (np.asarray, np.asanyarray, np.array, np.ascontiguousarray, np.asfortranarray, np.require):
    case(_function, [[1, 2], [3, 4]], like=LIKE)
    case(_function, 2.5, like=LIKE)
    case(_function, plain(3, 4), dtype="f4", like=LIKE)
    case(_function, a(3, 4), like=LIKE)
case(np.array, a(3, 4), ndmin=4, like=LIKE)
case(np.array, a(3, 4), copy=False, like=LIKE)
for _mode in np._CopyMode:
    case(np.array, a(3, 4), copy=_mode, like=LIKE)
    case(np.array, a(3, 4), copy=_mode, order="F", like=LIKE)
case(np.asarray, a(3, 4), dtype="i4", order="F", like=LIKE)
case(np.asarray, a(3, 4), dtype="i4", copy=False, like=LIKE)
case(np.require, a(3, 4, view="strided"), "f4", ["F", "W"], like=LIKE)
case(np.require, a(3, 4), None, "nonsense", like=LIKE)
for _requirement in ("A", "O", "W", "C", "F", ["F", "OWNDATA"]):
    case(
        np.require,
        a(4, 3, dtype="i1,f8"),
        None,
        _requirement,
        like=LIKE,
        via=lambda x, dtype, flags, like: [
            np.require(x["f1"], dtype, flags, like=like).flags[name] for name in ("A", "O", "W", "C", "F")
        ],
    )

for _shape in ((3, 4), (0,), (), (7, 1, 2)):
    for _dtype in ("f8", "i2", "?", "c8", "M8[s]", "U3"):
        case(np.zeros_like, a(*_shape, dtype=_dtype))
        if _dtype[0] not in "MU":
            case(np.ones_like, a(*_shape, dtype=_dtype))
        case(np.empty_like, a(*_shape, dtype=_dtype), values=False)
for _order in "CFAK":
    for _view in ("whole", "fortran", "strided"):
        case(np.zeros_like, a(3, 4, view=_view), order=_order)
        case(np.copy, a(3, 4, view=_view), order=_order)
        case(np.empty_like, a(3, 2, 4, view=_view), order=_order, dtype="i4", values=False)
case(np.full_like, a(3, 4), 7)
case(np.full_like, a(3, 4, dtype="i4"), 2.9)
case(np.full_like, a(3, 4, dtype="u1"), 300)
case(np.full_like, a(3, 4), np.nan, dtype="i4")
case(np.full_like, a(dtype="i8"), np.nan)
case(np.full_like, a(0, dtype="i4"), 1e300)
case(np.full_like, a(3, 4), plain(4))
case(np.full_like, a(3, 4), a(4))
case(np.ones_like, a(3, 4), dtype="i4", shape=(2, 5))
case(np.zeros_like, a(3, 4), order="F", shape=(2, 5, 3))
case(np.zeros_like, plain(3, 4), via=lambda x: np.zeros_like(x))

case(np.linspace, a(3, 4), 5.0, 7)
case(np.linspace, 1.0, a(5), 4, endpoint=False)
case(np.linspace, a(5), a(5), 4, axis=1)
case(np.linspace, a(5), a(5), 4, retstep=True)
case(np.linspace, a(3, dtype="f4"), 2.5, 4, dtype="i4")
case(np.linspace, a(3), a(3), 1)
case(np.linspace, of(1.0), of(3.0), 5)
case(np.linspace, a(3), 2.0, -1)
case(np.logspace, a(3, values="unit"), 2.0, 5)
case(np.logspace, a(3, values="unit"), a(3, values="unit"), 5, base=2.0)
case(np.logspace, 1.0, 2.0, 4, base=a(3, values="positive"), axis=-1)
case(np.geomspace, a(3, values="positive"), 9.0, 5)
case(np.geomspace, a(3, values="positive"), a(3, values="positive"), 5)
case(np.vander, a(5), 3)
case(np.vander, a(4, values="whole"), increasing=True)
case(np.vander, a(4, dtype="?"))
case(np.vander, a(4, dtype="f"), 0)
case(np.vander, a(2, 2))
case(np.vander, a(0))
case(np.meshgrid, a(4), a(3))
case(np.meshgrid, a(4), a(3), a(2), indexing="ij", copy=False)
case(np.meshgrid, a(4), a(3), sparse=True)
case(np.meshgrid, a(4), [1, 2, 3], indexing="xyz")
case(np.diag, a(4, values="whole"))
case(np.diag, a(4), 2)
case(np.diag, a(4, 6), 1)
case(np.diag, a(4, 6), -2)
case(np.diag, a(4, 6, 2))
case(np.diagflat, a(2, 3))
case(np.diagflat, a(4), -1)
case(np.tril, a(5, 4))
case(np.tril, a(3, 4, 5), 1)
case(np.triu, a(5, 4), -1)
case(np.triu, a(2, 4, 4, dtype="?"))
case(np.tril, a(4))
case(np.tril, a())
case(np.triu, a(dtype="?"), 1)
case(np.triu, a(4))
case(np.copy, a(3, 4))
case(np.copy, of(2.5))
case(np.copy, a(0, 4))

# Keywords.
for _function, _args in ((np.zeros, (3,)), (np.ones, (3,)), (np.arange, (3,)), (np.eye, (3,)), (np.full, (3, 2.5)),
                         (np.asarray, ([1, 2],)), (np.asanyarray, ([1, 2],))):  # fmt: skip
    case(_function, *_args, device="cpu", like=LIKE)
    case(_function, *_args, device="gpu", like=LIKE)
case(np.empty, 3, device="cpu", like=LIKE, values=False)
case(np.linspace, a(3), 9.0, 5, device="cpu")
case(np.astype, a(3), "i4", device="cpu")
case(np.astype, a(3), "i4", device="gpu")
for _function, _args in ((np.zeros_like, ()), (np.ones_like, ()), (np.full_like, (2.5,)), (np.empty_like, ())):
    _known = {"values": _function is not np.empty_like}
    case(_function, a(4, 3), *_args, dtype="i2", order="F", subok=False, device="cpu", **_known)
    case(_function, a(4, 3), *_args, shape=(2, 5), **_known)
    case(_function, a(4, 3, view="fortran"), *_args, shape=(2, 5), order="K", **_known)
    case(_function, a(4, 3), *_args, order="F", shape=7, **_known)
case(np.full, (3, 4), 2.5, order="F", like=LIKE)
case(np.array, [[1, 2], [3, 4]], order="F", subok=True, like=LIKE)
case(np.array, a(4, 3), order="F", subok=True, like=LIKE)
case(np.asanyarray, [[1, 2], [3, 4]], order="F", copy=True, like=LIKE)
if NUMPY_VERSION >= (2, 4):
    case(np.array, [[1, 2], [3, 4]], ndmax=1, dtype=object, via=lambda x, **k: np.array(x, **k).shape)
    case(np.array, [[1, 2], [3, 4]], ndmax=2, like=LIKE)
    case(np.array, [[1, 2], [3, 4]], ndmax=0, like=LIKE)
    for _most, _dtype in ((1, "f8"), (1, "f4"), (2, "f4"), (65, "f8")):
        case(np.array, a(3, 2), _dtype, ndmax=_most, like=LIKE)
case(np.fromfunction, lambda i, j, k: i + k * j, (3, 4), k=2, like=LIKE)
case(np.fromstring, "1 2 3 4", "i4", 3, sep=" ", like=LIKE)
case(np.geomspace, a(3, values="positive"), 9.0, 5, endpoint=False, dtype="f4", axis=1)
case(np.logspace, a(3, values="unit"), 2.0, 5, endpoint=False, dtype="f4")
_TABLE = ["# a, b", "1, 2, 3", "4, 5, 6", "7, 8, 9"]
for _options in (
    {"dtype": "i4", "delimiter": ","}, {"delimiter": ",", "skiprows": 2}, {"delimiter": ",", "usecols": (0, 2)},
    {"delimiter": ",", "max_rows": 2}, {"delimiter": ",", "ndmin": 2, "max_rows": 1}, 
    {"delimiter": ",", "comments": ["#", "4"]},
    {"delimiter": ",", "converters": {1: lambda text: float(text) * 2}}, {"delimiter": ",", "encoding": "latin1"},
    {"delimiter": ",", "quotechar": '"'}, {"delimiter": ";"},
):  # fmt: skip
    case(np.loadtxt, _TABLE, **_options, like=LIKE)
for _options in (
    {"dtype": "i4"}, {"skip_header": 2}, {"skip_footer": 1}, {"usecols": (0, 2)}, {"max_rows": 2}, {"comments": "4"},
    {"max_rows": 1, "ndmin": 2}, {"unpack": True}, {"converters": {1: lambda text: float(text) * 2}}, 
    {"encoding": "latin1"}, {"missing_values": "5", "filling_values": -1}, {"names": "x y z"}, {"names": True},
    {"dtype": None, "names": "x,y,z"},
    {"names": "x,print,z y", "excludelist": ["x"], "deletechars": "r", "replace_space": "-", "dtype": None},
    {"names": "Xx,Yy,Zz", "case_sensitive": "upper", "dtype": None}, {"dtype": "i4,f8,f8", "defaultfmt": "v%i"},
    {"autostrip": True, "dtype": "U3"}, {"loose": False}, {"invalid_raise": False}, {"usecols": (0, 9)},
):  # fmt: skip
    case(np.genfromtxt, _TABLE, delimiter=",", **_options, like=LIKE)
case(np.genfromtxt, ["1 2", "3"], invalid_raise=False, like=LIKE)
case(np.genfromtxt, _TABLE, delimiter=",", usemask=True, like=LIKE,
     via=lambda *p, **k: type(np.genfromtxt(*p, **k)).__name__)  # fmt: skip
