"""An adapter for the conformance suite: arrays that are at hand, in one process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np

from numpy_dist.conformance.dist_arrays import DistArrays
from numpy_dist.conformance.known_differences import Difference
from numpy_dist.engine.data import windows
from numpy_dist.settings import config

LIMIT = 1 << 20
ASKED_FIRST = "Python asks the operand first whose class is derived from the other's, in comparisons without a trace"


class AtHandArrays(DistArrays):
    """Arrays that NumPy works on at once, and a part of them, `recorded`, that it does not."""

    def __init__(self, recorded: float = 0.1) -> None:
        self._recorded = recorded

    def distribute(self, base: np.ndarray, generator: random.Random) -> tuple[Any, str]:
        if base.dtype.char not in windows.KINDS or generator.random() < self._recorded:
            return super().distribute(base, generator)
        return windows.near(base.copy("K")), "an array at hand"

    def is_sharded(self, x: Any) -> bool:
        return not windows.is_at_hand(x) and super().is_sharded(x)

    def finish(self, *arrays: Any) -> None:
        for x in arrays:
            if windows.is_at_hand(x):
                windows.hand_over(x)  # what is compared from now on are sharded arrays, which are gathered
        super().finish(*arrays)

    def differences(self) -> tuple[Difference, ...]:
        return *super().differences(), Difference(np.ndarray.__eq__, "could not be broadcast together", ASKED_FIRST)

    def settings(self) -> AbstractContextManager[Any]:
        return config(MIN_SHARD_BYTES=0, AT_ONCE=LIMIT, FALLBACK="error")

    @contextmanager
    def watched(self, may_gather: bool, may_move: bool) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(super().watched(may_gather, may_move))
            stack.enter_context(config(AT_ONCE=LIMIT))
            yield
