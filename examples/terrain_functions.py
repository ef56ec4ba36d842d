"""Terrain analysis of an elevation model, in plain NumPy.

Elevations are in metres on a regular grid whose first row is the northernmost; ``dx`` and ``dy`` are the distances
between columns and between rows, in metres. Angles are in radians.
"""

import numpy as np


def gradient(elevation, dx, dy):
    """Rise for each metre to the east and to the north: central differences, one-sided at the edges."""
    east = np.empty_like(elevation)
    east[:, 1:-1] = (elevation[:, 2:] - elevation[:, :-2]) / (2 * dx)
    east[:, 0] = (elevation[:, 1] - elevation[:, 0]) / dx
    east[:, -1] = (elevation[:, -1] - elevation[:, -2]) / dx

    north = np.empty_like(elevation)
    north[1:-1] = (elevation[:-2] - elevation[2:]) / (2 * dy)
    north[0] = (elevation[0] - elevation[1]) / dy
    north[-1] = (elevation[-2] - elevation[-1]) / dy
    return east, north


def slope(east, north):
    """Steepness: 0 is level, pi/2 a vertical wall."""
    return np.arctan(np.hypot(east, north))


def aspect(east, north):
    """Compass bearing of the way down: 0 is north, pi/2 east."""
    return np.arctan2(-east, -north) % (2 * np.pi)


def hillshade(slope, aspect, azimuth=1.75 * np.pi, altitude=0.25 * np.pi):
    """Light that a matt surface returns when the sun stands at ``azimuth`` and ``altitude``: 0 is dark, 1 bright."""
    light = np.sin(altitude) * np.cos(slope) + np.cos(altitude) * np.sin(slope) * np.cos(azimuth - aspect)
    return np.clip(light, 0, 1)


def smooth(elevation, steps, rate=0.2):
    """Diffuse the elevation for some steps; its border stays as it is."""
    smoothed = elevation.copy()
    center = smoothed[1:-1, 1:-1]
    north = smoothed[:-2, 1:-1]
    south = smoothed[2:, 1:-1]
    west = smoothed[1:-1, :-2]
    east = smoothed[1:-1, 2:]
    for _ in range(steps):
        flow = north + south + west + east - 4 * center
        center[:] = center + rate * flow
    return smoothed


def analyse(elevation, dx, dy, steps):
    """Slope, aspect and hillshade of the elevation, the same hillshade after smoothing, and some figures."""
    east, north = gradient(elevation, dx, dy)
    steepness = slope(east, north)
    bearing = aspect(east, north)

    smoothed = smooth(elevation, steps)
    east, north = gradient(smoothed, dx, dy)
    smoothed_steepness = slope(east, north)

    return {
        "slope": steepness,
        "aspect": bearing,
        "hillshade": hillshade(steepness, bearing),
        "smoothed": smoothed,
        "smoothed hillshade": hillshade(smoothed_steepness, aspect(east, north)),
        "highest point": elevation.max(),
        "mean slope": np.degrees(steepness.mean()),
        "mean slope after smoothing": np.degrees(smoothed_steepness.mean()),
    }
