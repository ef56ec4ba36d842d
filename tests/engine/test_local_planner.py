"""Plans of groups whose statements and storages were made by hand: how results are stored, and what is brought."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from numpy_dist.backends.base import Temp
from numpy_dist.engine.memory.storage import Storage, geometry
from numpy_dist.engine.planning import group
from numpy_dist.engine.planning.actions import (
    ASIDE,
    FETCHED,
    MEMORY,
    OLD,
    Allocate,
    Combine,
    CopyBack,
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
)
from numpy_dist.engine.planning.grammar import faults
from numpy_dist.engine.planning.local_planner import plan_group
from numpy_dist.engine.planning.states import NO_SPARE, State
from numpy_dist.layout.layout import Copies, Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.regions import Box

from .metadata import N, OneGroup, elementwise, reduction, ref, rows, storage

BACKWARDS, INNER, BELOW = np.s_[::-1], np.s_[1:-1], np.s_[:-2]


def alone() -> Layout:
    """All on one rank: nothing has to be brought."""
    return Layout((N,), Mesh((1,)), (Cut(0, (0, N)),))


def planned(of: OneGroup) -> Plan:
    """The plan for a group as its storages lie, which keeps to the grammar."""
    plan = plan_group(of.group, of.statements, of.slots, of.states)
    assert faults(plan, of.states, of.group.rank) == []
    return plan


def kinds(plan: Plan) -> list[type]:
    return [type(action) for action in plan.actions]


# -- how results are stored -------------------------------------------------------------------------------------------


def test_cells_that_are_read_elsewhere_are_written_to_a_new_version() -> None:
    x = storage(alone())
    plan = planned(OneGroup(elementwise(ref(x), ref(x, np.s_[::-1]))))
    assert [(action.slot, action.carries) for action in plan.of(NewVersion)] == [(0, True)]
    assert [operand.over for operand in plan.bodies[0].operands] == [OLD, MEMORY]
    assert plan.updates == () and not plan.of(CopyBack)


@pytest.mark.parametrize(("many", "version"), [(9, False), (10, True), (11, True)])
def test_less_than_half_of_an_array_is_written_aside(many: int, version: bool) -> None:
    x = storage(alone())
    plan = planned(OneGroup(elementwise(ref(x, np.s_[:many]), ref(x, np.s_[1 : many + 1]))))
    assert bool(plan.of(NewVersion)) is version
    assert [action.slots for action in plan.of(CopyBack)] == ([] if version else [(0,)])


def test_memory_that_was_handed_out_gets_no_new_version() -> None:
    x = storage(alone())
    x.pinned = True
    plan = planned(OneGroup(elementwise(ref(x), ref(x, BACKWARDS))))
    assert not plan.of(NewVersion) and plan.of(CopyBack) == [CopyBack((0,))]
    read, target, aside = plan.bodies[0].operands
    assert (read.over, target.over, aside.over) == (MEMORY, MEMORY, ASIDE) and plan.bodies[0].copies == ((1, 2),)


def test_what_holds_no_values_yet_is_written_through() -> None:
    x = storage(alone())
    of = OneGroup(elementwise(ref(x), ref(x, BACKWARDS)))
    of.states[0] = State()
    plan = planned(of)
    assert kinds(plan) == [Allocate, Launch, Outdate, Release] and plan.updates == ()


def test_what_was_fetched_may_be_overwritten_where_it_lay() -> None:
    """The loop reads a copy of it."""
    x = storage(rows(at=8))
    plan = planned(OneGroup(elementwise(ref(x), ref(x, BACKWARDS))))
    assert kinds(plan) == [Fetch, Wait, Launch, Outdate, Release]
    assert [operand.over for operand in plan.bodies[0].operands] == [FETCHED, MEMORY]


def test_cells_that_are_read_and_written_are_updates() -> None:
    x, y = storage(alone()), storage(alone())
    assert planned(OneGroup(elementwise(ref(x), ref(x), ref(y)))).updates == (0,)
    assert planned(OneGroup(elementwise(ref(x), ref(y)))).updates == ()


def _with_spare(x: Storage, region: object, read: object) -> tuple[Plan, int]:
    """The plan of a write to the whole of `x`, of which there is a spare allocation, and the slot of `x`."""
    of = OneGroup(elementwise(ref(x), ref(x, read)))
    slot = of.slot(x)
    of.states[slot] = of.states[slot]._replace(spare=region)
    return planned(of), slot


def test_a_spare_that_differs_in_what_is_written_saves_a_copy() -> None:
    x = storage(alone())
    whole, part = ref(x).view, ref(x, np.s_[1:]).view
    assert [_with_spare(x, spare, BACKWARDS)[0].of(NewVersion)[0].carries for spare in (whole, part, None)] == [
        False,
        True,
        True,
    ]


def test_a_spare_goes_when_other_cells_than_its_own_are_written() -> None:
    x = storage(alone())
    whole, part = ref(x).view, ref(x, np.s_[1:]).view
    dropped = [_with_spare(x, spare, ...)[0].of(DropSpare) for spare in (whole, part, None, NO_SPARE)]
    assert dropped == [[], [DropSpare(0)], [DropSpare(0)], []]


def test_other_cells_of_what_is_read_are_written_where_they_lie() -> None:
    x = storage(alone())
    plan = planned(OneGroup(elementwise(ref(x, np.s_[:10]), ref(x, np.s_[10:]))))
    assert kinds(plan) == [Launch, Outdate, Release]
    assert [operand.over for operand in plan.bodies[0].operands] == [MEMORY, MEMORY]


def test_a_version_that_is_written_in_two_views_differs_in_no_region() -> None:
    x, y = storage(alone()), storage(Layout((10,), Mesh((1,)), (Cut(0, (0, 10)),)))
    of = OneGroup(elementwise(ref(x, np.s_[:10]), ref(x, np.s_[1:11])), elementwise(ref(x, np.s_[10:]), ref(y)))
    assert planned(of).of(NewVersion) == [NewVersion(of.slot(x), None, True)]


# -- cells -------------------------------------------------------------------------------------------------------------


def _in_cells(wanted: bool) -> tuple[OneGroup, Plan]:
    """A loop that overwrites the inside of what it has written; one of its results need not be stored."""
    x, a, y, z = (storage(alone()) for _ in range(4))
    whole = elementwise(ref(a), ref(x), creates=True), elementwise(ref(y), ref(a))
    of = OneGroup(*whole, elementwise(ref(y, INNER), ref(y, INNER), ref(a, INNER), ref(z, INNER)))
    of.states[of.slot(a)] = State(wanted=wanted)
    return of, planned(of)


def test_statements_on_a_part_run_in_its_cell_only() -> None:
    _, plan = _in_cells(True)
    assert [(body.box, body.numbers) for body in plan.bodies] == [
        (((0, 1),), (0, 1)),
        (((1, N - 1),), (0, 1, 2)),
        (((N - 1, N),), (0, 1)),
    ]


def test_cells_of_a_part_are_those_of_the_whole() -> None:
    """What has been written for the whole is read, and overwritten, by statements on a part in the same place."""
    of, plan = _in_cells(True)
    (_, (made,), _), (_, (written,), _), ((*read, _), again, _) = plan.bodies[1].steps
    assert read == [written, made] and again == (written,)
    assert (plan.reads, plan.writes, plan.updates) == (2, 2, ()) and len(plan.bodies[1].operands) == 4
    assert [action.slot for action in plan.of(Allocate)] == [of.slot(of.statements[0].outputs[0].storage)]


def test_a_result_that_only_the_loop_uses_is_one_temporary_in_all_cells() -> None:
    _, plan = _in_cells(False)
    assert len({body.steps[0][1] for body in plan.bodies}) == 1 and plan.contracted == 1 and plan.writes == 1


# -- masks -------------------------------------------------------------------------------------------------------------


def test_masked_writes_to_a_new_version_begin_with_the_old_values() -> None:
    x, mask = storage(alone()), storage(alone(), "?")
    body = planned(OneGroup(elementwise(ref(x), ref(x, BACKWARDS), where=ref(mask)))).bodies[0]
    ((target, source),) = body.filled
    assert (body.operands[target].over, body.operands[source].over) == (MEMORY, OLD)
    (inputs, outputs, where) = body.steps[0]
    assert outputs == (target,) and where is not None and where not in (*inputs, target, source)


def test_masked_writes_aside_begin_with_the_values_that_are_there() -> None:
    x, mask = storage(alone()), storage(alone(), "?")
    part = np.s_[:5]
    body = planned(OneGroup(elementwise(ref(x, part), ref(x, np.s_[1:6]), where=ref(mask, part)))).bodies[0]
    ((target, source),) = body.filled
    assert (body.operands[target].over, body.operands[source].over) == (ASIDE, MEMORY)
    assert body.copies == ((source, target),)


def test_other_writes_begin_with_nothing() -> None:
    x, y, mask = storage(alone()), storage(alone()), storage(alone(), "?")
    part = np.s_[:5]
    for statement in (
        elementwise(ref(x), ref(x, BACKWARDS)),
        elementwise(ref(x, part), ref(x, np.s_[1:6])),
        elementwise(ref(x), ref(y), where=ref(mask)),
    ):
        assert planned(OneGroup(statement)).bodies[0].filled == ()


# -- results that nobody wants -----------------------------------------------------------------------------------------


def _chain(wanted: bool = False, kept: bool = False, reserved: bool = False) -> Plan:
    """The plan of two statements, whose first result is used by the second one."""
    x, a, y = storage(alone()), storage(alone()), storage(alone())
    first, second = elementwise(ref(a), ref(x), creates=True), elementwise(ref(y), ref(a))
    of = OneGroup(first, second, kept=[a] if kept else ())
    of.states[of.slot(a)] = State(wanted=wanted, reserved=reserved)
    return planned(of)


def test_a_result_that_only_the_loop_uses_is_never_stored() -> None:
    plan = _chain()
    (_, (made,), _), ((read,), _, _) = plan.bodies[0].steps
    assert type(made) is Temp and made == read
    assert (plan.contracted, plan.writes, plan.reads, plan.stored_temporaries) == (1, 1, 1, 0)
    assert not plan.of(Allocate)


def test_results_that_others_use_are_stored() -> None:
    for plan in (_chain(wanted=True), _chain(kept=True), _chain(kept=True, reserved=True)):
        assert len(plan.of(Allocate)) == 1 and plan.contracted == 0 and plan.writes == 2
    assert [_chain(w, kept=True).stored_temporaries for w in (True, False)] == [0, 1]
    assert _chain(kept=True, reserved=True).stored_temporaries == 0


def test_what_a_loop_has_written_it_reads_there() -> None:
    x, y, z = storage(alone()), storage(alone()), storage(alone())
    plan = planned(OneGroup(elementwise(ref(x), ref(y)), elementwise(ref(z), ref(x))))
    (_, (made,), _), ((read,), _, _) = plan.bodies[0].steps
    assert made == read and plan.reads == 1 and plan.updates == ()


def test_a_result_lies_where_its_donor_lay() -> None:
    x, y = storage(alone()), storage(alone())
    of = OneGroup(elementwise(ref(y), ref(x), creates=True))
    of.group.end([of.slot(x)], ())
    of.states[of.slot(x)] = of.states[of.slot(x)]._replace(wanted=False)
    plan = planned(of)
    assert kinds(plan) == [Donate, Launch, Outdate, Release]
    assert plan.of(Donate) == [Donate(of.slot(y), of.slot(x))] and plan.overwrites
    assert {operand.which for operand in plan.bodies[0].operands} == {of.slot(y)}


# -- what is brought ---------------------------------------------------------------------------------------------------


def _shifted(rank: int = 1) -> tuple[OneGroup, int]:
    """A group that reads a cell of the rank below, and the slot of what it reads."""
    x, y = storage(), storage()
    of = OneGroup(elementwise(ref(y, INNER), ref(x, BELOW)), rank=rank)
    return of, of.slot(x)


def test_halos_come_before_the_loop_into_a_wider_allocation() -> None:
    of, slot = _shifted()
    plan = planned(of)
    assert kinds(plan) == [Widen, RefreshHalo, Wait, Launch, Outdate, Release]
    assert plan.of(Widen) == [Widen(slot, ((10, 20),), ((1, 0),))]


def test_memory_with_margins_is_allocated_where_there_is_none() -> None:
    of, slot = _shifted()
    of.states[slot] = State()
    plan = planned(of)
    assert kinds(plan)[:2] == [Allocate, RefreshHalo] and plan.actions[0].margin == ((1, 0),)


def test_halos_that_are_fresh_do_not_travel() -> None:
    of, slot = _shifted()
    wanted = of.group.halos[0][0].wanted
    low, extent = geometry(((10, 20),), ((1, 0),))
    of.states[slot] = State(low, extent, allocated=True, fresh=(wanted,))
    plan = planned(of)
    assert kinds(plan) == [RefreshHalo, Launch, Outdate, Release] and plan.of(RefreshHalo)[0].messages is None


@pytest.mark.parametrize("rank", [0, 1])
def test_what_is_sent_has_memory(rank: int) -> None:
    x, y = storage(rows(at=8)), storage(rows(at=8))
    of = OneGroup(elementwise(ref(y), ref(x, BACKWARDS)), rank=rank)
    of.states[of.slot(x)] = State()
    plan = planned(of)
    assert plan.actions[0] == Allocate(of.slot(x), x.layout.box(rank)) and isinstance(plan.actions[1], Fetch)
    assert len(plan.of(Allocate)) == 1


def test_a_rank_that_needs_no_halo_sends_from_the_memory_that_it_has() -> None:
    of, _ = _shifted(rank=0)
    plan = planned(of)
    assert kinds(plan) == [RefreshHalo, Wait, Launch, Outdate, Release] and plan.of(RefreshHalo)[0].messages.sends


def test_halos_of_memory_that_was_handed_out_are_fetched() -> None:
    """It gets no wider margins."""
    x, y = storage(), storage()
    x.pinned = True
    plan = planned(OneGroup(elementwise(ref(y, INNER), ref(x, BELOW)), rank=1))
    assert kinds(plan) == [Fetch, Wait, Launch, Outdate, Release]


def test_a_rank_that_sends_nothing_needs_no_memory_for_it() -> None:
    x, y = storage(rows(at=12)), storage(rows(at=12))
    of = OneGroup(elementwise(ref(y, np.s_[12:18]), ref(x, np.s_[:6])), rank=1)
    of.states[of.slot(x)] = State()
    assert kinds(planned(of)) == [Fetch, Wait, Launch, Outdate, Release]


def test_a_rank_without_a_part_of_the_space_runs_nothing() -> None:
    x, y = storage(rows(at=0)), storage(rows(at=0))
    plan = planned(OneGroup(elementwise(ref(y), ref(x)), rank=0))
    assert kinds(plan) == [Outdate, Release] and (plan.bodies, plan.reads, plan.writes) == ((), 0, 0)


def test_a_rank_without_a_part_of_the_space_waits_for_what_it_sends() -> None:
    x, y = storage(rows(at=12)), storage(rows(at=12))
    plan = planned(OneGroup(elementwise(ref(y, np.s_[12:18]), ref(x, np.s_[:6])), rank=0))
    assert kinds(plan) == [Fetch, Wait, Outdate, Release] and plan.of(Fetch)[0].region is None


# -- launches and results of reductions --------------------------------------------------------------------------------


def test_the_interior_is_computed_while_halos_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "SMALLEST_INTERIOR", 1)
    of, _ = _shifted()
    plan = planned(of)
    assert kinds(plan) == [Widen, RefreshHalo, Launch, Wait, Launch, Outdate, Release]
    early, late = plan.of(Launch)
    assert (early.parts, late.parts) == (((0, ((10, 18),)),), ((0, ((9, 10),)),))


def _total(read: object, monkeypatch: pytest.MonkeyPatch) -> OneGroup:
    """A sum, over a loop that also needs halos where a shifted part is read."""
    monkeypatch.setattr(group, "SMALLEST_INTERIOR", 1)
    x, y, r = storage(), storage(), storage(Layout((), Mesh((2,)), (Copies(),)))
    made = elementwise(ref(y, INNER), ref(x, read))
    return OneGroup(made, reduction(ref(r), ref(y, INNER)), rank=1)


def test_partial_results_of_several_boxes_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    of = _total(BELOW, monkeypatch)
    plan = planned(of)
    rest = [Outdate, Combine, Release]
    assert kinds(plan) == [Widen, RefreshHalo, Allocate, Launch, Wait, Launch, Fold, *rest]
    without = plan._replace(actions=tuple(action for action in plan.actions if not isinstance(action, Fold)))
    assert any("put together" in text for text in faults(without, of.states, 1))


def test_partial_results_of_one_box_are_those_of_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kinds(planned(_total(INNER, monkeypatch))) == [Allocate, Launch, Outdate, Combine, Release]


# -- donations ---------------------------------------------------------------------------------------------------------


def _donor(change: Callable[[OneGroup, Storage], None] = lambda of, x: None, creates: bool = True) -> list[Donate]:
    """Which memory a result takes of an operand that nobody needs, after something was changed."""
    x, y = storage(alone()), storage(alone())
    of = OneGroup(elementwise(ref(y), ref(x), creates=creates))
    of.group.end([of.slot(x)], ())
    of.states[of.slot(x)] = of.states[of.slot(x)]._replace(wanted=False)
    of.states[of.slot(y)] = State()
    change(of, x)
    return planned(of).of(Donate)


def test_memory_that_somebody_needs_is_not_donated() -> None:
    def wanted(of: OneGroup, x: Storage) -> None:
        of.states[of.slot(x)] = of.states[of.slot(x)]._replace(wanted=True)

    def reserved(of: OneGroup, x: Storage) -> None:
        of.states[of.slot(x)] = of.states[of.slot(x)]._replace(reserved=True)

    def used_later(of: OneGroup, x: Storage) -> None:
        of.group.end([of.slot(x)], [of.slot(x)])

    def handed_out(of: OneGroup, x: Storage) -> None:
        x.pinned = True

    def margins(of: OneGroup, x: Storage) -> None:
        of.states[of.slot(x)] = of.states[of.slot(x)]._replace(low=(-1,), extent=(N + 1,))

    assert _donor() == [Donate(1, 0)]
    assert [_donor(change) for change in (wanted, reserved, used_later, handed_out, margins)] == [[]] * 5


def test_memory_that_is_not_there_is_not_donated() -> None:
    def missing(of: OneGroup, x: Storage) -> None:
        of.states[of.slot(x)] = State((0,), (N,), wanted=False)

    def has_its_own(of: OneGroup, x: Storage) -> None:
        of.states[1 - of.slot(x)] = State((0,), (N,), allocated=True)

    assert [_donor(change) for change in (missing, has_its_own)] == [[], []]


def test_new_results_only_take_memory() -> None:
    assert _donor(creates=False) == []


def test_a_result_has_one_donor() -> None:
    x, y, z = (storage(alone()) for _ in range(3))
    of = OneGroup(elementwise(ref(z), ref(x), ref(y), creates=True))
    of.group.end([of.slot(x), of.slot(y)], ())
    for slot in (of.slot(x), of.slot(y)):
        of.states[slot] = of.states[slot]._replace(wanted=False)
    assert planned(of).of(Donate) == [Donate(of.slot(z), of.slot(x))]


def test_what_the_loop_overwrites_is_not_donated() -> None:
    x, y, z = (storage(alone()) for _ in range(3))
    of = OneGroup(elementwise(ref(y), ref(x), creates=True), elementwise(ref(x), ref(z)))
    of.group.end([of.slot(x)], ())
    of.states[of.slot(x)] = of.states[of.slot(x)]._replace(wanted=False)
    assert planned(of).of(Donate) == []


def test_results_that_are_not_stored_take_no_memory() -> None:
    x, a, y = (storage(alone()) for _ in range(3))
    of = OneGroup(elementwise(ref(a), ref(x), creates=True), elementwise(ref(y), ref(a)))
    of.group.end([of.slot(x)], ())
    of.states[of.slot(x)] = of.states[of.slot(x)]._replace(wanted=False)
    of.states[of.slot(a)] = State(wanted=False)
    assert planned(of).of(Donate) == []


# -- groups ------------------------------------------------------------------------------------------------------------


def test_memory_from_which_messages_leave_is_not_donated() -> None:
    of, slot = _shifted()
    of.group.end([slot], ())
    assert of.group.released == (slot,) and of.group.ending == frozenset()
    x, y = storage(rows(at=12)), storage(rows(at=12))
    of = OneGroup(elementwise(ref(y, np.s_[12:18]), ref(x, np.s_[:6])))
    of.group.end([of.slot(x), of.slot(y)], ())
    assert of.group.ending == {of.slot(y)}


def test_new_results_that_no_other_group_uses_are_temporary() -> None:
    x, a, b, y = (storage(alone()) for _ in range(4))
    made = elementwise(ref(a), ref(x), creates=True), elementwise(ref(b), ref(a), creates=True)
    of = OneGroup(*made, elementwise(ref(y), ref(b)), kept=[b])
    assert of.group.temporary == [of.slot(a)]
    assert of.group.lasting == [of.slot(x), of.slot(b), of.slot(y)]


@pytest.mark.parametrize(("smallest", "found"), [(8, ((10, 18),)), (9, None)])
def test_an_interior_is_as_large_as_it_must_be(
    smallest: int, found: Box | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "SMALLEST_INTERIOR", smallest)
    of, _ = _shifted()
    assert of.group.interior == found


def test_loops_that_wait_for_fetches_have_no_interior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "SMALLEST_INTERIOR", 1)
    x, w, y = storage(), storage(), storage()
    w.pinned = True
    of = OneGroup(elementwise(ref(y, INNER), ref(x, BELOW), ref(w, BELOW)), rank=1)
    assert of.group.halos and of.group.fetches and of.group.interior is None


def test_the_interior_is_what_no_statement_needs_halos_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "SMALLEST_INTERIOR", 1)
    x, w, y, z = (storage() for _ in range(4))
    above = elementwise(ref(z, INNER), ref(w, np.s_[2:]))
    of = OneGroup(elementwise(ref(y, INNER), ref(x, BELOW)), above, rank=0)
    assert of.group.box == ((0, 9),) and of.group.interior == ((0, 8),)


def test_facts_change_with_what_plans_depend_on() -> None:
    x, y = storage(), storage()
    of = OneGroup(elementwise(ref(y, INNER), ref(x, BELOW)))
    facts = [of.group.facts(of.storages)]
    x.allocate(((0, 10),), ((0, 1),))
    facts.append(of.group.facts(of.storages))
    wanted = of.group.halos[0][0].wanted
    x.fresh = (wanted,)
    facts.append(of.group.facts(of.storages))
    x.fresh = (tuple(() for _ in range(2)), wanted)  # the latest of two
    assert of.group.facts(of.storages) == facts[-1]
    x.deferred = True
    facts.append(of.group.facts(of.storages))
    x.deferred, x.reserved = False, True
    assert of.group.facts(of.storages) == facts[-1]
    assert len(set(facts)) == 4
    x.release()
