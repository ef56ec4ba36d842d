"""Row sums of batches of different lengths, joined by `concatenate`.

numpy-dist run -n 4 examples/batches.py --rows 20000 --columns 200
"""

import argparse

import check
import numpy as np
from batches_functions import summed

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="of the first batch (default %(default)s)")
    parser.add_argument("--columns", type=int, default=200, help="of all batches (default %(default)s)")
    options = parser.parse_args()

    generator = np.random.default_rng(9)
    # Whole numbers: their sums do not depend on the order of the terms.
    batches = [generator.integers(-50, 50, (options.rows // k, options.columns)).astype(float) for k in (1, 2, 3)]
    check.both_ways(
        f"row sums of {len(batches)} batches",
        lambda: summed([numpy_dist.asarray(batch, split=0) for batch in batches]),
        lambda: summed(batches),
    )


if __name__ == "__main__":
    main()
