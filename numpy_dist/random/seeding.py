"""Generators that are in the same state on every rank."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from numpy_dist import engine
from numpy_dist.random.share import flat

T = TypeVar("T")


def agreed(source: T) -> T:
    """A seed sequence or bit generator as rank 0 has it. Collective.

    Those that were made without a seed, or used on some ranks only, differ between ranks. Where the calling rank's is
    like rank 0's, it is kept, so that what the user does to it later is not lost.
    """
    runtime = engine.runtime()
    if runtime.size == 1:
        return source
    theirs = runtime.comm.bcast(source if runtime.rank == 0 else None)
    return source if runtime.rank == 0 or _marks(source) == _marks(theirs) else theirs


def _marks(source: object) -> tuple[object, ...]:
    """What two sources that are alike have in common."""
    state = getattr(source, "state", None)
    children = getattr(source, "seed_seq", None)
    return type(source), state if state is None else flat(state), None if children is None else _marks(children)


def bit_generator_from(seed: Any) -> np.random.BitGenerator:
    """The bit generator that ``numpy.random.default_rng(seed)`` would use.

    Collective, but for seeds that are numbers or arrays of the user's.
    """
    if engine.is_handle(seed):
        seed = engine.gather(seed)
    if isinstance(seed, np.random.Generator):
        return agreed(seed.bit_generator)
    if isinstance(seed, np.random.RandomState):
        return agreed(seed._bit_generator)
    if hasattr(seed, "capsule"):
        return agreed(seed)
    if seed is None:
        seed = np.random.SeedSequence()
    if isinstance(seed, np.random.bit_generator.ISeedSequence):
        seed = agreed(seed)
    return np.random.PCG64(seed)
