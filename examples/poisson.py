"""Poisson's equation in a box: Fourier transforms along three axes of an array that is cut along the first.

numpy-dist run -n 4 examples/poisson.py --size 256
"""

import argparse

import check
import numpy as np
from poisson_functions import potential

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=96, help="of the box (default %(default)s)")
    options = parser.parse_args()

    density = np.random.default_rng(5).normal(size=(options.size,) * 3)
    check.both_ways(
        f"Poisson's equation in a box of {options.size} x {options.size} x {options.size}",
        lambda: potential(numpy_dist.asarray(density, split=0)),
        lambda: potential(density),
        tolerance=1e-12,
    )


if __name__ == "__main__":
    main()
