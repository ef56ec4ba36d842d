"""A least-squares fit of a polynomial, in plain NumPy."""

import numpy as np


def fitted(times, values, degree):
    """What the best polynomial of a degree is at each time, and how far it is from the values on the whole.

    Its powers are nearly dependent: normal equations would lose all digits of the coefficients.
    """
    powers = times[:, np.newaxis] ** np.arange(degree + 1)
    coefficients, _, rank, sizes = np.linalg.lstsq(powers, values, rcond=None)
    smooth = powers @ coefficients
    return {
        "fit": smooth,
        "distance": np.sqrt(((smooth - values) ** 2).mean()),
        "condition above 10^9": bool(sizes[0] > 1e9 * sizes[-1]),
        "rank": rank,
    }
