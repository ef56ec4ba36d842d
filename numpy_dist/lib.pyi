"""`numpy.lib`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.lib import *  # noqa: F403
