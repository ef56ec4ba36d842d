"""NPBench's kernels on NumPy and on wrapped inputs, in one process and in turn.

    git clone https://github.com/spcl/npbench && git -C npbench checkout f2d7f27d87ba
    python benchmarks/npbench.py npbench                          # all kernels: an hour and more
    python benchmarks/npbench.py npbench --only adi lu --preset S
    numpy-dist run -n 2 benchmarks/npbench.py npbench --only adi

The kernels are NPBench's own NumPy versions, unchanged; what differs is that their array arguments are distributed.
Each runs with the smallest preset at which NumPy takes 0.2 s (or with the largest). The first and the third call are
timed, against NumPy's call just before; results are compared on every rank. A kernel is given up when a call takes more
than `--limit` seconds. In memory are three copies of the data at most, and the results of two calls.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

PRESETS = ("S", "M", "L", "paper")
ENOUGH = 0.2  # seconds of NumPy
CALLS = 3


class OutOfTime(Exception):
    """A kernel that was given up."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A block that is left by `OutOfTime` after so many seconds."""

    def stop(number: int, frame: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Benchmark:
    """One of NPBench's benchmarks.

    Parameters
    ----------
    description : dict
        Of ``bench_info``.
    """

    def __init__(self, description: dict[str, Any]) -> None:
        self.name: str = description["short_name"]
        self.arguments: list[str] = description["input_args"]
        self.arrays: list[str] = description["array_args"]
        self.outputs: list[str] = description["output_args"]
        self.presets: dict[str, dict[str, Any]] = description["parameters"]
        self._init = description.get("init")
        package = "npbench.benchmarks." + description["relative_path"].replace("/", ".")
        module = description["module_name"]
        self._maker = importlib.import_module(f"{package}.{module}") if self._init else None
        self.function: Callable[..., Any] = getattr(
            importlib.import_module(f"{package}.{module}_numpy"), description["func_name"]
        )

    def data(self, preset: str) -> dict[str, Any]:
        """All arguments by name."""
        found = dict(self.presets[preset])
        if self._init:
            made = getattr(self._maker, self._init["func_name"])(*(found[name] for name in self._init["input_args"]))
            names = self._init["output_args"]
            found |= {names[0]: made} if len(names) == 1 else dict(zip(names, made, strict=True))
        return found

    def call(self, data: dict[str, Any]) -> tuple[float, list[Any]]:
        """Seconds that a call takes until its results exist, and these: outputs, and what it returns."""
        begin = time.perf_counter()
        returned = self.function(*(data[name] for name in self.arguments))
        results = [data[name] for name in self.outputs if name in data]
        results += returned if isinstance(returned, list | tuple) else [returned]
        settle(results)
        return time.perf_counter() - begin, results


def settle(results: list[Any]) -> None:
    """Let results exist."""
    from numpy_dist import engine

    engine.force(*(x for x in results if engine.is_handle(x)))


def plain(x: Any) -> Any:
    """A result as NumPy has it."""
    from numpy_dist import engine

    return x.gather() if engine.is_handle(x) else x


def is_same(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether results agree, element by element or, as NPBench has it, in the norm of their difference."""
    if len(ours) != len(theirs):
        return False
    for one, other in zip(map(plain, ours), theirs, strict=True):
        if (one is None) != (other is None):
            return False
        if other is not None and not np.allclose(np.asarray(one), np.asarray(other), rtol=1e-4, equal_nan=True):
            if not np.linalg.norm(np.subtract(one, other)) < 1e-5 * np.linalg.norm(other):
                return False
    return True


def wrapped_or_copied(x: Any, is_array: bool) -> Any:
    """An argument for a call that may write to it: a distributed array in the place of an ndarray."""
    import numpy_dist

    return numpy_dist.asarray(x) if is_array and isinstance(x, np.ndarray) else copy.deepcopy(x)


def measure(kernel: Benchmark, preset: str | None, limit: float) -> dict[str, Any]:
    """The row of a kernel."""
    row: dict[str, Any] = {"kernel": kernel.name}
    data: dict[str, Any] = {}
    try:
        for name in [preset] if preset else [p for p in PRESETS if p in kernel.presets]:
            row["preset"], data = name, kernel.data(name)
            with limited(limit):
                taken, _ = kernel.call(copy.deepcopy(data))
            if taken >= ENOUGH:
                break
        for number in range(CALLS):
            with limited(limit):
                numpys, theirs = kernel.call(copy.deepcopy(data))
            if number:
                theirs.clear()
            wrapped = {name: wrapped_or_copied(x, name in kernel.arrays) for name, x in data.items()}
            with limited(limit):
                ours, results = kernel.call(wrapped)
            row[f"call {number + 1}"] = numpys, ours
            if number == 0:
                row["same"] = is_same(results, theirs)
            for kept in (wrapped, results, theirs):  # whose memory the next call needs
                kept.clear()
    except OutOfTime:
        row["failed"] = f"more than {limit:g} s"
    except Exception as error:
        row["failed"] = f"{type(error).__name__}: {error}".splitlines()[0][:100]
    return row


def text_of(row: dict[str, Any]) -> str:
    """A row of the table."""
    cells = []
    for number in (1, CALLS):
        numpys, ours = row.get(f"call {number}", (0.0, 0.0))
        cells.append(f"{numpys:8.3f} {ours:8.3f} {numpys / ours:6.2f}" if ours else " " * 24)
    result = row.get("failed") or ("" if row.get("same") else "DIFFERENT RESULTS")
    return f"{row['kernel']:20} {row.get('preset') or '':6} {'  '.join(cells)}  {result}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="of spcl/npbench, commit f2d7f27d87ba")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="these kernels")
    parser.add_argument("--preset", choices=PRESETS, help="for all of them")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a call (default %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    import numpy_dist

    sys.path.insert(0, str(options.checkout))
    rank = numpy_dist.zeros(1).comm.rank
    infos = [json.loads(path.read_text())["benchmark"] for path in sorted(options.checkout.glob("bench_info/*.json"))]
    names = {info["short_name"]: info for info in infos}
    if unknown := sorted(set(options.only) - set(names)):
        raise SystemExit(f"no kernel {', '.join(unknown)}; the kernels are {', '.join(names)}")
    warnings.simplefilter("ignore")
    if not rank:
        print(f"{'':27} {'first call: NumPy, ours, ratio':26}third call")
    rows = []
    for name in options.only or names:
        try:
            kernel = Benchmark(names[name])
        except ImportError as error:
            rows.append({"kernel": name, "failed": str(error)})
        else:
            rows.append(measure(kernel, options.preset, options.limit))
        if not rank:
            print(text_of(rows[-1]), flush=True)
    last = [numpys / ours for row in rows if "failed" not in row for numpys, ours in [row[f"call {CALLS}"]]]
    if last and not rank:
        mean = math.exp(sum(map(math.log, last)) / len(last))
        print(f"third call: geometric mean {mean:.2f} of {len(last)}, {sum(r >= 1 for r in last)} at least as fast")
    if options.json and not rank:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
