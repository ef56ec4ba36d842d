"""`numpy.strings`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.strings import *  # noqa: F403
