"""`numpy.testing`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.testing import *  # noqa: F403
