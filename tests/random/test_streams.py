"""Streams: a bit generator put to a place is NumPy's own at that place, and places are found again."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.random import mersenne
from numpy_dist.random.streams import stream_of
from tests.random.harness import same_state

KINDS = [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.MT19937]


def used(kind: type, halves: int, doubles: int) -> np.random.BitGenerator:
    bit_generator = kind(7)
    generator = np.random.Generator(bit_generator)
    generator.random(doubles)
    mersenne.words(bit_generator, halves)
    return bit_generator


def draw(bit_generator: np.random.BitGenerator, unit: str, count: int) -> None:
    if unit == "half":
        mersenne.words(bit_generator, count)
    else:
        np.random.Generator(bit_generator).random(count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["wide", "half"])
@pytest.mark.parametrize(("halves", "doubles"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (0, 4)])
def test_places(kind, unit, halves, doubles):
    bit_generator = used(kind, halves, doubles)
    origin = bit_generator.state
    stream = stream_of(bit_generator, unit)
    for count in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 1001, 4002):
        reference = used(kind, halves, doubles)
        draw(reference, unit, count)
        there = stream.at(count)
        assert same_state(there.state, reference.state), count
        assert stream.between(origin, there.state, count) == count
        draw(there, unit, 13)
        assert stream.between(origin, there.state, count + 5) == count + 13
        assert stream.between(reference.state, there.state, 20) == 13
    assert same_state(bit_generator.state, origin)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_far_places(kind):
    stream = stream_of(kind(1), "wide")
    assert stream.between(stream.at(10**18).state, stream.at(10**18 + 10**12 + 3).state, 0) == 10**12 + 3


def test_mersenne_looks_near_the_expected_place(monkeypatch):
    monkeypatch.setattr(mersenne, "DRAWN", 100_000)
    stream = stream_of(np.random.MT19937(1), "pair")
    origin, there = np.random.MT19937(1).state, stream.at(300_000).state
    assert stream.between(origin, there, 300_100) == 300_000
    # An expectation that is far off costs time only.
    assert stream.between(origin, there, 500_000) == 300_000


def test_no_skip_ahead():
    class Derived(np.random.PCG64):
        """Might draw otherwise."""

    assert stream_of(np.random.SFC64(1), "wide") is None
    assert stream_of(Derived(1), "wide") is None
    assert stream_of(np.random.PCG64(1), "pair") is None
