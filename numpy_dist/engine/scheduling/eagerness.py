"""Eager execution of programs that ask for values of middle-sized arrays after a few statements.

Executing what is pending costs a rank some 130 microseconds, however little it is. A program whose arrays have some
hundred kilobytes, and which asks for a value after every few statements, is served sooner by NumPy, one statement at a
time. One process that sees such a program lifts the limit below which arrays are worked on at once
(`engine.data.windows`), and lowers it again when statements on such arrays follow one another without a value being
asked for: sweeps, which pay when they are fused. Both follow from what the program does, and from no clock.
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
_FEW = 16
"""Statements that are looked at one by one; more of them rarely are few enough."""

# Microseconds, as orders of magnitude: an execution; each of its statements; a thousand bytes of a result by NumPy
# (`benchmarks/small_arrays.py`).
_EXECUTION, _STATEMENT, _KILOBYTE = 130.0, 10.0, 0.13
_COSTLY = 8  # times the work of an addition
_COSTLY_NAMES = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh"
    " arctanh power float_power cbrt hypot logaddexp logaddexp2 remainder fmod divmod floor_divide".split()
)


_change: Callable[[int | None], None]


def register_limit(change: Callable[[int | None], None]) -> None:
    """Set what lifts the limit: ``change(limit)``, in bytes; None: to what it usually is."""
    global _change
    _change = change


def lower_limit() -> None:
    """Let the limit be what it usually is, whatever a program of this process has seen: for several ranks."""
    _change(None)


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
        self._share = 1 - 1 / (1.5 * threads)  # of NumPy's time, that fused loops are thought to save
        self.lifted = False
        self._poor = 0  # executions in a row that were not worth it
        self._patience = PATIENCE
        self.saved = 0.0

    def executing(self, statements: Sequence[Statement], nbytes: int) -> None:
        """Take note that somebody asks for a value, for which statements are executed.

        Parameters
        ----------
        nbytes : int
            Of the arrays that they write.
        """
        count = len(statements)
        large = nbytes >= MOST * count
        if count <= _FEW:
            nbytes = sum(
                s.outputs[0].array.nbytes * (_COSTLY if s.op.name in _COSTLY_NAMES else 1) for s in statements
            )
        if large or self._saving(nbytes) > _EXECUTION + _STATEMENT * count:
            self._poor = 0
            return
        self._poor += 1
        if self._poor >= self._patience:
            self.lifted, self.saved = True, 0.0
            _change(MOST)

    def permits(self, nbytes: int, name: str) -> bool:
        """Whether an operation on so many bytes, which are above the usual limit, is done at once."""
        if not self.lifted or nbytes >= MOST:
            return False
        self.saved += self._saving(nbytes * (_COSTLY if name in _COSTLY_NAMES else 1)) - _STATEMENT
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
