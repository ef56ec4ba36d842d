"""Conjugate gradients for the Poisson equation on a square, in plain NumPy: the matrix is a stencil of slices."""

import numpy as np


def laplacian(x):
    """The five-point stencil, with zeros around the square."""
    y = 4 * x
    y[1:] -= x[:-1]
    y[:-1] -= x[1:]
    y[:, 1:] -= x[:, :-1]
    y[:, :-1] -= x[:, 1:]
    return y


def solve(b, steps, tolerance=1e-10):
    """The solution of ``laplacian(x) = b`` after at most so many steps, and the norm of what is left."""
    x = np.zeros_like(b)
    residual = b.copy()
    direction = residual.copy()
    rest = np.sum(residual * residual)
    enough = tolerance * tolerance * rest
    for _ in range(steps):
        applied = laplacian(direction)
        alpha = rest / np.sum(direction * applied)
        x += alpha * direction
        residual -= alpha * applied
        before, rest = rest, np.sum(residual * residual)
        if rest < enough:
            break
        direction = residual + rest / before * direction
    return {"x": x, "norm of x": np.sqrt(np.sum(x * x))}
