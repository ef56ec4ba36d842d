"""Determinants of matrices with NaN or infinity tell of it, at any number of ranks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist as nd

pytestmark = pytest.mark.spmd


@pytest.mark.parametrize("name", ["det", "slogdet"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_undefined_determinants_are_told_about(value: float, name: str) -> None:
    matrix, function, told = np.eye(30), getattr(np.linalg, name), []
    matrix[4, 5] = value
    with nd.config(MIN_SHARD_BYTES=0):
        for a in (matrix, nd.asarray(matrix)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = function(a)
                assert np.isnan(made if name == "det" else made.logabsdet)
            told.append([(warning.category, str(warning.message)) for warning in caught])
            with pytest.raises(FloatingPointError, match=f"invalid value encountered in {name}"):
                with np.errstate(all="raise"):
                    function(a)
    assert told[1] == told[0]
