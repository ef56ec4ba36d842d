"""DistArray, the array that users hold: see docs/architecture.md."""

from numpy_dist.distarray.array import DistArray

__all__ = ["DistArray"]
