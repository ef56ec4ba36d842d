"""How long `import numpy_dist` takes, and how long `import numpy` alone, in fresh processes that take turns."""

import statistics
import subprocess
import sys

from harness import Comparison, main

CODES = {
    "numpy": "import numpy",
    "numpy_dist": "import numpy_dist",
    "first use": "import numpy as np, numpy_dist; np.sum(numpy_dist.asarray(np.ones(100_000)) + 1)",
}
CLOCK = "import time; begin = time.perf_counter(); {}; print(time.perf_counter() - begin)"


def seconds(code: str) -> float:
    """Time of a line in a process of its own, the imports that it needs included."""
    command = [sys.executable, "-c", CLOCK.format(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return float(done.stdout)


def measure(quick: bool) -> list[Comparison]:
    times: dict[str, list[float]] = {name: [] for name in CODES}
    for code in CODES.values():
        seconds(code)  # into the page cache
    for turn in range(3 if quick else 15):
        for name in list(times)[:: -1 if turn % 2 else 1]:
            times[name].append(seconds(CODES[name]))
    numpy, ours, first = (statistics.median(times[name]) for name in CODES)
    return [
        Comparison("import numpy_dist", numpy, ours, "s", ours, "s", "<= 0.35"),
        Comparison("import, asarray, one operation and a sum", numpy, first, "s", first, "s"),
    ]


if __name__ == "__main__":
    main("startup", measure)
