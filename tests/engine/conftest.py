"""Tiny arrays are really sharded here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from numpy_dist.settings import config


@pytest.fixture(autouse=True)
def shard_everything() -> Iterator[None]:
    with config(MIN_SHARD_BYTES=0):
        yield
