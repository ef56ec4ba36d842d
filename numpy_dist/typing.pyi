"""`numpy.typing`. Made by `python -m numpy_dist.conformance.stubs`."""

from numpy.typing import *  # noqa: F403
