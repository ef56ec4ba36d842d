"""A user's script of some kernels, small, so that what it takes beside importing NumPy is the engine's overhead.

    python benchmarks/cached_script.py
"""

from harness import HERE  # noqa: F401 - it makes the examples importable


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
    work()
