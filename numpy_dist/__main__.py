"""`python -m numpy_dist` is `numpy-dist`."""

import sys

from numpy_dist.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
