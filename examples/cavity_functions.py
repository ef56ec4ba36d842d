"""Flow in a square cavity whose lid moves, in plain NumPy: velocity and pressure by finite differences on slices."""

import numpy as np


def pressure(p, source, dx, rounds):
    """Relax the pressure towards its Poisson equation for some rounds; the walls have no gradient, the lid has 0."""
    for _ in range(rounds):
        new = (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]) / 4 - dx * dx / 4 * source
        p[1:-1, 1:-1] = new
        p[:, -1] = p[:, -2]
        p[:, 0] = p[:, 1]
        p[0, :] = p[1, :]
        p[-1, :] = 0
    return p


def divergence(u, v, dx, dt, density):
    """The source of the pressure: how far the velocity is from being free of divergence."""
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dx)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dx)
    return density * ((ux + vy) / dt - ux * ux - 2 * uy * vx - vy * vy)


def moved(w, u, v, dx, dt, viscosity):
    """A velocity after one step, without pressure: carried by the flow, and diffused."""
    here = w[1:-1, 1:-1]
    carried = u[1:-1, 1:-1] * (here - w[1:-1, :-2]) + v[1:-1, 1:-1] * (here - w[:-2, 1:-1])
    spread = w[1:-1, 2:] + w[1:-1, :-2] + w[2:, 1:-1] + w[:-2, 1:-1] - 4 * here
    return here - dt / dx * carried + viscosity * dt / (dx * dx) * spread


def flow(u, v, p, steps, rounds=20, density=1.0, viscosity=0.1):
    """Let the lid (the last row) move for some steps; the velocities and the pressure are changed in place."""
    dx = 2.0 / (len(u) - 1)
    dt = 0.2 * dx * dx / viscosity  # longer steps of diffusion are unstable from 0.25 on
    u[-1, :] = 1
    for _ in range(steps):
        pressure(p, divergence(u, v, dx, dt, density), dx, rounds)
        along = moved(u, u, v, dx, dt, viscosity) - dt / (2 * density * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
        across = moved(v, u, v, dx, dt, viscosity) - dt / (2 * density * dx) * (p[2:, 1:-1] - p[:-2, 1:-1])
        u[1:-1, 1:-1] = along
        v[1:-1, 1:-1] = across
    return {"u": u, "v": v, "p": p, "fastest": np.sqrt(u[:-1] ** 2 + v[:-1] ** 2).max()}
