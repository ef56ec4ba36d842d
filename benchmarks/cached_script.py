"""A user's script of some kernels, small, so that what it takes beside importing NumPy is the engine's overhead.

    python benchmarks/cached_script.py [--count]     # --count: print how many functions Numba has compiled
"""

import sys

from harness import HERE  # noqa: F401 - it makes the examples importable


def count_compiles() -> list[str]:
    """A list to which Numba's compiler adds each function that it lowers to machine code from now on."""
    from numba.core import event

    compiled: list[str] = []

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            if "lowering" in event.data["name"]:
                compiled.append(event.data["name"])

        def on_end(self, event: event.Event) -> None:
            """Only beginnings are counted."""

    event.register("numba:run_pass", Listener())
    return compiled


def work() -> None:
    import numpy as np
    import programs
    from stencil_functions import plate, relax

    import numpy_dist
    from numpy_dist import engine

    grid = numpy_dist.asarray(plate(300))
    u, v = numpy_dist.asarray(np.ones((300, 300))), numpy_dist.asarray(np.zeros((300, 300)))
    x = numpy_dist.asarray(np.linspace(0.0, 1.0, 100_000))
    for _ in range(2):
        relax(grid, 5)
        programs.gray_scott(u, v, 5)
        programs.conjugate_gradients(grid, 5)
        kept = programs.multiply_add(x, x, x), programs.circle(x)
        float(programs.squared_distance(kept[0], kept[1]))
    engine.flush()


if __name__ == "__main__":
    found = count_compiles() if "--count" in sys.argv else []
    work()
    if "--count" in sys.argv:
        print(len(found))
