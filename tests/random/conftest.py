"""Arrays of test size are split too."""

from __future__ import annotations

import pytest

from numpy_dist.random import share


@pytest.fixture(params=["split", "kept"])
def way(request, monkeypatch):
    """Make each rank's share by itself, or all of it on every rank, whatever is faster."""
    monkeypatch.setattr(share, "worthwhile", lambda *args: request.param == "split")
    return request.param
