"""One rank of `every_function`: times the calls it is told of, each at each size; rank 0 writes what it finds."""

from __future__ import annotations

import contextlib
import json
import math
import resource
import socket
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import every_function_calls as every
import numpy as np

import numpy_dist
from numpy_dist import engine

PROBE = 1_000
"""The number of elements at which a call is tried before it is timed."""
ROUNDS = (3, 15)
"""At least and at most so many rounds."""
SHORT = 2e-4
"""Seconds that a timing takes at least; shorter calls are repeated."""
WARM = 3
MEMORY = 8 << 30


class Turns:
    """A line from rank 0 to the others, who sleep until it comes.

    Parameters
    ----------
    path : str
        Of a socket that does not exist yet.
    """

    def __init__(self, path: str) -> None:
        runtime = engine.runtime()
        self.first = runtime.rank == 0
        self._others: list[socket.socket] = []
        if runtime.size == 1:
            return
        own = socket.socket(socket.AF_UNIX)
        if self.first:
            own.bind(path)
            own.listen(runtime.size)
        runtime.comm.barrier()
        if self.first:
            self._others = [own.accept()[0] for _ in range(runtime.size - 1)]
        else:
            own.connect(path)
            self._lines = own.makefile("r")

    def tell(self, make: Callable[[], Any]) -> Any:
        """What rank 0 finds, on all ranks."""
        if not self.first:
            return json.loads(self._lines.readline())
        value = make()
        for other in self._others:
            other.sendall((json.dumps(value) + "\n").encode())
        return value


def write(line: dict[str, Any]) -> None:
    if engine.runtime().rank == 0:
        print(json.dumps(line), flush=True)


def seconds(call: Callable[[], Any], number: int) -> float:
    """Seconds of a call, by some in a row."""
    begin = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - begin) / number


def is_sharded(x: Any) -> bool:
    """Whether an argument or a result is, or has in it, a sharded array."""
    if isinstance(x, tuple | list):
        return any(map(is_sharded, x))
    return engine.is_handle(x) and engine.is_sharded(x)


def size_of_arguments(make: Callable[[int], every.Call], size: int) -> int:
    """How many elements the arguments have where either they or the result are to have so many."""
    try:
        args, kwargs = make(PROBE).arguments(np.array)
        result = make(PROBE).function(*args, **kwargs)
    except Exception:
        return size
    return math.isqrt(size) if every.elements(result) > 30 * PROBE else size


def usable(makes: tuple[Callable[[int], every.Call], ...], size: int) -> tuple[Callable[[int], every.Call] | None, str]:
    """The first of the calls that NumPy computes, or why there is none."""
    reason = "no case can be scaled"
    for make in makes:
        try:
            call = make(size)
            args, kwargs = call.arguments(np.array)
            call.function(*args, **kwargs)
        except Exception as error:
            reason = f"NumPy raises {type(error).__name__}"
        else:
            return make, ""
    return None, reason


def timed(call: every.Call, budget: float, turns: Turns) -> dict[str, Any]:
    """What NumPy and ours take."""
    args, kwargs = call.arguments(np.array)
    our_args, our_kwargs = call.arguments(numpy_dist.asarray)
    sharded = is_sharded([*our_args, *our_kwargs.values()])

    def theirs() -> Any:
        return call.function(*args, **kwargs)

    def ours() -> Any:
        return call.function(*our_args, **our_kwargs)

    def ours_made() -> Any:
        made = call.function(*our_args, **our_kwargs)
        engine.flush()
        return made

    begin = time.perf_counter()
    ours_made()
    first = time.perf_counter() - begin
    for _ in range(WARM):
        made = ours_made()
    code = ours_made if sharded or is_sharded(made) else ours
    del made
    number, rounds = turns.tell(lambda: _plan(seconds(theirs, 1), budget))
    slow = [seconds(code, 1) for _ in range(2)]
    rounds = turns.tell(lambda: max(ROUNDS[0], min(rounds, int(budget / (number * min(slow)) + 1))))
    pairs = []
    for _ in range(rounds):
        numpys = turns.tell(lambda: seconds(theirs, number))
        pairs.append((numpys, seconds(code, number)))
    return {
        "numpy": statistics.median(pair[0] for pair in pairs),
        "ours": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(pair[1] / pair[0] for pair in pairs),
        "first": first,
        "sharded": sharded,
    }


def _plan(taken: float, budget: float) -> tuple[int, int]:
    """How many calls a timing has, and how many rounds there are."""
    number = max(1, min(200, math.ceil(SHORT / max(taken, 1e-7))))
    return number, max(ROUNDS[0], min(ROUNDS[1], int(budget / 2 / (number * taken))))


def main(path: str) -> None:
    plan = json.loads(Path(path).read_text())
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    turns = Turns(str(Path(plan["folder"]) / "turns"))
    found = every.calls()
    write({"ready": True})
    for name in plan["names"]:
        write({"begins": name, "size": 0})
        make, reason = usable(found[name], PROBE)
        if make is None:
            write({"name": name, "failed": reason, "done": True})
            continue
        scale = size_of_arguments(make, 10**6) < 10**6
        for size in plan["sizes"]:
            write({"begins": name, "size": size})
            call = make(math.isqrt(size) if scale else size)
            line: dict[str, Any] = {"name": name, "size": size, "call": str(call)}
            try:
                with contextlib.redirect_stdout(sys.stderr), np.errstate(all="ignore"):
                    line |= timed(call, plan["budget"], turns)
            except Exception as error:
                line["failed"] = f"raises {type(error).__name__}"
            write(line)
        write({"name": name, "done": True})


if __name__ == "__main__":
    main(sys.argv[1])
