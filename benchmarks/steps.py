"""Steps of programs that ask for a value of arrays of 0.3 to 2 MB, in one process with two threads, against NumPy.

    python benchmarks/steps.py [--quick]

`NUMPY_DIST_AT_ONCE=262144` in the environment shows what they take where no program is eager (ADR 22).
"""

import os
import time

os.environ.setdefault("NUMPY_DIST_BACKEND", "auto")
os.environ.setdefault("NUMPY_DIST_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

from harness import Comparison, against_numpy, main  # noqa: E402 - which has other defaults

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
"""Steps of programs that ask for a value."""


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


if __name__ == "__main__":
    main("steps", steps)
