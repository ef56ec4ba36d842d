"""A batch of images, normalised and half of it mirrored through a boolean mask; the batch is cut over the ranks.

numpy-dist run -n 4 examples/images.py --images 500 --size 96
"""

import argparse

import check
import numpy as np
from images_functions import prepare

import numpy_dist


def batch(count: int, size: int) -> np.ndarray:
    """Coloured blobs with noise: uint8, (count, size, size, 3)."""
    generator = np.random.default_rng(1)
    rows, columns = np.mgrid[:size, :size] / size
    centers = generator.random((count, 2, 1, 1, 3))
    distance = np.hypot(rows[None, :, :, None] - centers[:, 0], columns[None, :, :, None] - centers[:, 1])
    return (200 * np.exp(-4 * distance) + 50 * generator.random(distance.shape)).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=500, help="how many (default %(default)s)")
    parser.add_argument("--size", type=int, default=96, help="pixels along each side (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the choice of images to mirror (default %(default)s)")
    options = parser.parse_args()

    images = batch(options.images, options.size)
    check.both_ways(
        f"{options.images} images normalised, half of them mirrored",
        lambda: prepare(numpy_dist.asarray(images), numpy_dist.random.default_rng(options.seed)),
        lambda: prepare(images, np.random.default_rng(options.seed)),
        tolerance=1e-6,
    )


if __name__ == "__main__":
    main()
