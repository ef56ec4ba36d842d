"""What one rank has recorded and communicated: the latest operations, put into words only when somebody asks.

A program that runs well must not pay for this: of executed statements two lists are kept (forms and call sites), of
collectives a tuple. Statements that are pending are looked up in the program.

Beside it a mark runs along: a hash of all forms of statements, views that were read, and collectives so far, in the
order of the program. It travels with all that ranks tell each other, so that what ranks do differently is found before
a value is used. Marks of forms and views are made once for each; a statement adds its own to a list.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy_dist.argument_types import Arguments
from numpy_dist.comm.divergence.positions import called_function, is_stand_in, line_of
from numpy_dist.frames import user_call
from numpy_dist.ir import statements as forms
from numpy_dist.ir.samples import text_of
from numpy_dist.ir.statements import ProgramForm, Ref
from numpy_dist.ir.views import View
from numpy_dist.layout.marks import mark_of, running_mark

if TYPE_CHECKING:
    from numpy_dist.ir.statements import Statement

__all__ = ["CALL", "DRAW", "Journal", "OperandRecord", "JournalEntry", "packed", "unpacked"]

CALL = "call"  # the kind of what is done by collectives and messages, all of which may come later
DRAW = "random numbers"  # the kind of what draws from a generator that must be alike on all ranks
_PLACES = (1 << 32) - 1
_MOST_TOLD = 255  # arrays that came in at one line, of which a message tells the how-manieth it is
KEPT = 512  # operations, at least, of which is known what they were


class Origin(Protocol):
    """What is known of where an array's storage comes from.

    Attributes
    ----------
    origin : int
        The serial of the statement that makes it, counted from one, or below -1 what `Journal.came_in` has noted.
    number : str
        By what `OperandRecord` knows it; empty until it is met.
    """

    origin: int
    number: str


class OperandRecord(NamedTuple):
    """An argument of an operation.

    Attributes
    ----------
    kind : str
        Dtype and shape of an array, the type of a scalar.
    value : str
        The scalar, or which array it is (``#2``: the second that came in by `asarray`; ``%7``: what statement 7 made;
        ``~3``: the third that was met otherwise); empty where that was not noted.
    is_array : bool
    """

    kind: str
    value: str
    is_array: bool

    def __str__(self) -> str:
        return f"{self.kind}{self.value}" if self.is_array else self.value or self.kind


@dataclass(frozen=True)
class JournalEntry:
    """One operation of a rank.

    Attributes
    ----------
    number : int
        Its position among all operations of the rank.
    function : str
        What was called, such as "add", or "repr()".
    kind : str
        "statement", or which collective it is.
    line, caller : str
        The user's line, and the line from which that function was called: ``file:line in function``.
    operands : tuple of OperandRecord
    result : str
        Dtype and shape of what a statement makes.
    details : str
        What else must be the same on all ranks.
    parts : str
        Which parts of arrays it reads or writes, or what else it was told, in words.
    given : tuple of str
        Which other arguments it has, in words; of a statement, which arrays are meant, scalars, and axes.
    asked : tuple of str
        At which lines the layout of a result that was pending was asked for, before this operation.
    """

    number: int
    function: str
    kind: str
    line: str
    caller: str
    operands: tuple[OperandRecord, ...] = ()
    result: str = ""
    details: str = ""
    parts: str = ""
    given: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What must be the same on every rank."""
        return *self.rough_key, self.given

    @property
    def rough_key(self) -> tuple[object, ...]:
        """What of that does not depend on what was before. Folders may differ between machines.

        Messages of the user's own (``comm.allgather``) may be written at one line for each rank.
        """
        if self.function.startswith("comm."):
            return self.function, self.operands, self.details
        lines = os.path.basename(self.line), os.path.basename(self.caller)
        return self.function, self.kind, *lines, self.operands, self.result, self.details

    def __str__(self) -> str:
        if self.kind == "statement":
            return f"{self.function}({', '.join(map(str, self.operands))}) -> {self.result}, at {self.line}"
        if self.kind in (CALL, DRAW):
            return f"{self.function}, at {self.line}"
        what = self.function if self.function.startswith("comm.") else f"{self.function} ({self.kind})"
        return f"{what}, at {self.line}"


class _Call(NamedTuple):
    """A collective, a call that has some, or the execution of a program: where, and as the how-manieth."""

    ordinal: int
    serial: int
    kind: str
    function: str
    code: CodeType
    instruction: int
    caller: CodeType
    called_at: int
    views: tuple[View, ...] = ()
    details: str = ""
    given: tuple[str, ...] = ()
    origins: tuple[int, ...] = ()


class _Batch:
    """Statements that were executed: the first one's serial, of each its form and site (and its operands), and which
    arrays are meant, and scalars, in the order of their appearance.
    """

    __slots__ = ("forms", "operands", "origins", "scalars", "serial", "sites", "slots")

    def __init__(
        self, statements: Sequence[Statement], operands: list[tuple[str, ...]] | None, scalars: list[object]
    ) -> None:
        self.serial: int = statements[0].serial
        self.forms = [s.form for s in statements]
        self.sites = [s.site for s in statements]
        self.operands = operands
        self.scalars = scalars
        self.slots: Sequence[object] = ()  # of the arrays of all statements, in order, among others
        self.origins: Sequence[int] = ()  # by slot

    def given(self) -> Iterator[list[object]]:
        """Of each statement the origins of arrays, and the scalars, in the order of `_read` and `_written`."""
        arrays = (self.origins[slot] for slot in self.slots if type(slot) is int)
        scalars = iter(self.scalars)
        for form in self.forms:
            read = [next(arrays, 0) if isinstance(x, View) else next(scalars) for x in _read(form)]
            yield read + _written(form, [next(arrays, 0) for _ in form.key[3]])


class Journal:
    """The operations of one rank: statements by their serial, and calls (collectives) between them.

    Attributes
    ----------
    program : object, optional
        Has ``pending``, statements that were recorded and not yet executed, ``recorded``, the number of all that
        ever were, and ``place``, how far the program has come, where it can go on after an exception.
    calls : int
        How many calls there were.
    with_operands : bool
        Whether scalars, and which arrays are meant, are noted too.
    executes : bool
        Whether the statements that were noted last are being executed, by which calls are then made.
    compares_values : bool
        Whether the mark knows values, too: not where ranks may compute other numbers than others.
    """

    def __init__(self) -> None:
        self.program: Any = None
        self.calls = 0
        self.executes = self.with_operands = self.compares_values = False
        self._calls: deque[Arguments] = deque(maxlen=KEPT)  # the fields of a `_Call`
        self._batches: deque[_Batch] = deque()
        self._held = 0
        self._inputs = self._met = 0
        self._arrived_at = -1  # how far the program was when arrays came in last
        self._arrived: dict[tuple[str, int, int], int] = {}  # how many did since, by the user's line
        self._hash = hashlib.blake2b(digest_size=16)
        self._hashed = 0
        self._operations = 0  # the mark of all forms of statements, views and calls
        self._marked = 0  # the serial of the first statement that the mark does not know
        self._marks: list[int] = []  # what the mark does not know yet
        self._values = 0  # the mark of values, beside that of operations
        self._new_values: list[int] = []  # which that does not know yet
        self._views: list[View] = []  # read since the last call
        self._origins: list[int] = []  # and of which arrays
        self._asked: deque[tuple[int, CodeType, int]] = deque(maxlen=KEPT)  # for layouts: by what, and after how many

    @property
    def recorded(self) -> int:
        """The number of statements that were recorded so far."""
        return 0 if self.program is None else self.program.recorded

    @property
    def come(self) -> int:
        """How many operations there were: statements and calls."""
        return self.recorded + self.calls

    def place(self) -> tuple[int, ...] | None:
        """How far the program has come; None where not all of it could be executed after an exception."""
        return () if self.program is None else self.program.place

    def call(self, kind: str, frame: FrameType | None = None, details: str = "", given: Sequence[str] = ()) -> None:
        """Note a call; by default, that of the calling frame's caller. `given` are values that it was given."""
        if self.executes:
            # As that of the last statement: the user's line is some twenty frames away, each of which takes time.
            batch = self._batches[-1]
            function, site = _function(batch.forms[-1]), batch.sites[-1]
            mark = _mark_of_call(kind, function, details)
            user, instruction, caller, called_at = site.code, site.instruction, site.caller, site.called_at
        else:
            frame, called = user_call(frame or sys._getframe(1))
            user = frame.f_code
            if called is None:
                known = _CALLS.get((kind, details))
            else:
                code = called.f_code
                known = _CALLS.get((kind, details, code.co_name, code.co_filename))
            function, mark = known or _named(kind, details, called)
            instruction, back = frame.f_lasti, frame.f_back or frame
            caller, called_at = back.f_code, back.f_lasti
        program = self.program
        recorded = 0 if program is None else program.recorded
        position: Arguments = (self.calls, recorded, kind, function, user, instruction, caller, called_at)
        if self._views or details or given:
            position = (*position, tuple(self._views), details, tuple(given), tuple(self._origins))
            self._views.clear()
            self._origins.clear()
        self._calls.append(position)
        self.calls += 1
        if self._marked < recorded:
            self._meet_pending()
        if given:
            self._new_values.append(zlib.crc32(text_of(given).encode()))
        if self._marks:
            self._marks.append(mark)
        else:
            self._operations = hash((self._operations, mark))  # as `running_mark` does, for one

    def asked_for_layout(self) -> None:
        """Note that the user asks for the layout of a result that is pending; no part of the mark."""
        frame, _ = user_call(sys._getframe(1))
        self._asked.append((self.come, frame.f_code, frame.f_lasti))

    def executed(self, statements: Sequence[Any]) -> None:
        """Note what is about to be executed; the statements themselves are not kept, since they hold arrays."""
        batches = self._batches
        operands = [self._operands(s) for s in statements] if self.with_operands else None
        scalars = [
            x
            for s in statements
            if s.form.has_scalars
            for x in (s.inputs if type(s) is forms.Elementwise else (s.initial,))
            if type(x) is not Ref
        ]
        batch = _Batch(statements, operands, scalars)
        batches.append(batch)
        self._meet(batch.forms, batch.serial)
        if scalars:
            self._new_values.append(zlib.crc32(text_of(scalars).encode()))
        self._held += len(statements)
        while self._held - len(batches[0].forms) >= KEPT:
            self._held -= len(batches.popleft().forms)

    def uses(self, slots: Sequence[object], pattern: int, storages: Sequence[Origin]) -> None:
        """Note which arrays are meant by the statements that were noted last.

        Parameters
        ----------
        slots : sequence
            The places in `storages` of all arrays of the statements, in order; what is no integer is none.
        pattern : int
            A mark of `slots`.
        storages : sequence of Storage
        """
        batch = self._batches[-1]
        batch.slots, batch.origins = slots, [storage.origin for storage in storages]
        self._new_values += (pattern, hash(tuple(batch.origins)))

    def read(self, view: View, storage: Origin) -> None:
        """Note that the values of a view of an array are read, other than by statements."""
        self._views.append(view)
        if self._marked < self.recorded:
            self._meet_pending()
        self._marks.append(view.mark)
        self._origins.append(storage.origin)
        self._new_values.append(storage.origin)

    def note_value(self, value: int) -> None:
        """Note a number that stands for a value, which all ranks should have here; as often as one likes."""
        if self._new_values:
            self._values = running_mark(self._values, self._new_values)
        self._values = hash((self._values, value))  # as that does, for one

    def mark(self) -> int:
        """A hash (a signed number of 64 bits) of all that was recorded so far, the same on ranks that did the same."""
        program = self.program
        if program is not None and self._marked < program.recorded:
            self._meet_pending()
        if self._marks:
            self._operations = running_mark(self._operations, self._marks)
        if self._new_values:
            self._values = running_mark(self._values, self._new_values)
        return self._operations ^ self._values if self.compares_values else self._operations

    def _meet_pending(self) -> None:
        """Add the marks of statements that were recorded since, so that the order is that of the program."""
        pending = self.program.pending
        if pending:
            self._meet([s.form for s in pending], pending[0].serial)

    def _meet(self, forms: Sequence[ProgramForm], serial: int) -> None:
        """Add the marks of statements, the first of which has this serial, unless they are known."""
        known, end = self._marked - serial, serial + len(forms)
        if self._marked < end:
            self._marks += [form.mark for form in (forms if known <= 0 else forms[known:])]
            self._marked = end

    def digest(self) -> bytes:
        """A hash of all operations so far, if they were never more than `KEPT` from one digest to the next."""
        for operation in self.operations(since=self._hashed):
            self._hash.update(repr(operation.key).encode())
            self._hashed = operation.number + 1
        return self._hash.digest() + self.come.to_bytes(8, "little")

    def operations(self, since: int = 0) -> list[JournalEntry]:
        """The latest operations, in order, whose numbers have no gaps; `since` a number."""
        calls = [_Call(*call) for call in list(self._calls)]
        entries = list(self._statements())
        # A number counts the statements and calls before. It is not known where some of these are forgotten.
        if calls and calls[0].ordinal:
            entries = [entry for entry in entries if entry[0] >= calls[0].serial]
        oldest = entries[0][0] if entries else self.recorded
        calls = [call for call in calls if call.serial >= oldest] if oldest else calls
        found: list[JournalEntry] = []
        position, before = 0, calls[0].ordinal if calls else self.calls
        for serial, form, site, given, operands in entries:
            while position < len(calls) and calls[position].serial <= serial:
                if serial + before >= since:
                    found.append(_of_call(calls[position]))
                before, position = before + 1, position + 1
            if serial + before >= since:
                found.append(_of_statement(serial + before, form, site, given, operands))
        found += [_of_call(call) for call in calls[position:] if call.serial + call.ordinal >= since]
        asked: dict[int, list[str]] = {}
        for number, code, instruction in self._asked:
            asked.setdefault(number, []).append(line_of(code, instruction))
        return [replace(op, asked=tuple(asked[op.number])) if op.number in asked else op for op in found]

    def number_input(self, storage: Origin) -> None:
        """Give an array that every rank has brought in a number by which `_operands` knows it."""
        self._inputs += 1
        storage.number = f"#{self._inputs}"

    def _operands(self, statement: Statement) -> tuple[str, ...]:
        """What a form leaves open: the values of scalars, and which arrays are meant.

        Arrays are known by the statement that makes them, or by a number that they got when they came in, else when
        they were met first.
        """
        creates = getattr(statement, "creates", (True,))
        found = [self._number(x.storage) if type(x) is Ref else text_of(x) for x in statement.inputs]
        if statement.where is not None:
            found.append(self._number(statement.where.storage))
        for out, made in zip(statement.outputs, creates, strict=True):
            if made:
                out.storage.number = f"%{statement.serial + 1}"
            found.append(self._number(out.storage))
        return tuple(found)

    def _number(self, storage: Origin) -> str:
        if not storage.number:
            self._met += 1
            storage.number = f"~{self._met}"
        number: str = storage.number
        return number

    def came_in(self, storage: Origin, made_of: bytes = b"", in_order: bool = True) -> None:
        """Note that no statement makes an array: it came from elsewhere, at the same place of all ranks' programs.

        Arrays that come in `in_order`, with nothing between them, are told apart by the user's lines and by their order
        at each: what one rank makes for itself changes nothing for the others. `made_of` is what else must be the same.
        """
        place = self.come & _PLACES
        order, alike = 0, made_of
        if in_order:
            frame = user_call(sys._getframe(1))[0]
            line = frame.f_code.co_name, frame.f_code.co_firstlineno, frame.f_lineno
            order = self._order_at(place, line)
            alike += repr((line, order)).encode()
        checksum = zlib.crc32(alike) >> 9 if alike else 0
        storage.origin = -2 - place - (checksum << 8 | min(order, _MOST_TOLD)) * (_PLACES + 1)

    def _order_at(self, place: int, line: tuple[str, int, int]) -> int:
        """How many arrays have come in at a line since something else was noted, this one included."""
        if place != self._arrived_at:
            self._arrived_at = place
            self._arrived.clear()
        order = self._arrived[line] = self._arrived.get(line, 0) + 1
        return order

    def _statements(self) -> Iterator[tuple[int, ProgramForm, object, list[object], tuple[str, ...] | None]]:
        serial = -1
        for batch in list(self._batches):
            for place, (form, site, given) in enumerate(zip(batch.forms, batch.sites, batch.given(), strict=True)):
                serial = batch.serial + place
                yield serial, form, site, given, None if batch.operands is None else batch.operands[place]
        pending: Iterable[Statement] = () if self.program is None else list(self.program.pending)
        for statement in pending:
            if statement.serial > serial:
                operands = self._operands(statement) if self.with_operands else None
                arrays = iter([ref.storage.origin for ref in statement.reads()])
                scalars = iter(statement.scalars())
                given = [next(arrays if isinstance(x, View) else scalars) for x in _read(statement.form)]
                given += _written(statement.form, [out.storage.origin for out in statement.outputs])
                yield statement.serial, statement.form, statement.site, given, operands


def packed(operations: Sequence[JournalEntry]) -> bytes:
    """Operations as a few bytes: those of a loop are much alike."""
    return zlib.compress(pickle.dumps(list(operations), protocol=5), 1)


def unpacked(data: bytes) -> list[JournalEntry]:
    """What `packed` has packed."""
    found: list[JournalEntry] = pickle.loads(zlib.decompress(data))
    return found


# -- words -----------------------------------------------------------------------------------------------------------

_CALLS: dict[tuple[str, ...], tuple[str, int]] = {}
"""By kind, details, and name and file of the code that was called (none: the communicator's own): the name of the
function, and the mark of the call.
"""

_mark_of_call = lru_cache(maxsize=KEPT)(mark_of)


def _named(kind: str, details: str, called: FrameType | None) -> tuple[str, int]:
    """The name of the function that the user has called, and the mark of this call; kept where the code says it all.

    The communicator's own method bears the name of its kind.
    """
    function = f"comm.{kind}" if called is None else called_function(called)
    found = function, _mark_of_call(kind, function, details)
    if called is None or not is_stand_in(called.f_code):
        if len(_CALLS) > KEPT:
            _CALLS.clear()
        code = () if called is None else (called.f_code.co_name, called.f_code.co_filename)
        _CALLS[kind, details, *code] = found
    return found


def _of_call(call: _Call) -> JournalEntry:
    line, caller = line_of(call.code, call.instruction), line_of(call.caller, call.called_at)
    operands = tuple(OperandRecord(_kind(view), "", True) for view in call.views)
    parts = ", ".join([*map(part_of, call.views), *filter(None, [call.details])])
    views = [(x.offset, x.shape, x.strides, x.layout, x.dtype) for x in call.views]
    details = repr((call.details, views))
    number = call.serial + call.ordinal
    words = *map(_origin, call.origins), *call.given
    return JournalEntry(number, call.function, call.kind, line, caller, operands, "", details, parts, words)


def _of_statement(
    number: int, form: ProgramForm, site: Any, given: list[Any], values: tuple[str, ...] | None
) -> JournalEntry:
    code: CodeType = site.code
    line, caller = line_of(code, site.instruction), line_of(site.caller, site.called_at)
    _, kind, inputs, outputs, where, options, space, rest = form.key
    reads = (*inputs, *(() if where is None else (where,)))
    named = iter(values or ())
    operands = tuple(OperandRecord(_kind(x), next(named, ""), isinstance(x, View)) for x in reads)
    views = [x for x in (*reads, *outputs) if isinstance(x, View)]
    read, targets = _read(form), list(named)
    words = () if values else tuple(map(_given, read, given))
    written = [f"the array {x}" for x in _written(form, targets)] if values else map(_origin, given[len(read) :])
    words = *words, *(f"{x} as target" for x in written)
    if kind is forms.Reduction:
        words = *words, f"axis {', '.join(map(str, rest[0][0]))}"
    details = repr(([(x.offset, x.strides, x.layout) for x in views], options, space, rest, targets))
    parts = ", ".join(part_of(x) for x in (*reads, *_written(form, outputs)) if isinstance(x, View))
    result = ", ".join(map(_kind, outputs))
    return JournalEntry(number, _function(form), "statement", line, caller, operands, result, details, parts, words)


def _function(form: ProgramForm) -> str:
    op, kind = form.key[:2]
    name: str = op.name
    return f"{name}.reduce" if kind is forms.Reduction else name


def _read(form: ProgramForm) -> list[object]:
    """The views and kinds of scalars that a statement reads: its operands, mask, and what a reduction begins with."""
    _, _, inputs, _, where, *_ = form.key
    return [*inputs, *(() if where is None else (where,)), *(("initial",) if form.has_initial else ())]


def _written(form: ProgramForm, outputs: Sequence[object]) -> list[Any]:
    """Of what there is for each output, that of arrays that existed before."""
    kind, creates = form.key[1], form.key[-1][0]
    return [] if kind is forms.Reduction else [x for x, made in zip(outputs, creates, strict=True) if not made]


def _given(operand: object, value: Any) -> str:
    return _origin(value) if isinstance(operand, View) else text_of(value)


def _origin(origin: int) -> str:
    if origin > 0:
        return f"the array of statement {origin}"
    which, place = divmod(-2 - origin, _PLACES + 1)
    checksum, order = which >> 8, which & _MOST_TOLD
    words = f"the array that came in before operation {place + 1}"
    return words + (f", number {order} at its line" if order else "") + (f" (mark {checksum:06x})" if checksum else "")


def part_of(view: View) -> str:
    """Which part of its array a view is, as an index where it is a box of it (``[2:4, :, 7]``)."""
    whole, vmap = view.layout.shape, view.vmap
    if vmap is None or vmap.merged or not view.layout.nelements:
        return f"{view.offset} bytes into an array of shape {whole}"
    items = []
    for axis, n in enumerate(whole):
        ways = [(row[axis], count) for row, count in zip(vmap.steps, vmap.shape, strict=True) if row[axis]]
        first = vmap.offset[axis]
        if not ways:
            items.append(str(first) if n > 1 or len(whole) > len(vmap.shape) else ":")
        elif len(ways) > 1:
            return f"{view.offset} bytes into an array of shape {whole}"
        else:
            step, count = ways[0]
            items.append(":" if (first, step, count) == (0, 1, n) else _slice_text(first, step, count))
    return f"[{', '.join(items)}] of an array of shape {whole}"


def _slice_text(first: int, step: int, count: int) -> str:
    stop = first + step * count
    text = f"{first}:{stop if stop >= 0 else ''}"
    return text if step == 1 else f"{text}:{step}"


def _kind(operand: object) -> str:
    if isinstance(operand, View):
        return f"{operand.dtype}[{', '.join(map(str, operand.shape))}]"
    return getattr(operand, "__name__", str(operand))
