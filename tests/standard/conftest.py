"""Small arrays are really sharded."""

import pytest

from numpy_dist.settings import config


@pytest.fixture(autouse=True)
def tiny_shards():
    """Arrays of any size are sharded."""
    with config(MIN_SHARD_BYTES=0):
        yield
