"""Places in the raw sequence of a bit generator: go to the n-th draw, and count the draws between two states.

A :class:`Stream` counts from one state of one bit generator in *units*, the smallest amount that a call of NumPy can
take: 64-bit draws (``wide``) or 32-bit draws (``half``); for MT19937, whose draws have 32 bits, multiples of them.
All values are NumPy's own, drawn by a bit generator that a stream has put in the right place; a stream never makes a
number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from numpy_dist.random import mersenne

State = Mapping[str, Any]

_MASK128 = (1 << 128) - 1
_MASK256 = (1 << 256) - 1
_MULTIPLIERS = {"PCG64": 0x2360ED051FC65DA44385DF649FCCF645, "PCG64DXSM": 0xDA942042E4DD58B5}


class Stream(ABC):
    """The sequence of one bit generator, from `origin` on.

    Attributes
    ----------
    origin : dict
        The state at position 0.
    seek_seconds, parse_seconds : float
        What :meth:`at`, and what a whole speculative parse costs beyond making the samples, about.
    """

    origin: State
    seek_seconds: float
    parse_seconds: float

    @abstractmethod
    def at(self, position: int) -> np.random.BitGenerator:
        """A bit generator of its own, in the state that NumPy's has `position` units after the origin."""

    @abstractmethod
    def between(self, before: State, after: State, expected: float) -> int:
        """How many units lie between a state of this sequence and a later one, near `expected`."""


class _Words64(Stream):
    """Generators that draw 64 bits, and keep the upper half of a draw for the next demand for 32 bits."""

    seek_seconds = 5e-5
    parse_seconds = 5e-4

    def __init__(self, origin: State, half: bool) -> None:
        self.origin = origin
        self._half = half
        self._kept = int(origin["has_uint32"])

    @abstractmethod
    def _sought(self, draws: int) -> np.random.BitGenerator:
        """A generator that has made `draws` 64-bit draws (at least one) since the origin, and keeps no half."""

    @abstractmethod
    def _distance(self, before: State, after: State) -> int:
        """How many 64-bit draws lie between two states."""

    def _copied(self) -> Any:
        bit_generator = getattr(np.random, self.origin["bit_generator"])(0)
        bit_generator.state = self.origin
        return bit_generator

    def at(self, position: int) -> np.random.BitGenerator:
        if not self._half:
            return self._wide_at(position)
        fresh = position - self._kept
        if fresh <= 0:
            bit_generator = self._copied()
            halves = position
        else:
            # The last 64 bits are drawn by halves, so that what NumPy keeps of them is right.
            draws = (fresh + 1) // 2 - 1
            bit_generator = self._sought(draws) if draws else self._copied()
            if not draws and self._kept:
                mersenne.words(bit_generator, 1)
            halves = fresh - 2 * draws
        if halves:
            mersenne.words(bit_generator, halves)
        return bit_generator

    def _wide_at(self, position: int) -> np.random.BitGenerator:
        if not position:
            return self._copied()
        bit_generator = self._sought(position)
        # Draws of 64 bits leave a kept half alone.
        kept = {name: self.origin[name] for name in ("has_uint32", "uinteger")}
        bit_generator.state = {**bit_generator.state, **kept}
        return bit_generator

    def between(self, before: State, after: State, expected: float) -> int:
        draws = self._distance(before, after)
        return 2 * draws + int(before["has_uint32"]) - int(after["has_uint32"]) if self._half else draws


class LinearStream(_Words64):
    """PCG64 and PCG64DXSM: a linear congruential generator modulo ``2**128``, which jumps in 128 steps."""

    def _sought(self, draws: int) -> np.random.BitGenerator:
        return self._copied().advance(draws)

    def _distance(self, before: State, after: State) -> int:
        multiplier, bit, distance = _MULTIPLIERS[after["bit_generator"]], 1, 0
        here, there, plus = before["state"]["state"], after["state"]["state"], after["state"]["inc"]
        while here != there:
            # The low bits of such a generator have short periods, so each bit of the distance shows by itself.
            if (here ^ there) & bit:
                here = (here * multiplier + plus) & _MASK128
                distance |= bit
            plus = (multiplier + 1) * plus & _MASK128
            multiplier = multiplier * multiplier & _MASK128
            bit <<= 1
        return distance


class CounterStream(_Words64):
    """Philox: a counter whose cipher gives four 64-bit draws."""

    @staticmethod
    def _absolute(state: State) -> int:
        counter = sum(int(word) << 64 * place for place, word in enumerate(state["state"]["counter"]))
        return 4 * counter + int(state["buffer_pos"])

    def _sought(self, draws: int) -> np.random.BitGenerator:
        bit_generator = self._copied()
        state = {**self.origin, "has_uint32": 0}
        ahead = int(state["buffer_pos"]) + draws - 1
        if ahead < 4:
            bit_generator.state = {**state, "buffer_pos": ahead + 1}
            return bit_generator
        block, place = divmod(self._absolute(state) + draws - 1, 4)
        counter = block - 1 & _MASK256
        state["state"] = {
            "counter": np.array([counter >> 64 * place & (1 << 64) - 1 for place in range(4)], np.uint64),
            "key": state["state"]["key"],
        }
        bit_generator.state = {**state, "buffer_pos": 4}
        bit_generator.random_raw(place + 1, output=False)
        return bit_generator

    def _distance(self, before: State, after: State) -> int:
        return self._absolute(after) - self._absolute(before) & 4 * _MASK256 + 3


class MersenneStream(Stream):
    """MT19937, in units of `width` 32-bit words; what takes several words stays on a grid of that width."""

    seek_seconds = 0.02
    parse_seconds = 0.1

    def __init__(self, origin: State, width: int) -> None:
        self.origin = {"bit_generator": origin["bit_generator"], "state": origin["state"]}
        self._width = width

    def at(self, position: int) -> np.random.MT19937:
        return mersenne.skipped(self.origin, position * self._width)

    def between(self, before: State, after: State, expected: float) -> int:
        # 624 words in a row determine the state, so finding them in the sequence is a proof.
        pattern = mersenne.words(mersenne.copied(after), mersenne.BLOCK)
        near = int(expected * self._width)
        if near > mersenne.DRAWN:
            slack = int(16 * self._width * expected**0.5) + 8 * mersenne.BLOCK
            low = max(0, near - slack) // self._width * self._width
            found = self._found(before, pattern, low, near + slack)
            if found is not None:
                return found
        found = self._found(before, pattern, 0, None)
        assert found is not None
        return found

    def _found(self, before: State, pattern: np.ndarray, low: int, high: int | None) -> int | None:
        """The place of `pattern` in the words after `before`, at a multiple of the width from `low` on."""
        scout = mersenne.skipped(before, low)
        chunk = mersenne.BLOCK
        window = mersenne.words(scout, mersenne.BLOCK)
        while high is None or low < high:
            window = np.concatenate([window, mersenne.words(scout, chunk)])
            hits = np.flatnonzero((window[:chunk] == pattern[0]) & (window[1 : chunk + 1] == pattern[1]))
            for hit in hits.tolist():
                if (low + hit) % self._width == 0 and np.array_equal(window[hit : hit + mersenne.BLOCK], pattern):
                    return (low + hit) // self._width
            low += chunk
            window = window[chunk:]
            chunk = min(2 * chunk, 256 * mersenne.BLOCK)
        return None


def stream_of(bit_generator: np.random.BitGenerator, unit: str) -> Stream | None:
    """The stream of a bit generator from its present state, or None where its sequence has no known skip-ahead.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
    unit : {"wide", "half", "pair"}
        What one unit is: a draw of 64 bits (or a double), a draw of 32 bits, or the two doubles that the legacy polar
        method takes at a time.
    """
    # A class derived from NumPy's may draw otherwise.
    kind = type(bit_generator)
    if kind is np.random.MT19937:
        return MersenneStream(bit_generator.state, {"half": 1, "wide": 2, "pair": 4}[unit])
    if unit == "pair":
        return None
    if kind is np.random.PCG64 or kind is np.random.PCG64DXSM:
        return LinearStream(bit_generator.state, unit == "half")
    if kind is np.random.Philox:
        return CounterStream(bit_generator.state, unit == "half")
    return None
