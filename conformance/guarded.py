"""A run of all cases that stops where memory is touched that is not ours: ``python -m numpy_dist.conformance.guarded``.

Each array of the engine, of the communicators and of the cases' arguments ends where a page begins that nobody may
touch, so that a read or a write behind it ends the process, with the stack; what lies before it is looked at after
each case. (Meta arrays lie on such pages anyway.) A case that ends the process is told, and the others go on.

Options: ``--ranks N`` (simulated; 7), ``--seeds TEXT ...`` (layouts), ``--only TEXT`` (cases that contain it).
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import mmap
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numpy_dist.conformance import suite
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking import subject
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.conformance.known_differences import matching
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.spmd_testing import run_simulated

if TYPE_CHECKING:
    import numpy.typing as npt

    from numpy_dist.argument_types import Shape

PATTERN, ALIGNMENT, PAGE = 0xA5, 16, mmap.PAGESIZE
# Whose own arrays are guarded: everything that computes on shards or moves them.
GUARDED = tuple(f"numpy_dist.{name}" for name in ("backends", "comm", "engine", "parallel", "random"))
_made: list[tuple[np.ndarray, int, int]] = []
_protect = ctypes.CDLL(None, use_errno=True).mprotect
_protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def fenced(nbytes: int) -> np.ndarray:
    """Bytes that end where a page without access begins (but for their alignment)."""
    room = -(-nbytes // ALIGNMENT) * ALIGNMENT
    pages = -(-room // PAGE) + 1  # at least one byte before the array
    memory = mmap.mmap(-1, (pages + 1) * PAGE)
    whole = np.frombuffer(memory, np.uint8, pages * PAGE)
    if _protect(whole.ctypes.data + pages * PAGE, PAGE, 0):
        raise OSError(ctypes.get_errno(), "no page for the guard")
    start = pages * PAGE - room
    whole[:] = PATTERN
    _made.append((whole, start, start + nbytes))
    return np.frombuffer(memory, np.uint8, nbytes, start)


def touched() -> int:
    """How many allocations were written beside since the last call."""
    found = sum(bool((w[:start] != PATTERN).any() or (w[stop:] != PATTERN).any()) for w, start, stop in _made)
    _made.clear()
    return found


class GuardedNumpy:
    """NumPy, but for the functions with which our modules make arrays of their own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Shape, dtype: npt.DTypeLike = float, order: Literal["C", "F"] = "C") -> np.ndarray:
        dtype, shape = np.dtype(dtype), np.empty(shape, bool).shape
        if dtype.hasobject or 0 in shape or order not in ("C", "K"):
            return np.empty(shape, dtype, order)
        return np.ndarray(shape, dtype, fenced(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize))

    def zeros(self, shape: Shape, dtype: npt.DTypeLike = float) -> np.ndarray:
        made = self.empty(shape, dtype)
        made[...] = np.zeros((), dtype)
        return made

    def full(self, shape: Shape, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> np.ndarray:
        made = self.empty(shape, np.asarray(value).dtype if dtype is None else dtype)
        made[...] = value
        return made

    def array(self, values: npt.ArrayLike, *args: Any, **options: Any) -> np.ndarray:
        made = np.array(values, *args, **options)
        if not made.flags.c_contiguous:
            return made
        copy = self.empty(made.shape, made.dtype)
        copy[...] = made
        return copy


def guard() -> None:
    """Guard the arrays of this process from now on."""
    for name, method in {"take": lambda pool, nbytes: fenced(nbytes), "give": lambda pool, block: None}.items():
        setattr(Pool, name, method)
    for name, module in list(sys.modules.items()):
        if name.startswith(GUARDED) and getattr(module, "np", None) is np:
            vars(module)["np"] = GuardedNumpy()
    vars(subject)["np"] = GuardedNumpy()


def chosen(only: str) -> list[Case]:
    """The cases, by function."""
    return [case for group in suite.groups().values() for case in group if only in str(case)]


def run(options: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Run cases one by one; how many write beside their memory."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    cases = chosen(options.only)
    guard()
    wrong = 0
    for number in range(options.first, len(cases)):
        case = cases[number]
        for seed in options.seeds:
            tell(f"{number} {case}, seed {seed}")
            try:
                problems = run_simulated(options.ranks, check, case, seed)[0]
            except Exception as error:
                problems = [f"{case}: {type(error).__name__}, seed {seed}: {error}"]
            for problem in problems:
                if not matching(case, problem):  # that is for the tests of the functions; here it may tell of memory
                    print(problem, flush=True)
            if touched():
                wrong += 1
                print(f"{case}, seed {seed}, writes beside its memory", flush=True)
    tell(f"{len(cases)} end")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=7)
    parser.add_argument("--seeds", nargs="+", default=["guarded"])
    parser.add_argument("--only", default="", help="cases that contain this text")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--log", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.log:
        with open(options.log, "r+", buffering=1) as log:

            def tell(text: str) -> None:
                log.seek(0)
                log.truncate()
                print(text, file=log)

            return min(run(options, tell), 1)
    return min(_run_to_the_end(options), 1)


def _run_to_the_end(options: argparse.Namespace) -> int:
    """Run the cases in a process of their own, and the rest in another when a case has ended it."""
    wrong, first = 0, options.first
    with tempfile.NamedTemporaryFile("r") as log:
        while True:
            command = [sys.executable, "-m", "numpy_dist.conformance.guarded", "--log", log.name, "--first", str(first)]
            command += ["--ranks", str(options.ranks), "--only", options.only, "--seeds", *options.seeds]
            code = subprocess.run(command).returncode
            log.seek(0)
            number, _, case = log.read().strip().partition(" ")
            wrong += code > 0
            if code in (0, 1) and case == "end":
                print(f"{number} cases, {wrong or 'none'} of which touch memory that is not theirs (or more)")
                return wrong
            if not number:
                raise RuntimeError(f"the process that runs the cases did not come to the first: exit status {code}")
            wrong += code < 0
            print(f"{case}, ends the process: exit status {code}", flush=True)
            first = int(number) + 1


if __name__ == "__main__":
    sys.exit(main())
