"""k-means: the points are cut over the ranks, the centres are on each of them.

numpy-dist run -n 4 examples/kmeans.py --points 300000 --steps 3
"""

import argparse

import check
import numpy as np
from kmeans_functions import cluster

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=300_000, help="how many (default %(default)s)")
    parser.add_argument("--centres", type=int, default=6, help="how many (default %(default)s)")
    parser.add_argument("--steps", type=int, default=3, help="of clustering (default %(default)s)")
    options = parser.parse_args()

    generator = np.random.default_rng(3)
    middles = 20 * generator.random((options.centres, 4))
    points = middles[generator.integers(options.centres, size=options.points)]
    points += generator.normal(size=points.shape)
    centres = points[: options.centres].copy()
    check.both_ways(
        f"{options.steps} steps of k-means, {options.points} points",
        lambda: cluster(numpy_dist.asarray(points, split=0), centres, options.steps),
        lambda: cluster(points, centres, options.steps),
    )


if __name__ == "__main__":
    main()
