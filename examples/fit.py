"""A least-squares fit whose matrix has a condition of ten to the tenth, by a QR of each rank's rows.

numpy-dist run -n 4 examples/fit.py --times 2000000
"""

import argparse

import check
import numpy as np
from fit_functions import fitted

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=500_000, help="at which there is a value (default %(default)s)")
    parser.add_argument("--degree", type=int, default=13, help="of the polynomial (default %(default)s)")
    options = parser.parse_args()

    times = np.linspace(0, 1, options.times)
    values = np.sin(9 * times) + 0.1 * np.random.default_rng(4).normal(size=options.times)
    check.both_ways(
        f"a polynomial of degree {options.degree} through {options.times} values",
        lambda: fitted(numpy_dist.asarray(times, split=0), numpy_dist.asarray(values, split=0), options.degree),
        lambda: fitted(times, values, options.degree),
        tolerance=1e-8,
    )


if __name__ == "__main__":
    main()
