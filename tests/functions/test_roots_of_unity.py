"""The roots of unity that transforms of one line multiply by."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.dispatch.functions.fourier import _roots


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="nothing more exact to compare with")
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 12, 1000, 65_536])
@pytest.mark.parametrize("inverse", [False, True])
def test_roots_are_exact_to_two_units(n: int, inverse: bool) -> None:
    parts = np.arange(-3, 3 * n + 5)
    turns = (2 if inverse else -2) * (4 * np.arctan(np.longdouble(1))) / n * (parts % n)
    wanted = np.cos(turns) + 1j * np.sin(turns)
    for kind, unit in (("D", 2.0**-53), ("F", 2.0**-24)):
        roots = _roots(parts, n, inverse, np.dtype(kind))
        assert roots.dtype == kind
        assert abs(roots - wanted).max() <= 2 * unit


def test_quarters_are_exact() -> None:
    assert _roots(np.arange(4), 4, True, np.dtype("D")).tolist() == [1, 1j, -1, -1j]
