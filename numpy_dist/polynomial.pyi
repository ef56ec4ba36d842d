"""`numpy.polynomial`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.polynomial import *  # noqa: F403
