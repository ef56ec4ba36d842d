"""`numpy.rec`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.rec import *  # noqa: F403
