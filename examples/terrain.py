"""Slope, aspect, hillshade and smoothing of a real elevation model: plain NumPy functions on arrays cut over the ranks.

    numpy-dist run -n 4 examples/terrain.py --enlarge 3 --steps 200 --picture terrain.png

The elevation model is the one around the Jacksboro fault in Tennessee that Matplotlib ships among its sample data.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import check
import numpy as np
from terrain_functions import analyse

import numpy_dist


class Enlarged:
    """The elevations, interpolated `factor` times as densely. Whoever slices it computes just that part."""

    dtype = np.dtype(float)
    ndim = 2

    def __init__(self, elevation: np.ndarray, factor: int) -> None:
        self.elevation = elevation.astype(float)
        self.factor = factor
        self.shape = tuple(n * factor for n in elevation.shape)

    def __getitem__(self, box: tuple[slice, slice]) -> np.ndarray:
        top, bottom, down = self._between(0, box[0])
        left, right, along = self._between(1, box[1])
        columns = self.elevation[:, left] * (1 - along) + self.elevation[:, right] * along
        return columns[top] * (1 - down[:, None]) + columns[bottom] * down[:, None]

    def _between(self, axis: int, wanted: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The two samples between which each wanted place of an axis lies, and how near it is to the second."""
        last = self.elevation.shape[axis] - 1
        place = (np.arange(self.shape[axis])[wanted] + 0.5) / self.factor - 0.5
        place = np.clip(place, 0, last)
        low = np.minimum(place.astype(int), last - 1)
        return low, low + 1, place - low


def sample_file() -> Path:
    """Where Matplotlib keeps the elevation model; found without importing it, since only rank 0 draws."""
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise SystemExit("examples/terrain.py needs Matplotlib, for the data and the picture: pip install matplotlib")
    path = Path(spec.origin).parent / "mpl-data" / "sample_data" / "jacksboro_fault_dem.npz"
    if not path.exists():  # some distributions of Matplotlib move their data elsewhere
        from matplotlib import cbook

        path = Path(str(cbook.get_sample_data(path.name, asfileobj=False)))
    return path


def load(factor: int) -> tuple[Enlarged, float, float]:
    """The enlarged elevation model, and the metres between its columns and between its rows."""
    with np.load(sample_file()) as sample:
        metres = 111_200 / factor  # of a degree of latitude
        middle = np.radians((sample["ymin"] + sample["ymax"]) / 2)
        dx, dy = sample["dx"] * metres * np.cos(middle), sample["dy"] * metres
        return Enlarged(sample["elevation"], factor), float(dx), float(dy)


def draw(path: str, elevation: np.ndarray, results: dict[str, Any], steps: int, size_km: tuple[float, float]) -> None:
    """Write a picture of four panels: shaded relief before and after smoothing, slope and aspect."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.cm import ScalarMappable

    every = max(1, max(elevation.shape) // 1200)
    tint = ScalarMappable(plt.Normalize(elevation.min() - 350, elevation.max() + 50), "gist_earth")

    def relief(heights: np.ndarray, light: np.ndarray) -> np.ndarray:
        """Colours by height, brighter where the sun falls."""
        colours = tint.to_rgba(heights[::every, ::every])[..., :3]
        return np.clip(colours * (0.35 + 0.95 * light[::every, ::every, None]), 0, 1)

    panels = [
        ("Jacksboro fault, elevation in metres", relief(elevation, results["hillshade"]), {}),
        (f"after {steps} steps of smoothing", relief(results["smoothed"], results["smoothed hillshade"]), {}),
        ("slope in degrees", np.degrees(results["slope"][::every, ::every]), {"cmap": "magma", "vmin": 0}),
        (
            "bearing of the way down in degrees",
            np.degrees(results["aspect"][::every, ::every]),
            {"cmap": "twilight", "vmin": 0, "vmax": 360},
        ),
    ]
    figure, axes = plt.subplots(2, 2, figsize=(13, 12.2), layout="constrained")
    for axis, (title, pixels, scale) in zip(axes.flat, panels, strict=True):
        image = axis.imshow(pixels, extent=(0, size_km[0], 0, size_km[1]), **scale)
        axis.set(title=title, xlabel="km to the east", ylabel="km to the north")
        bar = figure.colorbar(image if scale else tint, ax=axis, shrink=0.85)
        if not scale:
            bar.ax.set_ylim(elevation.min(), elevation.max())
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--enlarge", type=int, default=3, help="how many times as densely (default %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="of smoothing (default %(default)s)")
    parser.add_argument("--picture", default="terrain.png", help="where to write it; '' for none (default %(default)s)")
    options = parser.parse_args()

    source, dx, dy = load(options.enlarge)
    results = check.both_ways(
        f"terrain of {source.shape[0]} x {source.shape[1]} cells, {options.steps} steps of smoothing",
        lambda: analyse(numpy_dist.asarray(source), dx, dy, options.steps),
        lambda: analyse(source[:, :], dx, dy, options.steps),
        halo=1,
    )
    if options.picture and check.rank() == 0:
        rows, columns = source.shape
        draw(options.picture, source[:, :], results, options.steps, (columns * dx / 1000, rows * dy / 1000))
        check.say(f"  wrote {options.picture}")


if __name__ == "__main__":
    main()
