"""Determinants of matrices with NaN or infinity tell of it, at any number of ranks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist as nd

pytestmark = pytest.mark.spmd


@pytest.mark.parametrize("name", ["det", "slogdet"])
@pytest.mark.parametrize(
    ("value", "kind", "row"), [(np.nan, "d", 4), (np.inf, "d", 4), (np.inf, "F", 5), (np.inf, "D", 5)]
)
def test_undefined_determinants_are_told_about(value: float, kind: str, row: int, name: str) -> None:
    matrix, function, told = np.eye(30, dtype=kind), getattr(np.linalg, name), []
    matrix[row, 5] = value  # the phase of a complex infinity on the diagonal is undefined, its logarithm is not
    with nd.config(MIN_SHARD_BYTES=0):
        for a in (matrix, nd.asarray(matrix)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = function(a)
                assert np.isnan(made if name == "det" else made.logabsdet if kind == "d" else made.sign)
            told.append([(warning.category, str(warning.message)) for warning in caught])
            with pytest.raises(FloatingPointError, match=f"invalid value encountered in {name}"):
                with np.errstate(all="raise"):
                    function(a)
    assert told[1] == told[0]
