"""Poisson's equation in a periodic box, in plain NumPy."""

import numpy as np


def potential(density):
    """The solution of ``laplace(potential) = density`` without a mean, by Fourier transforms along all axes."""
    waves = [2 * np.pi * np.fft.fftfreq(n, 1 / n) for n in density.shape]
    squares = sum(wave**2 for wave in np.ix_(*waves))
    spectrum = np.fft.fftn(density)
    solution = np.where(squares > 0, -spectrum / np.maximum(squares, 1), 0)
    energy = (np.abs(solution) ** 2 * squares).sum() / density.size**2
    return {"potential": np.fft.ifftn(solution).real.copy(), "energy": energy}
