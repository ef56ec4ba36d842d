"""Stable orders by sorted words, against NumPy's stable argsort."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.parallel import packed_order
from numpy_dist.parallel.packed_order import labels_in_order

RNG = np.random.default_rng(11)
N = 3000
KINDS = {
    "spread": RNG.normal(size=N),
    "single": RNG.normal(size=N).astype("f4"),
    "half": RNG.normal(size=N).astype("f2"),
    "long double": RNG.normal(size=N).astype("g"),
    "few": RNG.integers(0, 9, N),
    "all bits": RNG.integers(-(2**63), 2**63 - 1, N),
    "unsigned": RNG.integers(0, 2**64 - 1, N, dtype=np.uint64),
    "bytes": RNG.integers(-128, 127, N).astype("i1"),
    "booleans": RNG.random(N) < 0.5,
    "equal": np.zeros(N),
    "dates": np.where(RNG.random(N) < 0.2, np.datetime64("NaT"), RNG.integers(-99, 99, N).astype("M8[s]")),
    "durations": RNG.integers(-99, 99, N).astype("m8[ms]"),
    "complex": RNG.integers(0, 9, N) + 1j * RNG.integers(0, 3, N),
    "text": RNG.integers(0, 99, N).astype("U3"),
    # The words leave open what differs in the last bits only.
    "close": np.where(np.arange(N) % 1000 == 5, 1e300, 1 + RNG.integers(0, 500, N) * 2.0**-52),
    "any bits": np.frombuffer(RNG.bytes(8 * N), np.float64),
    "special": np.tile([np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan, 1.5, -1.5, 5e-324, -5e-324], N // 10),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("tile", [7, 1 << 15])
def test_order(name, tile, monkeypatch):
    monkeypatch.setattr(packed_order, "ELEMENTS", tile)
    for values in (KINDS[name], KINDS[name][::-1], KINDS[name][:1], KINDS[name][:0]):
        labels = 10**9 + np.cumsum(RNG.integers(1, 5, len(values)))
        expected = labels[np.argsort(values, kind="stable")]
        found = labels_in_order(values, labels)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
