"""Element-wise chains of five and more operations, against NumPy: one process, one thread, the tile interpreter."""

from collections.abc import Callable
from typing import Any

from harness import Comparison, against_numpy, main


def polynomial(np: Any, x: Any, y: Any, z: Any) -> Any:
    """Eight operations on one array."""
    return (((0.25 * x - 0.5) * x + 0.75) * x - 1.0) * x + 2.0


def rotation(np: Any, x: Any, y: Any, z: Any) -> Any:
    """Seven operations on three arrays."""
    return 0.36 * x + 0.48 * y - 0.8 * z + x * y


def logistic_loss(np: Any, x: Any, y: Any, z: Any) -> Any:
    """Nine operations, two of them transcendental: scores `x * z`, labels `y`."""
    score = x * z
    return np.log(1.0 + np.exp(-np.abs(score))) + np.maximum(score, 0.0) - score * y


def black_scholes(np: Any, x: Any, y: Any, z: Any) -> Any:
    """The price of an option: some twenty operations; the normal distribution by its logistic approximation."""
    volatility, rate = 0.2, 0.01
    root = volatility * np.sqrt(z)
    first = (np.log(x / y) + (rate + 0.5 * volatility**2) * z) / root
    second = first - root
    share = 1.0 / (1.0 + np.exp(-1.5976 * first - 0.07056 * first * first * first))
    debt = 1.0 / (1.0 + np.exp(-1.5976 * second - 0.07056 * second * second * second))
    return x * share - y * np.exp(-rate * z) * debt


def case(chain: Callable[..., Any], elements: int, repeats: int, target: str) -> Comparison:
    import numpy as np

    import numpy_dist
    from numpy_dist import engine

    generator = np.random.default_rng(1)
    arrays = [generator.uniform(0.5, 2.0, elements) for _ in range(3)]
    shards = [numpy_dist.asarray(array) for array in arrays]
    row = against_numpy(
        f"{chain.__name__.replace('_', ' ')}, {elements:.0e} elements",
        lambda: chain(np, *arrays),
        lambda: engine.force(chain(np, *shards)),
        unit="ms",
        repeats=repeats,
        speed=True,
        target=target,
    )
    if not np.array_equal(chain(np, *arrays), chain(np, *shards).gather()):
        raise SystemExit(f"{chain.__name__} differs from NumPy's")
    return row


def measure(quick: bool) -> list[Comparison]:
    elements, repeats, target = (10**5, 3, "") if quick else (10**7, 11, ">= 1.8")
    return [case(chain, elements, repeats, target) for chain in (polynomial, rotation, logistic_loss, black_scholes)]


if __name__ == "__main__":
    main("chains", measure)
