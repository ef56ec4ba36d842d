"""Principal components of samples that are cut over the ranks: a triangle of each rank is all that travels.

numpy-dist run -n 4 examples/components.py --samples 1000000 --features 100
"""

import argparse

import check
import numpy as np
from components_functions import principal_components

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200_000, help="how many (default %(default)s)")
    parser.add_argument("--features", type=int, default=40, help="of each sample (default %(default)s)")
    parser.add_argument("--count", type=int, default=3, help="of components (default %(default)s)")
    options = parser.parse_args()

    generator = np.random.default_rng(8)
    causes = generator.normal(size=(options.samples, options.count)) * 2.0 ** np.arange(options.count, 0, -1)
    samples = causes @ np.linalg.qr(generator.normal(size=(options.features, options.count)))[0].T
    samples += 0.1 * generator.normal(size=samples.shape) + 5
    check.both_ways(
        f"{options.count} principal components of {options.samples} samples of {options.features} features",
        lambda: principal_components(numpy_dist.asarray(samples, split=0), options.count),
        lambda: principal_components(samples, options.count),
        tolerance=1e-10,
    )


if __name__ == "__main__":
    main()
