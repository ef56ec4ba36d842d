"""Conjugate gradients for the Poisson equation; its vectors are squares that are cut over the ranks.

numpy-dist run -n 4 examples/gradients.py --size 700 --steps 30
"""

import argparse

import check
import numpy as np
from gradients_functions import solve

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=700, help="unknowns along each side (default %(default)s)")
    parser.add_argument("--steps", type=int, default=30, help="at most (default %(default)s)")
    options = parser.parse_args()

    b = np.random.default_rng(1).random((options.size, options.size)) - 0.5
    check.both_ways(
        f"{options.steps} steps of conjugate gradients",
        lambda: solve(numpy_dist.asarray(b), options.steps),
        lambda: solve(b, options.steps),
        halo=1,
        tolerance=1e-9,
    )


if __name__ == "__main__":
    main()
