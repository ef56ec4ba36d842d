"""Sorting, searching, sets, logic tests of whole arrays."""

from __future__ import annotations

import numpy as np

from numpy_dist.conformance.arguments import a, of, plain, plain_of
from numpy_dist.conformance.case import Topic
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION

TOPIC = Topic("Sorting, searching, sets")
case = TOPIC.case

for _function in (np.argmax, np.argmin):
    for _shape in ((23,), (6, 5), (2, 3, 4), (1,), (), (0,), (0, 3), (3, 0)):
        for _axis in (None, 0, -1, 4):
            case(_function, a(*_shape), axis=_axis)
            case(_function, a(*_shape, dtype="i1"), axis=_axis, keepdims=True)
    for _dtype in ("?", "u1", "i8", "f4", "c16", "M8[s]", "U3"):
        case(_function, a(23, dtype=_dtype))
        case(_function, a(6, 5, dtype=_dtype), axis=0)
    case(_function, a(23, values="nans"))
    case(_function, a(6, 5, values="nans"), axis=1)
    case(_function, a(23, dtype="M8[s]", values="special"))
    case(_function, a(23, values="ones"))
    case(_function, a(6, 5, values="ones"), axis=0)
    for _view in ("flipped", "backwards", "fortran", "strided"):
        case(_function, a(6, 5, dtype="i1", view=_view))
        case(_function, a(6, 5, dtype="i1", view=_view), axis=1)
    case(_function, a(6, 5), axis=0, out=a(5, dtype="i8"))
    case(_function, a(6, 5), axis=0, out=a(6, dtype="i8"))
    case(_function, a(6, 5), axis=0, out=a(5))
    case(_function, a(6, 5), out=of(0))

case(np.sort, a(23))
case(np.sort, a(4, 5), axis=0)
case(np.sort, a(9, values="nans"))
case(np.argsort, a(23), kind="stable")
for _dtype in "?bhilqBHILQefdFD":
    case(np.sort, a(23, dtype=_dtype))
    case(np.argsort, a(23, dtype=_dtype), stable=True)
for _dtype in ("U4", "S3", "M8[s]", "m8[D]"):
    case(np.sort, a(23, dtype=_dtype))
    case(np.argsort, a(23, dtype=_dtype), kind="mergesort")
for _axis in (None, 0, 1, -1, 2):
    case(np.sort, a(4, 5), axis=_axis)
    case(np.argsort, a(4, 5, values="distinct"), axis=_axis)
case(np.sort, a(3, 0, 2), axis=1)
case(np.sort, a(2, 3, 4), axis=1, kind="heapsort")
case(np.sort, a(9), kind="bubble")
case(np.sort, a(9), order="x")
case(np.sort, a(9), kind="stable", stable=True)
case(np.argsort, a(9, values="ones"))
case(np.lexsort, (a(9, dtype="i1"), a(9)))
case(np.lexsort, (a(23), a(23, dtype="?"), a(23, dtype="U2"), plain(23, dtype="i1", values="ones")))
case(np.lexsort, (a(23, values="nans"), a(23, dtype="M8[s]", values="special")))
case(np.lexsort, a(3, 9, dtype="?"))
for _axis in (0, 1, -1, 2):
    case(np.lexsort, (a(4, 5), a(4, 5, dtype="?")), axis=_axis)
case(np.lexsort, (a(9), a(8)))
case(np.lexsort, (a(0), a(0)))
RECORDS = a(23, dtype="i1,f4,U2")
for _order in (None, "f2", ["f1", "f2"], "x"):
    case(np.sort, RECORDS, order=_order)
    case(np.argsort, RECORDS, kind="stable", order=_order)
case(np.sort, a(4, 5, dtype="?,i1"), axis=0)
case(np.partition, RECORDS, 4, order="f1", values=False)
A = np.ndarray
case(A.sort, a(23), via=lambda x: x.sort())
case(A.sort, a(4, 5), via=lambda x: x.sort(axis=0))
case(A.sort, RECORDS, via=lambda x: x.sort(order="f1", kind="stable"))
case(A.partition, a(9, values="sorted"), via=lambda x: x.partition(4))
case(A.argsort, a(9, dtype="?"), via=lambda x: x.argsort(kind="stable"))
case(A.argpartition, a(9, values="distinct"), via=lambda x: x.argpartition(4), values=False)
case(np.partition, a(9, values="distinct"), 4, values=False)
case(np.argpartition, a(9, values="distinct"), 4, values=False)
case(np.partition, a(4, 5), [1, -1], axis=0, values=False)
case(np.partition, a(9), 9)
case(np.argpartition, a(4, 5), 2, axis=None, values=False)
case(np.partition, a(9), 1.5)
case(np.partition, a(4, 5), 2, axis=3)
for _dtype in ("c16", "F", "i1", "H", "i8", "e", "f4", "?", "g"):
    case(np.sort_complex, a(4, 9, dtype=_dtype))
case(np.searchsorted, a(9, values="sorted"), a(4))
case(np.searchsorted, plain(9, values="sorted"), a(4), side="right")
case(np.searchsorted, a(9, values="sorted"), 0.25)
case(np.searchsorted, a(9, values="sorted"), a(2, 3), "right")
case(np.searchsorted, a(3, 3, values="sorted"), a(4))
case(np.searchsorted, a(9, values="sorted"), a(4), "middle")
case(np.searchsorted, of([3.0, 1.0, 2.0]), a(4), sorter=of([1, 2, 0]))
case(np.searchsorted, of([3.0, 1.0, 2.0]), a(4), "right", plain_of([1, 2, 0]))
case(np.searchsorted, plain_of([3.0, 1.0, 2.0]), a(4), sorter=of([1, 2, 0]))
case(np.searchsorted, of([3.0, 1.0, 2.0]), a(4), sorter=of([1, 2]))
case(np.searchsorted, a(9, dtype="i1", values="sorted"), a(9, values="special"))
case(np.intersect1d, a(9, dtype="i1"), a(3, 5, dtype="i1"), return_indices=True)
case(np.intersect1d, a(9, values="distinct"), a(5, values="distinct"), assume_unique=True, return_indices=True)
case(np.setxor1d, a(9, values="distinct"), a(5, values="distinct"), assume_unique=True)
case(np.union1d, a(9, values="nans"), a(3, 2))
for _function in (np.unique, np.unique_all, np.unique_counts, np.unique_inverse):
    case(_function, a(23, dtype="i1"))
case(np.unique_values, a(23, dtype="i1"), values=False)  # in any order
case(np.unique, a(6, 2, dtype="?"), axis=0, return_counts=True)
for _axis in (0, 1, -1, 3):
    case(np.unique, a(5, 4, 2, dtype="?"), True, True, True, axis=_axis)
case(np.unique, a(6, 2, dtype="U2"), axis=0)
case(np.unique, a(6, 20, dtype="?"), axis=0)
case(np.unique, a(6, 1, values="nans"), axis=0, return_counts=True)
case(np.unique, a(6, 0), axis=0)
case(np.unique, a(0, 2), axis=0, return_index=True)
case(np.unique, a(5, 5, dtype="f2", values="nans"), axis=0)
case(np.partition, a(0), 3)
case(np.partition, a(4, 0), 9, axis=0)
case(np.argpartition, a(4, 0), 9, axis=0)
case(np.argpartition, a(), 0)
case(np.argpartition, a(), 4)
case(np.unique, a(23, dtype="?,?"), True, True, True)
case(np.unique, a(9, values="nans"), axis=0, return_counts=True)
for _dtype in ("i1", "?", "U2", "M8[D]"):
    case(np.unique, a(23, dtype=_dtype), True, True, True)
case(np.unique, a(4, 5, dtype="i1"), return_inverse=True)
case(np.unique, a(23, values="nans"), return_counts=True)
case(np.unique, a(23, values="nans"), equal_nan=False)
case(np.unique, a(23, dtype="c16", values="nans"))
_LIKE_ANOTHER = [complex(5, -0.0), complex(-0.0, np.nan), 3, complex(-np.inf, np.nan), 5, complex(np.nan, 1), -0.0, 0.0]
for _dtype in ("c8", "c16", "G"):
    case(np.unique, of(_LIKE_ANOTHER, _dtype))
    case(np.unique, of(_LIKE_ANOTHER[::-1], _dtype), equal_nan=False, via=lambda x, **how: np.unique(x, **how)[:3])
case(np.unique, a(0))
case(np.unique, a(9), axis=1)
case(np.isin, a(4, 5, dtype="i1"), [1, 2, 3], invert=True)
case(np.isin, a(9, dtype="i1"), a(7, dtype="i1"), kind="sort")
case(np.isin, a(9, dtype="i1"), a(7, dtype="i1"), kind="other")
case(np.isin, a(9, dtype="i1"), of([3, 5, 8]), assume_unique=True)
for _tests in ([1, 2, 3], list(range(40)), np.array(["1", "2", "3"]), np.array(["1"] * 40)):
    for _dtype in ("M8[s]", "m8[ms]", "U5", "S3", "f4", "i8"):  # few are compared one by one, many sorted with the rest
        case(np.isin, a(4, 5, dtype=_dtype), _tests, invert=True)
case(np.setdiff1d, a(9, values="distinct"), a(7, values="distinct"), assume_unique=True)
for _function in (np.intersect1d, np.setdiff1d, np.setxor1d, np.union1d, np.isin):
    case(_function, a(9, dtype="i1"), a(7, dtype="i1"))
if hasattr(np, "in1d"):  # until NumPy 2.3
    case(np.in1d, a(9, dtype="i1"), a(7, dtype="i1"))

for _function in (np.isneginf, np.isposinf):
    case(_function, a(23, values="special"))
    case(_function, a(23, dtype="i4"))
    case(_function, a(5, values="special"), a(5, dtype="?"))
    case(_function, a(5, dtype="c16"))
for _function in (np.iscomplex, np.isreal, np.iscomplexobj, np.isrealobj):
    case(_function, a(6, 5, dtype="c16"))
    case(_function, a(6, 5))
case(np.iscomplex, of([1 + 0j, 1j]))
case(np.isclose, a(6, 5), a(6, 5))
X = a(6, 5, values="nans")
case(np.isclose, X, X, equal_nan=True)
case(np.isclose, X, X)
case(np.isclose, a(6, 5), a(5), rtol=1, atol=0.5)
case(np.allclose, X, X, equal_nan=True)
case(np.allclose, a(6, 5), a(6, 5), atol=100)
case(np.allclose, a(6, 5), a(4, 5))
case(np.array_equal, a(6, 5), a(6, 5))
case(np.array_equal, X, X)
case(np.array_equal, X, X, equal_nan=True)
case(np.array_equal, a(6, 5), a(5))
case(np.array_equal, a(3, dtype="U3"), a(3, dtype="U3"))
case(np.array_equiv, a(1, 5, values="ones"), a(6, 5, values="ones"))
case(np.array_equiv, a(4), a(5))
case(np.array_equiv, a(4), a(4, dtype="U3"))

# Keywords.
case(np.partition, a(9, values="distinct"), 3, kind="introselect",
     via=lambda x, n, kind: np.partition(x, n, kind=kind)[n])  # fmt: skip
case(np.partition, a(9, values="distinct"), 3, kind="other")
case(np.argpartition, a(9, values="distinct"), 3, kind="introselect",
     via=lambda x, n, kind: np.argpartition(x, n, kind=kind)[n])  # fmt: skip
case(np.argpartition, a(9, values="distinct"), 3, kind="other")
case(np.argpartition, a(9, values="distinct"), 3, order="f0")
case(np.argpartition, of([(3, 1), (1, 2), (2, 0)], "i4,i4"), 1, order="f1",
     via=lambda x, n, order: np.argpartition(x, n, order=order)[n])  # fmt: skip
if NUMPY_VERSION >= (2, 3):
    case(np.unique, of([3, 1, 3, 2]), sorted=False, via=lambda x, sorted: np.sort(np.unique(x, sorted=sorted)))
if NUMPY_VERSION >= (2, 5):
    for _kwargs in ({"descending": True}, {"descending": True, "axis": 0}, {"descending": True, "stable": True}):
        case(np.sort, a(6, 5, values="distinct"), **_kwargs)
        case(np.argsort, a(6, 5, values="distinct"), **_kwargs)
case(np.argmax, a(5), out=of(0.0))
case(np.argmin, a(5, 4), 0, out=a(3, values="zeros"))
case(np.argmax, a(5, 4), 0, out=a(4, dtype="f4", values="zeros"))
