"""Data come in and go out: every way in, any layout, and memory that was handed out."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.errors import CommunicationRefused, GatherError
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers

pytestmark = pytest.mark.spmd

VALUES = np.arange(7 * 5 * 3.0).reshape(7, 5, 3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("split", [0, 1, 2])
def test_global_arrays(order, split):
    values = np.array(VALUES, order=order)
    x = numpy_dist.asarray(values, split=split)
    assert np.array_equal(x.gather(), values)
    assert x.strides == values.strides
    assert x.layout.cut_axes == (split,)


def test_the_input_is_copied():
    values = VALUES.copy()
    x = numpy_dist.asarray(values)
    buffer = np.ones(3)
    y = x + buffer
    buffer[:] = 100
    values[:] = 0
    assert np.array_equal(y.gather(), VALUES + 1)


def test_root_sends_each_rank_its_part():
    rank, size = engine.runtime().rank, engine.runtime().size
    root = size - 1
    x = numpy_dist.asarray(VALUES if rank == root else None, root=root)
    assert np.array_equal(x.gather(), VALUES)


@pytest.mark.host_memory
def test_local_memory_is_the_arrays_own():
    x = numpy_dist.asarray(VALUES)
    block = x.local
    block[...] = 5.0
    assert np.array_equal(x.gather(), np.full_like(VALUES, 5.0))
    x += 1
    assert np.all(block == 6.0)
    x[1:] = x[:-1] * 2
    expected = np.full_like(VALUES, 12.0)
    expected[0] = 6.0
    assert np.array_equal(x.gather(), expected)
    if block.size:
        assert np.array_equal(block, expected[tuple(slice(lo, hi) for lo, hi in x.layout.box(engine.runtime().rank))])


def test_a_rank_holds_its_part_only():
    x = numpy_dist.asarray(np.zeros((1000, 100)), split=0)
    share = -(-1000 // engine.runtime().size)
    assert x.local.shape[0] <= share
    assert x._storage.memory.size <= share * 100 * 8


def test_redistribution_round_trip():
    x = numpy_dist.asarray(VALUES, split=0)
    y = x.redistribute(split=2)
    assert y.layout.cut_axes == (2,)
    assert np.array_equal(y.gather(), VALUES)
    assert np.array_equal((x + y).gather(), 2 * VALUES)


def test_gathers_are_counted_and_can_be_refused():
    x = numpy_dist.asarray(VALUES)
    before = engine.counters().gathers
    x.gather()
    several = engine.runtime().size > 1
    assert engine.counters().gathers == before + several
    if several:
        with forbid_gathers(), pytest.raises(CommunicationRefused):
            x.gather()


def test_a_gather_over_the_budget_is_refused_on_every_rank():
    x = numpy_dist.asarray(VALUES)
    if engine.runtime().size > 1:
        with config(MEMORY_BUDGET=100), pytest.raises(GatherError, match="100"):
            x.gather()
    assert np.array_equal(x.gather(), VALUES)


def test_the_budget_is_for_what_is_fetched():
    """The rows of a view that merges axes are brought whole, however few of their elements it has."""
    values = np.arange(60 * 40.0).reshape(60, 40)
    x = numpy_dist.asarray(values, split=0)
    flat = x.reshape(-1)
    for part, nbytes in ((flat[::39], values.nbytes), (flat[70:170:3], 4 * 40 * 8), (flat[-90:], 3 * 40 * 8)):
        if engine.runtime().size > 1:
            with config(MEMORY_BUDGET=nbytes - 1), pytest.raises(GatherError, match=f" {nbytes} bytes"):
                part.gather()
    with config(MEMORY_BUDGET=values.nbytes):
        for key in (slice(None, None, 39), slice(70, 170, 3), slice(-90, None), slice(170, 70, -3)):
            assert np.array_equal(flat[key].gather(), values.reshape(-1)[key])


def test_gathers_of_views_that_merge_axes_bring_the_rows_that_they_touch():
    values = np.arange(7 * 5 * 4 * 3.0).reshape(7, 5, 4, 3)
    for split in (0, 1):
        x = numpy_dist.asarray(values, split=split)
        for shape in ((7, 5, 12), (7, 20, 3), (35, 12), (7, 60), (-1,)):
            merged, expected = x.reshape(shape), values.reshape(shape)
            for key in (slice(1, 3), slice(-2, None), slice(None, None, -2), (..., slice(2, 9, 3))):
                assert np.array_equal(merged[key].gather(), expected[key])
    x = numpy_dist.asarray(np.arange(100 * 100.0).reshape(100, 100), split=0)
    part = x.reshape(-1)[350:520]  # three rows
    engine.force(x)
    comm = engine.runtime().comm
    before = comm.counters.bytes
    part.gather()
    sent = sum(comm.allgather(comm.counters.bytes - before))
    assert sent < 0.1 * x.nbytes * comm.size


def test_writes_through_views_whose_owners_are_no_boxes():
    values = np.arange(24.0)
    x = numpy_dist.asarray(values, split=0)
    rows = x.reshape(4, 6)
    rows[:, 1] = -1.0
    rows[2] += 100
    expected = values.reshape(4, 6).copy()
    expected[:, 1] = -1.0
    expected[2] += 100
    assert np.array_equal(x.gather(), expected.reshape(-1))


def test_flattened_views_alias():
    values = np.arange(42.0).reshape(6, 7)
    for split in (0, 1):
        x = numpy_dist.asarray(values, split=split)
        flat = x.reshape(-1)
        flat[3:40:5] = 0
        expected = values.copy()
        expected.reshape(-1)[3:40:5] = 0
        assert np.array_equal(x.gather(), expected)
        assert np.array_equal(flat.gather(), expected.reshape(-1))


@pytest.mark.parametrize("source", ["f8", "i1", "?"])
@pytest.mark.parametrize("target", ["f8", "i8", "i1", "f4"])
def test_sums_into_a_target_are_formed_as_numpy_forms_them(source, target):
    values = (np.arange(300) * 0.5).astype(source).reshape(3, 100)
    for shard in (False, True):
        expected = np.zeros(3, target)
        np.add.reduce(values, axis=1, out=expected)
        out = numpy_dist.asarray(np.zeros(3, target)) if shard else np.zeros(3, target)
        with config(FALLBACK="silent"):
            np.add.reduce(numpy_dist.asarray(values), axis=1, out=out)
        found = out.gather() if shard else out
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.host_memory
def test_parts_are_gathered_with_values_and_in_one_process_strides_of_numpys_copy():
    x = numpy_dist.asarray(VALUES, split=0)
    for take in (lambda a: a[:, 2:3, ::-1], lambda a: a.T[::2, 1:2], lambda a: a[::-2, 1:, 1], lambda a: a[2:5]):
        gathered, copy = take(x).gather(), np.array(take(VALUES), order="K")
        assert np.array_equal(gathered, copy)
        assert gathered.flags.owndata and gathered.flags.writeable
        if engine.runtime().size == 1:
            assert gathered.strides == copy.strides
