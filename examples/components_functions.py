"""Principal components, in plain NumPy."""

import numpy as np


def principal_components(samples, count):
    """The coordinates of samples along the directions in which they vary most, and their share of the variance."""
    centred = samples - samples.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    first = directions[:count]
    signs = np.sign(first[np.arange(count), np.abs(first).argmax(axis=1)])  # a direction has two
    return {
        "coordinates": centred @ (first * signs[:, np.newaxis]).T,
        "share": (sizes[:count] ** 2).sum() / (sizes**2).sum(),
    }
