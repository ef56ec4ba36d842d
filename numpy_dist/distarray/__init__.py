"""DistArray, the array that users hold: see docs/architecture.md."""

from numpy_dist.distarray import at_hand as at_hand
from numpy_dist.distarray.array import DistArray

# isort: split
# At last, since it loads the plug-ins that are on altogether: calls of other libraries' functions come to them without
# any dispatch of ours before.
from numpy_dist.dispatch.core import plugins as plugins

__all__ = ["DistArray"]
