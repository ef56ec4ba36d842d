"""The code generator: from a loop's form to the source text of its kernel. A pure function; the text is the key.

A kernel works on units ``first`` to ``last`` of the iteration space: tiles of rows, or chunks of a reduction. In each
it runs *passes*: native passes are one vectorised loop over elements, calls run one of NumPy's inner loops. What passes
hand on to each other lies in slots of stack memory. Then it looks at the floating-point flags, and stops where one is
raised, with all that the unit has read as it was, so that somebody else can do the unit with all due reports.
"""

from __future__ import annotations

from functools import lru_cache

from numpy_dist.backends.compiled.casts import NUMBA, SIZE
from numpy_dist.backends.compiled.form import Form
from numpy_dist.backends.compiled.kernel import Kernel
from numpy_dist.backends.compiled.pass_source import PassWriter
from numpy_dist.backends.compiled.passes import Pass
from numpy_dist.backends.graph import Unsupported
from numpy_dist.backends.summation import CHUNK, ROWS

WIDEST = 8192  # elements of a unit that needs no scratch memory
SCRATCH_BYTES = 48 << 10
WINDOW = 256  # elements of a chunk that several native loops work on in turn
MOST_SLOTS = 40


@lru_cache(maxsize=4096)
def generate(form: Form) -> Kernel:
    """The kernel of a form.

    Raises
    ------
    Unsupported
        If it would need too much scratch memory.
    """
    return _KernelWriter(form).kernel()


class _KernelWriter(PassWriter):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        if form.rows and form.staged:
            raise Unsupported("results in place of operands beside reductions of rows")
        if len(self.plan.slots) > MOST_SLOTS:
            raise Unsupported("too many intermediate results")
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

    # -- the whole --------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        out = self.out
        self._arguments()
        out.add("clear_flags()")
        self._scalars()
        out.add("for unit in range(first, last):")
        out.depth += 1
        if self.form.rows:
            self._block_of_rows()
        else:
            self._begin_unit()
            self._windows()
            for number, _ in enumerate(self.form.folds):
                self._fold(number)
        out.add("if (flags | test_flags()) & mask != 0 or unfit:")
        out.depth += 1
        if self.plan.undo.restores:
            self._pieces([self.plan.undo])
        out.add("return unit + 1")
        out.depth -= 1
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
        elif form.across:
            unit = ("lines", "width")
        for name in unit:
            self.argument(name)
        for axis in range(1, form.outer):
            self.argument(f"n{axis}")
        for k, operand in enumerate(form.operands):
            if operand.base == k:
                self.word(f"p{k}")  # one behind the other, so that they can be set at once
        for k, operand in enumerate(form.operands):
            if operand.base == k:
                self.argument(f"p{k}")
                for axis in range(form.outer):
                    self.argument(f"d{k}_{axis}")
                if operand.inner == "s":
                    self.argument(f"t{k}")
        for name in ("zero", "nought"):  # which nobody sets
            self.argument(name)
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

    def _scalars(self) -> None:
        """Load them where flags are clear: what is computed of scalars alone is not computed in the loop."""
        for k, kind in enumerate(self.form.scalars):
            self.out.add(f"s{k} = {self.use(f'load_{kind}')}(block + {8 * self.word(f's{k}', 2)}, 0)")

    def _begin_unit(self) -> None:
        out = self.out
        out.add("flags, unfit = 0, False")
        if not self.form.folds:
            if self.form.across:
                out.add("tile = unit // lines")
                out.add("row = unit - tile * lines")
                out.add("start = tile * width")
            else:
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

    def _windows(self) -> None:
        """All passes over a part of the unit, then over the next: what one leaves in a cache is there for the next."""
        out, passes = self.out, self.plan.passes
        direct = any(fold.source not in self.plan.slot_of for fold in self.form.folds)
        if not self.form.folds or direct or len(passes) == 1 or any(p.call is not None for p in passes):
            self._pieces(passes)
            return
        out.add(f"for low in range(begin, end, {WINDOW}):")
        out.depth += 1
        out.add(f"high = min(low + {WINDOW}, end)")
        self._pieces(passes, "low", "high")
        out.depth -= 1

    def _pieces(self, passes: list[Pass], begin: str = "begin", end: str = "end") -> None:
        """Passes over all pieces of rows that the unit, or a part of it, consists of."""
        out, form = self.out, self.form
        depth = out.depth
        if form.pieces:
            out.add(f"position = {begin}")
            out.add(f"while position < {end}:")
            out.depth += 1
            out.add("done = position - begin")
            out.add("row = position // inner")
            out.add("start = position - row * inner")
            out.add(f"count = min(inner - start, {end} - position)")
        elif form.folds:
            out.add(f"row = {begin} // inner")
            out.add(f"start = {begin} - row * inner")
            out.add(f"count = {end} - {begin}")
            out.add(f"done = {begin} - begin")
        else:
            out.add("done = 0")
        self._rows({k for p in passes for k in p.operands})
        for p in passes:
            self._pass(p)
        if form.pieces:
            out.add("position += count")
        out.depth = depth

    def _fold(self, number: int) -> None:
        out, fold = self.out, self.form.folds[number]
        size = SIZE[fold.kind]
        slot = self.plan.slot_of.get(fold.source)
        address = self._memory(fold.source, fold.kind)[0] if slot is None else f"w{slot}"
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

    def _each(self, number: int, text: str) -> None:
        """Set each result of a block to an expression of what it was."""
        fetch, keep = self._total(number)
        self.out.add("for j in range(count):")
        if "x" in text.split():
            self.out.add(f"    x = {fetch}(b{number}, j)")
        self.out.add(f"    {keep}(b{number}, j, {text})")

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
