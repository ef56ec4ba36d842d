"""What one would write by hand with Numba for `programs`: fused loops over all threads, into memory made before.

Each function takes what the program of the same name takes, and returns a function without arguments that does the work
and returns the result; programs that work in place go on from where they stopped. The compiler may reorder sums, as
NumPy does, and `smallest` and `largest` expect no NaN; nothing else is given away to speed.
"""

from math import copysign, cos, exp, log, sin, sqrt

import numpy as np
from numba import get_num_threads, njit, prange
from programs import CENTER, CORNER, EDGE, FACE, FEED, KILL, SPEED_U, SPEED_V

parallel = njit(parallel=True)
summing = njit(parallel=True, fastmath={"reassoc"})
PARTS = 64
"""Pieces of a long array, for reductions that Numba does not reduce by itself."""

LANES = 8
"""Elements compared at a time: one chain of comparisons would wait for each of them."""


def _in_turns(step, buffers, others, steps):
    """Work in place by two sets of buffers that swap roles after each step."""
    sets = [buffers, others]

    def run():
        for _ in range(steps):
            step(*sets[0], *sets[1])
            sets.reverse()
        return sets[0] if len(buffers) > 1 else sets[0][0]

    return run


# -- stencils --------------------------------------------------------------------------------------------------------


@parallel
def _relax(grid, out):
    for i in prange(1, grid.shape[0] - 1):
        for j in range(1, grid.shape[1] - 1):
            out[i, j] = 0.2 * (grid[i, j] + grid[i - 1, j] + grid[i, j + 1] + grid[i, j - 1] + grid[i + 1, j])


def relax(grid, steps):
    return _in_turns(_relax, [grid], [grid.copy()], steps)


@parallel
def _smooth27(u, out):
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for k in range(1, u.shape[2] - 1):
                faces = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k]
                faces = faces + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
                edges = u[i - 1, j - 1, k] + u[i - 1, j + 1, k] + u[i + 1, j - 1, k] + u[i + 1, j + 1, k]
                edges = edges + u[i - 1, j, k - 1] + u[i - 1, j, k + 1] + u[i + 1, j, k - 1] + u[i + 1, j, k + 1]
                edges = edges + u[i, j - 1, k - 1] + u[i, j - 1, k + 1] + u[i, j + 1, k - 1] + u[i, j + 1, k + 1]
                corners = u[i - 1, j - 1, k - 1] + u[i - 1, j - 1, k + 1] + u[i - 1, j + 1, k - 1]
                corners = corners + u[i - 1, j + 1, k + 1] + u[i + 1, j - 1, k - 1] + u[i + 1, j - 1, k + 1]
                corners = corners + u[i + 1, j + 1, k - 1] + u[i + 1, j + 1, k + 1]
                out[i, j, k] = CENTER * u[i, j, k] + FACE * faces + EDGE * edges + CORNER * corners


def smooth27(u, steps):
    return _in_turns(_smooth27, [u], [u.copy()], steps)


@parallel
def _gray_scott(u, v, new_u, new_v):
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            here_u, here_v = u[i, j], v[i, j]
            reaction = here_u * here_v * here_v
            laplacian_u = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * here_u
            laplacian_v = v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1] - 4.0 * here_v
            new_u[i, j] = here_u + (SPEED_U * laplacian_u - reaction + FEED * (1.0 - here_u))
            new_v[i, j] = here_v + (SPEED_V * laplacian_v + reaction - (FEED + KILL) * here_v)


def gray_scott(u, v, steps):
    return _in_turns(_gray_scott, [u, v], [u.copy(), v.copy()], steps)


# -- element-wise work -----------------------------------------------------------------------------------------------


@njit
def _normal_share(x):
    x = x * 0.7071067811865476
    t = 1.0 / (1.0 + 0.3275911 * abs(x))
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return 0.5 + 0.5 * copysign(1.0 - series * exp(-x * x), x)


@parallel
def _black_scholes(spot, strike, years, rate, volatility, out):
    for i in prange(out.size):
        spread = volatility * sqrt(years[i])
        upper = (log(spot[i] / strike[i]) + (rate + 0.5 * volatility**2) * years[i]) / spread
        debt = strike[i] * exp(-rate * years[i]) * _normal_share(upper - spread)
        out[i] = spot[i] * _normal_share(upper) - debt


def black_scholes(spot, strike, years, rate, volatility):
    return _into(_black_scholes, spot, strike, years, rate, volatility)


@parallel
def _softmax(scores, out):
    for i in prange(scores.shape[0]):
        most = scores[i, 0]
        for j in range(scores.shape[1]):
            most = max(most, scores[i, j])
        total = 0.0
        for j in range(scores.shape[1]):
            out[i, j] = exp(scores[i, j] - most)
            total += out[i, j]
        for j in range(scores.shape[1]):
            out[i, j] /= total


def softmax(scores):
    return _into(_softmax, scores)


@parallel
def _circle(x, out):
    for i in prange(out.size):
        s, c = sin(x[i]), cos(x[i])
        out[i] = s * s + c * c


def circle(x):
    return _into(_circle, x)


@parallel
def _multiply_add(a, b, c, out):
    for i in prange(out.size):
        out[i] = a[i] * b[i] + c[i]


def multiply_add(a, b, c):
    return _into(_multiply_add, a, b, c)


def _into(kernel, *arguments):
    """Run a kernel on its arguments and a result that is like the first of them."""
    out = np.zeros_like(arguments[0])  # written, so that its pages are there

    def run():
        kernel(*arguments, out)
        return out

    return run


# -- reductions ------------------------------------------------------------------------------------------------------


@summing
def _total(x):
    total = 0.0
    for i in prange(x.size):
        total += x[i]
    return total


@summing
def _squares(x, middle):
    total = 0.0
    for i in prange(x.size):
        total += (x[i] - middle) * (x[i] - middle)
    return total


@summing
def _squared_distance(x, y):
    total = 0.0
    for i in prange(x.size):
        total += (x[i] - y[i]) * (x[i] - y[i])
    return total


@parallel
def _smallest(x):
    parts = np.empty((PARTS, LANES))
    for part in prange(PARTS):
        lanes = np.full(LANES, x[0])
        end = (part + 1) * x.size // PARTS
        for start in range(part * x.size // PARTS, end, LANES):
            first = min(start, end - LANES)  # the last lanes may be looked at twice
            for lane in range(LANES):
                value, found = x[first + lane], lanes[lane]
                lanes[lane] = value if value < found else found
        parts[part] = lanes
    return parts.min()


@parallel
def _largest(x):
    parts = np.empty((PARTS, LANES))
    for part in prange(PARTS):
        lanes = np.full(LANES, x[0])
        end = (part + 1) * x.size // PARTS
        for start in range(part * x.size // PARTS, end, LANES):
            first = min(start, end - LANES)  # the last lanes may be looked at twice
            for lane in range(LANES):
                value, found = x[first + lane], lanes[lane]
                lanes[lane] = value if value > found else found
        parts[part] = lanes
    return parts.max()


def squared_distance(x, y):
    return lambda: _squared_distance(x, y)


def variance(x):
    return lambda: _squares(x, _total(x) / x.size) / x.size


def deviation(x):
    return lambda: sqrt(_squares(x, _total(x) / x.size) / x.size)


def total(x):
    return lambda: _total(x)


def average(x):
    return lambda: _total(x) / x.size


def smallest(x):
    return lambda: _smallest(x)


def largest(x):
    return lambda: _largest(x)


# -- algorithms ------------------------------------------------------------------------------------------------------


@summing
def _apply_and_dot(p, out):
    """Minus the Laplacian of p, and its product with p."""
    rows, columns = p.shape
    total = 0.0
    for i in prange(rows):
        dot = 0.0
        for j in range(columns):
            value = 4.0 * p[i, j]
            if i > 0:
                value -= p[i - 1, j]
            if i < rows - 1:
                value -= p[i + 1, j]
            if j > 0:
                value -= p[i, j - 1]
            if j < columns - 1:
                value -= p[i, j + 1]
            out[i, j] = value
            dot += p[i, j] * value
        total += dot
    return total


@summing
def _advance(x, residual, direction, image, length):
    total = 0.0
    for i in prange(x.shape[0]):
        square = 0.0
        for j in range(x.shape[1]):
            x[i, j] += length * direction[i, j]
            residual[i, j] -= length * image[i, j]
            square += residual[i, j] * residual[i, j]
        total += square
    return total


@parallel
def _turn(direction, residual, factor):
    for i in prange(direction.shape[0]):
        for j in range(direction.shape[1]):
            direction[i, j] = residual[i, j] + factor * direction[i, j]


def conjugate_gradients(b, iterations):
    x, residual, direction, image = (np.zeros_like(b) for _ in range(4))

    def run():
        x[:], residual[:], direction[:] = 0.0, b, b
        square = _total(residual.reshape(-1) ** 2)
        for _ in range(iterations):
            length = square / _apply_and_dot(direction, image)
            before, square = square, _advance(x, residual, direction, image, length)
            _turn(direction, residual, square / before)
        return x

    return run


@parallel
def _assign(points, centers, parts):
    count, axes = points.shape
    sums = np.zeros((parts, centers.shape[0], axes + 1))
    for part in prange(parts):
        mine = np.zeros((centers.shape[0], axes + 1))
        for i in range(part * count // parts, (part + 1) * count // parts):
            nearest, least = 0, np.inf
            for k in range(centers.shape[0]):
                distance = 0.0
                for axis in range(axes):
                    distance += (points[i, axis] - centers[k, axis]) ** 2
                if distance < least:
                    nearest, least = k, distance
            for axis in range(axes):
                mine[nearest, axis] += points[i, axis]
            mine[nearest, axes] += 1.0
        sums[part] = mine
    return sums


def k_means(points, centers, iterations):
    def run():
        moved = centers
        for _ in range(iterations):
            sums = _assign(points, moved, get_num_threads()).sum(axis=0)
            moved = sums[:, :-1] / sums[:, -1:]
        return moved

    return run
