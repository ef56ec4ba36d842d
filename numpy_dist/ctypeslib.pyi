"""`numpy.ctypeslib`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.ctypeslib import *  # noqa: F403
