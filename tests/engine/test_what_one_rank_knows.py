"""Ranks record and send the same whatever only one of them knows: its tables, its objects, what it has collected."""

from __future__ import annotations

import gc
import itertools
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.events import sites
from numpy_dist.engine.planning import transfers
from numpy_dist.engine.recording import replay
from numpy_dist.engine.scheduling import schedule
from numpy_dist.ir import meta_arrays, statements, views
from numpy_dist.settings import config

from .caches import caches
from .random_programs import fresh, perform, random_program
from .test_random_programs import ShardSide

RANKS = 3


def _forget_views() -> None:
    views._LATEST.clear()
    views.forget_parts()


def _look_at_views() -> None:
    x = numpy_dist.empty((40, 40))  # which is no statement
    for i, j in itertools.product(range(12), range(12)):
        assert x[i:, j:].ndim == 2


def _forget_plans() -> None:
    replay.TEMPLATES.clear()
    replay.REDUCTION_TEMPLATES.clear()
    schedule.SCHEDULES.clear()
    statements._FORMS.clear()


def _forget_transfers() -> None:
    transfers._known_plans.clear()
    transfers._known_covers.clear()
    transfers._planned.cache_clear()
    transfers.ghosts.cache_clear()


def _forget_sites() -> None:
    sites._RECENT.clear()
    sites.LATEST.clear()


def _forget_what_functions_returned() -> None:
    for cached in caches().values():
        cached.cache_clear()


def _forget_objects() -> None:
    """What is told apart by identity comes as another object the next time."""
    meta_arrays._META_ARRAYS.clear()
    engine.runtime().events._filters.states.clear()


def _change_the_error_state() -> None:
    """Another capsule of NumPy's, which says the same."""
    np.seterr(**np.geterr())


PERTURBED: dict[str, Callable[[], Any]] = {
    "call sites are forgotten": _forget_sites,
    "functions forget": _forget_what_functions_returned,
    "meta arrays and error states are other objects": _forget_objects,
    "a slower rank": lambda: time.sleep(0.005),
    "views are forgotten": _forget_views,
    "other views are looked at": _look_at_views,
    "plans are forgotten": _forget_plans,
    "transfers are forgotten": _forget_transfers,
    "a collection": gc.collect,
    "an array that nobody uses": lambda: numpy_dist.asarray(np.ones(9)),
    "another error state": _change_the_error_state,
}


def _told(program: list[tuple], perturb: Callable[[], Any] | None, disturbed: int) -> tuple[Any, ...]:
    """What this rank has recorded and sent, and the values; `perturb` is called between any two steps of one rank."""
    side, arrays = ShardSide(), []
    rt = engine.runtime()
    with config(MIN_SHARD_BYTES=0), np.errstate(all="ignore"):
        for step in program:
            if step[0] == "new":
                arrays.append(engine.from_global(fresh(*step[1:])))
            else:
                perform(arrays, step, side)
            if perturb is not None and get_communicator().rank == disturbed:
                perturb()
        values = [engine.gather(a) for a in arrays]
    counters = rt.comm.counters
    return rt.program.recorded, counters.messages, counters.bytes, values


@pytest.mark.slow
@pytest.mark.parametrize("what", sorted(PERTURBED))
def test_random_programs_are_the_same_on_a_rank_that_is_disturbed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_MOST", 64)
    for seed in range(2 if what == "a collection" else 6):  # which takes a second a program
        program = random_program(seed, 20)
        calm = run_simulated(RANKS, _told, program, None, 0)
        disturbed = run_simulated(RANKS, _told, program, PERTURBED[what], seed % RANKS)
        for rank, (mine, other) in enumerate(zip(calm, disturbed, strict=True)):
            assert mine[:3] == other[:3], (what, seed, rank)
            for a, b in zip(mine[3], other[3], strict=True):
                np.testing.assert_array_equal(a, b)


def _cuts(disturbed: int | None) -> list[tuple[int, int]]:
    """How many statements this rank has recorded, and how many of them wait, after each statement of a loop.

    Some come from code that is made anew in each step, whose address the next one may get, and others recur.
    """
    program, rank = engine.runtime().program, get_communicator().rank
    told: list[tuple[int, int]] = []
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(np.linspace(0, 1, 40))
        for k in range(60):
            names: dict[str, Any] = {}
            exec("def step(x):\n    y = x * 0.5\n    return y + x", names)
            x = names["step"](x)
            for n in range(k % 5):
                x = x * 0.5 + n
                told.append((program.recorded, len(program.pending)))
            names.clear()  # or the function would wait for a collection
            if rank == disturbed:
                _forget_sites()
    return told


def test_programs_are_cut_alike_on_a_rank_that_has_forgotten_its_call_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = run_simulated(1, _cuts, None)[0]
    assert len(alone) == 120 and 0 < len({recorded - waits for recorded, waits in alone}) < 12
    assert run_simulated(RANKS, _cuts, 1) == [alone] * RANKS
    monkeypatch.setattr(sites, "_MOST", 8)
    assert run_simulated(RANKS, _cuts, None) == [alone] * RANKS


def test_views_that_are_in_use_stay_the_views_of_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_MOST", 4)
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.zeros((30, 30))
        held = [engine.memory.handle.ref_of(x[i:]).view for i in range(20)]
        _look_at_views()
        _forget_views()
        assert all(engine.memory.handle.ref_of(x[i:]).view is view for i, view in enumerate(held))
        number = len(views._VIEWS)
        del held, x
        _forget_views()
        _forget_plans()
        gc.collect()
        assert len(views._VIEWS) < number


@pytest.mark.parametrize("ranks", [2, 3])
def test_equal_dtypes_in_other_objects_record_the_same_statements(ranks: int) -> None:
    def work() -> tuple[int, np.ndarray]:
        rank = get_communicator().rank
        values = np.arange(64.0).reshape(8, 8)
        first = numpy_dist.zeros((8, 8))
        first[1:-1] += first[2:]
        if rank:  # as what came from another process by `recv`
            values = pickle.loads(pickle.dumps(values))
            assert values.dtype is not first.dtype
        x = numpy_dist.asarray(values)
        for _ in range(3):
            x[1:-1] += x[2:]
            x[...] *= 0.5
            first[1:-1] += x[2:]
            x[:, 1] = first[:, 2]
        return engine.runtime().program.recorded, x.gather() + first.gather()

    with config(MIN_SHARD_BYTES=0):
        found = run_simulated(ranks, work)
    assert len({recorded for recorded, _ in found}) == 1
    for _, values in found:
        np.testing.assert_array_equal(values, found[0][1])
