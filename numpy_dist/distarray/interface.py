"""What of ndarray's interface a DistArray cannot have, with the reasons: everything else is there, and works natively.

`REFUSED` names what raises an error that says why and what to use instead, `GATHERING` what needs all values in one
place, `NEEDS_MEMORY` what only replicated arrays have. The tests compare these tables with `dir(numpy.ndarray)`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from numpy_dist.errors import UnsupportedError

_USE_LOCAL = "x.local is this rank's part as an ndarray, and x.gather() the whole array"

# Attributes that are looked up to find out what an object can do: they must seem to be missing.
PROTOCOLS: dict[str, str] = {
    "__array_interface__": f"its data are not at one address: {_USE_LOCAL}",
    "__array_struct__": f"its data are not at one address: {_USE_LOCAL}",
}
METHODS: dict[str, str] = {
    "__setstate__": "unpickling makes a new array",
}
REFUSED: dict[str, str] = {**PROTOCOLS, **METHODS}

NEEDS_MEMORY: dict[str, str] = {
    "__dlpack__": f"sharded arrays are in the memory of several ranks: {_USE_LOCAL}",
    "ctypes": f"sharded arrays are in the memory of several ranks: {_USE_LOCAL}",
    "data": f"sharded arrays are in the memory of several ranks: {_USE_LOCAL}",
}

GATHERING: dict[str, str] = {
    "__array__": "an ndarray is asked for; it warns",
    "__reduce__": "a pickle holds all values",
    "__reduce_ex__": "a pickle holds all values",
    "dump": "a pickle holds all values",
    "dumps": "a pickle holds all values",
    "tobytes": "all bytes are asked for",
    "tolist": "all values are asked for",
}

# Python lists `__buffer__` since 3.12: a class that had it would be read by it before anything else. NumPy 2.1 still
# lists methods that it has removed.
LEFT_OUT = frozenset({"__buffer__", "itemset", "newbyteorder", "ptp", "tostring"})


def _protocol(name: str) -> property:
    def refuse(self: object) -> NoReturn:
        raise AttributeError(f"a DistArray has no {name!r}: {PROTOCOLS[name]}")

    return property(refuse, doc=f"Missing: {PROTOCOLS[name]}.")


def _method(name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise UnsupportedError(f"DistArray.{name} cannot be used: {METHODS[name]}")

    refuse.__name__, refuse.__doc__ = name, f"Not for distributed arrays: {METHODS[name]}."
    return refuse


def refuse_as_labels() -> None:
    """Raise where pandas reads an array of bools as labels or positions, since masks are ndarrays for it.

    Raises
    ------
    TypeError
        If the caller's caller is what pandas looks labels or positions up by.
    """
    frame = sys._getframe(2)
    name, back = frame.f_code.co_name, frame.f_back
    if name == "take" or (name == "asarray_tuplesafe" and back is not None and back.f_code.co_name != "__new__"):
        if str(frame.f_globals.get("__name__")).startswith("pandas."):
            raise TypeError(
                "pandas takes a DistArray of bools for labels or positions, and only ndarrays for masks: write "
                "frame[mask.gather()] in place of frame[mask]"
            )


def refuse_as_bytes() -> None:
    """Raise where `numpy.char.array` takes text for bytes, which it does with all that is no ndarray.

    Raises
    ------
    TypeError
        If the caller's caller is that function, and was not told that it is text.
    """
    frame = sys._getframe(2)
    if frame.f_code is np.char.array.__code__ and not frame.f_locals.get("unicode"):
        raise TypeError(
            "numpy.char.array would make bytes of the text in a DistArray: give it unicode=True, or x.gather(); the "
            "functions of numpy.strings take the DistArray itself"
        )


def _described_for_pillow(self: Any) -> dict[str, object]:
    """Missing, since the data are not at one address; but Pillow has no other way to learn of shape and dtype.

    It takes the elements from ``tobytes`` where there are strides.
    """
    if sys._getframe(1).f_globals.get("__name__") != "PIL.Image":
        raise AttributeError(f"a DistArray has no '__array_interface__': {PROTOCOLS['__array_interface__']}")
    return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "strides": self.strides}


def _asked_by_pandas(self: object) -> NoReturn:
    """Missing; of a key of two axes that is no ndarray, pandas asks for the dtypes of a frame's blocks."""
    raise AttributeError(
        "a DistArray has no '_blk_dtypes'; pandas takes only ndarrays and frames of bools for masks: write "
        "frame[mask.gather()] = value in place of frame[mask] = value"
    )


class Refusals:
    """What cannot be used, and says so."""

    __slots__ = ()

    __array_interface__ = property(_described_for_pillow, doc=_described_for_pillow.__doc__)
    __array_struct__ = _protocol("__array_struct__")
    _blk_dtypes = property(_asked_by_pandas, doc=_asked_by_pandas.__doc__)
    __setstate__ = _method("__setstate__")
