"""`numpy.char`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.char import *  # noqa: F403
