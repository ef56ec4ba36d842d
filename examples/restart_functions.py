"""Heat in a plate with hot spots at random places: plain NumPy, as one writes it for one process."""

import numpy as np


def start(size):
    """A cold plate with one hot edge."""
    plate = np.zeros((size, size))
    plate[0] = 100.0
    return plate


def advance(plate, rng):
    """One step of diffusion, in place, and a hot spot somewhere."""
    inner = plate[1:-1, 1:-1]
    inner += 0.2 * (plate[2:, 1:-1] + plate[:-2, 1:-1] + plate[1:-1, 2:] + plate[1:-1, :-2] - 4 * inner)
    row, column = rng.integers(1, len(plate) - 1, 2)
    plate[row, column] += 1.0
