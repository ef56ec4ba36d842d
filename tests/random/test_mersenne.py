"""Jumps of MT19937 end where drawing does."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.random import mersenne
from tests.random.harness import same_state


def test_characteristic_polynomial_annihilates_the_words():
    polynomial = mersenne.characteristic()
    assert polynomial.bit_length() == mersenne.DEGREE + 1
    terms = [k for k in range(mersenne.DEGREE + 1) if polynomial >> k & 1]
    assert len(terms) == 135
    bit_generator = np.random.MT19937(1)
    mersenne.words(bit_generator, mersenne.BLOCK)
    words = mersenne.words(bit_generator, mersenne.DEGREE + 50)
    assert not np.bitwise_xor.reduce([words[k : k + 50] for k in terms]).any()


@pytest.mark.parametrize("before", [0, 1, 623, 624, 1000])
@pytest.mark.parametrize("count", [0, 1, 624, 1247, 5000, 624 * 2000, 2_345_678])
def test_jump_is_drawing(monkeypatch, before, count):
    bit_generator = np.random.MT19937(5)
    mersenne.words(bit_generator, before)
    state = bit_generator.state
    monkeypatch.setattr(mersenne, "DRAWN", 0)
    jumped = mersenne.skipped(state, count)
    if count:
        bit_generator.random_raw(count, output=False)
    assert same_state(jumped.state, bit_generator.state)
    assert same_state(mersenne.copied(state).state, state)


def test_far_jumps_add_up():
    once = mersenne.skipped(np.random.MT19937(3).state, 3 * 10**15 + 17)
    twice = mersenne.skipped(mersenne.skipped(np.random.MT19937(3).state, 10**15).state, 2 * 10**15 + 17)
    assert same_state(once.state, twice.state)
