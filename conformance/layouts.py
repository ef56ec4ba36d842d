"""Random layouts, the same on every rank: meshes, irregular cuts, descending cuts, copies, pinned dimensions."""

from __future__ import annotations

import random

from numpy_dist.layout.layout import Copies, Cut, Layout, Pinned
from numpy_dist.layout.mesh import Mesh


def factorisations(n: int) -> list[tuple[int, ...]]:
    """Mesh shapes of one or two dimensions with `n` ranks."""
    return [(n,), *((k, n // k) for k in range(1, n + 1) if n % k == 0)]


def random_layout(shape: tuple[int, ...], size: int, generator: random.Random) -> Layout:
    """A layout of an array over `size` ranks."""
    mesh = generator.choice(factorisations(size))
    axes = list(range(len(shape)))
    generator.shuffle(axes)
    dims: list[Cut | Copies | Pinned] = []
    for extent in mesh:
        draw = generator.random()
        if axes and draw < 0.8:
            axis = axes.pop()
            dims.append(Cut(axis, _points(shape[axis], extent, generator)))
        elif draw < 0.9 or not axes:
            dims.append(Copies())
        else:
            dims.append(Pinned(generator.randrange(extent)))
    return Layout(shape, Mesh(mesh), tuple(dims))


def _points(n: int, extent: int, generator: random.Random) -> tuple[int, ...]:
    if generator.random() < 0.4:
        inner = [k * n // extent for k in range(1, extent)]
    else:
        inner = sorted(generator.randint(0, n) for _ in range(extent - 1))
    points = (0, *inner, n)
    return points[::-1] if generator.random() < 0.2 else points
