"""Buffer donation: which results of a group may use the memory of an operand that nobody needs any more.

``p = r + b * p`` makes a new array, and the old one goes. Written in its place, cell by cell, the result needs no other
memory: nothing but the operands has to be read, and caches hold twice as much. This is a pure function of metadata.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from numpy_dist.engine.memory.storage import geometry
from numpy_dist.engine.planning.states import State
from numpy_dist.ir.statements import Elementwise, Ref, Statement
from numpy_dist.layout.regions import Box


def donations(
    statements: Sequence[Statement],
    keys: Sequence[Mapping[int, tuple]],
    slots: Mapping[int, int],
    ending: Container[int],
    stored: Container[int],
    rank: int,
    states: Mapping[int, State],
) -> dict[int, int]:
    """For results that may take the memory of another storage over: slots, by slot.

    Parameters
    ----------
    statements
        The group's.
    keys
        For each statement by the ids of its refs which cells these are (see `local_planner.cell_key`).
    slots
        By the ids of storages.
    ending
        Slots that nothing uses after the group.
    stored
        Slots of results that are stored.
    rank : int
    states
        Of the storages, by slot.
    """
    cells: dict[int, set[tuple]] = {}  # of each slot that is read
    last: dict[int, tuple[int, Ref]] = {}  # by whom, and how
    written: set[int] = set()
    for number, statement in enumerate(statements):
        for ref in statement.reads():
            slot = slots[id(ref.storage)]
            cells.setdefault(slot, set()).add(keys[number][id(ref)])
            last[slot] = number, ref
        written.update(slots[id(out.storage)] for out in statement.outputs)
    free = [slot for slot in sorted(cells) if slot in ending and slot not in written and len(cells[slot]) == 1]
    found: dict[int, int] = {}
    for number, statement in enumerate(statements):
        if not isinstance(statement, Elementwise) or not all(statement.creates):
            continue
        for out in statement.outputs:
            slot, (_, *where) = slots[id(out.storage)], keys[number][id(out)]
            for donor in free if slot in stored else ():
                reader, ref = last[donor]
                is_last = reader <= number and (donor, *where) in cells[donor]
                if is_last and _fits(ref, states[donor], out, states[slot], rank):
                    found[slot] = donor
                    free.remove(donor)
                    break
    return found


def _fits(ref: Ref, donor: State, out: Ref, result: State, rank: int) -> bool:
    """Whether an operand's memory is free, and has just the form that the result's would have."""
    storage = ref.storage
    if donor.wanted or donor.reserved or storage.pinned or not donor.allocated or result.allocated:
        return False
    box: Box | None = out.storage.layout.box(rank)
    if box is None or not storage.dtype == ref.array.dtype == out.array.dtype == out.storage.dtype:
        return False
    return geometry(box) == (donor.low, donor.extent)
