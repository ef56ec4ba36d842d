"""Pi by throwing points at a square, in plain NumPy."""

import numpy as np


def throw(generator, count):
    """Coordinates of ``count`` random points in the unit square."""
    return generator.random(count), generator.random(count)


def estimate(x, y):
    """Four times the share of the points that lie within the quarter of a circle."""
    inside = x * x + y * y <= 1.0
    return 4.0 * np.count_nonzero(inside) / len(x)
