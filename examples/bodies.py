"""n bodies: each rank computes the forces on its share of them.

numpy-dist run -n 4 examples/bodies.py --bodies 2000 --steps 3
"""

import argparse

import check
import numpy as np
from bodies_functions import move

import numpy_dist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, default=1500, help="how many (default %(default)s)")
    parser.add_argument("--steps", type=int, default=2, help="in time (default %(default)s)")
    options = parser.parse_args()

    generator = np.random.default_rng(11)
    place, speed = generator.normal(size=(2, 3, options.bodies))
    mass = generator.random(options.bodies) / options.bodies

    def cut(values):
        return numpy_dist.asarray(values, split=0)

    check.both_ways(
        f"{options.bodies} bodies, {options.steps} steps",
        lambda: move(list(map(cut, place)), list(map(cut, speed)), cut(mass), options.steps),
        lambda: move(list(place), list(speed), mass, options.steps),
        halo=options.bodies // 2,  # every rank needs the places of all bodies
        tolerance=1e-10,
    )


if __name__ == "__main__":
    main()
