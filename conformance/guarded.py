"""A run of all cases that stops where memory is touched that is not ours: ``python -m numpy_dist.conformance.guarded``.

Phantoms stand for arrays that have no memory, and must never be read: here their addresses lie in pages that nobody may
read, so that a read ends the process, with the stack. Local allocations lie between patterns that are looked at after
each case, so that a write beside one is found.

Options: ``--ranks N`` (simulated; 7), ``--topics NAME ...`` (modules of `cases`).
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import importlib
import mmap
import pkgutil
import sys
import warnings

import numpy as np

from numpy_dist.conformance import cases
from numpy_dist.conformance.oracle import check
from numpy_dist.engine.pool import Pool
from numpy_dist.ir import phantoms
from numpy_dist.spmd_testing import run_simulated

PATTERN, MARGIN, PAGES = 0xA5, 256, 1 << 30
_PROT_NONE = 0


class GuardedPool(Pool):
    """Allocations between patterns; nothing is used again."""

    made: list[np.ndarray] = []

    def take(self, nbytes: int) -> np.ndarray:
        """An allocation of exactly `nbytes`, not initialised."""
        whole = np.full(nbytes + 2 * MARGIN, PATTERN, np.uint8)
        GuardedPool.made.append(whole)
        return whole[MARGIN : MARGIN + nbytes]

    def give(self, block: np.ndarray) -> None:
        """Nothing: each allocation is looked at once more, and dropped."""

    @classmethod
    def touched(cls) -> int:
        """How many allocations were written beside since the last call."""
        found = sum(bool((w[:MARGIN] != PATTERN).any() or (w[-MARGIN:] != PATTERN).any()) for w in cls.made)
        cls.made.clear()
        return found


def forbid_reads_of_phantoms() -> None:
    """Move the place where phantoms seem to lie into pages without access, for the rest of the process."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    address = library.mmap(None, PAGES, _PROT_NONE, flags, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "no pages for the guard")
    middle = address + PAGES // 2
    memory = (ctypes.c_char * phantoms._ANCHOR.size).from_address(middle)
    phantoms._ANCHOR = np.ndarray(phantoms._ANCHOR.shape, np.uint8, buffer=memory)  # type: ignore[arg-type]
    phantoms._ANCHOR_ADDRESS = middle
    phantoms._PHANTOMS.clear()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=7)
    parser.add_argument("--topics", nargs="*", help="modules of `cases` (default: all)")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    forbid_reads_of_phantoms()
    for name in ("take", "give"):
        setattr(Pool, name, vars(GuardedPool)[name])
    count = wrong = 0
    for name in options.topics or sorted(module.name for module in pkgutil.iter_modules(cases.__path__)):
        for case in importlib.import_module(f"{cases.__name__}.{name}").TOPIC.cases:
            count += 1
            try:
                run_simulated(options.ranks, check, case, "guarded")
            except Exception as error:  # that a case fails is told by the tests of the functions
                print(f"{case}: {type(error).__name__}", file=sys.stderr)
            if GuardedPool.touched():
                wrong += 1
                print(f"{case} writes beside its memory")
    print(f"{count} cases, {wrong} of which write beside their memory")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
