"""The code generator: from a form to the source text of its kernel. A pure function; the text is the key.

Every kernel takes one argument, by value: a block of words (`DeviceKernel.words` names them). Element-wise kernels walk
rows of the iteration space with blocks of 256 threads, some or all of them along a row. Kernels with reductions visit
every element once, too: each *unit* is a part of a result, folded by one thread, or by a block whose threads meet in a
tree.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

from numpy_dist.backends.cuda.casts import cast, ctype, wide
from numpy_dist.backends.cuda.header import HEADER
from numpy_dist.backends.cuda.lowering import DeviceForm
from numpy_dist.backends.graph import Unsupported

THREADS = 256
OPTIONS = ("-fmad=false", "-std=c++17")  # what NVRTC is given beside the architecture: nothing is contracted
_CALL = re.compile(r"\b(?!nd_)[a-z]\w*\(")  # of a function of CUDA's library, which is long
MOST_WORDS = 480  # the arguments of a kernel may take 4 KiB


@dataclass
class DeviceKernel:
    """A kernel's source, its function's name, and the numbers of the words of its argument block by name."""

    text: str
    name: str
    words: dict[str, int]
    length: int
    elements: int = 1  # of a row that a thread of an element-wise kernel has at hand at once


@lru_cache(maxsize=4096)
def generate(form: DeviceForm) -> DeviceKernel:
    """The kernel of a form.

    Raises
    ------
    Unsupported
        If it has too many arguments.
    """
    return _DeviceWriter(form).kernel()


def _at_once(form: DeviceForm) -> int:
    """How many elements a thread has at hand: one of large loops, whose values would not fit registers.

    Measured on an H100: two keep its memory busy, and four where threads fold what they read.
    """
    calls = sum(len(_CALL.findall(text)) for node in form.nodes for text in node.texts)
    if calls or len(form.nodes) > 24:
        return 1
    return 4 if form.folds and len(form.operands) <= 2 else 2


class _DeviceWriter:
    def __init__(self, form: DeviceForm) -> None:
        self.form = form
        self.words: dict[str, int] = {}
        self.length = 0
        self.lines: list[str] = []
        self.depth = 1
        self.index = "unsigned int" if form.small else "nd_i8"
        self.at_once = _at_once(form)

    def add(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def word(self, name: str, count: int = 1) -> int:
        """The number of a word, reserved at first sight."""
        if name not in self.words:
            self.words[name] = self.length
            self.length += count
        return self.words[name]

    def argument(self, name: str) -> str:
        return f"a.w[{self.word(name)}]"

    def kernel(self) -> DeviceKernel:
        self._arguments()
        if self.form.folds:
            self._reducing()
        else:
            self._element_wise()
        if self.length > MOST_WORDS:
            raise Unsupported("too many arguments")
        body = "\n".join(self.lines)
        struct = f"struct nd_args {{ nd_i8 w[{self.length}]; }};"
        name = "nd_" + hashlib.sha256((struct + body).encode()).hexdigest()[:24]
        struct = struct.replace("nd_args", f"{name}_args")
        text = f"{HEADER}\n{struct}\nND_KERNEL {name}(const {name}_args a) {{\n{body}\n}}\n"
        return DeviceKernel(text, name, self.words, self.length, self.at_once)

    def _arguments(self) -> None:
        for axis in range(self.form.ndim):
            self.add(f"const nd_i8 n{axis} = {self.argument(f'n{axis}')};")
        for k, _ in enumerate(self.form.operands):
            self.add(f"const nd_i8 p{k} = {self.argument(f'p{k}')};")
            for axis in range(self.form.ndim):
                self.add(f"const nd_i8 d{k}_{axis} = {self.argument(f'd{k}_{axis}')};")
        for k, kind in enumerate(self.form.scalars):
            loaded = f"nd_scalar<{ctype(kind)}>(a.w + {self.word(f's{k}', 2)})"
            self.add(f"const {ctype(wide(kind))} s{k} = {f'nd_single({loaded})' if kind == 'f2' else loaded};")

    # -- element-wise kernels ---------------------------------------------------------------------------------------

    def _element_wise(self) -> None:
        """Threads along the inner axis, and rows above them; outer axes are worked out once a row.

        A thread first loads what it needs of several elements, so that it waits for memory once, and then walks on to
        the next row: blocks have some rows that are neighbours.
        """
        inner, count = self.form.ndim - 1, self.at_once
        self.add(f"const nd_i8 rows = {self.argument('rows')};")
        self.add(f"const int shift = (int){self.argument('shift')};  // log2 of the threads along a row")
        self.add(f"const nd_i8 chunk = {self.argument('chunk')};")
        self.add("ND_BEGIN")
        self.add("const int along = nd_thread & ((1 << shift) - 1), above = nd_thread >> shift;")
        self.add(f"const {self.index} step = ({self.index})1 << shift;")
        self.add(f"const {self.index} wide = ({self.index})nd_grid_x * {count} << shift;")
        self.add(f"const int abreast = {THREADS} >> shift;")
        self.add("const nd_i8 down = nd_grid_y * abreast * chunk;")
        self.add("for (nd_i8 top = nd_block_y * abreast * chunk + above; top < rows; top += down)")
        self.add("for (nd_i8 row = top, end = top + chunk * abreast; row < rows && row < end; row += abreast) {")
        self.depth += 1
        self._axes("row", inner)
        for k, _ in enumerate(self.form.operands):
            terms = [f"p{k}", *(f"i{axis} * d{k}_{axis}" for axis in range(inner))]
            self.add(f"const nd_i8 r{k} = {' + '.join(terms)};")
        first = f"({self.index})(nd_block_x * {count} << shift) + along"
        self.add(f"for ({self.index} i = {first}; i < ({self.index})n{inner}; i += wide) {{")
        self.depth += 1
        places = [f"r{k}{self._along(k, inner)}" for k, _ in enumerate(self.form.operands)]
        wanted = self._wanted()
        for k in wanted:
            self.add(f"{ctype(self.form.operands[k])} l{k}[{count}];")
        self._each(inner)
        for k in wanted:
            self.add(f"l{k}[e] = {self._loaded(k, places[k])};")
        self._close(2)
        self._each(inner)
        self._elements(places, [f"l{k}[e]" for k, _ in enumerate(self.form.operands)])
        self._close(2)
        self._close(2)
        self.add("ND_END")

    def _each(self, inner: int) -> None:
        """Begin what is done for each element that a thread has at hand."""
        self.add("#pragma unroll")
        self.add(f"for (int e = 0; e < {self.at_once}; ++e) {{")
        self.depth += 1
        self.add(f"const {self.index} i{inner} = i + e * step;")
        self.add(f"if (i{inner} < ({self.index})n{inner}) {{")
        self.depth += 1

    def _along(self, operand: int, inner: int) -> str:
        """What is added to the address of a row for an element of it."""
        step = self.form.steps[operand]
        if step is None:
            return f" + (nd_i8)i{inner} * d{operand}_{inner}"
        return f" + (nd_i8)i{inner} * {step}" if step else ""

    def _axes(self, number: str, count: int) -> None:
        """The indices of the first axes, of which this is the number in C order."""
        if count == 1:
            self.add(f"const nd_i8 i0 = {number};")
        elif count > 1:
            self.add(f"{self.index} rest = ({self.index}){number};")
            for axis in range(count - 1, 0, -1):
                self.add(f"const {self.index} q{axis} = rest / ({self.index})n{axis};")
                self.add(f"const nd_i8 i{axis} = rest - q{axis} * ({self.index})n{axis};")
                self.add(f"rest = q{axis};")
            self.add("const nd_i8 i0 = rest;")

    # -- elements ---------------------------------------------------------------------------------------------------

    def _wanted(self) -> list[int]:
        """The operands that are read."""
        wanted = {r for n in self.form.nodes for r in (*n.inputs, n.where, *n.olds) if r is not None and r[0] == "a"}
        wanted |= {f.source for f in self.form.folds if f.source[0] == "a"}
        return sorted(number for _, number in wanted)

    def _loaded(self, operand: int, place: str) -> str:
        packed = "_packed" if operand in self.form.packed else ""
        return f"nd_load{packed}<{ctype(self.form.operands[operand])}>({place})"

    def _elements(self, places: list[str], loaded: list[str]) -> None:
        """Everything that is computed and stored for one element: `places` are addresses, `loaded` values."""
        for k in self._wanted():
            kind = self.form.operands[k]
            self.add(f"const {ctype(wide(kind))} a{k} = {f'nd_single({loaded[k]})' if kind == 'f2' else loaded[k]};")
        for node in self.form.nodes:
            args = []
            for position, (ref, source, kind) in enumerate(zip(node.inputs, node.sources, node.kinds, strict=True)):
                name = f"{ref[0]}{ref[1]}"
                if source != kind:
                    made = f"x{node.outputs[0]}_{position}"
                    self.add(f"const {ctype(wide(kind))} {made} = {cast(name, source, kind)};")
                    name = made
                args.append(name)
            for text, make, number, target, old in zip(
                node.texts, node.makes, node.outputs, node.targets, node.olds, strict=True
            ):
                value = text.format(*args)
                if make != target:
                    self.add(f"const {ctype(wide(make))} y{number} = {value};")
                    value = cast(f"y{number}", make, target)
                if node.where is not None and old is not None:
                    value = f"{node.where[0]}{node.where[1]} ? {value} : {old[0]}{old[1]}"
                self.add(f"const {ctype(wide(target))} v{number} = {value};")
        for k, (letter, number), kind in self.form.stores:
            value = f"nd_half({letter}{number})" if kind == "f2" else f"{letter}{number}"
            packed = "_packed" if k in self.form.packed else ""
            self.add(f"nd_store{packed}<{ctype(kind)}>({places[k]}, {value});")

    # -- reductions -------------------------------------------------------------------------------------------------

    def _reducing(self) -> None:
        """Units: parts of `span` rows of each result; one thread each, or a block each (`shared` is 1)."""
        folds = list(enumerate(self.form.folds))
        for name in ("outer", "length", "inner", "span", "parts", "shared"):
            self.add(f"const nd_i8 {name} = {self.argument(name)};")
        self.add("const nd_i8 units = outer * parts * inner;")
        for k, fold in folds:
            kind = ctype(wide(fold.kind))
            loaded = f"nd_scalar<{ctype(fold.kind)}>(a.w + {self.word(f'neutral{k}', 2)})"
            self.add(f"const {kind} e{k} = {f'nd_single({loaded})' if fold.kind == 'f2' else loaded};")
            self.add(f"ND_SHARED {kind} t{k}[{THREADS}];")
        self.add(f"const nd_i8 count = shared ? units : (units + {THREADS - 1}) / {THREADS};")
        self.add("for (nd_i8 block = nd_block_x; block < count; block += nd_grid_x) {")
        self.depth += 1
        self.add("ND_BEGIN")
        self.add(f"const nd_i8 unit = shared ? block : block * {THREADS} + nd_thread;")
        for k, _ in folds:
            self.add(f"{ctype(wide(self.form.folds[k].kind))} f{k} = e{k};")
        self.add("if (unit < units) {")
        self.depth += 1
        self.add("const nd_i8 column = unit % inner, part = unit / inner % parts, lead = unit / inner / parts;")
        self.add("const nd_i8 stop = (part + 1) * span < length ? (part + 1) * span : length;")
        self.add(f"const nd_i8 first = part * span + (shared ? nd_thread : 0), step = shared ? {THREADS} : 1;")
        count, operands = self.at_once, range(len(self.form.operands))
        self.add(f"for (nd_i8 next = first; next < stop; next += {count} * step) {{")
        self.depth += 1
        for k in operands:
            self.add(f"nd_i8 at{k}[{count}];")
        for k in self._wanted():
            self.add(f"{ctype(self.form.operands[k])} l{k}[{count}];")
        each = f"for (int e = 0; e < {count}; ++e) if (next + e * step < stop) {{"
        self.add("#pragma unroll")
        self.add(each)
        self.depth += 1
        self._axes("((lead * length + next + e * step) * inner + column)", self.form.ndim)
        for k in operands:
            terms = [f"p{k}", *(f"i{axis} * d{k}_{axis}" for axis in range(self.form.ndim))]
            self.add(f"at{k}[e] = {' + '.join(terms)};")
        for k in self._wanted():
            self.add(f"l{k}[e] = {self._loaded(k, f'at{k}[e]')};")
        self._close(1)
        self.add("#pragma unroll")
        self.add(each)
        self.depth += 1
        self._elements([f"at{k}[e]" for k in operands], [f"l{k}[e]" for k in operands])
        for k, fold in folds:
            value = cast(f"{fold.source[0]}{fold.source[1]}", fold.source_kind, fold.kind)
            self.add(f"const {ctype(wide(fold.kind))} g{k} = {value};")
            self.add(f"f{k} = {fold.text.format(f'f{k}', f'g{k}')};")
        self._close(3)
        for k, _ in folds:
            self.add(f"t{k}[nd_thread] = f{k};")
        self.add("ND_END")
        self.add("if (shared)")
        self.add(f"for (int half = {THREADS // 2}; half; half >>= 1) {{")
        self.add("  ND_BEGIN if (nd_thread < half) {")
        for k, fold in folds:
            self.add(f"    t{k}[nd_thread] = {fold.text.format(f't{k}[nd_thread]', f't{k}[nd_thread + half]')};")
        self.add("  } ND_END")
        self.add("}")
        self.add(f"ND_BEGIN const nd_i8 unit = shared ? block : block * {THREADS} + nd_thread;")
        self.add("if (unit < units && (!shared || nd_thread == 0)) {")
        for k, fold in folds:
            value = f"nd_half(t{k}[nd_thread])" if fold.kind == "f2" else f"t{k}[nd_thread]"
            place = f"{self.argument(f'result{k}')} + unit * (nd_i8)sizeof({ctype(fold.kind)})"
            self.add(f"  nd_store<{ctype(fold.kind)}>({place}, {value});")
        self.add("} ND_END")
        self._close(1)

    def _close(self, count: int) -> None:
        for _ in range(count):
            self.depth -= 1
            self.add("}")
