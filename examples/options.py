"""Black-Scholes prices of many options, which are cut over the ranks.

numpy-dist run -n 4 examples/options.py --count 4000000
"""

import argparse

import check
import numpy as np
from options_functions import prices

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2_000_000, help="of options (default %(default)s)")
    options = parser.parse_args()

    generator = np.random.default_rng(5)
    given = [low + (high - low) * generator.random(options.count) for low, high in ((5, 30), (1, 100), (0.25, 10))]
    check.both_ways(
        f"Black-Scholes, {options.count} options",
        lambda: prices(*map(numpy_dist.asarray, given)),
        lambda: prices(*given),
    )


if __name__ == "__main__":
    main()
