"""`numpy.core`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.core import *  # noqa: F403
