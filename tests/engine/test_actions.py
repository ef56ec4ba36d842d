"""Plans as lists of actions: they are values, keep to their grammar, say what performing them does, and match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.executing import prepared
from numpy_dist.engine.executing.prepared import PreparedPlans
from numpy_dist.engine.planning.actions import (
    Action,
    Allocate,
    Combine,
    Donate,
    DropSpare,
    Fetch,
    Fold,
    Launch,
    NewVersion,
    Outdate,
    Plan,
    RefreshHalo,
    Release,
    Wait,
    Widen,
    counts,
)
from numpy_dist.engine.planning.grammar import faults, unmatched
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.planning.local_planner import plan_group
from numpy_dist.engine.planning.states import NO_SPARE, State, States, state_of
from numpy_dist.engine.scheduling import schedule
from numpy_dist.layout.fetch import FetchPlan
from numpy_dist.settings import config

from .metadata import OneGroup, elementwise, ref, storage
from .random_programs import random_program
from .test_random_programs import _run


class Made(NamedTuple):
    """A plan, and the states before it."""

    plan: Plan
    states: States


@contextmanager
def planning() -> Iterator[dict[int, list[Made]]]:
    """For each rank the plans that are made within the block, in their order."""
    made: dict[int, list[Made]] = defaultdict(list)

    def tell(group: Any, plan: Plan, statements: Any, states: States) -> None:
        made[group.rank].append(Made(plan, States(states)))

    prepared.PLANNED.append(tell)
    try:
        yield made
    finally:
        prepared.PLANNED.remove(tell)


def _work() -> None:
    """Halos, fetches, new versions, donations, reductions, cells, masks and copies."""
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        grid = np.random.default_rng(0).random((60, 40))
        x, y = numpy_dist.asarray(grid, split=0), numpy_dist.asarray(grid, split=1)
        for _ in range(3):
            z = x[1:-1] * 0.5 + x[:-2] + x[2:]
            x[1:-1] = x[:-2] + z
            x[:4] = x[2:6]
            total = np.sum(x * y, axis=0)
            engine.flush()
            z = z - 1.0
            engine.flush()
            w = np.where(z > 0, z, y[1:-1])
            engine.flush()
            float(total.max() + w.sum())
            x[::2] = np.sqrt(np.abs(x[::2]))


@pytest.fixture(scope="module")
def made() -> dict[int, list[Made]]:
    """The plans of that work on three ranks."""
    with planning() as found:
        run_simulated(3, _work)
    return found


def test_plans_are_values(made):
    kinds = {type(action) for its in made.values() for m in its for action in m.plan.actions}
    wanted = {Allocate, Combine, Donate, Fetch, Launch, NewVersion, Outdate, RefreshHalo, Release, Wait, Widen}
    assert wanted <= kinds
    for its in made.values():
        for plan, _ in its:
            assert hash(plan) == hash(Plan(*plan)) and plan == Plan(*plan)
            assert len(str(plan).splitlines()) == len(plan.actions)


def test_ranks_expect_what_is_sent(made):
    plans = {rank: [m.plan for m in its] for rank, its in made.items()}
    assert len({len(its) for its in plans.values()}) == 1
    assert unmatched(plans) == []
    sends = [(number, plan) for number, plan in enumerate(plans[1]) if any(a.messages.sends for a in plan.of(Fetch))]
    number, plan = sends[0]
    plans[1][number] = plan._replace(actions=tuple(a for a in plan.actions if not isinstance(a, Fetch)))
    assert any("nobody sends" in text for text in unmatched(plans))


def test_performing_a_plan_does_to_storages_what_it_says(monkeypatch):
    execute, seen = schedule.execute, []

    def compared(plans: PreparedPlans, runtime: Any, statements: Any, storages: Any) -> None:
        group = plans.group
        states = States({slot: state_of(storages[slot]) for slot in group.slots})
        plan = plans.find(runtime, statements, storages).plan
        execute(plans, runtime, statements, storages)
        for slot, state in states.after(plan.actions).items():
            # Whether anybody wants it may have changed, and memory that somebody else sees is not donated.
            mine = state_of(storages[slot])._replace(wanted=state.wanted, reserved=state.reserved)
            assert mine == state or not state.allocated, (slot, str(plan))
            seen.append(slot)

    monkeypatch.setattr(schedule, "execute", compared)
    for seed in range(20):
        run_simulated(seed % 3 + 1, _run, random_program(seed + 9000))
    assert len(seen) > 100


def test_the_grammar_finds_what_is_missing(made):
    """Each kind of action is there for a reason: without it plans have faults (but for those that are named here)."""
    # Notes of what is out of date: that there is anything is not in the plan. No boxes are put together here.
    needed = {*get_args(Action)} - {DropSpare, Outdate, Fold}
    found: dict[type, int] = defaultdict(int)
    for rank, its in made.items():
        for plan, states in its:
            assert faults(plan, states, rank) == []
            for number, action in enumerate(plan.actions):
                without = plan._replace(actions=plan.actions[:number] + plan.actions[number + 1 :])
                found[type(action)] += bool(faults(without, states, rank))
    assert all(found[kind] for kind in needed), dict(found)


def test_the_grammar_finds_partial_results_that_are_not_combined(made):
    tried = 0
    for rank, its in made.items():
        for plan, states in its:
            for action in plan.of(Combine) if plan.bodies else ():
                tried += 1
                without = plan._replace(actions=tuple(a for a in plan.actions if a is not action))
                text = f"nobody combines the partial results of statement {action.number}"
                assert text in faults(without, states, rank)
                twice = plan._replace(actions=(*plan.actions[:-1], action, plan.actions[-1]))
                assert any(text.endswith("it is combined twice") for text in faults(twice, states, rank))
                early = plan._replace(actions=(*without.of(Allocate), action, *without.actions))
                assert any("made after they are combined" in text for text in faults(early, states, rank))
    assert tried > 5


def test_a_rank_that_leaves_a_collective_combination_out_is_found(made):
    """Also one that has nothing to contribute, whose plan by itself does not say that there is a reduction."""
    plans = {rank: [m.plan for m in its] for rank, its in made.items()}
    number = next(n for n, plan in enumerate(plans[1]) if any(action.everywhere for action in plan.of(Combine)))
    left_out = tuple(action for action in plans[1][number].actions if not isinstance(action, Combine))
    plans[1][number] = plans[1][number]._replace(actions=left_out)
    (text,) = unmatched(plans)
    assert text.startswith(f"group {number}, Combine of storage") and "rank 1 takes no part" in text


def _with(plan: Plan, number: int, action: Any) -> Plan:
    return plan._replace(actions=(*plan.actions[:number], action, *plan.actions[number + 1 :]))


def test_the_grammar_finds_what_is_wrong(made):
    rank = 1
    for plan, states in made[rank]:
        kinds = [type(action) for action in plan.actions]
        if Wait in kinds and plan.of(Fetch):
            number, launch = kinds.index(Wait), kinds.index(Launch)
            late = list(plan.actions)
            late.insert(launch, late.pop(number))
            assert any("has not come" in text for text in faults(plan._replace(actions=tuple(late)), states, rank))
        if Donate in kinds:
            donor = plan.of(Donate)[0].donor
            held = States(states | {donor: states[donor]._replace(wanted=True)})
            assert any("somebody needs" in text for text in faults(plan, held, rank))
        if NewVersion in kinds:
            number = kinds.index(NewVersion)
            swaps = _with(plan, number, plan.actions[number]._replace(carries=False))
            assert any("differs elsewhere" in text for text in faults(swaps, states, rank))
        number = kinds.index(Release)
        if plan.actions[number].slots:
            twice = _with(plan, number, Release(plan.actions[number].slots * 2))
            assert any("twice" in text for text in faults(twice, states, rank))
        for number, action in enumerate(plan.actions):
            if isinstance(action, Launch):
                outside = tuple((body, tuple((lo - 99, hi) for lo, hi in box)) for body, box in action.parts)
                assert faults(_with(plan, number, Launch(outside)), states, rank)
                assert faults(_with(plan, number, Launch(action.parts * 2)), states, rank)
        whole = States({slot: state._replace(spare=NO_SPARE) for slot, state in states.items()})
        assert any("no spare" in text for text in faults(_with(plan, 0, DropSpare(next(iter(states)))), whole, rank))


def test_states_follow_actions():
    states = States({0: State(), 1: State((2,), (5,), allocated=True, wanted=False, spare=None)})
    states.apply(Allocate(0, ((3, 7),), ((1, 0),)))
    assert states[0] == State((2,), (5,), allocated=True)
    states.apply(Donate(0, 1))
    assert not states[1].allocated and states[0].low == (2,)
    halo = (((range(1),),),)
    states.apply(RefreshHalo(0, halo, None))
    assert states[0].fresh == ()
    states[0] = states[0]._replace(fresh=halo)
    states.apply(Outdate((0,)))
    assert states[0].fresh == ()


HALO = (((range(1),),),)


@pytest.mark.parametrize(
    ("action", "lost"),
    [(Widen(0, ((3, 7),), ((1, 1),)), True), (DropSpare(0), True), (Allocate(0, ((3, 7),)), False)],
)
def test_a_spare_goes_with_what_it_was_a_version_of(action: Action, lost: bool):
    states = States({0: State((3,), (4,), allocated=True, spare=None)})
    states.apply(action)
    assert (states[0].spare is NO_SPARE) is lost
    assert states[0].allocated


def test_a_donor_keeps_nothing():
    states = States({0: State(), 1: State((2,), (5,), allocated=True, spare=None, wanted=False)})
    states.apply(Donate(0, 1))
    assert states[0] == State((2,), (5,), allocated=True)
    assert not states[1].allocated and states[1].spare is NO_SPARE


def test_a_new_version_leaves_a_spare_that_differs_where_it_was_written():
    states = States({0: State((2,), (5,), allocated=True)})
    states.apply(NewVersion(0, None, True))
    assert states[0].spare is None


def test_ghosts_are_fresh_that_were_exchanged_until_they_are_out_of_date():
    messages = FetchPlan((), (), ())
    states = States({0: State(), 1: State(fresh=HALO)})
    states.apply(RefreshHalo(0, HALO, messages))
    states.apply(RefreshHalo(0, HALO * 2, messages))
    assert states[0].fresh == (HALO, HALO * 2)
    states.apply(Outdate((0,)))
    assert states[0].fresh == () and states[1].fresh == HALO


def test_states_after_actions_leave_those_before_as_they_were():
    before = States({0: State()})
    after = before.after([Allocate(0, ((3, 7),)), NewVersion(0, None, True)])
    assert before == {0: State()} and after == {0: State((3,), (4,), allocated=True, spare=None)}


@pytest.mark.parametrize("name", ["deferred", "reserved"])
def test_memory_of_deferred_results_may_not_be_donated(name: str):
    of = storage()
    assert not state_of(of).reserved
    setattr(of, name, True)
    assert state_of(of).reserved is True


def test_states_say_where_memory_lies():
    of = storage()
    assert state_of(of) == State(wanted=False)
    of.allocate(((3, 7),), ((1, 0),))
    assert state_of(of) == State((2,), (5,), allocated=True, wanted=False)
    of.release()


def test_states_tell_spares_of_one_region_of_several_and_none_apart():
    of = storage()
    states = [state_of(of).spare]
    for region in (None, ref(of).view):
        of.spare = np.zeros(8, np.uint8), region
        states.append(state_of(of).spare)
    of.spare = None
    assert states == [NO_SPARE, None, ref(of).view]


@pytest.mark.parametrize("several", [True, False])
def test_facts_say_the_same_of_a_spare_as_states(several: bool):
    of = storage()
    group = OneGroup(elementwise(ref(of), ref(of))).group
    assert group.facts([of])[-1] == state_of(of).spare == NO_SPARE
    of.spare = np.zeros(8, np.uint8), None if several else ref(of).view
    assert group.facts([of])[-1] is state_of(of).spare is of.spare[1]
    of.spare = None


def test_counting_reads_the_same_list(made):
    for its in made.values():
        for plan, _ in its:
            counted = counts(plan)
            assert counted["loops"] == bool(plan.bodies) and counted["fetches"] == len(plan.of(Fetch))
            assert counted["versions"] >= counted["carried"]


def test_planning_is_a_function_of_facts(monkeypatch):
    """The same statements and states give an equal plan, whenever it is made."""
    same = []

    def twice(group: Group, statements: Any, slots: Any, states: States) -> Plan:
        first = plan_group(group, statements, slots, States(states))
        same.append(plan_group(group, statements, slots, states) == first)
        return first

    monkeypatch.setattr(prepared, "plan_group", twice)
    run_simulated(2, _work)
    assert len(same) > 20 and all(same)
