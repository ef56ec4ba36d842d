"""The passes of a kernel over one unit of work, and where values lie between them. A pure function of the form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from numpy_dist.backends.compiled.form import Form, Node
from numpy_dist.backends.graph import Ref


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
    restores : list of (int, int)
        Operands that are given back what was in them, and the slots that have it.
    reloads : dict
        Values that are read again from the operands in which an earlier pass has stored them.
    operands : set of int
        Those whose row pointers it needs.
    """

    nodes: list[int] = field(default_factory=list)
    call: int | None = None
    keeps: list[tuple[Ref, int]] = field(default_factory=list)
    stores: list[tuple[int, Ref]] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    restores: list[tuple[int, int]] = field(default_factory=list)
    reloads: dict[Ref, int] = field(default_factory=dict)
    operands: set[int] = field(default_factory=set)


@dataclass
class PassPlan:
    """Passes in order, and what comes after the look at the flags: `undo` if one is raised, else `commit`.

    `slots` are the types of the slots.
    """

    passes: list[Pass]
    commit: Pass
    undo: Pass
    slots: list[str]
    slot_of: dict[Ref, int]


def plan_passes(form: Form) -> PassPlan:
    """Divide a form's nodes into passes: as much native work as possible between the calls."""
    passes = _divide(form)
    if form.rows:
        _place_sums(form, passes)
    made = _homes(form, passes)
    commit = Pass()
    saved: dict[Ref, Pass] = {}  # ("o", operand): what was in it is saved by the pass that overwrites it
    for operand, ref in form.stores:
        home = passes[made[ref]]
        uses = sum(ref in _needs(form, p) for p in passes) + sum(r == ref for _, r in form.stores)
        if operand in form.staged:
            if _is_last_reader(form, passes, made[ref], operand):
                home.stores.append((operand, ref))
                saved["o", operand] = home
            else:
                commit.stores.append((operand, ref))
        elif home.call is not None and not _direct(form, home, operand, ref, uses):
            commit.stores.append((operand, ref))
        else:
            home.stores.append((operand, ref))
    if not form.rows:
        _separate_folds(form, passes, commit)
        made = _homes(form, passes)
    direct = {ref for p in passes if p.call is not None for _, ref in p.stores}
    last = _last_uses(form, passes, commit)
    if _may_stop(form):
        for ref, home in saved.items():
            last[ref] = len(passes)
            home.keeps.append((ref, -1))
    else:
        saved.clear()
    plan = _assign(form, passes, commit, last, direct)
    plan.undo.restores = [(ref[1], plan.slot_of[ref]) for ref in saved]
    for p in (*passes, commit, plan.undo):
        p.operands = {k for k, _ in (*p.stores, *p.restores)} | {n for kind, n in _needs(form, p) if kind == "a"}
        p.operands |= set(p.reloads.values())
        if p is passes[-1]:
            p.operands |= {f.source[1] for f in form.folds if f.source[0] == "a"}
        p.operands |= {n for (kind, n), _ in p.keeps if kind in "ao"}
    return plan


def _homes(form: Form, passes: list[Pass]) -> dict[Ref, int]:
    """For each value the pass that computes it."""
    return {("v", value): number for number, p in enumerate(passes) for value in _made(form, p)}


def _may_stop(form: Form) -> bool:
    """Whether a kernel may find a flag raised, or a value that it has no business with: not where all are integers."""
    kinds = {kind for node in form.nodes for kind in (*node.kinds, *node.sources, *node.targets)}
    return any(kind[0] in "fc" for kind in kinds) or any(not node.native for node in form.nodes)


def _is_last_reader(form: Form, passes: list[Pass], home: int, operand: int) -> bool:
    """Whether a native pass may overwrite an operand at once, since nobody reads later what was in it."""
    ref = ("a", operand)
    if passes[home].call is not None or any(fold.source == ref for fold in form.folds):
        return False
    return not any(ref in _needs(form, p) for p in passes[home + 1 :])


def _separate_folds(form: Form, passes: list[Pass], commit: Pass) -> None:
    """Have what only reductions need computed behind the last pass's stores, from what these have stored.

    A store waits for its cache line, and all later stores wait for it: those to scratch memory should not be among
    them.
    """
    home = passes[-1]
    if home.call is not None or not home.stores:
        return
    mine = set(_made(form, home))
    sources = {f.source for f in form.folds if f.source[0] == "v" and f.source[1] in mine}
    if not sources:
        return
    stored = {ref: k for k, ref in home.stores if form.operands[k].inner == "c"}
    needed = {ref for _, ref in (*home.stores, *commit.stores)}
    for number in reversed(home.nodes):
        if any(("v", value) in needed for value in form.nodes[number].outputs):
            needed |= _refs(form.nodes[number])
    rest = [n for n in home.nodes if not any(("v", value) in needed for value in form.nodes[n].outputs)]
    own = {("v", value) for n in rest for value in form.nodes[n].outputs}
    reads = {ref for n in rest for ref in _refs(form.nodes[n])} | sources
    again = {ref for ref in reads - own if ref[0] == "v" and ref[1] in mine}
    overwritten = {("a", k) for k, _ in home.stores}
    wanted = {ref for _, ref in commit.stores}
    if again <= stored.keys() - wanted and not reads & overwritten:
        home.nodes = [n for n in home.nodes if n not in rest]
        passes.append(Pass(nodes=rest, reloads={ref: stored[ref] for ref in sorted(again)}))


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
    return (ref for ref in _refs(node) if ref[0] == "v")


def _needs_load(form: Form, ref: Ref) -> bool:
    return ref[0] == "a" and form.operands[ref[1]].inner == "s"


def _is_row(form: Form, ref: Ref) -> bool:
    return form.operands[ref[1]].inner == "c"


def _made(form: Form, p: Pass) -> list[int]:
    numbers = p.nodes if p.call is None else [p.call]
    return [value for number in numbers for value in form.nodes[number].outputs]


def _needs(form: Form, p: Pass) -> set[Ref]:
    numbers = p.nodes if p.call is None else [p.call]
    refs = {ref for number in numbers for ref in _refs(form.nodes[number])}
    return (refs | {form.folds[number].source for number in p.sums}) - p.reloads.keys()


def _refs(node: Node) -> set[Ref]:
    return {ref for ref in (*node.inputs, node.where, node.old) if ref is not None}


def _direct(form: Form, p: Pass, operand: int, ref: Ref, uses: int) -> bool:
    """Whether a call may write its result to the operand itself."""
    assert p.call is not None
    folded = any(fold.source == ref for fold in form.folds)
    # A reduction of chunks reads its elements where they are stored, if these follow each other.
    return form.operands[operand].inner == "c" and uses == 1 and not (folded and (form.rows or form.pieces))


def _last_uses(form: Form, passes: list[Pass], commit: Pass) -> dict[Ref, int]:
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


def _assign(form: Form, passes: list[Pass], commit: Pass, last: dict[Ref, int], direct: set[Ref]) -> PassPlan:
    """Give every value that outlives its pass, or that a call reads or writes, a slot; slots are used again."""
    slots: list[str] = []
    slot_of: dict[Ref, int] = {}
    free: dict[str, list[int]] = {}
    called = {ref for p in passes if p.call is not None for ref in _needs(form, p)}
    kinds = {("v", v): t for node in form.nodes for v, t in zip(node.outputs, node.targets, strict=True)}
    folded = {fold.source for fold in form.folds}
    reloaded = {ref for p in passes for ref in p.reloads}

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
        p.keeps += [(ref, take(ref, kinds[ref])) for ref in p.reloads if ref in folded]
        for value in _made(form, p):
            ref = ("v", value)
            if ref in direct or ref in reloaded:
                continue
            if p.call is not None:
                take(ref, kinds[ref])
            elif last.get(ref, number) > number or ref in called:
                p.keeps.append((ref, take(ref, kinds[ref])))
        for ref, slot in slot_of.items():
            if last.get(ref, number) == number and slot not in free.get(slots[slot], ()):
                free.setdefault(slots[slot], []).append(slot)
    return PassPlan(passes, commit, Pass(), slots, slot_of)
