"""Statements whose values can raise do so on every rank, whichever has met them."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist.distarray

pytestmark = pytest.mark.spmd(ranks=(1, 2, 3))


@pytest.mark.parametrize("place", range(6))
def test_integers_to_negative_powers(place):
    exponents = np.ones(6, int)
    exponents[place] = -1
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        numpy_dist.asarray(np.arange(6)) ** numpy_dist.asarray(exponents)


@pytest.mark.parametrize("function", [np.strings.index, np.strings.rindex, np.char.index])
@pytest.mark.parametrize("place", range(6))
def test_text_that_is_not_found(function, place):
    text = np.full(6, "needle")
    found = function(numpy_dist.asarray(text), "d")
    assert found.gather().tolist() == [3] * 6
    text[place] = "hay"
    with pytest.raises(ValueError, match="substring not found"):
        function(numpy_dist.asarray(text), "d")
