"""The source text of passes: native loops over elements, and calls of NumPy's inner loops."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numpy_dist.backends.compiled.casts import SIZE, cast, unfit
from numpy_dist.backends.compiled.form import Form, Node, native_text
from numpy_dist.backends.compiled.passes import Pass, PassPlan, plan_passes
from numpy_dist.backends.graph import Ref
from numpy_dist.ir.ops import COPY


@dataclass
class _Text:
    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)


class PassWriter:
    """Writes the passes of a form's kernel, and keeps account of the words and functions that they use.

    Attributes
    ----------
    plan : PassPlan
    words : dict
        Name -> number of the word in the argument block.
    count : int
        Words so far.
    calls : list
        (ufunc, dtypes) of the inner loops.
    names : set of str
        Functions to be imported.
    outputs : dict
        Operands that are stored, numbered.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.plan: PassPlan = plan_passes(form)
        self.outputs = {k: number for number, (k, _) in enumerate(form.stores)}
        self.words: dict[str, int] = {}
        self.count = 0
        self.calls: list[tuple[np.ufunc, tuple[np.dtype, ...]]] = []
        self.names: set[str] = set()
        self.out = _Text()

    # -- words of the block -----------------------------------------------------------------------------------------

    def word(self, name: str, count: int = 1) -> int:
        """The number of a word, reserved at first sight."""
        if name not in self.words:
            self.words[name] = self.count
            self.count += count
        return self.words[name]

    def use(self, name: str) -> str:
        """A function of `memory`, `sums` or `intrinsics`, imported."""
        self.names.add(name)
        return name

    def use_for(self, text: str) -> None:
        """Import the functions of `memory` that an operation's expression calls."""
        for name in ("choose", "opaque"):
            if f"{name}(" in text:
                self.use(name)

    def argument(self, name: str) -> None:
        """Load a word of the block into a variable of the same name."""
        self.use("load_i8")
        self.out.add(f"{name} = load_i8(block, {self.word(name)})")

    def _pass(self, p: Pass) -> None:
        if p.call is not None:
            self._call(self.form.nodes[p.call], p)
        elif p.nodes or p.keeps or p.stores or p.sums or p.restores:
            self._native(p)

    def _rows(self, operands: set[int]) -> None:
        """Addresses of the piece's first elements."""
        out, form = self.out, self.form
        bases = sorted({form.operands[k].base for k in operands})
        if form.outer > 1:
            rest = "row"
            for axis in range(form.outer - 1, 0, -1):
                out.add(f"q{axis} = {rest} // n{axis}")
                out.add(f"i{axis} = {rest} - q{axis} * n{axis}")
                rest = f"q{axis}"
            out.add(f"i0 = {rest}")
        elif form.outer == 1:
            out.add("i0 = row")
        for k in bases:
            operand = form.operands[k]
            terms = [f"p{k}", *(f"i{axis} * d{k}_{axis}" for axis in range(form.outer))]
            if operand.inner != "0":
                terms.append(f"start * {SIZE[operand.kind] if operand.inner == 'c' else f't{k}'}")
            out.add(f"r{k} = {' + '.join(terms)}")

    # -- native passes ----------------------------------------------------------------------------------------------

    def _native(self, p: Pass) -> None:
        out = self.out
        out.add("for j in range(count):")
        out.depth += 1
        seen: dict[Ref, str] = {}
        for ref, k in p.reloads.items():
            seen[ref] = self._loaded(f"{ref[0]}{ref[1]}", k)
        for number in p.nodes:
            self._node(self.form.nodes[number], seen)
        for ref, slot in p.keeps:
            kind = self.plan.slots[slot]
            value = self._value(("a", ref[1]) if ref[0] == "o" else ref, seen)
            out.add(f"{self.use(f'keep_{kind}_{slot}')}(w{slot}, done + j, {value})")
        for k, ref in p.stores:
            self._store(k, self._value(ref, seen))
        for k, slot in p.restores:
            self._store(k, f"{self.use(f'fetch_{self.plan.slots[slot]}_{slot}')}(w{slot}, done + j)")
        for number in p.sums:
            self._add_row(number, self._value(self.form.folds[number].source, seen))
        out.depth -= 1

    def _place(self, k: int) -> str:
        """Address and index of the present element of an operand."""
        operand = self.form.operands[k]
        if operand.inner == "c":
            shift = f" + {operand.shift}" if operand.shift > 0 else f" - {-operand.shift}" if operand.shift else ""
            return f"r{operand.base}, j{shift}"
        return f"r{k}, 0" if operand.inner == "0" else f"r{k} + j * t{k}, 0"

    def _store(self, k: int, value: str) -> None:
        """Store the present element of an operand."""
        store = self.use(f"store_{self.form.operands[k].kind}_{self.outputs[k]}")
        self.out.add(f"{store}({self._place(k)}, {value})")

    def _loaded(self, name: str, k: int) -> str:
        """A variable that is set to the present element of an operand."""
        kind = self.form.operands[k].kind
        load = self.use(f"load_{kind}" if k not in self.outputs else f"read_{kind}_{self.outputs[k]}")
        self.out.add(f"{name} = {load}({self._place(k)})")
        return name

    def _value(self, ref: Ref, seen: dict[Ref, str]) -> str:
        """A variable that holds a value for the present element."""
        name = seen.get(ref)
        if name is None:
            kind, number = ref
            if kind == "s":
                return f"s{number}"
            name = seen[ref] = f"{kind}{number}"
            if kind == "a":
                self._loaded(name, number)
            else:
                slot = self.plan.slot_of[ref]
                load = self.use(f"fetch_{self.plan.slots[slot]}_{slot}")
                self.out.add(f"{name} = {load}(w{slot}, done + j)")
        return name

    def _node(self, node: Node, seen: dict[Ref, str]) -> None:
        out = self.out
        (value,) = node.outputs
        args = []
        for position, (ref, source, kind) in enumerate(zip(node.inputs, node.sources, node.kinds, strict=False)):
            arg = self._value(ref, seen)
            if source != kind:
                self._test(arg, source, kind)
                out.add(f"x{value}_{position} = {cast(arg, source, kind)}")
                arg = f"x{value}_{position}"
            args.append(arg)
        if node.op is COPY:
            self._test(args[0], *node.kinds)
        text = node.text(args)
        assert text is not None
        self.use_for(text)
        name = seen["v", value] = f"v{value}"
        if node.kinds[-1] != node.targets[0]:
            out.add(f"y{value} = {text}")
            self._test(f"y{value}", node.kinds[-1], node.targets[0])
            text = cast(f"y{value}", node.kinds[-1], node.targets[0])
        if node.where is not None and node.old is not None:
            text = f"choose({self._value(node.where, seen)}, {text}, {self._value(node.old, seen)}, zero, nought)"
            self.use_for(text)
        out.add(f"{name} = {text}")

    def _test(self, value: str, source: str, target: str) -> None:
        """Note a value whose cast is NumPy's own: the interpreter has to do the unit."""
        text = unfit(value, source, target)
        if text is not None:
            self.out.add(f"unfit |= {text}")

    # -- calls of NumPy's loops -------------------------------------------------------------------------------------

    def _loop(self, ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> str:
        """Names of a loop's function and data among the words."""
        call = (ufunc, dtypes)
        if call not in self.calls:
            self.calls.append(call)
        number = self.calls.index(call)
        function, data = self.word(f"call{number}"), self.word(f"data{number}")
        return f"load_i8(block, {function}), args, extent, steps, load_i8(block, {data})"

    def _call(self, node: Node, p: Pass) -> None:
        out = self.out
        assert node.op.ufunc is not None
        places: list[tuple[str, int]] = []
        for ref, kind in zip(node.inputs, node.kinds, strict=False):
            places.append(self._memory(ref, kind))
        for value, kind in zip(node.outputs, node.kinds[node.op.nin :], strict=True):
            direct = dict((r, k) for k, r in p.stores).get(("v", value))
            places.append(self._memory(("v", value), kind) if direct is None else (f"r{direct}", SIZE[kind]))
        out.add("flags |= test_flags()")  # many loops clear the flags when they end
        self._put(*places)
        out.add("put_i8(extent, 0, count)")
        out.add(f"call_loop({self._loop(node.op.ufunc, node.dtypes)})")

    def _put(self, *places: tuple[str, int]) -> None:
        """Note the addresses and strides of a loop's operands for a call."""
        for position, (address, step) in enumerate(places):
            self.out.add(f"put_i8(args, {position}, {address})")
            self.out.add(f"put_i8(steps, {position}, {step})")

    def _memory(self, ref: Ref, kind: str) -> tuple[str, int]:
        """Address and stride of a value that lies in memory."""
        slot = self.plan.slot_of.get(ref)
        if slot is not None:
            return f"w{slot} + done * {SIZE[kind]}", SIZE[kind]
        which, number = ref
        if which == "s":
            return f"block + {8 * self.word(f's{number}', 2)}", 0
        if which == "v":  # a call has stored it
            (number,) = (k for k, stored in self.form.stores if stored == ref)
        operand = self.form.operands[number]
        shift = f" + {operand.shift * SIZE[kind]}" if operand.shift else ""
        return f"r{operand.base}{shift}", SIZE[kind] if operand.inner == "c" else 0

    def _total(self, number: int) -> tuple[str, str]:
        """Functions that load and store a fold's results; no other access is to that memory."""
        slot, kind = len(self.plan.slots) + number, self.form.folds[number].kind
        return self.use(f"fetch_{kind}_{slot}"), self.use(f"keep_{kind}_{slot}")

    def _add_row(self, number: int, value: str) -> None:
        """Put one element to the result of its column."""
        fold = self.form.folds[number]
        fetch, keep = self._total(number)
        self.out.add(f"z{number} = {fetch}(b{number}, j)")
        text = native_text(fold.ufunc, (fold.kind, fold.kind), [f"z{number}", value])
        self.out.add(f"{keep}(b{number}, j, {text})")
