"""Heat in a square plate by the 5-point stencil, in plain NumPy: every view reads the grid that `center` writes."""

import numpy as np


def plate(n):
    """A plate of n x n cells at 0 degrees inside a cold frame, whose upper edge is warm."""
    grid = np.zeros((n + 2, n + 2))
    grid[:, 0] = -273.15
    grid[:, -1] = -273.15
    grid[-1, :] = -273.15
    grid[0, :] = 40.0
    return grid


def relax(grid, steps):
    """Replace each inner cell by the average of itself and its four neighbours, again and again, in place."""
    center = grid[1:-1, 1:-1]
    north = grid[:-2, 1:-1]
    east = grid[1:-1, 2:]
    west = grid[1:-1, :-2]
    south = grid[2:, 1:-1]
    for _ in range(steps):
        average = 0.2 * (center + north + east + west + south)
        center[:] = average
    return grid
