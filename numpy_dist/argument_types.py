"""Types of arguments that many of NumPy's functions take, for annotations; see `numpy.typing` for arrays and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

__all__ = ["Axes", "Axis", "Shape"]

Axis = SupportsIndex | None
"""One axis, or that of the flattened array."""

Axes = SupportsIndex | Sequence[SupportsIndex] | None
"""One axis or several, or all of them."""

Shape = SupportsIndex | Sequence[SupportsIndex]
"""The extent of the only axis, or those of all axes."""
