"""`numpy.testing` compares distributed arrays as NumPy's, also those whose truth value nobody may ask for."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers, run_simulated
from tests.functions.harness import split

VALUES = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("name", ["assert_equal", "assert_almost_equal", "assert_allclose", "assert_array_equal"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_arrays(name: str, ranks: int) -> None:
    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
            x, same, other = (split(values, 0) for values in (VALUES, VALUES, VALUES + 1))
            compare = getattr(np.testing, name)
            compare(x, same)
            compare(x, VALUES)
            compare(desired=VALUES, actual=x)
            texts = []
            for one, two in ((x, other), (VALUES, VALUES + 1)):
                with pytest.raises(AssertionError) as error:
                    compare(one, two)
                texts.append(str(error.value))
            assert texts[0] == texts[1]

    run_simulated(ranks, on_each_rank)


def test_containers() -> None:
    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
            x, same, other = (split(values, 0) for values in (VALUES, VALUES, VALUES + 1))
            np.testing.assert_equal({"a": [x, (same, 1)]}, {"a": [same, (x, 1)]})
            texts = []
            for one, two in ((x, other), (VALUES, VALUES + 1)):
                with pytest.raises(AssertionError) as error:
                    np.testing.assert_equal({"a": [two, (two, 1)]}, {"a": [one, (two, 1)]})
                texts.append(str(error.value))
            assert texts[0] == texts[1]

    run_simulated(3, on_each_rank)


def test_a_comparison_is_a_gather() -> None:
    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers(), pytest.raises(Exception, match="gather"):
            np.testing.assert_equal(split(VALUES, 0), VALUES)

    run_simulated(3, on_each_rank)
