"""The observer of a planned rank: it is told what a profile's recorder is told, and counts by the user's lines."""

from __future__ import annotations

import linecache
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Arguments, Keywords
from numpy_dist.engine.events.sites import resolve
from numpy_dist.engine.explaining.forecast import touched
from numpy_dist.engine.memory.handle import is_handle, metadata
from numpy_dist.engine.memory.limits import Limits
from numpy_dist.engine.planning.actions import Combine, Donate, Fetch, RefreshHalo
from numpy_dist.frames import UserLine, calling_frame, user_frame
from numpy_dist.ir.statements import Reduction, Statement
from numpy_dist.layout.regions import Box, box_size
from numpy_dist.scaling.counted import FunctionWork, LineCounts, LoopWork
from numpy_dist.scaling.expected import ExpectedValues

if TYPE_CHECKING:
    from types import FrameType

    from numpy_dist.comm.base import Message, PendingExchange
    from numpy_dist.engine.events.sites import CallSite
    from numpy_dist.engine.memory.handle import Handle
    from numpy_dist.engine.memory.storage import Storage
    from numpy_dist.engine.planning.group import Group
    from numpy_dist.engine.runtime import Runtime
    from numpy_dist.engine.scheduling.execution import Execution
    from numpy_dist.random.draws import Draw

MOST_FLOPS = 2e11  # of one product that is really computed here: some seconds to a minute
_PRODUCTS = ("matmul", "dot", "vdot", "inner", "vecdot", "matvec", "vecmat")
_SORTS = frozenset("sort argsort unique unique_values unique_counts unique_inverse unique_all".split())
# Operations of decompositions of tall matrices: times rows, and times the square of the columns.
_TALL = {"lstsq": 2, "svdvals": 2, "matrix_rank": 2, "qr": 5, "svd": 5, "pinv": 5}
_ALONG_ROWS = frozenset("argmin argmax nanargmin nanargmax".split())
_TRANSFORMS = {"fft": 1, "ifft": 1, "rfft": 1, "irfft": 1, "hfft": 1, "ihfft": 1, "fft2": 2, "ifft2": 2, "rfft2": 2}
_TRANSFORMS |= {"irfft2": 2, "fftn": 0, "ifftn": 0, "rfftn": 0, "irfftn": 0}  # how many of the last axes; 0: all
_OF_ELEMENTS = {
    word: kind
    for kind, words in {
        "histogram": "histogram histogram2d histogramdd bincount",
        "selection": "median percentile quantile nanmedian nanpercentile nanquantile partition argpartition",
        "scan": "cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod accumulate",
        "selecting": "nonzero flatnonzero argwhere extract compress",
        "extremes": "argmin argmax nanargmin nanargmax",
        "picking": "take take_along_axis at put put_along_axis",
        "search": "searchsorted digitize interp isin",
        "convolution": "convolve correlate",
    }.items()
    for word in words.split()
}
# Operations of decompositions of square matrices, times the cube of the side, as LAPACK is said to need them.
_FACTORISATIONS = {"solve": 2 / 3, "det": 2 / 3, "slogdet": 2 / 3, "inv": 2.0, "cholesky": 1 / 3, "qr": 8 / 3}
_SPECTRA = {"eigvalsh": 4 / 3, "eigh": 9.0, "eigvals": 10.0, "eig": 25.0, "svdvals": 8 / 3, "svd": 21.0}
_SPECTRA |= {"pinv": 21.0, "matrix_rank": 8 / 3, "lstsq": 8.0}
_LISTS = frozenset(("histogramdd", "lexsort"))  # their arrays come in a list
_TALL_RATIO = 8  # rows for each column, from which on a matrix is taken for a tall one
_MOST_KNOWN = 4096


class TooLargeToPlan(RuntimeError):
    """A function that is no loop would really run, on more than this machine has."""


class PlanObserver:
    """What one rank does, by line.

    Parameters
    ----------
    runtime : Runtime
        The rank's.

    Attributes
    ----------
    lines : dict of UserLine to LineCounts
    texts : dict of UserLine to str
    largest_exchange, largest_gather : int
        Most bytes of messages that were started together; of a gathered array.
    pool : AttributedPool or None
        Is told where an array takes over the memory of another one.
    expected : ExpectedValues
        What stands in arrays that nobody has computed.
    """

    now = 0  # times do not matter

    def __init__(self, runtime: Runtime) -> None:
        self.lines: dict[UserLine, LineCounts] = {}
        self.texts: dict[UserLine, str] = {}
        self.largest_exchange = self.largest_gather = 0
        self.pool: Any = None
        self.expected = ExpectedValues(runtime.rank)
        self._runtime = runtime
        self._executing = False
        self._parts = 0  # that had run when the last loop had
        self._met = (-1, 0, 0)  # the present loop's number, and how many of its transfers and collectives were started
        self._collective: tuple[UserLine, int] = (UserLine("", 0), 0)  # its line, and bytes before it
        self._touched: dict[tuple[int, tuple[CallSite, ...]], tuple[object, LoopWork]] = {}

    # -- lines --------------------------------------------------------------------------------------------------------

    def counts(self, line: UserLine) -> LineCounts:
        """The counts of a line."""
        found = self.lines.get(line)
        if found is None:
            found = self.lines[line] = LineCounts()
            self.text(line)
        return found

    def text(self, line: UserLine) -> str:
        """What a line says."""
        if line not in self.texts:
            self.texts[line] = linecache.getline(*line).strip()
        return self.texts[line]

    def here(self) -> UserLine:
        """The user's line that is being executed."""
        frame = user_frame(2)
        return UserLine(frame.f_code.co_filename, frame.f_lineno)

    def asking_line(self) -> UserLine | None:
        """The user's line that asks for a value; None where a loop's own work does."""
        return None if self._executing else self.here()

    @property
    def group(self) -> tuple[Group, Any, list[Statement | None], Sequence[Storage]] | None:
        """The loop that is being prepared or run, its plan, its statements, and storages by slot; None outside."""
        execution = self._runtime.execution
        if not self._executing or execution is None or execution.number not in execution.plans:
            return None
        group = execution.schedule.groups[execution.number]
        statements = [execution.statements[position] for position in group.positions]
        return group, execution.plans[execution.number], statements, execution.storages  # type: ignore[return-value]

    def line_of(self, statement: Statement | None) -> UserLine:
        """Where a statement was recorded."""
        if statement is None:
            return self.here()
        found = resolve(statement.site)
        return UserLine(found.filename, found.line)

    # -- loops --------------------------------------------------------------------------------------------------------

    def begin_loop(self) -> None:
        """As in `profiling.recorder`."""
        self._executing, self._met = True, (-1, 0, 0)

    def ran(self, execution: Execution, number: int) -> None:
        """As in `profiling.recorder`."""
        for done in range(execution.done, number):
            group, plan = execution.schedule.groups[done], execution.plans[done]
            statements = [execution.statements[position] for position in group.positions]
            line = self.line_of(statements[-1])
            work = self._work(group, plan, statements, execution)
            counts = self.counts(line)
            counts.add(loops=1, loop_bytes=work.nbytes)
            counts.work[work] += 1
            if self.pool is not None:
                for action in plan.of(Donate):
                    storage = execution.storages[action.slot]
                    self.pool.relabel(storage.memory, storage, self._writer(statements, storage) or line)
                for statement in statements:
                    for out in () if isinstance(statement, Reduction) else statement.outputs:
                        self.expected.uncomputed(out.storage, self.line_of(statement))
            parts = getattr(self._runtime.backend, "loops", 0)
            counts.add(parts=parts - self._parts)
            self._parts = parts
        self._executing = False

    def _work(self, group: Group, plan: object, statements: list[Statement], execution: Execution) -> LoopWork:
        sites = tuple([statement.site for statement in statements])
        known = self._touched.get((id(plan), sites))
        if known is None:
            if len(self._touched) >= _MOST_KNOWN:
                self._touched.clear()
            slots = {id(execution.storages[slot]): slot for slot in group.slots}
            stored = {slot: execution.storages[slot].wanted for slot in group.slots}
            reads, writes = touched(group, self._runtime.rank, statements, slots, stored)
            nbytes = sum(reads.values()) + sum(writes.values())
            known = plan, LoopWork(nbytes, operations_of(statements, self._runtime.rank))
            self._touched[id(plan), sites] = known  # with the plan, so that its id stays its own
        return known[1]

    def _writer(self, statements: Sequence[Statement | None], storage: Storage) -> UserLine | None:
        """The line that writes an array in a loop; None where none does."""
        of = [s for s in statements if s is not None and any(out.storage is storage for out in s.outputs)]
        return self.line_of(of[0]) if of else None

    def writing_line(self, storage: Storage) -> UserLine | None:
        """The line that writes an array in the present loop; None where none does."""
        found = self.group
        return None if found is None else self._writer(found[2], storage)

    def found_schedule(self, begin: int, schedule: object) -> None:
        """As in `profiling.recorder`."""

    def planned(self, begin: int, statements: object) -> None:
        """As in `profiling.recorder`."""

    # -- communication ------------------------------------------------------------------------------------------------

    def collective_began(self, kind: str, root: int) -> None:
        """As in `profiling.recorder`."""
        counters = self._runtime.comm.counters
        self._collective = self._line_of_collective(), counters.bytes
        self.counts(self._collective[0]).add(collectives=1)

    def collective_ended(self) -> None:
        """As in `profiling.recorder`."""
        line, before = self._collective
        sent = self._runtime.comm.counters.bytes - before
        self.counts(line).add(collective_bytes=sent, bytes=sent)

    def started(
        self, pending: PendingExchange, sends: Sequence[Message], receives: Sequence[Message], tag: int
    ) -> PendingExchange:
        """As in `profiling.recorder`."""
        sent, received = (sum(array.nbytes for _, array, _ in messages) for messages in (sends, receives))
        counts = self.counts(self._line_of_messages())
        counts.add(messages=len(sends), bytes=sent, received_messages=len(receives), received_bytes=received)
        counts.add(exchanges=1)
        self.largest_exchange = max(self.largest_exchange, sent + received)
        return pending

    def _numbers(self, transfers: int, collectives: int) -> tuple[int, int]:
        """How many transfers and collectives of the present loop there were before this one."""
        execution = self._runtime.execution
        assert execution is not None
        _, before, collected = self._met if self._met[0] == execution.number else (-1, 0, 0)
        self._met = execution.number, before + transfers, collected + collectives
        return before, collected

    def _line_of_messages(self) -> UserLine:
        """The line of the statement that needs what is sent; the reading one, of halos and fetched operands."""
        found = self.group
        if found is None:
            return self.here()
        group, plan, statements, storages = found
        lines: list[UserLine] = []
        for action in plan.of(Fetch, RefreshHalo):
            if action.messages is not None and (action.messages.sends or action.messages.receives):
                storage = storages[action.slot]
                of = [s for s in statements if s is not None and any(ref.storage is storage for ref in s.reads())]
                lines.append(self.line_of(next(iter(of or statements), None)))
        for action in plan.of(Combine):
            if not action.everywhere:
                lines.append(self.line_of(statements[action.number]))
        number, _ = self._numbers(1, 0)
        return lines[min(number, len(lines) - 1)] if lines else self.here()

    def _line_of_collective(self) -> UserLine:
        """The line of the reduction whose parts are brought together."""
        found = self.group
        if found is None:
            return self.here()
        _, plan, statements, _ = found
        combined = [action for action in plan.of(Combine) if action.everywhere]
        _, number = self._numbers(0, 1)
        return self.line_of(statements[combined[number].number]) if number < len(combined) else self.here()

    def gathered(self, begin: int, nbytes: int, root: int | None) -> None:
        """As in `profiling.recorder`; counted where the communicator has several ranks."""
        elements = self._runtime.counters.gathers
        if self._runtime.size > 1 and elements > self._gathers:
            self.counts(self.here()).add(gathers=1, gathered_bytes=nbytes)
            self.largest_gather = max(self.largest_gather, nbytes)
        self._gathers = elements

    _gathers = 0

    def wrote(self, nbytes: int) -> None:
        """Take note of what would be written to files, at the line of the program, which a library may do that for."""
        if nbytes:
            frame = calling_frame(user_frame())
            self.counts(UserLine(frame.f_code.co_filename, frame.f_lineno)).add(written=nbytes)

    def notice(self, *details: object) -> None:
        """As in `profiling.recorder`: what was gathered is counted by itself."""

    def positions(self, positions: Handle, block: np.ndarray, among: int) -> np.ndarray:
        """What this rank has of the positions of an index; of one that nobody has computed, expected ones."""
        return self.expected.positions(positions, block, among, self.here())

    # -- functions that are no loops ----------------------------------------------------------------------------------

    def function(self, name: str) -> AbstractContextManager[None]:
        """As in `profiling.recorder`. Such functions really run, on what is in memory.

        Raises
        ------
        TooLargeToPlan
        """
        caller = sys._getframe(1)
        return self._planned(name, caller.f_locals.get("args", ()), caller.f_locals.get("kwargs", {}), caller)

    def call(self, name: str, function: object, args: Arguments, kwargs: Keywords) -> AbstractContextManager[None]:
        """As `function`, of one whose arguments are known."""
        return self._planned(name, args, kwargs, sys._getframe(1))

    def _planned(
        self, name: str, arguments: Arguments, keywords: Keywords, caller: FrameType
    ) -> AbstractContextManager[None]:
        arrays: Any = arguments if isinstance(arguments, tuple) else ()
        if name.rpartition(".")[2] in _LISTS and arrays and isinstance(arrays[0], list | tuple):
            arrays = arrays[0]
        given = [metadata(x) for x in arrays if is_handle(x)]
        line, size = self.here(), self._runtime.size
        shapes = [np.shape(x) for x in arrays if is_handle(x) or isinstance(x, np.ndarray)]
        work = _work_of_making(name, caller, size) or function_work(name, given, keywords, size, shapes)
        flops = work.amount if work.kind in ("product", "vector product") else 0
        room = Limits().room().available
        if work.nbytes > room or flops > MOST_FLOPS:
            much = f"{work.nbytes:,} bytes" if work.nbytes > room else f"{flops:.1e} operations"
            raise TooLargeToPlan(
                f"{line}: {name} is no loop: it would really run here, with {much} on rank {self._runtime.rank}. Plan "
                "with more ranks, or with a smaller problem on as many ranks"
            )
        counts = self.counts(line)
        counts.add(functions=1, function_bytes=work.nbytes, flops=flops)
        counts.work[work] += 1
        if self.pool is None:  # a small run, which computes
            return nullcontext()
        return self._distributed(name, arguments, line, nullcontext() if size == 1 else self._spread(counts))

    @contextmanager
    def _distributed(
        self, name: str, arguments: Arguments, line: UserLine, spread: AbstractContextManager[None]
    ) -> Iterator[None]:
        with self.expected.looked_at(name, arguments, line), spread:
            yield

    @contextmanager
    def _spread(self, counts: LineCounts) -> Iterator[None]:
        """Count a function that communicates; of those that call others only the inner ones."""
        totals, before = self._runtime.comm.counters, self._spreads
        communicated = totals.messages + totals.collectives
        try:
            yield
        finally:
            if self._spreads == before and totals.messages + totals.collectives > communicated:
                counts.add(spread_functions=1)
                self._spreads += 1

    _spreads = 0


def operations_of(statements: Sequence[Statement], rank: int) -> tuple[tuple[str, int], ...]:
    """Names of the operations of a loop, and how many results of 8 bytes each of them gives on a rank.

    Those of complex numbers have "complex" before them.

    Rows cost time of their own. "a row" is how often the loop begins one that memory does not go on with: in what it
    stores or reads for that, or since an operand is the same for all rows, once for all of them, or for each reduction
    along some axes that has one. "a reduced row" is how many rows such reductions sum up, and "an added row" how many
    they add to each other; elements of the first are those of "a reduction of rows", of the others "of columns".
    """
    found: Counter[str] = Counter()
    rows = repeated = reductions = 0
    for statement in statements:
        box = statement.space.box(rank)
        if box is None:
            continue
        kinds = [ref.array.dtype for ref in (*statement.outputs, *statement.reads())]
        size = max(kind.itemsize for kind in kinds)
        name, of_row = _of_reduction(statement) if isinstance(statement, Reduction) else (statement.op.name, "")
        if not isinstance(statement, Reduction) and any(kind.kind == "c" for kind in kinds):
            name = f"complex {name}"
        found[name] += box_size(box) * size // 8
        extents = [hi - lo for lo, hi in box if hi - lo > 1]
        if len(extents) < 2:
            continue
        of_box = math.prod(extents[:-1])
        if isinstance(statement, Reduction):
            if of_row:
                found[of_row] += box_size(box) // max(1, _innermost_extent(statement, box))
                reductions += 1
        elif _repeats_a_row(statement):
            repeated += 1
            rows = max(rows, of_box)
        elif _stores_rows(statement):
            rows = max(rows, of_box)
    if rows:
        found["a row"] = rows * max(1, min(repeated, reductions))
    return tuple(sorted(found.items()))


def _of_reduction(statement: Reduction) -> tuple[str, str]:
    """What a reduction is for each element, and for each row; nothing for these where it leaves a single number."""
    array = statement.inputs[0].array
    if len(statement.axes) == array.ndim:
        return "a reduction", ""
    if _innermost_axis(array) in statement.axes:
        return "a reduction of rows", "a reduced row"
    return "a reduction of columns", "an added row"


def _innermost_axis(array: np.ndarray) -> int:
    """The axis of several elements that lie next to each other."""
    steps = [(abs(step), -axis) for axis, (n, step) in enumerate(zip(array.shape, array.strides, strict=True)) if n > 1]
    return array.ndim - 1 if not steps or min(steps)[0] == 0 else -min(steps)[1]


def _innermost_extent(statement: Reduction, box: Box) -> int:
    low, high = box[_innermost_axis(statement.inputs[0].array)]
    return high - low


def _repeats_a_row(statement: Statement) -> bool:
    """Whether an operand of a statement in several dimensions is an array that is the same for all rows."""
    return any(
        array.ndim > 0
        and array.shape[-1] > 1
        and all(n == 1 or not stride for n, stride in zip(array.shape[:-1], array.strides[:-1], strict=True))
        for array in [ref.array for ref in statement.reads()]
    )


def _stores_rows(statement: Statement) -> bool:
    """Whether what a statement stores, or reads for it, is not one piece of memory."""
    if not any(out.storage.wanted for out in statement.outputs):
        return False
    arrays = [ref.array for ref in (*statement.outputs, *statement.reads()) if ref.array.ndim]
    return not all(array.flags.c_contiguous and array.shape == arrays[0].shape for array in arrays)


def function_work(
    name: str,
    given: Sequence[np.ndarray],
    keywords: Mapping[str, object],
    size: int,
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> FunctionWork:
    """What is known of a call of a function that is no loop.

    Parameters
    ----------
    name : str
    given : sequence of ndarray
        Arrays like its distributed arguments, whole ones.
    keywords : mapping
        Of the call.
    size : int
        The number of ranks, among which the work is taken to be dealt out evenly.
    shapes : sequence of tuple, optional
        Of all its array arguments, also of those that every rank has; default: of `given`.
    """
    nbytes, word = sum(array.nbytes for array in given) // size, name.rpartition(".")[2]
    shapes = [array.shape for array in given] if shapes is None else shapes
    if flops := product_flops(name, shapes):
        kind = "product" if min(len(shape) for shape in shapes[:2]) > 1 else "vector product"
        left, right = shapes[:2]
        side = min(*left[-2:-1], left[-1], *right[-1:], math.prod(left[:-1]) // size or 1) if kind == "product" else 0
        return FunctionWork(name, nbytes, kind, flops // size, side)
    if not given or not given[0].ndim:
        return FunctionWork(name, nbytes)
    shape, elements = given[0].shape, given[0].size // size
    if word in _TALL and len(shape) == 2 and min(shape) * _TALL_RATIO <= max(shape):
        return FunctionWork(name, nbytes, "tall", _TALL[word] * elements * min(shape))
    axis = keywords.get("axis")
    if word in _ALONG_ROWS and isinstance(axis, int) and axis % len(shape) == len(shape) - 1 and shape[-1]:
        return FunctionWork(name, nbytes, "rows", elements // shape[-1])
    if word in _SORTS:
        length = given[0].size if word.startswith("unique") or keywords.get("axis", -1) is None else shape[-1]
        return FunctionWork(name, nbytes, "sort", int(elements * math.log2(max(2, length))))
    if word in _OF_ELEMENTS:
        return FunctionWork(name, nbytes, _OF_ELEMENTS[word], _amount(_OF_ELEMENTS[word], shapes, size))
    if word in _FACTORISATIONS | _SPECTRA and len(shape) > 1 and ".linalg." in name:
        operations = (_FACTORISATIONS | _SPECTRA)[word] * elements * min(shape[-2:])
        if word == "solve" and len(shapes) > 1 and len(shapes[1]) > 1:  # several right sides
            operations += 2 * elements * shapes[1][-1]
        kind = "factorisation" if word in _FACTORISATIONS else "spectrum"
        return FunctionWork(name, nbytes, kind, int(operations))
    if ".fft." in name and word in _TRANSFORMS:
        axes = _TRANSFORMS[word] or given[0].ndim
        return FunctionWork(name, nbytes, "fft", int(5 * elements * sum(math.log2(max(2, n)) for n in shape[-axes:])))
    return FunctionWork(name, nbytes)


def _amount(kind: str, shapes: Sequence[tuple[int, ...]], size: int) -> int:
    """How much a function of this kind does on a rank with arrays of these shapes."""
    sizes = [math.prod(shape) for shape in shapes[:2]]
    least, most = min(sizes), max(sizes)
    if kind == "search":
        return int(most // size * math.log2(max(2, least)))
    if kind == "convolution":
        return most // size * least
    # What is picked counts, not what it is picked from; of a histogram, its elements and not its weights.
    return (math.prod(shapes[1]) if kind == "picking" and len(shapes) > 1 else math.prod(shapes[0])) // size


def _kind_of_draw(draw: Draw, split_it: bool) -> str:
    """Which of `machine.FUNCTION_RATES` random numbers have; "random" for numbers of 0 to 1."""
    name = getattr(draw.make, "__qualname__", "").partition(".")[0]
    if not split_it:
        return "distribution"
    if draw.dtype.kind in "iu":
        return "integers"
    return "normal" if "normal" in name else "exponential" if "exponential" in name else "random"


def _work_of_making(name: str, caller: FrameType, size: int) -> FunctionWork | None:
    """What is known of the making of an array; None where no array is made."""
    if name == "random numbers":
        draw, split_it = caller.f_locals["draw"], caller.f_locals["split_it"]
        dealt = size if split_it else 1
        return FunctionWork(name, 0, _kind_of_draw(draw, split_it), math.prod(caller.f_locals["shape"]) // dealt)
    if name == "making an array" and caller.f_back is not None:
        made = caller.f_back.f_locals
        storage, block_of = made["storage"], made.get("block_of")
        if getattr(block_of, "__qualname__", "").startswith("from_"):  # of another array
            return FunctionWork(name, 0, "copy", 2 * storage.memory.size)
        return FunctionWork(name, 0, "making", storage.memory.size // storage.dtype.itemsize)
    return None


def product_flops(name: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """Floating-point operations of a matrix product of arrays of these shapes; 0 for anything else."""
    if name.rpartition(".")[2] not in _PRODUCTS or len(shapes) < 2 or not (shapes[0] and shapes[1]):
        return 0
    left, right = shapes[:2]
    inner = left[-1] or 1
    return 2 * math.prod(left) * math.prod(right) // inner // (1 if len(right) < 3 else math.prod(right[:-2]))
