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


TIMES = {
    "sum of two": lambda x: x + x,
    "product": lambda x: x * np.int64(4),
    "moments": lambda x: x.astype("M8[s]") + x,
    "another unit": lambda x: x.astype("m8[ns]"),
    "comparison": lambda x: x < np.timedelta64(1, "ns"),
    "total": lambda x: (x * 1).sum(),
}


@pytest.mark.parametrize("place", [0, 37, 59])
@pytest.mark.parametrize("name", TIMES)
def test_times_that_are_too_large_on_one_rank(name, place):
    """Since 2.5 NumPy raises an error; before it wraps around, and so do we."""
    times = np.arange(60).astype("m8[s]")
    times[place] = 1 << 62
    others = numpy_dist.asarray(times, split=0)
    found = []
    for array in (times, others):
        try:
            found.append(TIMES[name](array))
        except OverflowError as error:
            found.append(str(error))
    if isinstance(found[0], str) or not np.ndim(found[0]):
        assert found[0] == found[1]
    else:
        np.testing.assert_array_equal(found[1].gather(), found[0])
    assert np.array_equal(others.gather(), times)
