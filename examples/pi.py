"""Pi by throwing random points: NumPy's own random numbers, of which each rank makes its share.

numpy-dist run -n 4 examples/pi.py --points 20000000
"""

import argparse

import check
import numpy as np
from pi_functions import estimate, throw

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20_000_000, help="how many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=2025, help="of the generator (default %(default)s)")
    options = parser.parse_args()

    def work(generator):
        x, y = throw(generator, options.points)
        return {"x": x, "y": y, "pi": estimate(x, y)}

    check.both_ways(
        f"pi from {options.points} points",
        lambda: work(numpy_dist.random.default_rng(options.seed)),
        lambda: work(np.random.default_rng(options.seed)),
    )


if __name__ == "__main__":
    main()
