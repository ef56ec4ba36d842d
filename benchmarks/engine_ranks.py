"""The 5-point stencil on ranks of one thread; started by `engine_cases`."""

import sys

import numpy as np
from harness import HERE  # noqa: F401 - it makes the examples importable
from ranks import at_each_turn
from stencil_functions import plate, relax

import numpy_dist
from numpy_dist import engine


def main(path: str, size: int, steps: int) -> None:
    """First a check against NumPy, then the steps at each turn."""
    grid = numpy_dist.asarray(plate(size))
    gathered = engine.gather(relax(grid, steps), root=0)
    same = gathered is None or np.array_equal(gathered, relax(plate(size), steps))
    if not all(engine.runtime().comm.allgather(same)):
        raise SystemExit("the stencil on ranks differs from NumPy's")

    def work() -> None:
        relax(grid, steps)
        engine.flush()

    at_each_turn(path, work)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
