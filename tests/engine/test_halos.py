"""Halos that stay valid: what was exchanged is not lost when a storage's margins grow."""

from __future__ import annotations

import numpy as np

import numpy_dist.distarray  # noqa: F401  (handles are DistArrays)
from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated


def test_ghosts_survive_wider_margins():
    def on_each_rank():
        with config(MIN_SHARD_BYTES=0):
            a = np.arange(60 * 40.0).reshape(60, 40)
            x = engine.from_global(a, engine.default_layout(a.shape, mesh=(2, 2)))
            columns, rows = engine.default_layout((40, 60), split=0), engine.default_layout((60, 40), split=0)
            for _ in range(2):  # the first round fills the halo, then widens it for the other reading
                turned, straight = engine.aligned(x.T, columns), engine.aligned(x, rows)
                np.testing.assert_array_equal(engine.gather(turned), a.T)
                np.testing.assert_array_equal(engine.gather(straight), a)

    run_simulated(4, on_each_rank)
