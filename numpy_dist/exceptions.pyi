"""`numpy.exceptions`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.exceptions import *  # noqa: F403
