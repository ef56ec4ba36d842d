"""What an operation costs beside its arithmetic.

Arrays of 16 elements, steps that ask for a value of arrays of some hundred kilobytes, and the recording of a statement.
"""

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


STEPS = {
    "float((a * b).sum())": "",
    "c = 0.5 * a + b; float(c.max())": "",
    "c = a.copy(); c[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]); "
    "float(np.abs(c - a).max())": "Jacobi with its error",
    "c = np.concatenate([a, b]); c[0, 0].item()": "",
    "c = np.sort(a + b, axis=1); c[0, 0].item()": "",
    "c = (a - a.mean(0)) / a.std(0); c[0, 0].item()": "columns normalised",
    "a[a > 0.5].sum()": "",
    "c = np.roll(a, 1, 0) + np.roll(a, -1, 0); c[0, 0].item()": "",
    "c = np.sqrt(a * a + b * b) + np.exp(-a) * b; c[0, 0].item()": "with an exponential",
}
"""Steps of programs that ask for a value; where `AT_ONCE` is a number, they are executed as if they were fused."""


WARM_SECONDS = 2.0
"""How long a step is repeated before it is timed: kernels are there then, and the program is known."""


def steps(quick: bool) -> list[Comparison]:
    """Steps that ask for a value of arrays of 0.3 to 2 MB, in one process."""
    import numpy as np

    import numpy_dist

    rows = []
    for size in (196, 277, 361, 500):
        a, b = np.random.default_rng(0).random((2, size, size))
        numpy, ours = {"np": np, "a": a, "b": b}, {"np": np, "a": numpy_dist.asarray(a), "b": numpy_dist.asarray(b)}
        for step, name in STEPS.items():
            code = compile(step, "<step>", "exec")
            begin = time.monotonic()
            while time.monotonic() - begin < (0.1 if quick else WARM_SECONDS):
                exec(code, ours)  # noqa: S102 - the same text runs on both kinds of arrays
            rows.append(
                against_numpy(
                    f"{name or step}, {a.nbytes / 1e6:.1f} MB",
                    lambda code=code, its=numpy: exec(code, its),  # noqa: S102
                    lambda code=code, its=ours: exec(code, its),  # noqa: S102
                    unit="us",
                    repeats=5 if quick else 15,
                    number=50,  # as programs do it: threads that wait for the next loop do not fall asleep
                    speed=True,
                )
            )
    return rows


def measure(quick: bool) -> list[Comparison]:
    return small(quick) + steps(quick) + recording(quick)


if __name__ == "__main__":
    main("small_arrays", measure)
