"""Arrays at hand: small arrays of one process, on which NumPy works at once.

An array at hand is a `DistArray` in another state. Its elements are an ndarray that is seen through a window
(`engine.data.windows`); operators, indexing and the like are NumPy's own on it, and make arrays at hand. For everything
else, and where the window is shut, it is *handed over*: it becomes a view over a storage like all others, of the class
`DistArray`, whose attributes are asked for by whoever knows nothing of arrays at hand.
"""

from numpy_dist.distarray.at_hand import complex_parts as complex_parts
from numpy_dist.distarray.at_hand import methods as methods
from numpy_dist.distarray.at_hand.array import AtHand
from numpy_dist.distarray.at_hand.indexing import assign, selected
from numpy_dist.distarray.at_hand.products import multiplied
from numpy_dist.distarray.at_hand.routes import routed
from numpy_dist.distarray.at_hand.ufuncs import computed
from numpy_dist.engine.data import windows

__all__ = ["AtHand"]

windows.register_at_hand(AtHand, assign, selected, computed, multiplied, routed)
