"""Statements that execute before they return, as their values can raise: what they read is there."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_only_such_a_statement_reads(ranks):
    """A reshape that merges cut axes makes a copy that has no name; a conversion of strings is executed at once."""

    def on_rank() -> None:
        for seed in range(4):
            words = np.random.default_rng(seed).choice(np.array(["", "ash", "Birch"]), (6, 5))
            x = numpy_dist.asarray(words)
            np.testing.assert_array_equal(engine.gather(np.ravel(x.T).astype(bool)), words.T.ravel().astype(bool))
            np.testing.assert_array_equal(np.flatnonzero(x.T).gather(), np.flatnonzero(words.T))

    with config(MIN_SHARD_BYTES=0):
        run_simulated(ranks, on_rank)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("words", ["1 2 3 4 5 x", "x 2 3 4 5 6", "1 2 3 1 2 3"])
def test_a_product_of_texts(ranks, words):
    """A text that is no number lies on one rank; all raise what that one has met."""
    texts = np.array(words.split())

    def on_rank() -> None:
        x = numpy_dist.asarray(texts)
        for dtype in ("d", "i1", "d"):
            try:
                expected = np.multiply.reduce(texts, dtype=dtype)
            except ValueError as error:
                with pytest.raises(ValueError, match=str(error).replace("(", r"\(").replace(")", r"\)")):
                    np.multiply.reduce(x, dtype=dtype)
            else:
                assert np.multiply.reduce(x, dtype=dtype) == expected

    with config(MIN_SHARD_BYTES=0):
        run_simulated(ranks, on_rank)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_events_of_such_a_statement_are_told_before_it_returns(ranks):
    """What one rank has met is told with the collective that such a statement is."""

    def on_rank() -> None:
        x = numpy_dist.asarray(np.array(["1", "2", "23490349034"]))
        with pytest.warns(RuntimeWarning, match="overflow"):
            made = x.astype("e")
        assert np.isinf(made.gather()).tolist() == [False, False, True]

    with config(MIN_SHARD_BYTES=0):
        run_simulated(ranks, on_rank)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_texts_that_are_repeated_too_often(ranks):
    def on_rank() -> None:
        words = numpy_dist.asarray(np.array(["a", "bc"] * 5))
        for _ in range(3):
            with pytest.raises(OverflowError, match="string multiply"):
                words *= 2**62  # nobody reads the result

    with config(MIN_SHARD_BYTES=0):
        run_simulated(ranks, on_rank)
