"""The legacy generator and the functions of the module are NumPy's, with the normal that is held back."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine, random
from numpy_dist.random import mersenne
from numpy_dist.settings import config
from tests.random.harness import on_ranks, same, same_state

CALLS = {
    "rand": lambda r: r.rand(50, 3),
    "randn": lambda r: r.randn(1001),
    "randn again": lambda r: r.randn(33, 5),
    "randint": lambda r: r.randint(0, 100, (7, 11)),
    "randint bytes": lambda r: r.randint(5, size=1000, dtype="u1"),
    "randint full bytes": lambda r: r.randint(256, size=1000, dtype=np.uint8),
    "randint bool": lambda r: r.randint(2, size=100, dtype=bool),
    "randint wide": lambda r: r.randint(-(2**40), 2**40, 300),
    "randint while a normal is held back": lambda r: (r.randn(3), r.randint(0, 1000, 500))[1],
    "random": lambda r: r.random((20, 4)),
    "random_sample": lambda r: r.random_sample((2, 2, 20)),
    "uniform": lambda r: r.uniform(1, 2, size=(2, 3, 100)),
    "standard_normal": lambda r: r.standard_normal((3, 77)),
    "normal": lambda r: r.normal(1, 2, (3, 401)),
    "one normal": lambda r: r.normal(1, 2, 1),
    "rand scalar": lambda r: r.rand(),
    "randn scalar": lambda r: r.randn(),
    "randint scalar": lambda r: r.randint(7),
    "exponential": lambda r: r.exponential(size=100),
    "poisson": lambda r: r.poisson(3, 100),
    "gamma": lambda r: r.gamma(3, size=101),
    "permutation": lambda r: r.permutation(100),
    "choice": lambda r: r.choice(50, 30),
    "randint arrays": lambda r: r.randint(0, [5, 6, 7]),
    "normal arrays": lambda r: r.normal([1.0, 2.0], 3.0),
    "uniform arrays": lambda r: r.uniform(0, [5.0, 6.0]),
    "multivariate_normal": lambda r: r.multivariate_normal([0, 1], np.eye(2), 20),
    "standard_t": lambda r: r.standard_t(3, (5, 20)),
    "no elements": lambda r: r.randn(0),
    "bytes": lambda r: r.bytes(5),
}


@pytest.mark.slow
@pytest.mark.spmd
@pytest.mark.parametrize("least", [0, 1 << 18])
def test_sequence_of_calls(least, way):
    def body():
        with config(MIN_SHARD_BYTES=least, FALLBACK="error"):
            random.seed(5)
            numpys = np.random.RandomState(5)
            for name, call in [*CALLS.items(), *reversed(CALLS.items())]:
                same(call(random), call(numpys))
                assert same_state(random.get_state(legacy=False), numpys.get_state(legacy=False)), name

    on_ranks(body)


@pytest.mark.spmd
def test_jumps(monkeypatch):
    monkeypatch.setattr("numpy_dist.random.share.worthwhile", lambda *args: True)
    monkeypatch.setattr(mersenne, "DRAWN", 3000)

    def body():
        with config(MIN_SHARD_BYTES=0):
            random.seed(1)
            numpys = np.random.RandomState(1)
            for call in (lambda r: r.rand(9001), lambda r: r.randn(5001), lambda r: r.randint(0, 1000, 7001)):
                engine.runtime().comm.counters.reset()
                made = call(random)
                assert engine.runtime().comm.counters.collectives <= 1
                same(made, call(numpys))

    on_ranks(body)


def test_random_state_objects():
    def body():
        with config(MIN_SHARD_BYTES=0):
            ours, numpys = random.RandomState([1, 2]), np.random.RandomState([1, 2])
            assert isinstance(ours, np.random.RandomState)
            for name in ("randn", "randint", "poisson", "one normal", "randint arrays", "randn scalar"):
                same(CALLS[name](ours), CALLS[name](numpys))
            state = numpys.get_state()
            numpys.randn(3)
            ours.set_state(state)
            assert same_state(ours.get_state(legacy=False)["state"]["key"], state[1])
            ours.seed(6)
            same(ours.rand(30), np.random.RandomState(6).rand(30))

    on_ranks(body)


def test_numpys_global_state_is_not_touched():
    def body():
        before = np.random.get_state(legacy=False)
        random.seed(1)
        random.randn(101)
        random.shuffle(np.arange(5))
        assert same_state(np.random.get_state(legacy=False), before)

    on_ranks(body)


def test_other_bit_generators():
    def body():
        with config(MIN_SHARD_BYTES=0):
            random.set_bit_generator(np.random.PCG64(3))
            numpys = np.random.RandomState(np.random.PCG64(3))
            assert isinstance(random.get_bit_generator(), np.random.PCG64)
            for name in ("rand", "randn", "randint while a normal is held back", "randn", "uniform"):
                same(CALLS[name](random), CALLS[name](numpys))
            random.seed(4)
            numpys = np.random.RandomState(np.random.PCG64(4))
            same(random.randn(5), numpys.randn(5))
            random.set_bit_generator(np.random.MT19937())

    on_ranks(body)


def test_errors_are_numpys():
    calls = [
        lambda r: r.rand(-1),
        lambda r: r.rand(2.5),
        lambda r: r.rand((2, 3)),
        lambda r: r.randn("a"),
        lambda r: r.randint(5, 5, 10),
        lambda r: r.randint(0, 300, 10, "u1"),
        lambda r: r.randint(0, 3, 10, "f8"),
        lambda r: r.normal(0, -1, 10),
        lambda r: r.uniform(0, np.inf, 10),
        lambda r: r.seed(-1),
        lambda r: r.seed("a"),
        lambda r: r.set_state(("PCG64",)),
    ]

    def body():
        with config(MIN_SHARD_BYTES=0):
            random.seed(1)
            for number, call in enumerate(calls):
                with pytest.raises(Exception) as expected:
                    call(np.random.RandomState(1))
                with pytest.raises(expected.type) as found:
                    call(random)
                assert str(found.value) == str(expected.value), number

    on_ranks(body)


def test_byte_order_as_in_numpy():
    random.seed(1)
    with pytest.warns(DeprecationWarning), config(MIN_SHARD_BYTES=0):
        same(random.randint(0, 1000, 50, ">i4"), np.random.RandomState(1).randint(0, 1000, 50, ">i4"))


def test_all_names():
    assert numpy_dist.random is random
    public = {name for name in dir(np.random) if not name.startswith("_")}
    assert public <= set(dir(random)) and all(hasattr(random, name) for name in public)
    for name in set(np.random.mtrand.__all__) - {"RandomState"}:
        ours, numpys = getattr(random, name), getattr(np.random, name)
        assert ours is not numpys
        if name not in ("sample", "ranf", "set_bit_generator", "get_bit_generator"):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(numpys).parameters), name
    assert random.SeedSequence is np.random.SeedSequence and random.PCG64 is np.random.PCG64
    for kind in ("Generator", "RandomState"):
        for name in dir(getattr(np.random, kind)):
            if not name.startswith("_") and name != "bit_generator":
                ours, numpys = getattr(getattr(random, kind), name), getattr(getattr(np.random, kind), name)
                assert ours is not numpys, name
                assert list(inspect.signature(ours).parameters) == list(inspect.signature(numpys).parameters), name
    with pytest.raises(AttributeError):
        _ = random.no_such_name
