"""Programs that go on without end: what is kept of them is bounded, whatever kind of program it is."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.compiled import compiler as compilers
from numpy_dist.engine.events import sites
from numpy_dist.engine.memory.pool import _PEAKS, _SLACK, Pool
from numpy_dist.engine.planning import transfers
from numpy_dist.engine.recording import replay
from numpy_dist.engine.scheduling import schedule
from numpy_dist.ir import meta_arrays, statements, views
from numpy_dist.settings import config

from .caches import caches

N = 400
KINDS: dict[str, Callable[[Any, Any, int], Any]] = {}


def kind(function: Callable[[Any, Any, int], Any]) -> Callable[[Any, Any, int], Any]:
    KINDS[function.__name__] = function
    return function


@kind
def elementwise(x, y, i):
    return np.sqrt(x * 2 + y) + i


@kind
def in_place(x, y, i):
    y[:] = y * 0.5 + x
    y += 1


@kind
def reductions(x, y, i):
    return float(x.sum()), x.max(), x.mean(axis=0)


@kind
def growing_slices(x, y, i):
    j = i % (N - 2) + 1
    y[:j] += x[:j]
    y[j:] *= 0.5
    return x[:j] + x[N - j :]


@kind
def single_elements(x, y, i):
    square = x.reshape(20, 20)
    square[i % 20, i // 20 % 20] = 1.0
    return float(square[i // 20 % 20, i % 20])


@kind
def fancy(x, y, i):
    return x[np.array([i % N, 1, 2])]


@kind
def masks(x, y, i):
    return y[x > (i % 100) / 100]


@kind
def sorting(x, y, i):
    return np.sort(x)


@kind
def products(x, y, i):
    return x.reshape(20, 20) @ y.reshape(20, 20)


@kind
def methods(x, y, i):
    np.add.at(y, [i % N], 1.0)
    return np.add.accumulate(x), np.add.reduceat(x, [0, i % N])


@kind
def draws(x, y, i):
    return numpy_dist.random.default_rng(i).random(500)


@kind
def errors(x, y, i):
    for wrong in (lambda: x + np.ones(7 + i % 100), lambda: x[N + i], lambda: x.reshape(7, i + 1)):
        try:
            wrong()
        except (ValueError, IndexError):
            continue
        raise AssertionError("there should have been an error")


@kind
def new_code(x, y, i):
    space: dict[str, Any] = {"x": x}
    exec(f"def f(x):\n    y = x + {i}\n    return y.sum()\nr = float(f(x))", space)


@kind
def new_code_in_new_files(x, y, i):
    space: dict[str, Any] = {"x": x}
    exec(compile(f"def f(x):\n    return x * {i}\nr = f(x)", f"<cell {i}>", "exec"), space)


@kind
def settings(x, y, i):
    with config(MIN_SHARD_BYTES=i % 2, FALLBACK=("silent", "warn")[i % 2]):
        return numpy_dist.zeros(100) + 1


@kind
def dtypes(x, y, i):
    record = numpy_dist.zeros(3, np.dtype([("a", f"S{i % 500 + 1}"), ("b", "f8")]))
    return record["b"] + 1


@kind
def shapes(x, y, i):
    return (numpy_dist.zeros((i % 100 + 1, i % 57 + 1)) + 1).sum(axis=0)


@kind
def gathered(x, y, i):
    return np.unwrap(x), np.convolve(x, [1, 2, 3])


@kind
def warned(x, y, i):
    return float((x / 0.0)[1]), np.log(-x - 1).sum()


@kind
def error_states(x, y, i):
    with np.errstate(divide=("ignore", "warn")[i % 2], call=lambda *event: None):
        return float((x / 0.0).sum())


@kind
def joined(x, y, i):
    return np.concatenate([x[: i % 100 + 1], y])


@kind
def pickles(x, y, i):
    return pickle.loads(pickle.dumps(x))


def _run(name: str, first: int, last: int) -> None:
    x, y = numpy_dist.asarray(np.linspace(0, 1, N)), numpy_dist.zeros(N)
    for i in range(first, last):
        KINDS[name](x, y, i)
    engine.flush()


def _forget() -> None:
    """Empty all tables, whose sizes are bounded (below)."""
    for table in (replay.TEMPLATES, replay.REDUCTION_TEMPLATES, schedule.SCHEDULES, statements._FORMS):
        table.clear()
    for table in (transfers._known_plans, transfers._known_covers, sites.LATEST, meta_arrays._META_ARRAYS):
        table.clear()
    sites._RECENT.clear()
    views._LATEST.clear()
    views.forget_parts()
    for cached in caches().values():
        cached.cache_clear()
    engine.runtime().events._filters.states.clear()
    engine.runtime().pool.clear()
    checks = engine.runtime().comm.checks
    if checks is not None:  # which know the last `KEPT` operations
        checks.journal._calls.clear()
        checks.journal._batches.clear()
        checks.journal._held = 0
    gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KINDS))
def test_nothing_but_tables_keeps_what_programs_have_made(name: str) -> None:
    calls = 60
    with config(MIN_SHARD_BYTES=0, FALLBACK="silent"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts = []
        for turn in range(4):
            _run(name, turn * calls, (turn + 1) * calls)
            _forget()
            counts.append(len(gc.get_objects()))
    # Some objects may be made once, as for a kernel that has been compiled meanwhile; one a call would be 60 more each
    # time.
    assert min(counts[2] - counts[1], counts[3] - counts[2]) < calls // 2, counts


WITHOUT_BOUND = {  # of those with arguments
    "numpy_dist.backends.compiled.keys._imports_digest": "sets of modules of a folder",
    "numpy_dist.backends.cupy.links.communicator": "one for each device",
    "numpy_dist.dispatch.core.overrides.package_of": "modules that register overrides",
    "numpy_dist.dispatch.core.plugins.permission_of": "plug-ins, and settings of theirs",
    "numpy_dist.binding": "the module itself",
}


def test_what_functions_remember_is_bounded() -> None:
    unbounded = {name for name, cached in caches().items() if cached.cache_parameters()["maxsize"] is None}
    parameters = {name: caches()[name].__wrapped__.__code__.co_argcount for name in unbounded}
    assert {name for name, count in parameters.items() if count} <= WITHOUT_BOUND.keys()


@pytest.mark.slow
def test_tables_stay_within_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((replay, "_MOST"), (views, "_MOST"), (statements, "_MOST"), (sites, "_MOST")):
        monkeypatch.setattr(module, name, 64)
    monkeypatch.setattr(schedule.SCHEDULES, "_most_statements", 600)
    _forget()
    with config(MIN_SHARD_BYTES=0):
        _run("growing_slices", 0, 300)
        _run("new_code_in_new_files", 0, 300)
    assert len(replay.TEMPLATES) <= 65 and len(statements._FORMS) <= 65 and len(views._LATEST) <= 65
    assert len(sites._RECENT) <= 64 and len(sites.LATEST) <= 64
    assert sum(kept.statements for kept in schedule.SCHEDULES) == schedule.SCHEDULES.statements <= 600
    _forget()
    # What is pending, journalled, or of the present period may be there still.
    assert len(sites._ALL) <= 64 + 512


def test_sites_that_are_in_use_stay_the_sites_of_their_place() -> None:
    def here() -> sites.CallSite:
        return sites.user_site(0)

    def there() -> sites.CallSite:
        return here()

    def twice() -> list[sites.CallSite]:
        return [there() for _ in range(2)]

    first = twice()
    assert first[0] is first[1]
    sites._RECENT.clear()
    sites.LATEST.clear()
    gc.collect()
    assert twice()[0] is first[0]
    number = len(sites._ALL)
    del first
    sites._RECENT.clear()
    sites.LATEST.clear()
    gc.collect()
    assert len(sites._ALL) < number


def test_nothing_is_left_to_the_garbage_collector() -> None:
    def steps() -> None:
        with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
            x = numpy_dist.asarray(np.arange(100.0))
            x[1:] += x[:-1] * 2
            assert float(x.sum()) and x.gather().size == 100

    steps()
    gc.collect()
    gc.disable()
    try:
        steps()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_blocks_of_ever_new_sizes_are_not_kept_beyond_what_was_in_use() -> None:
    pool = Pool()
    for size in range(1, 3000):
        pool.give(pool.take(1000 * size))
    assert pool.free <= _PEAKS * pool.peak + _SLACK
    blocks = [pool.take(1 << 20) for _ in range(50)]
    while blocks:
        block = blocks.pop()
        pool.give(block)
    del block
    assert len(pool._blocks[1 << 20]) == 50  # what a program uses again and again is there, old sizes are not


def test_the_blocks_that_were_used_last_are_dropped_last() -> None:
    pool = Pool(limit=5 * 1256)
    pool.give(pool.take(1000))
    for size in range(1001, 1200):
        pool.give(pool.take(size))
        assert pool._blocks[1000]
        pool.give(pool.take(1000))


def test_sources_of_kernels_that_nobody_wants_are_forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(compilers, "_MOST_SOURCES", 10)
    compiler = compilers.Compiler(str(tmp_path), 1 << 20)
    for number in range(100):
        assert compiler.address(f"def kernel(): return {number}") is None
    assert len(compiler._keys) <= 10 and len(compiler._next_look) <= 11


MEASURE = """
import gc, sys, warnings
from tests.engine import test_leaks
from numpy_dist import engine

def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))

warnings.simplefilter("ignore")
first, last = int(sys.argv[2]), int(sys.argv[3])
test_leaks._run(sys.argv[1], 0, first)
gc.collect()
before = anonymous() - engine.runtime().pool.free // 1024
test_leaks._run(sys.argv[1], first, last)
gc.collect()
print(anonymous() - engine.runtime().pool.free // 1024 - before)
"""
GROWTH = 64 << 10  # KiB: what the tables take that are not full after a thousand calls


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_hundred_thousand_calls_end_with_the_memory_of_a_thousand(name: str) -> None:
    """Views, forms, plans and schedules of ever new slices fill their tables after some thousand calls."""
    environment = os.environ | {"NUMPY_DIST_MIN_SHARD_BYTES": "0", "NUMPY_DIST_FALLBACK": "silent"}
    command = [sys.executable, "-c", MEASURE, name, "1000", "100000"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < GROWTH, done.stdout
