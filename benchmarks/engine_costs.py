"""What the engine costs beside its loops: recording, a group that was planned before, and the start of a script."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import AS_STARTED, HERE, Comparison

SCRIPT = HERE / "cached_script.py"


def recording(quick: bool) -> list[Comparison]:
    """Recording without executing."""
    import numpy as np
    from small_arrays import recording_time

    import numpy_dist

    grid, other = (numpy_dist.asarray(np.ones((300, 300))) for _ in range(2))
    cases = [
        ("of whole arrays", {"x": grid, "y": other}),
        ("of shifted views", {"x": grid[1:-1, 1:-1], "y": grid[:-2, 1:-1]}),
    ]
    rows = []
    for title, namespace in cases:
        taken = recording_time("z = x + y", namespace, quick)
        rows.append(Comparison(f"recording z = x + y {title}", None, taken, "us", taken * 1e6, "us", "<= 3"))
    return rows


def cached_group(quick: bool) -> list[Comparison]:
    """Executing the six statements of a stencil step that was planned before, on few cells: alone, and in a loop."""
    from numpy_dist import config

    with config(AT_ONCE=0):  # few cells would not be recorded
        return _cached_group(quick)


def _cached_group(quick: bool) -> list[Comparison]:
    from stencil_functions import plate

    import numpy_dist
    from numpy_dist import config, engine

    with config(MIN_SHARD_BYTES=0):
        grid = numpy_dist.asarray(plate(24))
    center, *others = grid[1:-1, 1:-1], grid[:-2, 1:-1], grid[1:-1, 2:], grid[1:-1, :-2], grid[2:, 1:-1]

    def steps(count: int) -> float:
        north, east, west, south = others
        begin = time.perf_counter()
        for _ in range(count):
            average = 0.2 * (center + north + east + west + south)
            center[:] = average
        return time.perf_counter() - begin

    recorded, alone, looped = [], [], []
    for _ in range(200 if quick else 5000):
        recorded.append(steps(1))
        begin = time.perf_counter()
        engine.flush()
        alone.append(time.perf_counter() - begin)
    for _ in range(10 if quick else 200):
        looped.append(steps(126) / 126)
    record, flush, step = (statistics.median(seconds[len(seconds) // 4 :]) for seconds in (recorded, alone, looped))
    rows = [("alone", flush), ("in a loop: a step less its recording", step - record)]
    return [
        Comparison(f"executing a cached group of six, 24 x 24, {how}", None, taken, "us", taken * 1e6, "us", "<= 15")
        for how, taken in rows
    ]


def _run(cache: Path, compiling: str, backend: str = "numba") -> tuple[float, int]:
    """Seconds that the script takes in a process of its own, and the kernels that it adds to the cache."""
    settings = {"NUMPY_DIST_CACHE_DIR": str(cache), "NUMPY_DIST_COMPILE": compiling, "NUMPY_DIST_BACKEND": backend}
    # Python's own cache is in use, as wherever packages are installed: some machines for tests turn it off.
    cached = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache.parent / "bytecode")}
    before = _kernels(cache)
    begin = time.perf_counter()
    subprocess.run([sys.executable, str(SCRIPT)], env=AS_STARTED | settings | cached, timeout=300, check=True)
    return time.perf_counter() - begin, _kernels(cache) - before


def _kernels(cache: Path) -> int:
    return len(list(cache.glob("*.kernel")))


def warm_cache(quick: bool) -> list[Comparison]:
    """A script run once, run again with the cache that the first run left, and run without compiling anything."""
    again_as = {"second": ("first", "numba"), "never": ("never", "numba"), "numpy": ("never", "numpy")}
    seconds: dict[str, list[float]] = {name: [] for name in ("first", *again_as)}
    with tempfile.TemporaryDirectory() as folder:
        counted = Path(folder) / "counted"
        in_first, in_second = (_run(counted, "first")[1] for _ in range(2))
        for setting in again_as.values():
            _run(counted, *setting)
        for turn in range(1 if quick else 9):
            cache = Path(folder) / str(turn)
            seconds["first"].append(_run(cache, "first")[0])
            for name, setting in list(again_as.items())[:: -1 if turn % 2 else 1]:
                seconds[name].append(_run(cache, *setting)[0])
    first, second, *without = (statistics.median(times) for times in seconds.values())
    # Without a compile in the first run the second one has nothing to avoid: no figure, and no goal is met.
    again = in_second if in_first else None
    rows = [
        Comparison("script, first run: functions compiled", None, first, "s", in_first, "compiles", ">= 1"),
        Comparison("script, second run: functions compiled", None, second, "s", again, "compiles", "<= 0"),
    ]
    for name, what, median in zip(("never", "numpy"), ("COMPILE=never", "BACKEND=numpy"), without, strict=True):
        pairs = zip(seconds["second"], seconds[name], strict=True)
        more = statistics.median(warm - other for warm, other in pairs) * 1e3 if in_first else None
        rows.append(Comparison(f"script, second run, more than with {what}", None, median, "s", more, "ms", "<= 50"))
    return rows
