"""What an operation costs beside its arithmetic: arrays of 16 elements, and the recording of a statement."""

import statistics
import time

from harness import Comparison, against_numpy, main

RECORDED = 100
"""Statements recorded between two executions: fewer than the engine's own bound on pending statements (256)."""


def small(quick: bool) -> list[Comparison]:
    import numpy as np

    import numpy_dist

    a, b = np.linspace(0.0, 1.0, 16), np.linspace(1.0, 2.0, 16)
    namespace = {"np": np, "a": a, "b": b, "x": numpy_dist.asarray(a), "y": numpy_dist.asarray(b)}
    cases = [("a + b", "x + y", "<= 3"), ("np.sin(a)", "np.sin(x)", "<= 3"), ("np.add(a, b)", "np.add(x, y)", "<= 4")]
    return [
        against_numpy(
            f"{numpy}, 16 elements",
            numpy,
            ours,
            unit="us",
            repeats=5 if quick else 61,
            number=1000 if quick else 10_000,
            speed=False,
            target=target,
            namespace=namespace,
        )
        for numpy, ours, target in cases
    ]


def recording_time(line: str, namespace: dict, quick: bool) -> float:
    """Median seconds of recording a line, by a hundred copies of it, each a call site of its own.

    Nothing is executed before all of them are recorded.
    """
    from numpy_dist import engine

    code = compile("\n".join([line] * RECORDED), "<recorded statements>", "exec")
    seconds = []
    for _ in range(5 if quick else 61):
        engine.flush()
        begin = time.perf_counter()
        exec(code, namespace)  # noqa: S102 - a hundred call sites are needed
        seconds.append((time.perf_counter() - begin) / RECORDED)
    engine.flush()
    return statistics.median(seconds)


def recording(quick: bool) -> list[Comparison]:
    """What it takes to record a statement."""
    import numpy as np

    import numpy_dist

    grid = numpy_dist.asarray(np.ones((300, 300)))
    whole = {"x": grid, "y": numpy_dist.asarray(np.ones((300, 300))), "np": np}
    views = {"x": grid[1:-1, 1:-1], "y": grid[:-2, 1:-1], "np": np}
    line = {"a": numpy_dist.asarray(np.ones(100_000)), "b": numpy_dist.asarray(np.ones(100_000))}
    cases = [
        ("record z = x + y", "z = x + y", whole, "<= 3"),
        ("record x += y", "x += y", whole, "<= 3"),
        ("record z = x + y of shifted views", "z = x + y", views, "<= 3"),
        ("record z = 0.2 * x", "z = 0.2 * x", whole, "<= 3"),
        ("record z = np.sqrt(x)", "z = np.sqrt(x)", whole, "<= 3"),
        ("record x[:] = y", "x[:] = y", whole, "<= 3"),
        ("record x[0] = 1.0", "x[0] = 1.0", whole, "<= 3"),
        ("record z = a[1:-1] + b[2:], with two slices", "z = a[1:-1] + b[2:]", line, "<= 5"),
        ("record x[1:] -= y[1:], with three slices", "x[1:] -= y[1:]", whole, ""),
        ("slice a[1:-1]", "z = a[1:-1]", line, "<= 1"),
        ("slice x[1:-1, 1:-1]", "z = x[1:-1, 1:-1]", whole, "<= 1"),
    ]
    rows = []
    for case, source, namespace, target in cases:
        middle = recording_time(source, namespace, quick)
        rows.append(Comparison(case, None, middle, "us", middle * 1e6, "us a statement", target))
    return rows


def measure(quick: bool) -> list[Comparison]:
    return small(quick) + recording(quick)


if __name__ == "__main__":
    main("small_arrays", measure)
