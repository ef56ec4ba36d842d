"""`numpy.dtypes`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.dtypes import *  # noqa: F403
