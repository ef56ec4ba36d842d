"""Waves on shallow water: heights and momenta are cut over the ranks.

numpy-dist run -n 4 examples/shallow.py --size 500 --steps 20
"""

import argparse

import check
import numpy as np
from shallow_functions import waves

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=500, help="cells along each side (default %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="in time (default %(default)s)")
    options = parser.parse_args()

    side = np.linspace(-1, 1, options.size)
    height = 1 + 0.5 * np.exp(-20 * (side[:, None] ** 2 + (side[None, :] - 0.3) ** 2))
    still = np.zeros_like(height)
    check.both_ways(
        f"{options.steps} steps of shallow water",
        lambda: waves(*map(numpy_dist.asarray, (height, still, still)), options.steps),
        lambda: waves(height.copy(), still.copy(), still.copy(), options.steps),
        halo=1,
    )


if __name__ == "__main__":
    main()
