"""`numpy.ma`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.ma import *  # noqa: F403
