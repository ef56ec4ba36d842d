"""The passes of a kernel over one unit of work, and where values lie between them. A pure function of the form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from numpy_dist.backends.compiled.form import Form, Node, Ref


@dataclass
class Pass:
    """A native loop over elements, or a call of one of NumPy's inner loops.

    Attributes
    ----------
    nodes : list of int
        What a native loop computes.
    call : int or None
        The node that is called.
    keeps : list of (Ref, int)
        Values that a native loop puts into slots.
    stores : list of (int, Ref)
        Operands that it stores, and their values.
    sums : list of int
        Folds of rows to which a native loop adds.
    operands : set of int
        Those whose row pointers it needs.
    """

    nodes: list[int] = field(default_factory=list)
    call: int | None = None
    keeps: list[tuple[Ref, int]] = field(default_factory=list)
    stores: list[tuple[int, Ref]] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    operands: set[int] = field(default_factory=set)


@dataclass
class Plan:
    """Passes in order; `commit` comes after the look at the flags. `slots` are the types of the slots."""

    passes: list[Pass]
    commit: Pass
    slots: list[str]
    slot_of: dict[Ref, int]


def plan_passes(form: Form) -> Plan:
    """Divide a form's nodes into passes: as much native work as possible between the calls."""
    passes = _divide(form)
    if form.rows:
        _place_sums(form, passes)
    made = {("v", value): number for number, p in enumerate(passes) for value in _made(form, p)}
    commit = Pass()
    for operand, ref in form.stores:
        home = passes[made[ref]]
        uses = sum(ref in _needs(form, p) for p in passes) + sum(r == ref for _, r in form.stores)
        if operand in form.staged or (home.call is not None and not _direct(form, home, operand, ref, uses)):
            commit.stores.append((operand, ref))
        else:
            home.stores.append((operand, ref))
    direct = {ref for p in passes if p.call is not None for _, ref in p.stores}
    last = _last_uses(form, passes, commit, made)
    plan = _assign(form, passes, commit, made, last, direct)
    for p in (*passes, commit):
        p.operands = {k for k, _ in p.stores} | {n for kind, n in _needs(form, p) if kind == "a"}
        if p is passes[-1]:
            p.operands |= {f.source[1] for f in form.folds if f.source[0] == "a"}
        p.operands |= {n for (kind, n), _ in p.keeps if kind == "a"}
    return plan


def _divide(form: Form) -> list[Pass]:
    passes: list[Pass] = []
    loads = [ref for node in form.nodes if not node.native for ref in node.inputs if _needs_load(form, ref)]
    # A reduction reads contiguous elements, of one piece.
    rests = [f.source for f in form.folds if f.source[0] == "a" and not (form.rows and f.native)]
    loads += [ref for ref in rests if form.pieces or not _is_row(form, ref)]
    if loads:
        passes.append(Pass(keeps=[(ref, -1) for ref in dict.fromkeys(loads)]))
    waiting = list(range(len(form.nodes)))
    done: set[Ref] = set()
    while waiting:
        native = Pass()
        for number in tuple(waiting):
            node = form.nodes[number]
            if node.native and all(ref in done for ref in _values(node)):
                native.nodes.append(number)
                done.update(("v", value) for value in node.outputs)
                waiting.remove(number)
        if native.nodes:
            passes.append(native)
        ready = [n for n in waiting if not form.nodes[n].native and all(r in done for r in _values(form.nodes[n]))]
        for number in ready:
            passes.append(Pass(call=number))
            done.update(("v", value) for value in form.nodes[number].outputs)
            waiting.remove(number)
    return passes or [Pass()]


def _place_sums(form: Form, passes: list[Pass]) -> None:
    """Have native folds of rows done where their values are made, or read, by a native loop."""
    last = Pass()
    for number, fold in enumerate(form.folds):
        if fold.native:
            makes = (p for p in passes if p.call is None and fold.source[0] == "v" and fold.source[1] in _made(form, p))
            reads = (p for p in passes if p.call is None and fold.source[0] == "a" and fold.source in _needs(form, p))
            next(makes, next(reads, last)).sums.append(number)
    if last.sums:
        passes.append(last)


def _values(node: Node) -> Iterator[Ref]:
    return (ref for ref in (*node.inputs, node.where, node.old) if ref is not None and ref[0] == "v")


def _needs_load(form: Form, ref: Ref) -> bool:
    return ref[0] == "a" and form.operands[ref[1]].inner == "s"


def _is_row(form: Form, ref: Ref) -> bool:
    return form.operands[ref[1]].inner == "c"


def _made(form: Form, p: Pass) -> list[int]:
    numbers = p.nodes if p.call is None else [p.call]
    return [value for number in numbers for value in form.nodes[number].outputs]


def _needs(form: Form, p: Pass) -> set[Ref]:
    numbers = p.nodes if p.call is None else [p.call]
    refs = {
        ref
        for number in numbers
        for ref in (*form.nodes[number].inputs, form.nodes[number].where, form.nodes[number].old)
        if ref is not None
    }
    return refs | {form.folds[number].source for number in p.sums}


def _direct(form: Form, p: Pass, operand: int, ref: Ref, uses: int) -> bool:
    """Whether a call may write its result to the operand itself."""
    assert p.call is not None
    folded = any(fold.source == ref for fold in form.folds)
    return form.operands[operand].inner == "c" and uses == 1 and not folded


def _last_uses(form: Form, passes: list[Pass], commit: Pass, made: dict[Ref, int]) -> dict[Ref, int]:
    """For each value, and each operand that must be loaded for a call, the last pass that needs it."""
    last: dict[Ref, int] = {}
    for number, p in enumerate(passes):
        for ref in _needs(form, p):
            last[ref] = number
        for _, ref in p.stores:
            last[ref] = max(last.get(ref, 0), number)
    for _, ref in commit.stores:
        last[ref] = len(passes)
    for fold in form.folds:
        if not (form.rows and fold.native):
            last[fold.source] = len(passes)
    return last


def _assign(
    form: Form, passes: list[Pass], commit: Pass, made: dict[Ref, int], last: dict[Ref, int], direct: set[Ref]
) -> Plan:
    """Give every value that outlives its pass, or that a call reads or writes, a slot; slots are used again."""
    slots: list[str] = []
    slot_of: dict[Ref, int] = {}
    free: dict[str, list[int]] = {}
    called = {ref for p in passes if p.call is not None for ref in _needs(form, p)}
    kinds = {("v", v): t for node in form.nodes for v, t in zip(node.outputs, node.targets, strict=True)}

    def take(ref: Ref, kind: str) -> int:
        if free.get(kind):
            slot = free[kind].pop()
        else:
            slots.append(kind)
            slot = len(slots) - 1
        slot_of[ref] = slot
        return slot

    for number, p in enumerate(passes):
        if p.keeps:
            p.keeps = [(ref, take(ref, form.operands[ref[1]].kind)) for ref, _ in p.keeps]
        for value in _made(form, p):
            ref = ("v", value)
            if ref in direct:
                continue
            if p.call is not None:
                take(ref, kinds[ref])
            elif last.get(ref, number) > number or ref in called:
                p.keeps.append((ref, take(ref, kinds[ref])))
        for ref, slot in slot_of.items():
            if last.get(ref, number) == number and slot not in free.get(slots[slot], ()):
                free.setdefault(slots[slot], []).append(slot)
    return Plan(passes, commit, slots, slot_of)
