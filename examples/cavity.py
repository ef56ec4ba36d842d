"""Flow in a cavity whose lid moves: the same functions on NumPy and on grids that are cut over the ranks.

numpy-dist run -n 4 examples/cavity.py --size 400 --steps 10
"""

import argparse

import check
import numpy as np
from cavity_functions import flow

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=400, help="cells along each side (default %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="how long the lid moves (default %(default)s)")
    options = parser.parse_args()

    still = np.zeros((options.size, options.size))
    check.both_ways(
        f"{options.steps} steps of flow in a cavity",
        lambda: flow(*(numpy_dist.asarray(still) for _ in range(3)), options.steps),
        lambda: flow(*(still.copy() for _ in range(3)), options.steps),
        halo=1,
    )


if __name__ == "__main__":
    main()
