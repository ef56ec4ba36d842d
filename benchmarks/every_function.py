"""Every function, ufunc and ufunc method against NumPy, at several sizes, in one process and on two ranks.

    python benchmarks/every_function.py                                  # both: some 20 minutes each on a quiet machine
    python benchmarks/every_function.py --ranks 1 --sizes 100000 --only sort linalg.norm
    python benchmarks/every_function.py --save 2026-11-23-every-function

The calls are those of the conformance suite, with the extents of their arrays scaled (`every_function_calls`). NumPy
and numpy_dist take turns in one process; on two ranks the second one sleeps while the first one times NumPy. A figure
is the median of the ratios of neighbouring timings: how many times NumPy's time ours takes until its results exist.
The table has the worst figure at 10^5 elements and more first; below it stands what was not timed, and why.

Loops are compiled at first sight (`NUMPY_DIST_COMPILE=first`, unless it is set), so that the figures are those of the
steady state; the column "first" is the first call, in milliseconds, which may have waited for a compiler.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = (16, 1_000, 100_000, 10_000_000)
LARGE = 100_000
"""The number of elements from which on a figure counts for the order of the table."""
BUDGET = 0.12
"""Seconds that one call at one size is timed for, if a few rounds do not take longer."""
TIMEOUT = 20.0
"""Seconds after which a call at one size is given up."""
START = 60.0
"""Seconds that the worker may take to start."""


class TimedWorker:
    """A job that times one call after the other, and writes a line of JSON for each size.

    Parameters
    ----------
    ranks : int
    sizes : list of int
    budget : float
    names : list of str
        The labels of the calls.
    """

    def __init__(self, ranks: int, sizes: list[int], budget: float, names: list[str]) -> None:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            plan = Path(folder) / "plan.json"
            plan.write_text(json.dumps({"folder": folder, "sizes": sizes, "budget": budget, "names": names}))
            script = [str(HERE / "every_function_worker.py"), str(plan)]
            launcher = ["-c", "from numpy_dist.cli.main import main; raise SystemExit(main())", "run", "-n", str(ranks)]
            command = [sys.executable, *(launcher if ranks > 1 else []), *script]
            environment = {"NUMPY_DIST_COMPILE": "first"} | os.environ
            self._process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder
            )
            stack.callback(self._end)
            self._lines: queue.Queue[str] = queue.Queue()
            threading.Thread(target=self._read, daemon=True).start()
            self._stack = stack.pop_all()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._lines.put(line)
        self._lines.put("")

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def __enter__(self) -> TimedWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it writes, until it ends or a line does not come in time."""
        timeout = START
        while True:
            try:
                line = self._lines.get(timeout=timeout)
            except queue.Empty:
                yield {"lost": f"more than {TIMEOUT:g} s"}
                return
            if not line:
                return
            timeout = TIMEOUT
            yield json.loads(line)


def measure(ranks: int, sizes: list[int], budget: float, names: list[str]) -> Iterator[dict[str, Any]]:
    """A line for each call and size; a worker that hangs or ends is replaced by another, which goes on after it."""
    left = list(names)
    while left:
        current: dict[str, Any] | None = None
        reason = "the process ended"
        with TimedWorker(ranks, sizes, budget, left) as worker:
            for line in worker.lines():
                if "lost" in line:
                    reason = line["lost"]
                elif "begins" in line:
                    current = line
                    left = left[left.index(line["begins"]) :]
                elif "ready" not in line:
                    yield line
                    if line.get("done"):
                        current = None
                        left = left[1:]
        if not left:
            return
        if current is None:
            raise SystemExit("the worker does not start: " + reason)
        yield {"name": left[0], "size": current["size"], "failed": reason}
        left = left[1:]


def table(lines: list[dict[str, Any]], sizes: list[int]) -> str:
    """The lines as text, the worst first; then what was not timed."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for line in lines:
        if "ratio" in line:
            found.setdefault(line["name"], {})[line["size"]] = line

    def worst(its: dict[int, dict[str, Any]]) -> dict[str, Any]:
        large = [line for size, line in its.items() if size >= LARGE]
        return max(large or its.values(), key=lambda line: line["ratio"])

    def figure(its: dict[int, dict[str, Any]], size: int) -> str:
        return f"{its[size]['ratio']:.3g}" if size in its else ""

    rows = [("function", *(f"{size:.0e}" for size in sizes), "NumPy ms", "ours ms", "first", "call")]
    order = sorted(found.items(), key=lambda item: worst(item[1])["ratio"], reverse=True)
    # Figures without any at large sizes come last.
    order.sort(key=lambda item: not any(size >= LARGE for size in item[1]))
    for name, its in order:
        line = worst(its)
        times = (f"{1e3 * line[what]:.3g}" for what in ("numpy", "ours", "first"))
        rows.append((name, *(figure(its, size) for size in sizes), *times, line["call"]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for size in sizes:
        ratios = [its[size]["ratio"] for its in found.values() if size in its]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            slow = sum(ratio > 2 for ratio in ratios)
            text.append(f"{size:.0e}: {len(ratios)} calls, geometric mean {mean:.2f}, {slow} above 2")
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if "failed" in line:
            where = f" at {line['size']:.0e}" if line.get("size") else ""
            reasons.setdefault(line["failed"] + where, []).append(line["name"])
    for reason, names in sorted(reasons.items()):
        text.append(f"not timed, {reason}: {', '.join(names)}")
    return "\n".join(text)


def main() -> None:
    import every_function_calls
    import harness

    from numpy_dist.conformance import selection

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="functions, as sort, linalg.norm, add.reduce")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="elements (default: %(default)s)")
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2], help="(default: %(default)s)")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds a call and size (default: %(default)s)")
    parser.add_argument("--save", metavar="NAME", help="also write the tables to results/NAME.txt")
    parser.add_argument("--lines", metavar="FILE", help="also append every line of JSON to a file")
    options = parser.parse_args()
    for name in ("NUM_THREADS", "BACKEND"):  # what users get, not what the other benchmarks choose
        if f"NUMPY_DIST_{name}" not in harness.AS_STARTED:
            os.environ.pop(f"NUMPY_DIST_{name}", None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if name not in harness.AS_STARTED:
            os.environ.pop(name, None)
    names = list(every_function_calls.calls())
    if options.only:
        names = [name for name in names if selection.is_meant(name, options.only)]
    if not names:
        raise SystemExit("no such function")
    where = harness.environment()
    text = [
        f"{where['processor']}, {where['cores']} cores, load {where['load']:.1f}, Python {where['python']}, "
        f"NumPy {where['numpy']}, commit {where['commit']}, {where['date']}"
    ]
    for ranks in options.ranks:
        lines = []
        for line in measure(ranks, options.sizes, options.budget, names):
            lines.append(line)
            if options.lines:
                with open(options.lines, "a") as file:
                    file.write(json.dumps({"ranks": ranks, **line}) + "\n")
        title = "one process" if ranks == 1 else f"{ranks} ranks"
        text += ["", f"-- {title}: times NumPy's time, by the number of elements", table(lines, options.sizes)]
    print("\n".join(text))
    if options.save:
        (harness.RESULTS / f"{options.save}.txt").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
