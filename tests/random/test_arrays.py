"""Distributed random arrays are NumPy's, bit for bit, and the state after a call is NumPy's too."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist import engine, random
from numpy_dist.errors import DivergenceError, FallbackError, FallbackWarning
from numpy_dist.layout.layout import Cut
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers
from tests.random.harness import on_ranks, plain, same, same_state

# Fixed draws, and draws with rejection.
FREE = {
    "random": lambda r: r.random((50, 3)),
    "random single": lambda r: r.random(1001, dtype="f4"),
    "random 3-d": lambda r: r.random((7, 2, 2)),
    "short leading axis": lambda r: r.random((1, 2, 301)),
    "uniform": lambda r: r.uniform(1, 2, (31, 3)),
    "uniform keywords": lambda r: r.uniform(size=100, high=3),
    "integers power of two": lambda r: r.integers(256, size=(9, 9)),
    "integers constant": lambda r: r.integers(5, 6, 100),
    "integers bool": lambda r: r.integers(0, 2, 1001, dtype=bool),
    "integers bytes": lambda r: r.integers(0, 256, 1001, dtype="u1"),
    "integers shorts": lambda r: r.integers(-(2**15), 2**15, 1001, dtype="i2"),
    "exponential inverse": lambda r: r.standard_exponential(1000, method="inv"),
}
REJECTING = {
    "standard_normal": lambda r: r.standard_normal(3000),
    "standard_normal single": lambda r: r.standard_normal((501, 5), np.float32),
    "standard_normal short leading axis": lambda r: r.standard_normal((1, 2, 700)),
    "normal": lambda r: r.normal(1, 2, (300, 5)),
    "integers": lambda r: r.integers(0, 1000, (30, 50)),
    "integers much rejection": lambda r: r.integers(3 << 30, size=1500),
    "integers endpoint": lambda r: r.integers(-3, 7, 900, endpoint=True),
    "integers wide": lambda r: r.integers(0, 3 << 60, 900),
    "integers rejecting bytes": lambda r: r.integers(0, 255, 5001, dtype=np.uint8),
    "integers rejecting shorts": lambda r: r.integers(-1000, 1000, 2001, dtype=np.int16),
    "exponential": lambda r: r.exponential(2.0, 1000),
    "standard_exponential single": lambda r: r.standard_exponential(1000, "f4"),
}
DELEGATED = {
    "poisson": lambda r: r.poisson(3.0, (40, 3)),
    "gamma": lambda r: r.gamma(2.0, size=100),
    "standard_gamma single": lambda r: r.standard_gamma(2.0, 100, np.float32),
    "binomial arrays": lambda r: r.binomial([3, 5], 0.5, (50, 2)),
    "normal arrays": lambda r: r.normal(np.arange(30.0), 2.0),
    "uniform arrays": lambda r: r.uniform([1.0, 2.0], [2.0, 3.0], (20, 2)),
    "integers arrays": lambda r: r.integers(0, [5, 6, 7]),
    "permutation": lambda r: r.permutation(100),
    "choice": lambda r: r.choice(50, 30),
    "choice scalar": lambda r: r.choice(50),
    "multivariate_normal": lambda r: r.multivariate_normal([0, 1], np.eye(2), 20),
    "dirichlet": lambda r: r.dirichlet([1.0, 2.0], 20),
    "bytes": lambda r: r.bytes(7),
    "scalars": lambda r: (r.random(), r.standard_normal(), r.integers(7), r.uniform(), r.normal())[-1],
    "no axes": lambda r: r.random(()),
    "no elements": lambda r: r.standard_normal((0, 3)),
    "no elements between bounds": lambda r: r.integers(5, 5, (0, 3)),
}
KINDS = [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.MT19937, np.random.SFC64]


@pytest.mark.parametrize("name", [*FREE, *REJECTING])
def test_split_calls(name, way):
    call = FREE.get(name) or REJECTING[name]

    def body():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            ours, numpys = random.default_rng(3), np.random.default_rng(3)
            # Begin with half a draw left over.
            same(ours.random(3, dtype=np.float32), numpys.random(3, dtype=np.float32))
            runtime = engine.runtime()
            for _ in range(2):
                runtime.comm.counters.reset()
                with forbid_gathers():
                    made = call(ours)
                collective = runtime.size > 1 and way != "kept" and name in REJECTING
                assert (runtime.comm.counters.collectives, runtime.comm.counters.messages) == (int(collective), 0)
                same(made, call(numpys))
                assert same_state(ours.bit_generator.state, numpys.bit_generator.state)
            layout = engine.layout_of(made)
            axis = next(a for a, n in enumerate(layout.shape) if n >= runtime.size)
            assert layout.mesh.shape == (runtime.size,)
            assert isinstance(layout.dims[0], Cut) and layout.dims[0].axis == axis
            block = engine.local(made)
            assert block.size <= -(-layout.shape[axis] // runtime.size) * (made._array.size // layout.shape[axis])

    on_ranks(body)


@pytest.mark.slow
@pytest.mark.spmd
@pytest.mark.parametrize(("kind", "least"), [*((kind, 0) for kind in KINDS), (np.random.PCG64, 1 << 18)])
def test_interleaved_calls(kind, least, way):
    def body():
        with config(MIN_SHARD_BYTES=least, FALLBACK="error"):
            ours, numpys = random.default_rng(kind(5)), np.random.Generator(kind(5))
            for call in (*FREE.values(), *DELEGATED.values(), *REJECTING.values(), *reversed(FREE.values())):
                same(call(ours), call(numpys))
                assert same_state(ours.bit_generator.state, numpys.bit_generator.state)

    on_ranks(body)


def test_more_ranks_than_any_axis_is_long():
    def body():
        with config(MIN_SHARD_BYTES=0):
            ours, numpys = random.default_rng(1), np.random.default_rng(1)
            for shape in ((2,), (2, 2), (2, 2, 2), (5, 2), (3, 2, 2)):
                same(ours.standard_normal(shape), numpys.standard_normal(shape))

    on_ranks(body)


@pytest.mark.spmd
def test_large_arrays_are_split_by_themselves():
    def body():
        ours, numpys = random.default_rng(11), np.random.default_rng(11)
        for call in (lambda r: r.standard_normal((1500, 200)), lambda r: r.random((300, 400))):
            made = call(ours)
            assert engine.is_sharded(made)
            same(made, call(numpys))
        small = ours.random(100)
        assert not engine.is_sharded(small)
        same(small, numpys.random(100))

    with config(MIN_SHARD_BYTES=1 << 18):
        on_ranks(body)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", ["random", "standard_normal", "standard_exponential", "standard_gamma"])
def test_out(name, dtype):
    first = (3.0,) if name == "standard_gamma" else ()

    def body():
        with config(MIN_SHARD_BYTES=0):
            ours, numpys = random.default_rng(9), np.random.default_rng(9)
            for make in (
                lambda: engine.empty((40, 6), dtype),
                lambda: engine.empty((40, 6), dtype, order="F"),
                lambda: engine.empty((40, 6), dtype, layout=engine.default_layout((40, 6), split=1)),
                lambda: engine.replicated(np.empty((40, 6), dtype)),
                lambda: engine.full((60, 6), 1, dtype)[10:50],
                lambda: np.empty((40, 6), dtype),
            ):
                out = make()
                order = "F" if (out._array if engine.is_handle(out) else out).flags.fnc else "C"
                if order == "F" and first:
                    continue  # NumPy wants C order where there are parameters
                expected = getattr(numpys, name)(*first, dtype=dtype, out=np.empty((40, 6), dtype, order))
                assert getattr(ours, name)(*first, dtype=dtype, out=out) is out
                assert np.array_equal(plain(out), expected)
                assert getattr(ours, name)(*first, size=(40, 6), dtype=np.dtype(dtype), out=out) is out
                getattr(numpys, name)(*first, (40, 6), dtype)

    on_ranks(body)


def outcome(call, *args):
    """The error of a call, with its words."""
    try:
        call(*args)
    except Exception as error:
        return type(error), str(error)
    return None


def test_errors_are_numpys():
    calls = [
        lambda r, new: r.random(-1),
        lambda r, new: r.random((3, -1)),
        lambda r, new: r.random(2.5),
        lambda r, new: r.random("a"),
        lambda r, new: r.random((1 << 40, 1 << 40)),
        lambda r, new: r.random(3, dtype="i4"),
        lambda r, new: r.random(3, dtype=">f8"),
        lambda r, new: r.standard_normal(3, dtype="f2"),
        lambda r, new: r.standard_exponential(3, dtype="f2"),
        lambda r, new: r.normal(0, -1, 100),
        lambda r, new: r.normal("a", 1, 100),
        lambda r, new: r.uniform(0, np.inf, 100),
        lambda r, new: r.exponential(-1, 100),
        lambda r, new: r.integers(5, 5, 100),
        lambda r, new: r.integers(0, size=100),
        lambda r, new: r.integers(0, 300, 100, dtype="u1"),
        lambda r, new: r.integers(0, 3, 100, dtype="f8"),
        lambda r, new: r.integers(0, 3, 100, dtype=">i4"),
        lambda r, new: r.integers(0, 2**70, 100),
        lambda r, new: r.poisson(-1, 100),
        lambda r, new: r.poisson(1, 100, 3, 4),
        lambda r, new: r.shuffle(3),
        lambda r, new: r.random(out=new((4, 4), "f8")[:, :2]),
        lambda r, new: r.random(out=new((4, 4), "f4")),
        lambda r, new: r.random(dtype="f4", out=new((4, 4), "f8")),
        lambda r, new: r.random(16, out=new((4, 4), "f8")),
        lambda r, new: r.standard_normal((4, 5), out=new((4, 4), "f8")),
    ]

    def body():
        with config(MIN_SHARD_BYTES=0):
            ours, numpys = random.default_rng(1), np.random.default_rng(1)
            before = numpys.bit_generator.state
            for number, call in enumerate(calls):
                expected = outcome(call, numpys, np.empty)
                assert expected is not None, number
                assert outcome(call, ours, engine.empty) == expected, number
            assert same_state(ours.bit_generator.state, before)

    on_ranks(body)


@pytest.mark.spmd
def test_sharded_arguments_are_gathered_by_the_rules():
    def body():
        with config(MIN_SHARD_BYTES=0):
            ours, numpys = random.default_rng(2), np.random.default_rng(2)
            values = np.arange(60.0).reshape(20, 3)
            with config(FALLBACK="error"), pytest.raises(FallbackError, match="Generator.permutation"):
                ours.permutation(engine.from_global(values))
            assert same_state(ours.bit_generator.state, numpys.bit_generator.state)
            with pytest.warns(FallbackWarning, match="draw on every rank"):
                same(ours.permutation(engine.from_global(values)), numpys.permutation(values))
            with config(FALLBACK="silent"):
                ours_x, numpys_x = engine.from_global(values), values.copy()
                assert ours.shuffle(ours_x, axis=1) is None
                numpys.shuffle(numpys_x, axis=1)
                assert np.array_equal(plain(ours_x), numpys_x)
                out = engine.empty((20, 3), "f8")
                assert ours.permuted(ours_x, axis=0, out=out) is out
                assert np.array_equal(plain(out), numpys.permuted(numpys_x, axis=0))
                same(ours.normal(ours_x, 2.0), numpys.normal(numpys_x, 2.0))
                same(ours.integers(engine.from_global(np.array(9)), size=50), numpys.integers(9, size=50))
                same(ours.choice(ours_x, 5), numpys.choice(numpys_x, 5))
                assert same_state(ours.bit_generator.state, numpys.bit_generator.state)

    on_ranks(body)


@pytest.mark.spmd
@pytest.mark.filterwarnings("ignore:you are shuffling:UserWarning")
@pytest.mark.parametrize("bound", [0, 1 << 18])
def test_rows_are_shuffled_by_numpy(bound):
    def body():
        with config(MIN_SHARD_BYTES=bound):
            for shape in [(40,), (17, 3), (6, 2, 5), (1, 4), (9, 5000)]:
                x = np.arange(float(np.prod(shape))).reshape(shape)
                found = engine.from_global(x)
                for array in (x, found):
                    np.random.default_rng(1).shuffle(array)
                    np.random.RandomState(2).shuffle(array[::-2])
                    np.random.Generator(np.random.MT19937(3)).shuffle(array)
                assert np.array_equal(plain(found), x), shape

    on_ranks(body)


@pytest.mark.filterwarnings("ignore:you are shuffling:UserWarning")
@pytest.mark.parametrize("bound", [0, 1 << 18])
def test_records_are_shuffled_by_numpy(bound):
    def body():
        with config(MIN_SHARD_BYTES=bound):
            x = np.array([(k, k * 2.0) for k in range(30)], [("a", "i4"), ("b", "f8")])
            found = engine.from_global(x)
            for array in (x, found):
                np.random.default_rng(1).shuffle(array)
                np.random.RandomState(2).shuffle(array[::-2])
            assert np.array_equal(plain(found), x)

    on_ranks(body)


@pytest.mark.spmd
def test_rows_that_python_exchanges_are_views_next_to_a_shuffle():
    def body():
        for bound in (0, 1 << 18):
            with config(MIN_SHARD_BYTES=bound):
                x = np.arange(12.0).reshape(4, 3)
                found = engine.from_global(x)
                for array in (x, found):
                    array[3], array[1] = array[1], array[3]
                    np.random.default_rng(1).shuffle(list(range(3)))
                    array[2], array[0] = array[0], array[2]
                assert np.array_equal(plain(found), x)

    on_ranks(body)


@pytest.mark.spmd
def test_states_that_differ_are_found(way):
    def body():
        runtime = engine.runtime()
        if runtime.size == 1:
            return
        with config(MIN_SHARD_BYTES=0, CHECK="on" if way == "kept" else "off"):
            generator = random.default_rng(runtime.rank)
            with pytest.raises(DivergenceError, match="seeded differently"):
                generator.standard_normal(5000)

    on_ranks(body)
