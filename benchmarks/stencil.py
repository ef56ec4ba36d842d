"""The 5-point stencil through views, against NumPy: one process, one thread, the tile interpreter."""

from harness import Comparison, against_numpy, main


def case(size: int, steps: int, repeats: int, target: str) -> Comparison:
    import numpy as np
    from stencil_functions import plate, relax

    import numpy_dist
    from numpy_dist import engine

    grid = plate(size)
    shards = numpy_dist.asarray(grid)

    def ours() -> None:
        relax(shards, steps)
        engine.force(shards)

    row = against_numpy(
        f"stencil {size} x {size}, {steps} steps",
        lambda: relax(grid, steps),
        ours,
        unit="ms",
        repeats=repeats,
        speed=True,
        target=target,
    )
    if not np.array_equal(grid, shards.gather()):
        raise SystemExit("the stencil differs from NumPy's")
    return row


def measure(quick: bool) -> list[Comparison]:
    if quick:
        return [case(500, 5, 3, "")]
    return [case(4000, 10, 9, ">= 1.8"), case(1000, 50, 9, "")]


if __name__ == "__main__":
    main("stencil", measure)
