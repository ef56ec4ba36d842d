"""Types of arguments that many of NumPy's functions take, for annotations; see `numpy.typing` for arrays and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

__all__ = ["Arguments", "Axes", "Axis", "Function", "Keywords", "Shape", "SomeAxes"]

Axis = SupportsIndex | None
"""One axis, or that of the flattened array."""

SomeAxes = SupportsIndex | Sequence[SupportsIndex]
"""One axis or several."""

Axes = SomeAxes | None
"""One axis or several, or all of them."""

Shape = SupportsIndex | Sequence[SupportsIndex]
"""The extent of the only axis, or those of all axes."""

Function = Callable[..., Any]
"""A function of NumPy's, or one that is called in its place, whatever it takes and gives."""

Arguments = tuple[Any, ...]
"""The positional arguments of a call of any function."""

Keywords = dict[str, Any]
"""The keyword arguments of a call of any function."""
