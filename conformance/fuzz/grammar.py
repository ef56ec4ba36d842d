"""Generation of a program from a seed: kinds of statements drawn one after the other."""

from __future__ import annotations

import functools

from numpy_dist.conformance.fuzz import blocks, borrowed, writing
from numpy_dist.conformance.fuzz.program import RandomProgram
from numpy_dist.conformance.fuzz.statements import KINDS, new
from numpy_dist.conformance.fuzz.writer import Writer

__all__ = ["generate"]

ONE_IN_BIG = 12


@functools.cache
def _kinds() -> tuple[list, list[float]]:
    assert blocks and borrowed and writing  # their kinds are registered by importing them
    return list(KINDS), list(KINDS.values())


def generate(seed: int) -> RandomProgram:
    """The program of a seed: the same wherever NumPy is the same."""
    big = seed % ONE_IN_BIG == ONE_IN_BIG - 1
    w = Writer(seed, big)
    for _ in range(w.one([1, 2, 3])):
        new(w)
    kinds, weights = _kinds()
    length = w.one([4, 8, 12, 16, 24, 32])
    while len(w.statements) < length:
        w.draw.choices(kinds, weights)[0](w)
        if w.chance(0.07):
            w.checkpoint()
    settings = {} if big else {"MIN_SHARD_BYTES": 0}
    if not big and seed % 2:
        settings["AT_ONCE"] = 1 << 20  # parts are at hand, in one process
    return RandomProgram(tuple(w.statements), seed, settings)
