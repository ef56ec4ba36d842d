"""Indexing: reading and writing by slices, integers, masks and arrays of indices; functions that select and place."""

from __future__ import annotations

import operator

import numpy as np

from numpy_dist.conformance.arguments import Array, a, of, plain, plain_of
from numpy_dist.conformance.case import Topic

TOPIC = Topic("Indexing")
case = TOPIC.case
get, put = np.ndarray.__getitem__, np.ndarray.__setitem__


def read(array: Array, index: object, declines: str | None = None) -> None:
    """``array[index]``."""
    case(get, array, index, via=operator.getitem, declines=declines)


def write(array: Array, index: object, value: object, declines: str | None = None) -> None:
    """``array[index] = value``."""
    case(put, array, index, value, via=operator.setitem, declines=declines)


S = np.s_
BASIC = (
    S[:], S[...], S[()], S[2], S[-1], S[1:], S[:-1], S[::2], S[::-1], S[-2::-2], S[1:1], S[5:2], S[2:100], S[None],
    S[..., 0], S[:, 1], S[1, 2], S[1, ...], S[1, 2, ...], S[1:4, ::-2], S[::3, None, 1:], S[None, ..., None], S[:, -1:],
    S[-3:, -3:], S[np.int64(1)], S[np.uint8(1):],
)  # fmt: skip
for _index in BASIC:
    for _view in ("whole", "flipped", "fortran", "strided"):
        read(a(6, 5, view=_view), _index)
    write(a(6, 5), _index, 7)
    write(a(6, 5, dtype="i4"), _index, 2.9)
for _index in (S[0], S[...], S[()], S[None], S[..., None], S[1], S["a"], S[1.5], S[0, 0], S[-8]):
    read(a(), _index)
    read(a(7), _index)
for _index in (S[6], S[0, 5], S[0, 0, 0], S[..., ...], S[-7], S["x"], S[1.0], S[::0]):
    read(a(6, 5), _index)
    write(a(6, 5), _index, 1)

for _value in (3, 2.5, plain(5), a(5), a(4, 5), a(4, 1), a(1, 1, 5), [1, 2, 3, 4, 5], a(5, dtype="i2"),
               a(5, dtype="c8"), a(4), a(5, 5), "x", None):  # fmt: skip
    write(a(6, 5), S[1:5], _value)
write(a(6, 5, dtype="i4"), S[1:3], a(5))
write(a(6, 5, dtype="u1"), S[1:3], 300)
write(a(6, 5, dtype="?"), S[1:3], a(5))
write(a(6, 5, dtype="M8[s]"), S[1:3], np.datetime64("2020-02-02"))
write(a(6, dtype="U4"), S[1:3], "longer than four")

# Overlapping assignment, as if the right side had been copied first.
for _target, _source in (
    (S[1:], S[:-1]), (S[:-1], S[1:]), (S[2:7], S[4:9]), (S[::-1], S[:]), (S[:], S[::-1]), (S[::2], S[1::2]),
    (S[3:9], S[8:2:-1]),
):  # fmt: skip
    for _shape in ((10,), (10, 3)):
        case(put, a(*_shape), _target, _source, via=lambda x, t, s: x.__setitem__(t, x[s]))
        case(put, a(*_shape), _target, _source, via=lambda x, t, s: x.__setitem__(t, x[s] * 2 + x[t]))
        case(np.add, a(*_shape), _target, _source, via=lambda x, t, s: operator.iadd(x[t], x[s]))
case(
    put, a(6, 6), via=lambda x: x[1:-1, 1:-1].__setitem__(..., x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
)
case(put, a(5, 5), via=lambda x: x.__setitem__(..., x.T))
case(put, a(6, 5), via=lambda x: x.T[1:].__setitem__(..., x.T[:-1]))

MASKS = (plain(6, dtype="?"), a(6, dtype="?"), a(6, dtype="?", values="zeros"), a(6, dtype="?", values="ones"))
for _mask in (*MASKS, a(6, 5, dtype="?"), plain(6, 5, dtype="?"), [True, False, True, True, False, False]):
    for _view in ("whole", "fortran", "flipped"):
        read(a(6, 5, view=_view), _mask)
    write(a(6, 5), _mask, 7)
    write(a(6, 5), _mask, [1.5])
read(a(6, 5, 2), a(6, 5, dtype="?"))
write(a(6, 5, 2), a(6, 5, dtype="?"), [1, 2])
write(a(6, 5), a(6, dtype="?"), plain(5))
write(a(6, 5), a(6, dtype="?", values="ones"), a(6, 5))
write(a(6, 5), a(6, 5, dtype="?", values="ones"), a(30))
write(a(6, 5), a(6, 5, dtype="?"), plain(31))
read(a(6, 5), a(5, dtype="?"))
read(a(6, 5), a(6, 4, dtype="?"))
read(a(6, 5), True)
read(a(6, 5), False)
write(a(6, 5), True, 3)
read(a(), True)
case(get, a(6, 5), via=lambda x: x[x > 0])
case(put, a(6, 5), via=lambda x: x.__setitem__(x > 0, 0))
case(put, a(6, 5), via=lambda x: x.__setitem__(x > 0, -x[x > 0]))
for _none in (False, True):  # a mask that takes nothing casts nothing, and does not warn
    for _value in (a(1, dtype="c8"), 1j * np.ones(1), np.complex128(2), np.array(2j), np.zeros((1, 5), complex)):
        case(put, a(6, 5), _value, via=lambda x, v, lo=9e9 * _none: x.__setitem__(x > lo, v))
case(put, a(6, 5), 1j * np.ones(1), via=lambda x, v: x.__setitem__((x > 9e9)[0], v))
_empty = slice(0, 0)
for _key in ([0, 2], [[0], [1]], [], (_empty, [0]), ([0, 0], _empty), ([1, 2], 1), (1, [True] * 5), ([0, 9], 1), [9]):
    for _value in (1j * np.ones(1), a(1, dtype="c8"), np.complex128(2j)):
        case(put, a(6, 5), _key, _value, via=operator.setitem)
        case(put, a(6, 5, dtype="i4"), _key, _value, via=operator.setitem)
    case(put, a(6, 5), _key, np.ones((1, 7)), via=operator.setitem)
for _value in (1j * np.ones(3), a(3, dtype="c8"), a(0, dtype="c8")):
    for _indices in ([0, 2], [], [99]):
        case(np.put, a(6), _indices, _value)
        case(np.put_along_axis, a(6), plain_of(_indices, "i8"), _value, None)
    case(np.fill_diagonal, a(6, 3), _value)
    case(np.fill_diagonal, a(6, 0), _value)
    case(np.insert, a(6), 1, _value)
    for _key in (slice(0, 0), slice(None), [], [0, 2], 0, 99):
        case(put, a(6), _key, _value, via=lambda x, key, value: x.flat.__setitem__(key, value))

# What is assigned is converted to the array's dtype before it is broadcast: a tuple may be a record.
_RECORDS = np.dtype([("x", "f8"), ("n", "i4")])
for _key in ([0, 1, 0], [[0], [2]], [], [True, False, True, True]):
    case(put, a(4, 3, dtype=_RECORDS), _key, (1.5, 2), via=operator.setitem)
    case(put, a(4, 3, dtype=_RECORDS), _key, [(1, 2), (3, 4), (5, 6)], via=operator.setitem)
    case(put, a(4, 3, dtype="i1"), _key, [1, 300, 2], via=operator.setitem)
    case(put, a(4, 3, dtype="i1"), _key, ["1", "2", "3"], via=operator.setitem)
case(np.place, a(4, 3, dtype=_RECORDS), a(4, 3, dtype="?"), [(1.5, 2), (3, 4)])
case(np.place, a(4, 3, dtype="i1"), a(4, 3, dtype="?"), [1, 300])
for _function in (np.place, np.putmask):  # of arrays, only what is safe
    for _value in (a(3), a(), a(0), a(3, dtype="i8"), a(3, dtype="c8"), a(2, dtype="U1"), np.float64(1.5), [1.5]):
        for _dtype in ("f8", "f4", "i1"):
            case(_function, a(4, 3, dtype=_dtype), a(4, 3, dtype="?"), _value)
    case(_function, a(4, 3), a(4, 3, dtype="?"), np.complex64(2j))
    case(_function, a(4, 3, dtype="i1"), a(4, dtype="?"), a(3))
    case(_function, a(0, dtype="i1"), a(0, dtype="?"), a(3))
case(get, a(6, 5), via=lambda x: x[x[:, 0] > 0])

for _index in ([0, 2], [[0, 5], [1, -1]], (S[:], [0, 2]), ([0], S[:], None), [], (S[::-1], [4, 0]), (None, [1])):
    read(a(6, 5), _index)
    write(a(6, 5), _index, 3)
for _index in (([0, 1], [2, 3]), ([[0], [1]], [1, 2]), ([0, 2], 1), (2, [0, 1])):
    read(a(6, 5), _index)
    write(a(6, 5), _index, 3)
for _index in (
    ([0, 1], S[:], [2, 3]),
    (S[:], [0, 1], [2, 3]),
    (1, S[:], [0, 2]),
    (S[:], [0], None, [1]),
    (S[...], [3, 0]),
):
    read(a(6, 5, 4), _index)
read(a(6, 5), a(3, 2, dtype="i8", values="bits"))
read(a(6, 5), (a(4, dtype="u1", values="bits"), of([0, 1, 2, 4])))
read(a(6, 5), (S[:], -6))
read(a(6, 5), ([0, 1], [0, 1, 2]))
read(a(0, 5), [0])
read(a(6, 5), (np.array([True, False, True, False, True, False]), 1))
write(a(6, 5), (np.array([True, False, True, False, True, False]), 1), 3)
read(a(6, 5), [0, 6])
read(a(6, 5), of([0, 2, 2]))
read(plain(6, 5), of([0, 2, 2]), declines="an ndarray")
write(a(6, 5), [1, 1, 2], plain(3, 5))
write(a(6, 5), (S[:], [1, 1, 2]), a(6, 3))
write(a(6, 5), [1, 2], a(5))
write(a(6, 5), [1, 2], a(3, 5))
write(a(6, 5), [1, 7], 0)
write(a(6, 5, dtype="i4"), of([5, 0, 5]), 2.9)
_half = np.array([True, False, True, False, True, False])
for _index in (
    (_half, [0, 2, 4]), (_half, S[:], [1, 0, 3]), (S[::2], [True, False, True, True, False], [0, 1, 3]), (_half, [[1]]),
    ([1, 0, 5], [True, False, True, True, False]), (True, [0, 1]), (S[:], True, [0, 1]), (S[...], [True] * 4, None),
    (1, [True, False, True, True, False]), (_half, [0, 1]), (_half, [9, 0, 0]), ([True] * 4, 0), (False, [0]),
    (_half, 1, 1), (_half, 0, 0, 0),
):  # fmt: skip
    read(a(6, 5, 4), _index)
    write(a(6, 5, 4), _index, 7)
read(a(6, 5), (a(6, dtype="?", values="ones"), of([0, 1, 2, 3, 4, 0])))
write(a(6, 5), (a(6, dtype="?", values="ones"), of([0, 1, 2, 3, 4, 0])), a(6))
case(put, a(6, 5), of([1, 1, 2]), a(3, 5), via=lambda x, i, y: operator.setitem(x, i, x[i] + y))

case(np.where, a(6, 5, dtype="?"), a(6, 5), a(6, 5))
case(np.where, a(6, 1, dtype="?"), a(5), 2)
case(np.where, a(6, 5, dtype="?"), 1, 0)
case(np.where, a(6, 5, dtype="?"), a(6, 5, dtype="f4"), 2.5)
case(np.where, a(6, 5, dtype="?"), a(6, 5, dtype="i1"), 300)
case(np.where, a(6, 5), a(5, dtype="i4"), plain(6, 5, dtype="c8"))
case(np.where, plain(6, 5, dtype="?"), a(6, 5), a(5))
case(np.where, a(6, 5, dtype="?"))
case(np.where, a(7))
case(np.where, a(dtype="?"), a(), 2)
case(np.where, a(6, 5, dtype="?"), a(6, 5))
case(np.where, a(6, 5, dtype="?"), a(4), 1)
case(np.nonzero, a(6, 5, dtype="?"))
case(np.nonzero, a(23, dtype="i4"))
case(np.nonzero, a(3, 2, 4, dtype="?"))
case(np.nonzero, a(0, 3))
case(np.nonzero, a())
case(np.flatnonzero, a(6, 5, dtype="?"))
case(np.flatnonzero, a(6, 5, dtype="S3", view="fortran"))
case(np.argwhere, a(6, 5, dtype="?"))
case(np.argwhere, a(0))
case(np.argwhere, a(dtype="?"))
case(np.extract, a(6, 5, dtype="?"), a(6, 5))
case(np.extract, plain(6, 5, dtype="?"), a(6, 5))
case(np.compress, [True, False, True], a(6, 5), axis=0)
case(np.compress, a(5, dtype="?"), a(6, 5), axis=1)
case(np.compress, [False, True], a(6))
for _shape in ((0, 0), (0, 1), (2, 0), (0,), (1, 2)):
    for _axis in (0, 1, None):
        case(np.compress, [True], a(*_shape), axis=_axis)
        case(np.compress, [False, True], a(*_shape), axis=_axis)
case(np.compress, [True, False, True], a(), axis=0)
case(np.compress, a(1, 1, dtype="?"), a(), axis=1)
case(np.compress, a(5, dtype="?", values="ones"), a(6, 5), axis=1, out=a(6, 5))
case(np.compress, a(5, dtype="?", values="ones"), a(6, 5), axis=1, out=a(6, 4))
case(np.extract, a(4, dtype="?"), a(6, 5))
case(np.place, a(6, 5), a(6, 5, dtype="?"), a(3))
case(np.place, a(6, 5), a(6, 5, dtype="?"), a(40))
case(np.putmask, a(6, 5), a(6, 5, dtype="?"), [1, 2, 3])
case(np.putmask, a(6, 5), a(6, 5, dtype="?"), a(40))
case(np.putmask, a(6, 5), a(6, 5, dtype="?"), [])
case(np.place, a(6, 5), a(6, 5, dtype="?"), [1, 2, 3])
case(np.place, a(6, 5), a(6, 5, dtype="?"), [])
case(np.putmask, a(6, 5), a(6, 5, dtype="?"), 7)
case(np.putmask, a(6, 5), a(6, 5, dtype="?"), a(6, 5))
case(np.put, a(6, 5), [0, 7, -1], [1, 2, 3])
case(np.put, a(6, 5), [40], 1)
case(np.put, a(6, dtype="V4"), [3, 0], [])
case(np.put, a(6, 5, view="fortran"), of([3, 40, 1]), a(3))
case(np.put, a(6, 5, dtype="u1"), of([3, 40, -31]), [2.7, 9], mode="wrap")
case(np.put, a(6, 5), of([3, 40, -31]), a(2), mode="clip")
case(np.put, a(6, 5), [0], "x")
case(np.put, a(6, 5), [], 1)
case(np.put, a(0), [0], 1)
case(np.put, plain(6, 5), of([0]), 1, declines="put into an ndarray")
case(np.put_along_axis, a(4, 5), of([[0, 2], [2, 2], [1, 0], [4, 3]]), a(4, 2), 1)
case(np.put_along_axis, a(4, 5), of([0, 17]), a(2), None)
case(np.put_along_axis, a(4, 5, view="fortran"), of([0, 17]), a(2), None)
case(np.put_along_axis, a(4, 5), of([[0, 9]]), 1, 0)
case(np.put_along_axis, a(4, 5), plain_index := of([[0], [2], [1], [4]]), 9.5, 1)
case(np.take, a(6, 5), [0, 2, 2])
case(np.take, a(6, 5), of([[0, 4], [1, 1]]), axis=1)
case(np.take, a(6, 5), 3, axis=0)
case(np.take, a(6, 5), [9], mode="clip")
case(np.take, a(6, 5), [99])
case(np.take, a(6, 5), of([0, 99, -3]), axis=1, mode="wrap")
case(np.take, a(6, 5), [1, 0], axis=0, out=a(2, 5))
case(np.take, a(6, 5), [1, 0], axis=0, out=a(2, 4))
case(np.take, a(6, 5, dtype="i4"), [1, 0], axis=0, out=a(2, 5))
case(np.take, a(0, 5), [0], axis=0)
case(np.take, a(0, 9), 20, axis=1)
case(np.take, a(0, 9, 0), [0], axis=2)
case(np.take, a(9, 0), 20, axis=0)
case(np.take_along_axis, a(4, 5), plain_index, 1)
case(np.take_along_axis, a(4, 5), of([[0, 2, 1, 3, 3]]), 0)
case(np.take_along_axis, a(4, 5), of([0, 17]), None)
case(np.take_along_axis, a(4, 5), of([[0, 9]]), 0)
case(np.choose, of([0, 1, 1, 0]), [a(4), a(4)])
case(np.choose, of([0, 1, 1, 0]), [a(4), 5])
case(np.choose, of([[0], [1]]), [a(4), a(4, dtype="i4")])
case(np.choose, of([0, -1, 3, 0]), [a(4), a(4)], mode="wrap")
case(np.choose, of([0, 2, 1, 0]), [a(4), a(4)])
case(np.choose, of([0, 1, 1, 0]), [a(4), a(4)], out=a(4))
case(np.choose, of([0, 1, 1, 0]), [a(4), a(4)], out=a(5))
case(np.choose, of([0.0, 1.0]), [a(2), a(2)])
case(np.select, [a(6, dtype="?"), a(6, dtype="?")], [a(6), a(6)], 7.5)
case(np.select, [a(6, dtype="?")], [a(6), a(6)])
case(np.copyto, a(6, 5), 3)
case(np.copyto, a(6, 5), a(5))
case(np.copyto, a(6, 5), plain(6, 5, dtype="i4"), where=a(6, 5, dtype="?"))
case(np.copyto, a(6, 5, dtype="i4"), a(6, 5))
case(np.copyto, a(6, 5, dtype="i4"), a(6, 5), casting="unsafe")
case(np.copyto, a(6, 5), a(4))
case(np.copyto, plain(6, 5), a(6, 5), declines="its target is an ndarray")
case(np.fill_diagonal, a(5, 5), 7)
case(np.fill_diagonal, a(7, 3), [1, 2, 3])
case(np.fill_diagonal, a(7, 3), 4, wrap=True)
case(np.fill_diagonal, a(7, 3), [4, 5], wrap=True)
case(np.fill_diagonal, a(5, 5), [4, 5])
case(np.fill_diagonal, a(5, 5), a(2))
case(np.fill_diagonal, a(3, 3, 3), [4, 5])
case(np.fill_diagonal, a(3, 3, 3), 4)
for _shape in ((3, 3), (0, 0), (4, 2)):
    for _value in (np.nan, np.float64(np.nan), 1j, "x", [1, np.inf]):
        case(np.fill_diagonal, a(*_shape, dtype="i4"), _value)
case(np.fill_diagonal, a(5), 7)
case(np.fill_diagonal, a(5, 5), 7, via=lambda x, value: np.fill_diagonal(np.broadcast_to(x, (5, 5)), value))
case(np.fill_diagonal, a(0, 5), 7, via=lambda x, value: np.fill_diagonal(np.broadcast_to(x, (0, 5)), value))
case(np.diag_indices_from, a(4, 4))
case(np.tril_indices_from, a(4, 4))
case(np.triu_indices_from, a(4, 4), k=1)
case(np.diag_indices_from, a(4, 3))
case(np.tril_indices_from, a(4, 7), k=-1)
case(np.triu_indices_from, a(4))
case(np.ravel_multi_index, (of([1, 2]), of([3, 0])), (4, 5))
case(np.ravel_multi_index, (of([1, -2]), of([3, 7])), (4, 5), mode=("wrap", "clip"))
case(np.ravel_multi_index, (of([1, 2]), of([3, 0])), (4, 5), order="F")
case(np.ravel_multi_index, (a(0, dtype="i8"), a(0, dtype="i8")), (4, 0))
case(np.ravel_multi_index, (a(1, dtype="i8"), a(1, dtype="i8")), (4, 0))
case(np.ravel_multi_index, (of([1, 2]), of([3, 5])), (4, 5))
case(np.ravel_multi_index, (of([1, 2]),), (4, 5))
case(np.unravel_index, of([3, 17]), (4, 5))
case(np.unravel_index, of([3, 17]), (4, 5), order="F")
case(np.unravel_index, of([[3, 1], [2, 0]]), 5)
case(np.unravel_index, of([[3, 1], [2, 0]], view="fortran"), 5)
case(np.unravel_index, of([[3, 1], [2, 0]], view="backwards"), (2, 3))
case(np.unravel_index, of([3, 20]), (4, 5))
case(np.unravel_index, of([3.0]), (4, 5))
