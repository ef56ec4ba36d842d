"""Bodies that attract each other, in plain NumPy: all pairs, leapfrog steps."""

import numpy as np


def pull(x, y, z, mass, softening=0.1):
    """The acceleration of each body by all others."""
    dx = x[None, :] - x[:, None]
    dy = y[None, :] - y[:, None]
    dz = z[None, :] - z[:, None]
    strength = mass[None, :] * (dx * dx + dy * dy + dz * dz + softening * softening) ** -1.5
    return (strength * dx).sum(axis=1), (strength * dy).sum(axis=1), (strength * dz).sum(axis=1)


def move(place, speed, mass, steps, dt=0.01):
    """Places and speeds (x, y and z, one after the other) after some steps, and the kinetic energy."""
    for _ in range(steps):
        speed = [v + dt / 2 * a for v, a in zip(speed, pull(*place, mass), strict=True)]
        place = [p + dt * v for p, v in zip(place, speed, strict=True)]
        speed = [v + dt / 2 * a for v, a in zip(speed, pull(*place, mass), strict=True)]
    energy = 0.5 * np.sum(mass * (speed[0] ** 2 + speed[1] ** 2 + speed[2] ** 2))
    return {"x": place[0], "y": place[1], "z": place[2], "energy": energy}
