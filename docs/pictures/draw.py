"""Draw the pictures of the documentation into this folder: ``python docs/pictures/draw.py`` (needs Matplotlib).

The fields are those of the examples' own functions, computed on distributed arrays.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import numpy_dist
from numpy_dist.layout.default import default_layout

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))
import terrain  # noqa: E402
from cavity_functions import flow  # noqa: E402
from shallow_functions import waves  # noqa: E402
from terrain_functions import analyse  # noqa: E402

MOST_BYTES = 60_000


def save(name: str, figure: Any) -> None:
    """Write a picture of few colours, which is small."""
    from PIL import Image  # Matplotlib brings it

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=80)
    plt.close(figure)
    for colours in (128, 64, 32, 16):
        small = io.BytesIO()
        Image.open(drawn).convert("RGB").quantize(colours).save(small, "PNG", optimize=True)
        if small.tell() <= MOST_BYTES:
            break
    else:
        raise SystemExit(f"{name} has {small.tell()} bytes")
    (HERE / name).write_bytes(small.getvalue())
    print(name, small.tell())


def layouts() -> None:
    """An array of (1000, 1000) on four ranks, by default and with ``split=0``."""
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
    for axis, split, title in zip(axes, (None, 0), ("asarray(data)", "asarray(data, split=0)"), strict=True):
        numpy_dist.show_layout(default_layout((1000, 1000), 4, split=split), ax=axis)
        axis.set_title(title, fontsize=10)
    save("layouts.png", figure)


def relief() -> None:
    """The elevation model of ``examples/terrain.py``, shaded, before and after smoothing."""
    source, dx, dy = terrain.load(1)
    results = analyse(numpy_dist.asarray(source), dx, dy, 20)
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
    for axis, name, title in zip(
        axes, ("hillshade", "smoothed hillshade"), ("hillshade", "after 20 steps of smoothing"), strict=True
    ):
        axis.imshow(results[name].gather()[100:300, 100:340], cmap="gray")
        axis.set_title(title, fontsize=10)
        axis.set_axis_off()
    save("terrain.png", figure)


def water() -> None:
    """Heights of ``examples/shallow.py`` after 150 and 300 steps."""
    side = np.linspace(-1, 1, 200)
    height = 1 + 0.5 * np.exp(-20 * (side[:, None] ** 2 + (side[None, :] - 0.3) ** 2))
    state = [numpy_dist.asarray(q) for q in (height, np.zeros_like(height), np.zeros_like(height))]
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
    for axis, steps in zip(axes, (150, 300), strict=True):
        waves(*state, 150)
        axis.imshow(state[0].gather(), cmap="Blues_r")
        axis.set_title(f"water, {steps} steps", fontsize=10)
        axis.set_axis_off()
    save("shallow.png", figure)


def cavity() -> None:
    """Streamlines of ``examples/cavity.py``, coloured by speed."""
    still = np.zeros((101, 101))
    found = flow(*(numpy_dist.asarray(still) for _ in range(3)), 800, rounds=10)
    u, v = found["u"].gather(), found["v"].gather()
    side = np.linspace(0, 1, len(u))
    figure, axis = plt.subplots(figsize=(4, 3.8), layout="constrained")
    axis.streamplot(side, side, u, v, color=np.hypot(u, v), cmap="viridis", density=1.1, linewidth=0.8)
    axis.set(xlim=(0, 1), ylim=(0, 1), xticks=(), yticks=(), aspect="equal")
    axis.set_title("flow in a cavity whose lid moves", fontsize=10)
    save("cavity.png", figure)


if __name__ == "__main__":
    layouts()
    relief()
    water()
    cavity()
