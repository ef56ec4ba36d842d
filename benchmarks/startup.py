"""How long `import numpy_dist` takes, and how long `import numpy` alone, in fresh processes that take turns."""

import statistics
import subprocess
import sys

from harness import Row, main

CODE = "import time; begin = time.perf_counter(); import {}; print(time.perf_counter() - begin)"


def seconds(module: str) -> float:
    """Time of an import in a process of its own, NumPy's included."""
    command = [sys.executable, "-c", CODE.format(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return float(done.stdout)


def measure(quick: bool) -> list[Row]:
    times: dict[str, list[float]] = {"numpy": [], "numpy_dist": []}
    for module in times:
        seconds(module)  # into the page cache
    for turn in range(3 if quick else 15):
        for module in list(times)[:: -1 if turn % 2 else 1]:
            times[module].append(seconds(module))
    numpy, ours = (statistics.median(times[module]) for module in times)
    ratio = statistics.median(own / other for other, own in zip(times["numpy"], times["numpy_dist"], strict=True))
    return [
        Row("import numpy_dist", numpy, ours, "s", ours, "s", "<= 0.35"),
        Row("import numpy_dist, relative", numpy, ours, "s", ratio, "x NumPy's time"),
    ]


if __name__ == "__main__":
    main("startup", measure)
