"""Heat in a plate by the 5-point stencil: the same function on NumPy and on a plate that is cut over the ranks.

numpy-dist run -n 4 examples/stencil.py --size 2000 --steps 100
"""

import argparse

import check
from stencil_functions import plate, relax

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=2000, help="cells along each side (default %(default)s)")
    parser.add_argument("--steps", type=int, default=100, help="how often the plate is relaxed (default %(default)s)")
    options = parser.parse_args()

    grid = plate(options.size)
    check.both_ways(
        f"{options.steps} steps of the 5-point stencil",
        lambda: relax(numpy_dist.asarray(grid), options.steps),
        lambda: relax(grid, options.steps),
        halo=1,
    )


if __name__ == "__main__":
    main()
