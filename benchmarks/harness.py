"""Timing side by side: candidates take turns, many times over, so that a busy machine slows all of them alike.

Every figure of a table comes from one run. A ratio is the median over the rounds of the ratio of two neighbouring
timings.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

AS_STARTED = dict(os.environ)
"""The environment without the defaults below, for benchmarks in processes of their own that choose others."""

for _name, _value in {
    "NUMPY_DIST_NUM_THREADS": "1",
    "NUMPY_DIST_BACKEND": "numpy",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}.items():
    os.environ.setdefault(_name, _value)

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
sys.path.insert(0, str(HERE.parent / "examples"))

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "MiB": 2.0**20}


@dataclass(frozen=True)
class Comparison:
    """One line of a table.

    Attributes
    ----------
    case : str
        What was measured.
    numpy, ours : float or None
        What NumPy and numpy_dist took, in seconds or bytes; None where there is nothing to compare with.
    unit : str
        A key of `UNITS`, for printing.
    figure : float or None
        The number that the target is about; None misses it.
    meaning : str
        What the figure says: "x NumPy's time", "us a statement", ….
    target : str
        "<= 3" or ">= 1.8"; empty where there is none.
    peer : float or None
        What another way to do the same takes, most often code written by hand.
    peer_name : str
        What the peer is.
    beside : float or None
        The median of numpy_dist's time divided by the peer's.
    beside_target : str
        As `target`, for `beside`.
    """

    case: str
    numpy: float | None
    ours: float | None
    unit: str
    figure: float | None
    meaning: str
    target: str = ""
    peer: float | None = None
    peer_name: str = "hand-written"
    beside: float | None = None
    beside_target: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the figures reach their targets; None without a target."""
        pairs = [(self.figure, self.target), (self.beside, self.beside_target)]
        verdicts = [_reaches(figure, target) for figure, target in pairs if target]
        return all(verdicts) if verdicts else None


def _reaches(figure: float | None, target: str) -> bool:
    sign, bound = target.split()
    if figure is None:
        return False
    return figure <= float(bound) if sign == "<=" else figure >= float(bound)


Candidate = str | Callable[[], Any]


def take_turns(
    candidates: Mapping[str, Candidate], *, repeats: int, number: int = 1, namespace: Mapping[str, Any] | None = None
) -> dict[str, list[float]]:
    """Seconds of one execution of each candidate in each round; the order is reversed in every other round.

    Candidates are callables, or source text (run in `namespace`) where the cost of a call would count.
    """
    timers = {name: timeit.Timer(code, globals=dict(namespace or {})) for name, code in candidates.items()}
    for timer in timers.values():
        timer.timeit(max(1, number // 10))
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    for turn in range(repeats):
        for name in list(timers)[:: -1 if turn % 2 else 1]:
            seconds[name].append(timers[name].timeit(number) / number)
    return seconds


def against_numpy(
    case: str,
    numpy: Candidate,
    ours: Candidate,
    *,
    unit: str,
    repeats: int,
    speed: bool,
    target: str = "",
    number: int = 1,
    namespace: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare two candidates: how many times NumPy's speed (`speed` true) or NumPy's time the second one takes."""
    seconds = take_turns({"numpy": numpy, "ours": ours}, repeats=repeats, number=number, namespace=namespace)
    figure = median_ratio(seconds, "numpy", "ours") if speed else median_ratio(seconds, "ours", "numpy")
    meaning = "x NumPy's speed" if speed else "x NumPy's time"
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return Comparison(case, medians["numpy"], medians["ours"], unit, figure, meaning, target)


def median_ratio(seconds: Mapping[str, list[float]], above: str, below: str) -> float:
    """The median over the rounds of one candidate's time divided by another's."""
    return statistics.median(a / b for a, b in zip(seconds[above], seconds[below], strict=True))


def table(rows: Iterable[Comparison]) -> str:
    """The rows as text, columns aligned; the columns of peers only where there are some."""
    rows = list(rows)
    with_peers = any(row.peer is not None for row in rows)

    def amount(value: float | None, unit: str) -> str:
        return "" if value is None else f"{value / UNITS[unit]:.3g} {unit}"

    def number(value: float | None) -> str:
        if value is None:
            return "none"
        return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"

    peer, beside = (["peer"], ["figure", "", "target"]) if with_peers else ([], [])
    lines = [("case", "NumPy", *peer, "numpy_dist", "figure", "", "target", *beside, "")]
    for row in rows:
        if with_peers:
            peer, beside = [amount(row.peer, row.unit)], ["", "", ""]
            if row.beside is not None:
                beside = [number(row.beside), f"x {row.peer_name}", row.beside_target]
        amounts = amount(row.numpy, row.unit), *peer, amount(row.ours, row.unit)
        met = {None: "", True: "met", False: "MISSED"}[row.met]
        lines.append((row.case, *amounts, number(row.figure), row.meaning, row.target, *beside, met))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def environment() -> dict[str, Any]:
    """Where the figures were measured."""
    from importlib.metadata import version

    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=HERE, capture_output=True, text=True, check=False)
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "settings": {name: value for name, value in os.environ.items() if name.startswith("NUMPY_DIST_")},
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": os.getloadavg()[0],
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def save(name: str, rows: Iterable[Comparison]) -> Path:
    """Write the rows and the environment to `results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"environment": environment(), "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    return path


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """The options that all benchmarks have."""
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: to see that it runs, not for figures")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--save", action="store_true", help=f"also write them to results/{name}.json")


def run_cases(
    name: str,
    about: str | None,
    cases: Iterable[str],
    measure: Callable[[str, bool], list[Comparison]],
    counted: Callable[[], list[Comparison]],
) -> None:
    """Run a benchmark of named cases, which are computed by the backend that users get, compiled at once.

    Parameters
    ----------
    name, about
        Of the benchmark.
    cases
        The names; the user may ask for some.
    measure
        ``measure(case, quick)`` gives the rows of a case.
    counted
        Gives rows of plans that are counted, whatever the cases.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, name)
    parser.add_argument("--only", nargs="+", choices=list(cases), default=list(cases), metavar="NAME")
    options = parser.parse_args()
    defaults = {"NUMPY_DIST_BACKEND": "auto", "NUMPY_DIST_COMPILE": "first"}  # the warm-up is short
    os.environ.update({key: AS_STARTED.get(key, value) for key, value in defaults.items()})
    rows = [row for case in options.only for row in measure(case, options.quick)]
    show(name, rows + counted(), options)


def show(name: str, rows: list[Comparison], options: argparse.Namespace) -> None:
    """Print the rows and write them, as the options say."""
    print(json.dumps([asdict(row) for row in rows]) if options.json else table(rows))
    if options.save:
        save(name, rows)


def main(name: str, measure: Callable[[bool], list[Comparison]]) -> None:
    """The command line of a benchmark: print its table; `measure(quick)` makes the rows."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    add_options(parser, name)
    options = parser.parse_args()
    show(name, measure(options.quick), options)
