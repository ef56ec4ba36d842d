"""`x.flags` of a sharded array: what NumPy says of the same array, which would own its memory unless it is a view."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.engine import Handle

_OWNDATA = 0x4  # NPY_ARRAY_OWNDATA, in `num`
_NAMES = ("O", "OWNDATA")


class Flags:
    """NumPy's flags of a sharded array; setting one sets it for this handle only.

    Parameters
    ----------
    x : DistArray
    """

    __slots__ = ("_x",)

    def __init__(self, x: Handle) -> None:
        object.__setattr__(self, "_x", x)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._x._array.flags, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._x._set_flags(lambda array: setattr(array.flags, name, value))

    @property
    def owndata(self) -> bool:
        """Whether the array is not a view."""
        return self._x.base is None

    @property
    def num(self) -> int:
        """All flags as bits, as in NumPy's C API."""
        return self._x._array.flags.num & ~_OWNDATA | (_OWNDATA if self.owndata else 0)

    def __getitem__(self, name: str) -> bool:
        return self.owndata if name in _NAMES else self._x._array.flags[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._x._set_flags(lambda array: operator.setitem(array.flags, name, value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags | type(np.empty(0).flags)) and self.num == other.num

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        plain = repr(self._x._array.flags)
        return plain.replace("OWNDATA : False", f"OWNDATA : {self.owndata}")

    def __dir__(self) -> list[str]:
        return dir(self._x._array.flags)
