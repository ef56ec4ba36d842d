"""The code generator: from a loop's form to the source text of its kernel. A pure function; the text is the key.

A kernel works on units ``first`` to ``last`` of the iteration space: tiles of rows, or chunks of a reduction. In each
it runs *passes*: native passes are one vectorised loop over elements, calls run one of NumPy's inner loops. What passes
hand on to each other lies in slots of stack memory. Then it looks at the floating-point flags, and stops before
anything is overwritten that the unit has read, so that somebody else can do the unit with all due reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from numpy_dist.backends.compiled.expressions import NUMBA, SIZE, cast, expression, unfit
from numpy_dist.backends.compiled.form import Form, Node, NotCompiled, Ref
from numpy_dist.backends.compiled.passes import Pass, Plan, plan_passes
from numpy_dist.backends.summation import CHUNK, ROWS
from numpy_dist.ir.ops import COPY, SELECT

WIDEST = 8192  # elements of a unit that needs no scratch memory
SCRATCH_BYTES = 48 << 10
MOST_SLOTS = 40


@dataclass
class Kernel:
    """A kernel's source and what its argument block holds.

    Attributes
    ----------
    text : str
    width : int
        Most elements of a unit (reductions: `CHUNK`).
    words : dict
        Name -> number of the word in the block; names as in the source.
    calls : list
        (ufunc, dtypes) of the inner loops, in the order of their words.
    length : int
        Words of the block.
    """

    text: str
    width: int
    words: dict[str, int]
    calls: list[tuple[np.ufunc, tuple[np.dtype, ...]]]
    length: int


@lru_cache(maxsize=4096)
def generate(form: Form) -> Kernel:
    """The kernel of a form.

    Raises
    ------
    NotCompiled
        If it would need too much scratch memory.
    """
    return _Writer(form).kernel()


@dataclass
class _Text:
    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)


class _Writer:
    def __init__(self, form: Form) -> None:
        self.form = form
        self.plan: Plan = plan_passes(form)
        self.words: dict[str, int] = {}
        self.count = 0
        self.calls: list[tuple[np.ufunc, tuple[np.dtype, ...]]] = []
        self.names: set[str] = set()
        self.out = _Text()
        if form.rows and form.staged:
            raise NotCompiled("results in place of operands beside reductions of rows")
        if len(self.plan.slots) > MOST_SLOTS:
            raise NotCompiled("too many intermediate results")
        self.width = self._width()

    def _width(self) -> int:
        if self.form.folds and not self.form.rows:
            return CHUNK
        if not self.plan.slots:
            return WIDEST
        element = sum(SIZE[kind] for kind in self.plan.slots)
        width = 2048
        while width > 256 and width * element > SCRATCH_BYTES:
            width //= 2
        return width

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

    def argument(self, name: str) -> None:
        """Load a word of the block into a variable of the same name."""
        self.use("load_i8")
        self.out.add(f"{name} = load_i8(block, {self.word(name)})")

    # -- the whole --------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        out = self.out
        self._arguments()
        out.add("clear_flags()")
        out.add("for unit in range(first, last):")
        out.depth += 1
        if self.form.rows:
            self._block_of_rows()
        else:
            self._begin_unit()
            self._pieces(self.plan.passes)
            for number, _ in enumerate(self.form.folds):
                self._fold(number)
        out.add("if (flags | test_flags()) & mask != 0 or unfit:")
        out.add("    return unit + 1")
        if self.plan.commit.stores and not self.form.rows:
            self._pieces([self.plan.commit])
        out.depth -= 1
        out.add("return 0")
        return Kernel(self._module(), self.width, self.words, self.calls, self.count)

    def _module(self) -> str:
        imports = sorted(self.names)
        intrinsics = ["clear_flags", "test_flags", *(n for n in ("call_loop", "scratch") if n in self.names)]
        sums = [n for n in imports if "_sum_" in n]
        memory = [n for n in imports if n not in ("call_loop", "scratch", *sums)]
        head = [
            "from math import nan, sqrt",
            f"from numba import {', '.join(NUMBA.values())}",
            f"from numpy_dist.backends.compiled.intrinsics import {', '.join(sorted(intrinsics))}",
            f"from numpy_dist.backends.compiled.memory import {', '.join(memory)}",
            *([f"from numpy_dist.backends.compiled.sums import {', '.join(sums)}"] if sums else []),
            "",
            "",
            "def kernel(block, first, last):",
        ]
        return "\n".join(head + self.out.lines) + "\n"

    def _arguments(self) -> None:
        form = self.form
        self.argument("mask")
        self.argument("inner")
        unit: tuple[str, ...] = ("tiles", "width")
        if form.rows:
            unit += ("length", "blocks", "middle")
        elif form.folds:
            unit = ("total", "length", "chunks", "together")
        for name in unit:
            self.argument(name)
        for axis in range(1, form.outer):
            self.argument(f"n{axis}")
        for k, operand in enumerate(form.operands):
            if operand.base == k:
                self.argument(f"p{k}")
                for axis in range(form.outer):
                    self.argument(f"d{k}_{axis}")
                if operand.inner == "s":
                    self.argument(f"t{k}")
        for k, kind in enumerate(form.scalars):
            place = self.word(f"s{k}", 2)
            self.out.add(f"s{k} = {self.use(f'load_{kind}')}(block + {8 * place}, 0)")
        if any(node.where is not None for node in form.nodes):
            self.out.add(f"never = {self.use('load_b1')}(block + {8 * self.word('never')}, 0)")
        for slot, kind in enumerate(self.plan.slots):
            self.out.add(f"w{slot} = {self.use('scratch')}({self.width * SIZE[kind]})")
        if any(p.call is not None for p in self.plan.passes) or form.folds:
            for name in ("args", "steps"):
                self.out.add(f"{name} = {self.use('scratch')}(128)")
            self.out.add("extent = scratch(8)")
            self.use("put_i8")
            self.use("call_loop")
        for number, fold in enumerate(form.folds):
            self.argument(f"f{number}")
            self.argument(f"g{number}")
            self.argument(f"partial{number}")
            for name in ("initial", "few") if fold.native and not form.rows else ("initial",):
                place = self.word(f"{name}{number}", 2)
                self.out.add(f"{name}{number} = {self.use(f'load_{fold.kind}')}(block + {8 * place}, 0)")

    def _begin_unit(self) -> None:
        out = self.out
        out.add("flags, unfit = 0, False")
        if not self.form.folds:
            out.add("row = unit // tiles")
            out.add("start = (unit - row * tiles) * width")
            out.add("count = min(width, inner - start)")
            return
        out.add("if chunks == 1:")
        out.add("    begin = unit * together * length")
        out.add("    end = min(begin + together * length, total)")
        out.add("else:")
        out.add("    result = unit // chunks")
        out.add(f"    begin = result * length + (unit - result * chunks) * {CHUNK}")
        out.add(f"    end = min(begin + {CHUNK}, (result + 1) * length)")

    def _pieces(self, passes: list[Pass]) -> None:
        """Passes over all pieces of rows that the unit consists of."""
        out, form = self.out, self.form
        depth = out.depth
        if form.pieces:
            out.add("position = begin")
            out.add("while position < end:")
            out.depth += 1
            out.add("done = position - begin")
            out.add("row = position // inner")
            out.add("start = position - row * inner")
            out.add("count = min(inner - start, end - position)")
        elif form.folds:
            out.add("row = begin // inner")
            out.add("start = begin - row * inner")
            out.add("count = end - begin")
        if not form.pieces:
            out.add("done = 0")
        self._rows({k for p in passes for k in p.operands})
        for p in passes:
            self._pass(p)
        if form.pieces:
            out.add("position += count")
        out.depth = depth

    def _pass(self, p: Pass) -> None:
        if p.call is not None:
            self._call(self.form.nodes[p.call], p)
        elif p.nodes or p.keeps or p.stores or p.sums:
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
        for number in p.nodes:
            self._node(self.form.nodes[number], seen)
        for ref, slot in p.keeps:
            kind = self.plan.slots[slot]
            out.add(f"{self.use(f'keep_{kind}_{slot}')}(w{slot}, done + j, {self._value(ref, seen)})")
        for position, (k, ref) in enumerate(p.stores):
            store = self.use(f"store_{self.form.operands[k].kind}_{position}")
            out.add(f"{store}({self._place(k)}, {self._value(ref, seen)})")
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

    def _value(self, ref: Ref, seen: dict[Ref, str]) -> str:
        """A variable that holds a value for the present element."""
        name = seen.get(ref)
        if name is None:
            kind, number = ref
            if kind == "s":
                return f"s{number}"
            name = seen[ref] = f"{kind}{number}"
            if kind == "a":
                load = self.use(f"load_{self.form.operands[number].kind}")
                self.out.add(f"{name} = {load}({self._place(number)})")
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
        name = seen["v", value] = f"v{value}"
        if node.kinds[-1] != node.targets[0]:
            out.add(f"y{value} = {text}")
            self._test(f"y{value}", node.kinds[-1], node.targets[0])
            text = cast(f"y{value}", node.kinds[-1], node.targets[0])
        if node.where is not None and node.old is not None:
            # The optimiser must not see that this is the condition on which inputs were made harmless.
            text = f"choose({self._value(node.where, seen)} ^ never, {text}, {self._value(node.old, seen)})"
        if node.op is SELECT or node.old is not None:
            self.use("choose")
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
        places: list[tuple[str, Any]] = []
        for ref, kind in zip(node.inputs, node.kinds, strict=False):
            places.append(self._memory(ref, kind))
        for value, kind in zip(node.outputs, node.kinds[node.op.nin :], strict=True):
            direct = dict((r, k) for k, r in p.stores).get(("v", value))
            places.append(self._memory(("v", value), kind) if direct is None else (f"r{direct}", SIZE[kind]))
        out.add("flags |= test_flags()")  # many loops clear the flags when they end
        self._put(*places)
        out.add("put_i8(extent, 0, count)")
        out.add(f"call_loop({self._loop(node.op.ufunc, node.dtypes)})")

    def _put(self, *places: tuple[str, Any]) -> None:
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
        assert which == "a"
        operand = self.form.operands[number]
        shift = f" + {operand.shift * SIZE[kind]}" if operand.shift else ""
        return f"r{operand.base}{shift}", SIZE[kind] if operand.inner == "c" else 0

    def _fold(self, number: int) -> None:
        out, fold = self.out, self.form.folds[number]
        size = SIZE[fold.kind]
        address, _ = (
            self._memory(fold.source, fold.kind)
            if self.form.pieces is False
            else (f"w{self.plan.slot_of[fold.source]}", 0)
        )
        put, peek = self.use(f"put_{fold.kind}"), self.use(f"peek_{fold.kind}")
        loop = f"f{number}, args, extent, steps, g{number}"
        if not fold.native:
            out.add("flags |= test_flags()")
        out.add("part = length if chunks == 1 else end - begin")
        out.add("for o in range((end - begin) // part):")
        out.depth += 1
        out.add(f"total_at = partial{number} + (unit * together + o) * {size}")
        out.add(f"source_at = {address} + o * part * {size}")
        if fold.native:
            add = self.use(f"{'far' if address.startswith('r') else 'near'}_sum_{fold.kind}")
            out.add(f"sum{number} = initial{number} + {add}(source_at, part, few{number})")
            out.add(f"{put}(total_at, 0, sum{number})")
            out.add(f"if sum{number} != sum{number}:")  # of several NaN NumPy's loop has one of its own
            out.depth += 1
            out.add("flags |= test_flags()")
        if fold.starts_with_first:
            out.add(f"{put}(total_at, 0, {peek}(source_at, 0))")
            out.add(f"source_at += {size}")
            out.add("put_i8(extent, 0, part - 1)")
        else:
            out.add(f"{put}(total_at, 0, initial{number})")
            out.add("put_i8(extent, 0, part)")
        self._put(("total_at", 0), ("source_at", size), ("total_at", 0))
        out.add(f"call_loop({loop})")
        out.depth -= 2 if fold.native else 1

    # -- reductions of rows -----------------------------------------------------------------------------------------

    def _block_of_rows(self) -> None:
        """A unit that puts the rows of a block together, in some columns; its results lie where the block's belong."""
        out, form = self.out, self.form
        out.add("flags, unfit = 0, False")
        out.add("across = unit // tiles")
        out.add("number = across // middle")
        out.add("result = number // blocks")
        out.add(f"begin = result * length + (number - result * blocks) * {ROWS}")
        out.add(f"end = min(begin + {ROWS}, (result + 1) * length)")
        out.add("start = (unit - across * tiles) * width")
        out.add("count = min(width, inner - start)")
        out.add("done = 0")
        for number, fold in enumerate(form.folds):
            out.add(f"b{number} = partial{number} + (across * inner + start) * {SIZE[fold.kind]}")
            if not fold.starts_with_first:
                self._each(number, f"initial{number}")
        out.add("for place in range(begin, end):")
        out.depth += 1
        out.add("row = place * middle + across - number * middle")
        passes = [*self.plan.passes, self.plan.commit] if self.plan.commit.stores else self.plan.passes
        self._rows({k for p in passes for k in p.operands})
        for p in passes:
            self._pass(p)
        for number, fold in enumerate(form.folds):
            if not fold.native:
                self._call_row(number)
        out.depth -= 1
        for number, fold in enumerate(form.folds):
            if fold.native and fold.kind[0] == "f":
                self._each(number, f"x if x == x else {NUMBA[fold.kind]}(nan)")  # as `summation.one_nan`

    def _total(self, number: int) -> tuple[str, str]:
        """Functions that load and store a fold's results; no other access is to that memory."""
        slot, kind = len(self.plan.slots) + number, self.form.folds[number].kind
        return self.use(f"fetch_{kind}_{slot}"), self.use(f"keep_{kind}_{slot}")

    def _each(self, number: int, text: str) -> None:
        """Set each result of a block to an expression of what it was."""
        fetch, keep = self._total(number)
        self.out.add("for j in range(count):")
        if "x" in text.split():
            self.out.add(f"    x = {fetch}(b{number}, j)")
        self.out.add(f"    {keep}(b{number}, j, {text})")

    def _add_row(self, number: int, value: str) -> None:
        """Put one element to the result of its column."""
        fold = self.form.folds[number]
        fetch, keep = self._total(number)
        self.out.add(f"z{number} = {fetch}(b{number}, j)")
        text = expression(fold.ufunc.__name__, fold.kind, [f"z{number}", value])
        self.out.add(f"{keep}(b{number}, j, {text})")

    def _call_row(self, number: int) -> None:
        """Have NumPy's loop put one row to the results."""
        out, fold = self.out, self.form.folds[number]
        size = SIZE[fold.kind]
        source, _ = self._memory(fold.source, fold.kind)
        depth = out.depth
        if fold.starts_with_first:
            put, peek = self.use(f"put_{fold.kind}"), self.use(f"peek_{fold.kind}")
            out.add("if place == begin:")
            out.add("    for j in range(count):")
            out.add(f"        {put}(b{number}, j, {peek}({source}, j))")
            out.add("else:")
            out.depth += 1
        out.add("flags |= test_flags()")
        self._put((f"b{number}", size), (source, size), (f"b{number}", size))
        out.add("put_i8(extent, 0, count)")
        out.add(f"call_loop(f{number}, args, extent, steps, g{number})")
        out.depth = depth
