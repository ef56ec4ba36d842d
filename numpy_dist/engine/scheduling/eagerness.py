"""Eager execution of programs that ask for values of middle-sized arrays after a few statements.

Executing what is pending costs a rank some 130 microseconds, however little it is. A program whose arrays have some
hundred kilobytes, and which asks for a value after every few statements, is served sooner by NumPy, one statement at a
time. One process that sees such a program lifts the limit below which arrays are worked on at once
(`engine.data.windows`), and lowers it again when statements on such arrays follow one another without a value being
asked for: sweeps, which pay when they are fused. Sweeps over the smallest of them do not, among many boundary rows, and
lift it, too. Both follow from what the program does, and from no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from numpy_dist.ir.statements import Statement

MOST = 1 << 21
"""Bytes below which an array may be worked on at once."""
PATIENCE = 8
"""Executions in a row that were not worth it before the first change; twice as many each time that sweeps came next."""
_MOST_PATIENCE = 1024
_KEPT = 8 * MOST
"""Bytes of an array that is freed for what the C library concludes from it."""
_UNSEEN = 7
"""Executions that nobody looks at after a period of sweeps that was worth it."""

# Microseconds, as orders of magnitude: an execution that somebody waits for; each statement; a thousand bytes of a
# result by NumPy, where caches have them, as the memory of temporaries is used again (`benchmarks/steps.py`).
_EXECUTION, _STATEMENT, _KILOBYTE = 110.0, 6.0, 0.03
_COUNTED = 1.5 * _STATEMENT  # for each that is done at once: smaller ones of the same sweep are not counted
_LEFT = 0.3  # of NumPy's time, that a fused loop takes on one thread: nothing but what it reads and writes in the end
_COSTLY = 8  # times the work of an addition
COSTLY_NAMES = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh"
    " arctanh power float_power cbrt hypot logaddexp logaddexp2 remainder fmod divmod floor_divide".split()
)

_WORK = dict.fromkeys(COSTLY_NAMES, _COSTLY)
_change: Callable[[int, int], None]


def register_limit(change: Callable[[int, int], None]) -> None:
    """Set what lifts the limit: ``change(limit, free)``, in bytes; 0: to what it usually is.

    Operations on fewer than `free` bytes that are not costly are done at once without being counted.
    """
    global _change
    _change = change


def lower_limit() -> None:
    """Let the limit be what it usually is, whatever a program of this process has seen: for several ranks."""
    _change(0, 0)


def keep_freed_memory() -> None:
    """Have the C library keep what arrays give back for those that NumPy makes next.

    glibc returns freed memory to the system as soon as there is more than twice as much as the largest block that was
    ever mapped on its own and freed, and the next statement meets page faults, which take longer than its work. NumPy's
    own programs are spared many, since they use the memory of temporaries again. So a larger block, never touched, is
    mapped and freed. Other C libraries do not mind.
    """
    np.empty(_KEPT, np.uint8)


class Eagerness:
    """What a process has seen of its program.

    Parameters
    ----------
    threads : int
        On which loops are executed.

    Attributes
    ----------
    threads : int
    lifted : bool
        Whether the limit is lifted.
    saved : float
        Microseconds that fused loops would have saved since somebody asked for a value.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._share = 1 - _LEFT / threads  # of NumPy's time, that fused loops are thought to save
        self.lifted = False
        self._poor = 0  # executions in a row that were not worth it
        self._unseen = 0  # executions that are not looked at
        self._patience = PATIENCE
        self.saved = 0.0

    def executing(self, statements: Sequence[Statement], asked: bool = True) -> None:
        """Take note that statements are executed.

        Parameters
        ----------
        asked : bool
            Whether somebody asks for a value; if not, they are a period of sweeps, and the next one is as the last.
        """
        if self._unseen:
            self._unseen -= 1
            return
        count = len(statements)
        sizes = [s.outputs[0].array.nbytes for s in statements]
        work = sum([n * _WORK.get(s.op.name, 1) for n, s in zip(sizes, statements, strict=True)])
        if sum(sizes) >= MOST * count or self._saving(work) > _EXECUTION * asked + _STATEMENT * count:
            self._poor = 0
            self._unseen = 0 if asked else _UNSEEN
            return
        self._poor += 1
        if self._poor >= self._patience:
            self.lifted, self.saved = True, 0.0
            _change(MOST, int(_COUNTED / self._saving(1.0)))

    def permits(self, nbytes: int, name: str) -> bool:
        """Whether an operation on so many bytes, which are above the usual limit, is done at once."""
        if not self.lifted or nbytes >= MOST:
            return False
        saved = self.saved + self._saving(nbytes * (_WORK.get(name, 1))) - _COUNTED
        self.saved = saved = max(0.0, saved)
        if self.saved <= _EXECUTION:
            return True
        self.end()
        self._patience = min(2 * self._patience, _MOST_PATIENCE)
        return False

    def end(self) -> None:
        """Let the limit be what it usually is."""
        self.lifted, self._poor = False, 0
        lower_limit()

    def _saving(self, nbytes: float) -> float:
        """Microseconds that fused loops are thought to save where NumPy makes results of so many bytes."""
        return nbytes * 1e-3 * _KILOBYTE * self._share
