"""Fixtures: a table that is put back, and small arrays that are really sharded."""

import numpy as np
import pytest

from numpy_dist.dispatch.core import registry
from numpy_dist.settings import config


@pytest.fixture
def table():
    """The registry's table without a rule for `np.unwrap`; what a test registers is forgotten afterwards."""
    registry.load()
    unwrap = registry.TABLE.pop(np.unwrap)
    before = {key: record.rules for key, record in registry.TABLE.items()}
    yield registry.TABLE
    changed = [key for key, record in registry.TABLE.items() if record.rules != before.get(key)]
    for key in changed:
        if key in before:
            registry.TABLE[key].rules = before[key]
        else:
            del registry.TABLE[key]
    registry.TABLE[np.unwrap] = unwrap
    for key in (*changed, np.unwrap):
        registry._tell(key)


@pytest.fixture
def tiny_shards():
    """Arrays of any size are sharded."""
    with config(MIN_SHARD_BYTES=0):
        yield
