"""Whole programs by generated kernels, on the fake device and several ranks, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from . import programs
from .on_host import COMPILER, launcher

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")

RANKS = (1, 2, 3)


def test_programs_are_numpys(tmp_path, monkeypatch):
    kernels = {}
    for ranks in RANKS:
        kernels |= programs.collect(ranks, monkeypatch)[0]
    launch = launcher(tmp_path, kernels)
    wanted = programs.work(np.array)
    for ranks in RANKS:
        found, refused = programs.on_device(ranks, monkeypatch, launch)
        assert set(refused) <= {"reductions along several sets of axes, or axes with others between them"}
        for results in found:
            for position, (got, expected) in enumerate(zip(results, wanted, strict=True)):
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12, err_msg=f"result {position}")
                if position in (0, 4, 5, 6):  # nothing but exact operations
                    assert np.array_equal(got, expected), position
