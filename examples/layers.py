"""Matrix products, element-wise functions and statistics in a chain; the batch is cut over the ranks.

numpy-dist run -n 4 examples/layers.py --rows 20000 --width 256
"""

import argparse

import check
import numpy as np
from layers_functions import forward

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="of the batch (default %(default)s)")
    parser.add_argument("--width", type=int, default=128, help="of each layer (default %(default)s)")
    options = parser.parse_args()

    generator = np.random.default_rng(7)
    batch = generator.normal(size=(options.rows, options.width))
    weights = [generator.normal(size=(options.width, options.width)) / 10 for _ in range(3)]
    check.both_ways(
        f"3 layers, a batch of {options.rows} x {options.width}",
        lambda: forward(numpy_dist.asarray(batch, split=0), weights),
        lambda: forward(batch, weights),
        tolerance=1e-9,
    )


if __name__ == "__main__":
    main()
