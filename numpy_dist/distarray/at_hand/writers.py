"""Functions that write values to an array at hand, and compute nothing."""

from __future__ import annotations

import functools

import numpy as np

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import NUMBERS, AtHand, method_at_hand
from numpy_dist.distarray.at_hand.elements import Given, NotAtHand, real_of
from numpy_dist.distarray.at_hand.indexing import casts, converts
from numpy_dist.distarray.at_hand.routes import WRITERS
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.windows import hand_over

_ndarray = np.ndarray

_VALUES_AT: dict[Function, tuple[int, str]] = {
    np.copyto: (1, "src"),
    np.fill_diagonal: (1, "val"),
    np.place: (2, "vals"),
    np.put: (2, "v"),
    np.putmask: (2, "values"),
}
"""Functions that write values to their first argument and compute nothing: where these stand, and their name."""


def _write(function: Function, args: tuple, kwargs: Keywords) -> bool:
    """Write values to an array at hand; False if nothing was done: the engine has to."""
    position, name = _VALUES_AT[function]
    if not args or type(args[0]) is not AtHand or kwargs.get("casting", "same_kind") != "same_kind":
        return False
    target, window = args[0]._real, args[0]._window
    given: Given = []
    try:
        values = [real_of(x, given) for x in args[1:]]
        options = {key: real_of(x, given) for key, x in kwargs.items()}
    except NotAtHand:
        return False
    by_position = len(args) > position
    if not by_position and name not in options:
        return False
    written = values[position - 1] if by_position else options[name]
    kind = type(written)
    if kind in NUMBERS:
        if not converts(kind, target.dtype.char):
            return False
    elif kind is not _ndarray or not casts(written.dtype, target.dtype):
        return False
    elif np.may_share_memory(written, target):  # NumPy might write what it has yet to read
        if by_position:
            values[position - 1] = written.copy()
        else:
            options[name] = written.copy()
    if function is np.put and not target.flags.c_contiguous:
        return False
    if not (window.writeable or (window.readable and windows.may_be_written(window))):
        return False
    function(target, *values, **options)
    return True


WRITING = {function: functools.partial(_write, function) for function in _VALUES_AT}
"""How these functions write at once: False where the engine has to."""


@method_at_hand
def put(self: AtHand, indices: object, values: object, mode: object = "raise") -> None:
    """Set elements by flat index (as `numpy.put`)."""
    if np.put not in WRITERS or not WRITERS[np.put]((self, indices, values), {"mode": mode}):
        DistArray.put(hand_over(self), indices, values, mode)
