"""The grammar of plans: what every list of actions keeps to. Tests check each plan that is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from numpy_dist.backends.base import Temp
from numpy_dist.engine.planning.actions import (
    FETCHED,
    MEMORY,
    OLD,
    Action,
    Allocate,
    Body,
    Combine,
    CopyBack,
    Donate,
    DropSpare,
    Fetch,
    Fold,
    Launch,
    NewVersion,
    Operand,
    Plan,
    RefreshHalo,
    Release,
    Wait,
    Widen,
)
from numpy_dist.engine.planning.states import NO_SPARE, States
from numpy_dist.layout.regions import (
    Box,
    box_contains,
    box_shape,
    box_size,
    intersect_boxes,
    intersect_regions,
    region_empty,
)
from numpy_dist.layout.views import storage_region


def faults(plan: Plan, states: States, rank: int) -> list[str]:
    """What is wrong with a plan, in words; nothing for those that may be performed.

    Parameters
    ----------
    states : States
        Of the group's storages, before the plan.
    rank : int
        Whose plan it is.
    """
    return [*_Reader(plan, states, rank).faults(), *_covering(plan)]


class _Reader:
    """Reads a plan from its first action to its last one."""

    def __init__(self, plan: Plan, states: States, rank: int) -> None:
        self.plan, self.states, self.rank = plan, States(states), rank
        self.fetched: dict[tuple, Fetch] = {}
        self.travelling: list[Fetch | RefreshHalo] = []
        self.versions: set[int] = set()
        self.partial: set[int] = set()  # reductions of which there are partial results
        self.combined: set[int] = set()

    def faults(self) -> Iterator[str]:
        for number, action in enumerate(self.plan.actions):
            for text in self._of(action):
                yield f"action {number}, {type(action).__name__}: {text}"
            self.states.apply(action)
        if self.travelling:
            yield "nobody waits for messages"
        for number in sorted(self.partial - self.combined):
            yield f"nobody combines the partial results of statement {number}"
        if not isinstance(self.plan.actions[-1], Release) or len(self.plan.of(Release)) > 1:
            yield "the last action, and no other one, releases"

    def _of(self, action: Action) -> Iterator[str]:
        if isinstance(action, Fetch | RefreshHalo):
            yield from self._transfer(action)
        elif isinstance(action, Widen | NewVersion) and not self.states[action.slot].allocated:
            yield "there is no memory"
        elif isinstance(action, Donate):
            yield from self._donation(action)
        elif isinstance(action, DropSpare) and self.states[action.slot].spare is NO_SPARE:
            yield "there is no spare allocation"
        elif isinstance(action, Wait):
            if not self.travelling:
                yield "there is nothing to wait for"
            self.travelling = []
        elif isinstance(action, Launch):
            for number, box in action.parts:
                yield from self._part(self.plan.bodies[number], box)
        elif isinstance(action, Combine):
            yield from self._combination(action)
        elif isinstance(action, Release) and len(set(action.slots)) < len(action.slots):
            yield "a storage is released twice"
        if isinstance(action, NewVersion):
            self.versions.add(action.slot)
            spare = self.states[action.slot].spare
            if not action.carries and (action.region is None or spare is not action.region):
                yield "the spare allocation differs elsewhere"

    def _transfer(self, action: Fetch | RefreshHalo) -> Iterator[str]:
        messages = action.messages
        if messages is None:
            return
        self.travelling.append(action)
        if (messages.sends or messages.local) and not self.states[action.slot].allocated:
            yield "what is sent has no memory"
        if isinstance(action, Fetch):
            if action.key in self.fetched:
                yield "it is fetched twice"
            self.fetched[action.key] = action

    def _donation(self, action: Donate) -> Iterator[str]:
        donor, result = self.states[action.donor], self.states[action.slot]
        if not donor.allocated or result.allocated:
            yield "the donor has no memory, or the result has"
        if donor.wanted or donor.reserved:
            yield "somebody needs the donor"

    def _combination(self, action: Combine) -> Iterator[str]:
        receives = action.everywhere or any(rank == self.rank for rank, _ in action.receives)
        if receives and not self.states[action.slot].allocated:
            yield "the result has no memory"
        if action.number in self.combined:
            yield "it is combined twice"
        self.combined.add(action.number)

    def _part(self, body: Body, box: Box) -> Iterator[str]:
        if not box_contains(body.box, box):
            yield f"{box} is not within {body.box}"
        for number, operand in enumerate(body.operands):
            for text in self._operand(operand, box):
                yield f"operand {number} {text}"
        made: set[Temp] = set()
        for inputs, outputs, where in body.steps:
            if any(isinstance(x, Temp) and x not in made for x in (*inputs, where)):
                yield "a temporary is read before it is written"
            made.update(x for x in outputs if isinstance(x, Temp))
        reductions = {number for number, (_, outputs, _) in zip(body.numbers, body.steps, strict=True) if not outputs}
        if reductions & self.combined:
            yield "partial results are made after they are combined"
        self.partial |= reductions

    def _operand(self, operand: Operand, box: Box) -> Iterator[str]:
        region = storage_region(operand.vmap, box) if box_size(box) else None
        if operand.over == FETCHED:
            fetch = self.fetched.get(operand.which)
            if fetch is None or fetch.region is None:
                yield "was not fetched"
            elif fetch in self.travelling:
                yield "has not come"
            return
        state = self.states[operand.which]
        if not state.allocated:
            yield "has no memory"
        if operand.over == OLD and operand.which not in self.versions:
            yield "has no old version"
        if (operand.low, operand.extent) != (state.low, state.extent):
            yield "lies elsewhere"
        if region is None:
            return
        view = operand.view(box)
        reach = [(n - 1) * stride for n, stride in zip(view.shape, view.strides, strict=True)]
        low, high = view.offset + sum(x for x in reach if x < 0), view.offset + sum(x for x in reach if x > 0)
        if low < 0 or high + operand.dtype.itemsize > operand.itemsize * prod(operand.extent):
            yield "lies outside of the allocation"
        for action in self.travelling:
            if isinstance(action, RefreshHalo) and action.slot == operand.which and operand.over == MEMORY:
                if any(not region_empty(intersect_regions(region, ghosts)) for ghosts in action.wanted[self.rank]):
                    yield "reads ghost cells before they have come"


def _covering(plan: Plan) -> Iterator[str]:
    """Whether the loops cover each cell once, and what they leave is put together."""
    parts = [part for launch in plan.of(Launch) for part in launch.parts]
    for number, body in enumerate(plan.bodies):
        boxes = [box for which, box in parts if which == number]
        if sum(map(box_size, boxes)) != box_size(body.box) or any(
            intersect_boxes(a, b) is not None for n, a in enumerate(boxes) for b in boxes[:n] if box_shape(a)
        ):
            yield f"body {number} does not run once everywhere"
    if bool(plan.of(Fold)) != (len(parts) > 1 and bool(plan.of(Combine))):
        yield "partial results of boxes are put together where there are several, and nowhere else"
    if bool(plan.of(CopyBack)) != any(body.copies for body in plan.bodies):
        yield "what was written aside is copied back, and nothing else"
    made = [action.slot for action in plan.of(Allocate)]
    if len(set(made)) < len(made):
        yield "memory is allocated twice"


def unmatched(plans: Mapping[int, Sequence[Plan]]) -> list[str]:
    """Messages of some ranks that others do not expect, or the other way round, in words.

    Parameters
    ----------
    plans : mapping of int to sequence of Plan
        For each rank its plans of the same groups.
    """
    sent: Counter = Counter()
    received: Counter = Counter()
    collective: dict[tuple[int, int], set[int]] = {}  # by group and storage the ranks that take part
    for rank, its in plans.items():
        for number, plan in enumerate(its):
            for transfer in plan.of(Fetch, RefreshHalo):
                messages = transfer.messages
                if messages is not None:
                    what = number, type(transfer).__name__, transfer.slot
                    sent.update((what, rank, other, regions) for other, regions in messages.sends)
                    received.update((what, other, rank, regions) for other, regions in messages.receives)
            for action in plan.of(Combine):
                what = number, "Combine", action.slot
                if action.everywhere:
                    collective.setdefault((number, action.slot), set()).add(rank)
                sent.update((what, rank, other, box) for other, box in action.sends)
                received.update((what, other, rank, box) for other, box in action.receives if other != rank)
    absent = [
        f"group {number}, Combine of storage {slot}: rank {rank} takes no part in what is collective"
        for (number, slot), ranks in collective.items()
        for rank in sorted(plans.keys() - ranks)
    ]
    return absent + [
        f"group {what[0]}, {what[1]} of storage {what[2]}: {word} {one} to {other}: {parts}"
        for word, rest in (("nobody expects what goes from", sent - received), ("nobody sends", received - sent))
        for (what, one, other, parts) in rest
    ]
