"""Shallow water on a square basin with walls, in plain NumPy: the Lax-Friedrichs scheme on slices."""

import numpy as np


def average(q):
    """The mean of the four neighbours of each inner cell."""
    return 0.25 * (q[2:, 1:-1] + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2])


def slope(f, g, ratio):
    """What flows out of each inner cell: `f` along the columns' axis, `g` along the rows' axis."""
    return 0.5 * ratio * (f[1:-1, 2:] - f[1:-1, :-2] + g[2:, 1:-1] - g[:-2, 1:-1])


def walls(h, u, v):
    """The water stands at the walls: heights continue, momenta are turned back."""
    for q, along, across in ((h, 1, 1), (u, -1, 1), (v, 1, -1)):
        q[:, 0] = along * q[:, 1]
        q[:, -1] = along * q[:, -2]
        q[0, :] = across * q[1, :]
        q[-1, :] = across * q[-2, :]


def waves(h, u, v, steps, ratio=0.1, gravity=9.81):
    """Height and momenta after some steps, changed in place; and the volume of the water."""
    for _ in range(steps):
        pressure = 0.5 * gravity * h * h
        new_h = average(h) - slope(u, v, ratio)
        new_u = average(u) - slope(u * u / h + pressure, u * v / h, ratio)
        new_v = average(v) - slope(u * v / h, v * v / h + pressure, ratio)
        h[1:-1, 1:-1] = new_h
        u[1:-1, 1:-1] = new_u
        v[1:-1, 1:-1] = new_v
        walls(h, u, v)
    return {"h": h, "u": u, "v": v, "volume": np.sum(h)}
