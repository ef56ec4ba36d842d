"""Warnings are NumPy's, and come from the user's line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.functions.harness import split

NAN = np.full((3, 4), np.nan)
ONES = np.ones((3, 4))


def cross_of_plane_vectors(x):
    return np.cross(x[:, :2], x[:, :2])


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda x: np.mean(x[:0]), ONES),
        (lambda x: np.mean(x[:0], axis=0), ONES),
        (lambda x: np.var(x[:1], axis=0, ddof=1), ONES),
        (lambda x: np.std(x[:0]), ONES),
        (lambda x: np.average(x[:0]), ONES),
        (lambda x: np.nanmean(x, axis=0), NAN),
        (lambda x: np.nanmax(x), NAN),
        (lambda x: np.nanmin(x, axis=1), NAN),
        (lambda x: np.nanstd(x), NAN),
        (lambda x: np.mean(x, where=np.zeros((3, 4), bool)), ONES),
        (lambda x: np.sum(x / 0), ONES),
        (lambda x: np.astype(x + 1j, float), ONES),
        (cross_of_plane_vectors, ONES),
    ],
)
def test_warnings(call, values):
    if call is cross_of_plane_vectors and np.lib.NumpyVersion(np.__version__) >= "2.5.0":
        pytest.skip("an error since NumPy 2.5")

    def told(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call(x)
            for each in result if isinstance(result, tuple) else (result,):
                if engine.is_handle(each):
                    engine.gather(each)
        return [(w.category, str(w.message), w.filename) for w in caught]

    numpys = told(values)
    assert numpys

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            ours = told(split(values, 0))
        # NumPy names "scalar divide" what divides an array of one element here.
        assert {text.replace("scalar ", "") for _, text, _ in ours} == {t.replace("scalar ", "") for _, t, _ in numpys}
        assert {category for category, _, _ in ours} == {category for category, _, _ in numpys}
        # Scalars are divided in our code, as they are in NumPy's.
        assert all(filename == __file__ or "scalar" in text for _, text, filename in ours), ours

    for n in (1, 2):
        run_simulated(n, on_each_rank)
