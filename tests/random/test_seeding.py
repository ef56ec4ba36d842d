"""Generators are in the same state on every rank, whatever they were made of."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from numpy_dist import engine, random
from numpy_dist.settings import config
from tests.random.harness import on_ranks, same, same_state


def everywhere(value):
    return engine.runtime().comm.allgather(value)


def alike(state) -> bool:
    return all(same_state(state, other) for other in everywhere(state))


@pytest.mark.spmd
def test_without_a_seed_all_ranks_draw_alike():
    def body():
        for make in (
            random.default_rng,
            lambda: random.default_rng(np.random.SeedSequence()),
            lambda: random.default_rng(np.random.PCG64()),
            lambda: random.default_rng(np.random.default_rng()),
            lambda: random.default_rng(np.random.RandomState()),
            lambda: random.Generator(np.random.Philox()),
            lambda: random.Generator(random.SFC64()),
        ):
            first, second = make(), make()
            assert alike(first.bit_generator.state) and alike(first.spawn(2)[1].bit_generator.state if
                                                              first.bit_generator.seed_seq else None)  # fmt: skip
            assert not same_state(first.bit_generator.state, second.bit_generator.state)

    on_ranks(body)


@pytest.mark.parametrize("seed", [0, 12345678901234567890123, [1, 2, 3], np.arange(4), np.uint8(3)])
def test_seeds(seed):
    def body():
        engine.runtime().comm.counters.reset()
        ours = random.default_rng(seed)
        assert engine.runtime().comm.counters.collectives == 0
        assert same_state(ours.bit_generator.state, np.random.default_rng(seed).bit_generator.state)
        if isinstance(seed, np.ndarray):
            again = random.default_rng(engine.from_global(seed))
            assert same_state(again.bit_generator.state, ours.bit_generator.state)

    on_ranks(body)


def test_objects_that_have_a_state_are_kept():
    def body():
        bit_generator = np.random.PCG64(4)
        ours = random.default_rng(bit_generator)
        assert ours.bit_generator is bit_generator
        assert random.default_rng(ours) is ours
        numpys = np.random.default_rng(4)
        sequence = np.random.SeedSequence(8)
        assert random.default_rng(sequence).bit_generator.seed_seq is sequence
        assert isinstance(ours, np.random.Generator) and repr(ours).startswith("Generator(PCG64)")
        same(ours.random(3), numpys.random(3))

    on_ranks(body)


def test_seeds_are_refused_as_by_numpy():
    for seed in (-1, 1.5, "a", [[-1]]):
        with pytest.raises(Exception) as expected:
            np.random.default_rng(seed)
        with pytest.raises(expected.type) as found:
            random.default_rng(seed)
        assert str(found.value) == str(expected.value)
    with pytest.raises(AttributeError):
        random.Generator(3)


@pytest.mark.spmd
def test_spawn_and_copies():
    def body():
        ours, numpys = random.default_rng(4), np.random.default_rng(4)
        for one, other in zip(ours.spawn(3), numpys.spawn(3), strict=True):
            assert type(one) is random.Generator
            same(one.random(5), other.random(5))
        ours.random(3)
        engine.runtime().comm.counters.reset()
        for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), copy.copy(ours)):
            assert type(again) is random.Generator
            assert same_state(again.bit_generator.state, ours.bit_generator.state)
        state = random.RandomState(3)
        state.randn()
        for again in (copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
            assert type(again) is random.RandomState
            assert same_state(again.get_state(legacy=False), state.get_state(legacy=False))
        assert engine.runtime().comm.counters.collectives == 0

    on_ranks(body)


@pytest.mark.spmd
def test_legacy_without_a_seed():
    def body():
        with config(MIN_SHARD_BYTES=0):
            assert alike(random.RandomState().get_state(legacy=False))
            assert alike(random.RandomState(np.random.MT19937()).get_state(legacy=False))
            assert alike(random.get_state(legacy=False))
            random.seed(3)
            random.randn(3)
            random.seed()
            state = random.get_state(legacy=False)
            assert alike(state) and not state["has_gauss"]

    on_ranks(body)
