"""Conway's game of life: the cells are cut over the ranks.

numpy-dist run -n 4 examples/life.py --size 2000 --steps 20
"""

import argparse

import check
import numpy as np
from life_functions import play

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1500, help="cells along each side (default %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="in time (default %(default)s)")
    options = parser.parse_args()

    cells = (np.random.default_rng(17).random((options.size, options.size)) < 0.3).astype(np.uint8)
    check.both_ways(
        f"{options.steps} steps of the game of life",
        lambda: play(numpy_dist.asarray(cells), options.steps),
        lambda: play(cells, options.steps),
        halo=1,
    )


if __name__ == "__main__":
    main()
