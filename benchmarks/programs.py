"""The programs that the engine is measured with: plain NumPy functions, for NumPy's arrays and sharded ones alike.

The 5-point stencil is the one of `examples/stencil_functions.py`.
"""

import numpy as np

CENTER, FACE, EDGE, CORNER = 0.4, 0.06, 0.015, 0.0075
"""Weights of the 27-point stencil, which add up to 1 over its 1 + 6 + 12 + 8 points."""


def smooth27(u, steps):
    """Replace each inner cell of a cube by the weighted average of the 27 cells around it, in place."""
    here, low, high = slice(1, -1), slice(None, -2), slice(2, None)
    center = u[here, here, here]
    for _ in range(steps):
        faces = (
            u[low, here, here]
            + u[high, here, here]
            + u[here, low, here]
            + u[here, high, here]
            + u[here, here, low]
            + u[here, here, high]
        )
        edges = (
            u[low, low, here]
            + u[low, high, here]
            + u[high, low, here]
            + u[high, high, here]
            + u[low, here, low]
            + u[low, here, high]
            + u[high, here, low]
            + u[high, here, high]
            + u[here, low, low]
            + u[here, low, high]
            + u[here, high, low]
            + u[here, high, high]
        )
        corners = (
            u[low, low, low]
            + u[low, low, high]
            + u[low, high, low]
            + u[low, high, high]
            + u[high, low, low]
            + u[high, low, high]
            + u[high, high, low]
            + u[high, high, high]
        )
        center[:] = CENTER * center + FACE * faces + EDGE * edges + CORNER * corners
    return u


def erf(x):
    """The error function within 1.5e-7, by formula 7.1.26 of Abramowitz and Stegun."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.copysign(1.0 - series * np.exp(-x * x), x)


def normal_share(x):
    """The share of a normal distribution below `x`."""
    return 0.5 + 0.5 * erf(x * 0.7071067811865476)


def black_scholes(spot, strike, years, rate, volatility):
    """Prices of call options."""
    spread = volatility * np.sqrt(years)
    upper = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    lower = upper - spread
    return spot * normal_share(upper) - strike * np.exp(-rate * years) * normal_share(lower)


def softmax(scores):
    """The softmax of each row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def squared_distance(x, y):
    return ((x - y) ** 2).sum()


def variance(x):
    return np.var(x)


def deviation(x):
    return np.std(x)


def circle(x):
    return np.sin(x) ** 2 + np.cos(x) ** 2


def multiply_add(a, b, c):
    return a * b + c


def total(x):
    return np.sum(x)


def average(x):
    return np.mean(x)


def smallest(x):
    return np.min(x)


def largest(x):
    return np.max(x)


def minus_laplacian(p):
    """Minus the 5-point Laplacian of a grid that is 0 outside."""
    out = 4.0 * p
    out[1:] -= p[:-1]
    out[:-1] -= p[1:]
    out[:, 1:] -= p[:, :-1]
    out[:, :-1] -= p[:, 1:]
    return out


def conjugate_gradients(b, iterations):
    """Solve ``minus_laplacian(x) == b`` approximately."""
    x = np.zeros_like(b)
    residual = b.copy()
    direction = residual.copy()
    square = np.sum(residual * residual)
    for _ in range(iterations):
        image = minus_laplacian(direction)
        length = square / np.sum(direction * image)
        x += length * direction
        residual -= length * image
        before, square = square, np.sum(residual * residual)
        direction = residual + (square / before) * direction
    return x


def k_means(points, centers, iterations):
    """Move each center to the mean of the points that are nearest to it, again and again."""
    for _ in range(iterations):
        distances = ((points[:, np.newaxis, :] - centers) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        centers = np.stack([points[nearest == k].mean(axis=0) for k in range(len(centers))])
    return centers


def laplacian(u):
    """The 5-point Laplacian of the inner cells."""
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]


FEED, KILL, SPEED_U, SPEED_V = 0.035, 0.065, 0.16, 0.08
"""Parameters of the Gray-Scott reaction that make spots."""


def gray_scott(u, v, steps):
    """Two substances that react and diffuse, in place."""
    inner_u, inner_v = u[1:-1, 1:-1], v[1:-1, 1:-1]
    for _ in range(steps):
        reaction = inner_u * inner_v * inner_v
        change_u = SPEED_U * laplacian(u) - reaction + FEED * (1.0 - inner_u)
        change_v = SPEED_V * laplacian(v) + reaction - (FEED + KILL) * inner_v
        inner_u += change_u
        inner_v += change_v
    return u, v
