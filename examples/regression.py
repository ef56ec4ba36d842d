"""Logistic regression: the samples are cut over the ranks, the weights are on each of them.

numpy-dist run -n 4 examples/regression.py --samples 500000 --steps 20
"""

import argparse

import check
import numpy as np
from regression_functions import fit

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=300_000, help="how many (default %(default)s)")
    parser.add_argument("--features", type=int, default=10, help="of each (default %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="of gradient descent (default %(default)s)")
    options = parser.parse_args()

    generator = np.random.default_rng(13)
    features = generator.normal(size=(options.samples, options.features))
    truth = generator.normal(size=options.features)
    answers = (features @ truth + generator.normal(size=options.samples) > 0).astype(float)
    check.both_ways(
        f"{options.steps} steps of logistic regression",
        lambda: fit(*(numpy_dist.asarray(x, split=0) for x in (features, answers)), options.steps),
        lambda: fit(features, answers, options.steps),
        tolerance=1e-9,
    )


if __name__ == "__main__":
    main()
