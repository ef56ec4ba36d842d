"""Convolution and correlation of sharded sequences."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers, run_simulated
from tests.functions.harness import PRESENTATIONS, check, split

rng = np.random.default_rng(4)
FEW = tuple(sorted(PRESENTATIONS)[::3])


@pytest.mark.slow
@pytest.mark.parametrize("function", [np.convolve, np.correlate])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("lengths", [(40, 7), (8, 41), (5, 5)])
def test_all_modes(function, mode, lengths):
    a, v = (rng.standard_normal(n) for n in lengths)
    check(lambda x, y: function(x, y, mode), a, v, ranks=(1, 3, 7), ways=("default", "descending", "column"))
    check(lambda x, y: function(x, y, mode), a * 1j + 2, v - 1j, ranks=(3,), ways=("irregular",))
    check(lambda x: function(x, v, mode), a, ranks=(3,), ways=("default", "irregular"))


def test_odd_lengths():
    for n, m in ((30, 29), (6, 1), (1, 6), (1, 1)):
        check(np.convolve, rng.standard_normal(n), rng.standard_normal(m), ranks=(3,), ways=("default", "strided"))


def test_what_is_infinite_spoils_its_neighbours_only():
    a, v = rng.standard_normal(30), np.array([1.0, np.inf, 2.0])
    a[11] = np.nan
    check(lambda x, y: np.convolve(x, y), a, v, ranks=(3, 7), ways=FEW)
    check(lambda x, y: np.convolve(x, y, "same"), a[:5], v, ranks=(3, 7), ways=FEW)


def test_only_neighbours_talk():
    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            x = split(np.ones(4000), 0)
            engine.force(x)
            comm = engine.runtime().comm
            comm.counters.reset()
            made = np.convolve(x, np.ones(9), "same")
            assert comm.counters.messages <= 2 and comm.counters.bytes <= 8 * 8
            assert made.layout == x.layout

    run_simulated(4, on_each_rank)
