"""Exchanges of rows by `shuffle` of NumPy's generators, which takes what is no ndarray for a list.

``x[i], x[j] = x[j], x[i]`` exchanges what a list has, and loses a row, or a record, where ``x[i]`` is a view: NumPy's
semantics, and kept, in Python. `numpy.random.shuffle` and the methods of that name do the same in C, to have rows
exchanged. They call ``x.__setitem__`` twice for each pair, without a frame of their own: the caller's is in the middle
of a call, not of an assignment, and its code names `shuffle`.
"""

from __future__ import annotations

import threading
import weakref
from dis import opmap
from types import FrameType
from typing import NamedTuple

from numpy_dist.engine import Handle

_ASSIGNMENT = opmap["STORE_SUBSCR"]


class _Half(NamedTuple):
    """An exchange of which one row has been assigned."""

    array: weakref.ref[Handle]
    place: tuple[int, int]
    row: int
    old: object


class _Local(threading.local):
    """What a rank exchanges now; ranks may be threads of one process."""

    half: _Half | None = None


_local = _Local()


def exchanged(x: Handle, row: int, value: object, frame: FrameType) -> object:
    """What ``x[row] = value`` assigns in a frame whose code names `shuffle`: a row as it was before the exchange."""
    code, instruction = frame.f_code, frame.f_lasti
    if code.co_code[instruction] == _ASSIGNMENT:
        return value
    place = hash(code), instruction
    half, _local.half = _local.half, None
    if half is not None and half.array() is x and half.place == place and row <= half.row:  # from the last row on
        return half.old
    _local.half = _Half(weakref.ref(x), place, row, x[row].copy())  # type: ignore[index]
    return value
