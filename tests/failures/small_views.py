"""Every function of the conformance suite on views of sharded arrays that have no axes, one element or none.

Run as ``python -m tests.failures.small_views RANKS BYTES CASES``: so many cases of each function, which is called with
``MIN_SHARD_BYTES=BYTES``. What is about to be called is printed before: the last line names what ended the process.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.conformance import suite
from numpy_dist.conformance.arguments import Array, TemporaryFile
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking.subject import target
from numpy_dist.spmd_testing import run_simulated

INTERNAL = (AssertionError, AttributeError, LookupError, NameError, RuntimeError)

WAYS: dict[str, Callable[[Any], Any]] = {
    "without axes": lambda x: x[(*(0,) * x.ndim, ...)],
    "one element": lambda x: x[(slice(1),) * x.ndim],
    "one element of each row": lambda x: x[..., :1] if x.ndim else x,
    "empty": lambda x: x[(slice(0),) * x.ndim],
}


def calls(count: int) -> Iterator[Case]:
    """The first cases of each function, method and operator."""
    for cases in suite.cases_by_function().values():
        yield from cases[:count]


def arguments(case: Case, way: Callable[[Any], Any], make: Callable[[np.ndarray], Any], folder: str) -> tuple[Any, Any]:
    """Positional and keyword arguments, with views of arrays that `make` makes, and files in this folder."""
    made: dict[int, Any] = {}

    def converted(value: Any) -> Any:
        if isinstance(value, Array):
            if id(value) not in made:
                whole = value.make("small")
                empty = not whole.size
                made[id(value)] = (make(whole) if empty else way(make(whole))) if value.distributed else way(whole)
            return made[id(value)]
        if isinstance(value, TemporaryFile):
            return f"{folder}/file{value.suffix}"
        if isinstance(value, list | tuple):
            return type(value)(converted(item) for item in value)
        return value

    return tuple(map(converted, case.args)), {name: converted(value) for name, value in case.kwargs.items()}


def sharded(values: np.ndarray) -> Any:
    """A sharded array, however small."""
    with nd.config(MIN_SHARD_BYTES=0):
        return nd.asarray(values)


def raised(function: Callable[[], Any]) -> Exception | None:
    """The error of a call."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function()
        except Exception as error:
            return error
    return None


def unlike(case: Case, way: str, ranks: int, limit: int) -> str:
    """The internal error of a call that NumPy does not refuse; "" for none. (Values are the conformance suite's.)"""

    def numpys(folder: str) -> None:
        args, kwargs = arguments(case, WAYS[way], np.array, folder)
        target(case)(*args, **kwargs)

    def ours(folder: str) -> None:
        args, kwargs = arguments(case, WAYS[way], sharded, folder)
        with nd.config(MIN_SHARD_BYTES=limit):
            target(case)(*args, **kwargs)
            engine.runtime().program.run()

    with tempfile.TemporaryDirectory() as folder:
        error = raised(lambda: run_simulated(ranks, ours, folder))
    if not isinstance(error, INTERNAL):
        return ""
    with tempfile.TemporaryDirectory() as folder:
        refused = raised(lambda: numpys(folder)) is not None
    return "" if refused and not isinstance(error, AssertionError) else f"{case}, {way}: {error!r:.300}"


def main(ranks: int, limit: int, cases: int) -> int:
    count, found = 0, []
    for case in calls(cases):
        for way in WAYS:
            count += 1
            print(f"{case}, {way}", flush=True)
            problem = unlike(case, way, ranks, limit)
            if problem:
                found.append(problem)
    print(*found, f"{count} calls, {len(found)} unlike NumPy's", sep="\n")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
