"""What tests of products share."""

from __future__ import annotations

import pytest

from numpy_dist.parallel import pieces


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of some hundred elements are multiplied by pieces, too."""
    monkeypatch.setattr(pieces, "_LEAST", 1)
