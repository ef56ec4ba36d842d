"""`numpy.f2py`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.f2py import *  # noqa: F403
