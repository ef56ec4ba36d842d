"""Arrays of test size are split too."""

from __future__ import annotations

import pytest

from numpy_dist.random import share


@pytest.fixture(params=["split", "kept", "split among threads"])
def way(request, monkeypatch):
    """Make each rank's share by itself, or all of it on every rank, whatever is faster."""
    monkeypatch.setattr(share, "worthwhile", lambda *args: request.param != "kept")
    if "threads" in request.param:
        monkeypatch.setattr(share, "threads_of_rank", lambda: 3)
        monkeypatch.setattr(share, "_FEW", 10)
    return request.param
