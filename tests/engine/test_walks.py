"""Programs that walk over arrays of several ranks: on copies that every rank has, with NumPy's values."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.engine.data import walks
from tests.failures import jobs

PREAMBLE = """
import random
import numpy as np
import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.engine.data import walks

walks.FEWEST = 1
nd.config.MIN_SHARD_BYTES, nd.config.AT_ONCE, nd.config.FALLBACK = 0, 1 << 20, "silent"
rank, size = engine.runtime().rank, engine.runtime().size
"""

RANDOM = """
def step(r, x, views):
    n, m = x.shape
    i, j, k = r.randrange(n), r.randrange(m), r.randrange(1, m)
    kind = r.randrange(18)
    if kind == 0: x[i, j] = r.random()
    elif kind == 1: x[i, j] -= x[i - 1, j] * 0.5
    elif kind == 2: x[i, :k] = x[i - 1, :k] + 1
    elif kind == 3: x[:, j] += 0.25
    elif kind == 4: views.append(x[i])
    elif kind == 5: views.append(x[: i + 1, ::2])
    elif kind == 6 and views: views.pop(r.randrange(len(views)))[...] *= 0.5
    elif kind == 7 and views: r.choice(views)[...] = 0.125
    elif kind == 8 and views: return r.choice(views).sum()
    elif kind == 9: x[1:-1] = (x[:-2] + x[2:]) * 0.5
    elif kind == 10: x *= 0.75
    elif kind == 11: return x.sum()
    elif kind == 12: return np.dot(x[i, :k], x[i - 1, :k])
    elif kind == 13: return float(x[i, j])
    elif kind == 14: return np.sort(x, axis=None)[i]
    elif kind == 15: return (x + x[::-1])[i, j]
    elif kind == 16: x[x > 2] = 1.0
    elif kind == 17: x[[i, 0], [j, 0]] = -0.5

for seed in range(12):
    values = np.random.default_rng(seed).random((9, 7))
    ours, theirs = nd.asarray(values), values.copy()
    mine, their_views = [], []
    for number in range(120):
        a, b = step(random.Random(1000 * seed + number), ours, mine), step(
            random.Random(1000 * seed + number), theirs, their_views
        )
        assert (a is None) == (b is None) and (b is None or np.allclose(a, b, rtol=1e-13)), (seed, number, a, b)
        if number % 10 == 9:
            np.testing.assert_allclose(ours.gather(), theirs, rtol=1e-13, err_msg=f"{seed} {number}")
            for x, y in zip(mine, their_views, strict=True):
                np.testing.assert_allclose(x.gather(), y, rtol=1e-13, err_msg=f"{seed} {number}")
            block = ours.local
            assert block.flags.writeable and (number % 20 == 9 or (ours.sum(), ours.local is not None)[1])
            ours = nd.asarray(ours.gather())
            mine, their_views = [], []
"""

CHOLESKY = """
x = np.random.default_rng(0).random((60, 60))
x = x @ x.T + 60 * np.eye(60)
ours, theirs = nd.asarray(x), x.copy()

def factor(a):
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])

counters = engine.runtime().comm.counters
counters.reset()
factor(ours)
told = counters.messages + counters.collectives
factor(theirs)
assert (ours.gather() == theirs).all()
assert told < 200, told  # of 3,540 steps; those of one element are left to the engine
"""

LOOKS = {
    "a sum": "x.sum() == y.sum()",
    "a gather": "(x.gather() == y).all()",
    "a statement": "((x[1:] - x[:-1]).gather() == y[1:] - y[:-1]).all()",
    "a view from before": "(before.gather() == y[::2]).all()",
    "a part": "(np.concatenate(x.comm.allgather(x.local)) == y).all()",
    "a copy": "(x.copy().gather() == y).all()",
    "another layout": "(x.redistribute(split=1).gather() == y).all()",
    "a function": "(np.sort(x, axis=0).gather() == np.sort(y, axis=0)).all()",
    "an element": "x[5, 3] == y[5, 3]",
    "a row from the walk": "(row.gather() == y[4]).all()",
}

DIVERGING = {
    "one rank writes": "if rank == 0: x[3, 3] = 7.0",
    "each writes its own": "x[rank, 0] = 1.0",
    "other values": "x[0, 0] = float(rank)",
    "another element is read": "x[rank, 1]",
    "another row is read": "x[rank].sum()",
    "another part is read": "x[2, rank:].sum()",
    "another element from the end": "x[0, -1 - rank]",
    "another part from the end": "x[0, : -1 - rank].sum()",
}


def same(script: str, folder: Path, ranks: int) -> None:
    """Run a script that ends with this word on so many ranks."""
    job = jobs.run("mpiexec", PREAMBLE + textwrap.dedent(script) + "\nprint('same')", folder, ranks)
    assert job.code == 0 and job.output.count("same") == ranks, job.text


@pytest.mark.parametrize("ranks", [2, 3])
def test_random_programs(tmp_path, ranks):
    same(RANDOM, tmp_path, ranks)


@pytest.mark.parametrize("ranks", [2, 3])
def test_elements_are_not_sent_one_by_one(tmp_path, ranks):
    same(CHOLESKY, tmp_path, ranks)


WALK = """
y = np.arange(42.0).reshape(7, 6)
x = nd.asarray(y)
before = x[::2]
for i in range(1, 7):
    for j in range(6):
        x[i, j] += x[i - 1, j]
        y[i, j] += y[i - 1, j]
row = x[4]
row[:2] = 0
y[4, :2] = 0
assert x._storage.walk.changed
"""


def test_what_a_walk_has_written_is_seen(tmp_path):
    looks = "".join(f"{WALK}assert {look}, {name!r}\n" for name, look in LOOKS.items())
    same(looks, tmp_path, 3)


OFTEN = ("other values", "another part from the end")  # the others, each of which is a job, with the slow tests


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=() if what in OFTEN else pytest.mark.slow) for what in sorted(DIVERGING)]
)
def test_ranks_that_do_other_things(tmp_path, what):
    script = f"{PREAMBLE}{WALK}{DIVERGING[what]}\nprint('sum', x.sum())"
    job = jobs.run("mpiexec", script, tmp_path)
    assert job.code != 0 and "DivergenceError" in job.text and "sum" not in job.output, job.text


def test_results_are_sharded_as_others_of_their_size(tmp_path):
    script = """
    nd.config.MIN_SHARD_BYTES, nd.config.AT_ONCE = 1000, "auto"
    y = np.arange(4200.0).reshape(70, 60)
    x = nd.asarray(y.copy())
    for i in range(70):
        x[i].sum()
    rows = [x[i] for i in range(70)]
    assert x._storage.walk.copy is not None
    for made, shards in ((np.concatenate(rows), True), (x[1] + x[2], False), ((x[1] + x[2])[3:4].reshape(()), False)):
        assert (made._storage is not None) == shards, made.shape
    assert (np.concatenate(rows).gather() == y.reshape(-1)).all() and ((x[1] + x[2]).gather() == y[1] + y[2]).all()
    """
    same(script, tmp_path, 2)


def test_who_only_looks_at_shapes_may_be_alone(tmp_path):
    """Selecting parts is no step of a walk before they are read: it communicates nothing, and counts nowhere."""
    script = """
    values = np.random.default_rng(0).random((40, 30))
    x = nd.asarray(values)
    if rank == 1:
        assert {x[i].shape for i in range(40)} == {(30,)} and x[1:1].ndim == 2 and x[3, None].shape == (1, 30)
    for i in range(40):
        values[i] *= 2
        x[i] *= 2
        assert x[i].sum() == values[i].sum()
    assert x._storage.walk.copy is not None and np.array_equal(x.gather(), values)
    """
    same(script, tmp_path, 3)


def test_every_way_to_read_a_part_is_a_step(tmp_path):
    script = """
    walks.FEWEST = 16
    reads = {
        "a sum": lambda x, i: x[i].sum(),
        "a function": lambda x, i: np.exp(x[i]),
        "an operator": lambda x, i: x[i] + 1,
        "a product": lambda x, i: x[i] @ x[i - 1],
        "a comparison": lambda x, i: (x[i] > 2).any(),
        "a copy": lambda x, i: x[i].copy(),
        "sorted": lambda x, i: np.sort(x[i]),
        "an element": lambda x, i: float(x[i, 1]),
        "a row is written": lambda x, i: x.__setitem__(i, x[i - 1] * 2),
    }
    for name, read in reads.items():
        x = nd.asarray(np.random.default_rng(0).random((40, 30)))
        for i in range(40):
            read(x, i)
        walk = x._storage.walk
        assert walk is not None and (walk.copy is not None and not walk.changed or "written" in name), name
    """
    same(script, tmp_path, 2)


def test_boundary_rows_between_sweeps_are_no_walk(tmp_path):
    script = """
    walks.FEWEST = 16
    x = nd.asarray(np.ones((40, 30)))
    for _ in range(20):
        x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        x[0] = x[1]
        x[-1] = x[-2]
        x[:, 0] = 0.0
    assert x._storage.walk.copy is None and engine.counters().gathers == 0
    """
    same(script, tmp_path, 2)


def test_a_copy_that_was_hardly_used_comes_later_the_next_time():
    walk = walks.Walk(engine.runtime(), needed=4)
    storage = nd.asarray(np.zeros((5, 6)))._storage
    for steps, needed in ((3, 8), (8, 8), (9, 8), (7, 16)):
        walk.copy, walk.steps = np.zeros((5, 6)), steps
        walk.end(storage)
        assert (walk.copy, walk.steps, walk.needed) == (None, 0, needed)


def test_no_copy_is_made_where_gathers_are_errors(tmp_path):
    script = """
    nd.config.FALLBACK = "error"
    x = nd.asarray(np.arange(42.0).reshape(7, 6))
    for i in range(7):
        x[i, 0] = 1.0
    assert x._storage.walk.copy is None
    nd.config.FALLBACK = "warn"
    for i in range(7):
        x[i, 0] = 1.0
    assert x._storage.walk.copy is not None
    assert "replicated  1      336 bytes" in str(nd.report()), nd.report()
    """
    same(script, tmp_path, 2)


def test_values_that_others_have_made_come_to_the_copy(tmp_path):
    script = """
    walks.FEWEST = 16
    values, other = np.random.default_rng(0).random((2, 40, 30))
    x, y = nd.asarray(values.copy()), nd.asarray(other)
    for i in range(40):
        x[i] *= 2
    values *= 2
    assert x._storage.walk.copy is not None
    for i in range(40):
        row = np.exp(y)[i] - 1
        x[i] = row
        values[i] = np.exp(other)[i] - 1
    for i in range(40):
        x[i, 3:] += np.sqrt(y)[i, 3:]
        values[i, 3:] += np.sqrt(other)[i, 3:]
    copy = x._storage.walk.copy
    assert copy is not None and np.allclose(copy, values, rtol=1e-14), "a value ended the walk"
    assert np.array_equal(x.gather(), copy)
    """
    same(script, tmp_path, 3)


def test_a_value_that_depends_on_the_array_is_brought_before_it_is_written(tmp_path):
    script = """
    values = np.random.default_rng(0).random((9, 30))
    x = nd.asarray(values.copy())
    for i in range(3):
        x[i] *= 2
        values[i] *= 2
    assert x._storage.walk.copy is not None
    for i in range(9):
        x[i] = np.cumsum(x, axis=1)[i - 1]
        values[i] = np.cumsum(values, axis=1)[i - 1]
    assert x._storage.walk.copy is not None
    assert np.allclose(x.gather(), values, rtol=1e-13)
    """
    same(script, tmp_path, 2)


def test_a_walk_that_costs_more_than_it_saves_ends(tmp_path):
    script = """
    walks.FEWEST = 16
    values = np.random.default_rng(0).random((40, 30))
    x, y = nd.asarray(values.copy()), nd.asarray(values.copy())
    for i in range(16):
        x[i] *= 2
        values[i] *= 2
    walk = x._storage.walk
    assert walk.copy is not None
    row = x[0]
    for i in range(30):
        row[...] = np.cos(y)[i]
    values[0] = np.cos(np.asarray(y))[29]
    assert walk.copy is None and walk.needed == 32
    assert np.allclose(x.gather(), values, rtol=1e-14)
    """
    same(script, tmp_path, 2)


def test_the_checksum_of_a_copy_tells_any_value_from_another():
    rng = np.random.default_rng(0)
    for shape, dtype in (((7, 11), np.float32), ((4096, 1021), float), ((3,), np.int8), ((100, 300), complex)):
        array = np.ones(shape, dtype)
        known = {walks.checksum(array)}
        for _ in range(20):
            array.flat[rng.integers(array.size)] = rng.integers(2, 100)
            known.add(walks.checksum(array))
        assert len(known) > 15, shape
        assert walks.checksum(np.full(shape, 2, dtype)) != walks.checksum(np.ones(shape, dtype))
