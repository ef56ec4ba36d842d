"""Random arrays over the ranks: each makes its share of a call, and all end in NumPy's state after the call.

The shards of a random array are cut along one axis, the first that is as long as there are ranks: for the leading
axis a shard is one stretch of NumPy's sequence, which is what can be made by itself, and no sample ever moves. (The
default layout would cut, say, a square at four ranks into four squares: each rank would have to make twice its share,
or half of the array would have to travel. An operation with an array of another layout redistributes one of the two,
as always.) Arrays that have no such axis are tiny, and made by every rank.

Fixed draws need no communication. Draws with rejection need one ``allgather`` of a few integers (see `split`). A bit
generator without skip-ahead, and calls so small that splitting costs more than it saves, are made in whole by every
rank, piece by piece, and each keeps its part: correct, with the memory of a shard, in the time of one rank.

The threads of the only rank share a call as ranks do. Each of several ranks divides fixed draws among its threads;
for others the ranks would have to know of each other how many threads they have.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.divergence.diagnosis import PAGE
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.dispatch.patterns.threads import threads_of_rank
from numpy_dist.engine.data.ingest import leaves_out
from numpy_dist.errors import DivergenceError
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.threads import run_together
from numpy_dist.random import split
from numpy_dist.random.draws import CHUNK, Draw, Front
from numpy_dist.random.streams import State, Stream, stream_of
from numpy_dist.settings import config

if TYPE_CHECKING:
    import numpy.typing as npt

#: Seconds that a sample takes, about: what splitting has to compete with.
SECONDS = {"fixed": 5e-9, "variable": 1.5e-8, "filtered": 1.5e-8}
_FEW = 1 << 16  # samples that are not worth a thread


def layout_of_shape(shape: tuple[int, ...]) -> Layout | None:
    """The layout of a new random array; None where no axis is as long as there are ranks."""
    size = engine.runtime().size
    axis = next((axis for axis, extent in enumerate(shape) if extent >= size), None)
    return None if axis is None or 0 in shape else engine.default_layout(shape, split=axis)


def is_small(shape: tuple[int, ...], dtype: npt.DTypeLike) -> bool:
    """Whether an array is too small to be sharded, so that NumPy makes it at once on every rank."""
    return not engine.default_shard(prod(shape) * np.dtype(dtype).itemsize)


def array_of(front: Front, values: np.ndarray) -> engine.Handle:
    """A distributed array of values that `front` has made on every rank."""
    if is_small(values.shape, values.dtype):
        _note(values.tobytes() if not values.dtype.hasobject else b"")
    else:
        _note(_compared(front))
    if not engine.shardable(values.dtype) or not engine.default_shard(values.nbytes):
        return engine.replicated(values)
    return engine.from_global(values, layout_of_shape(values.shape))


class Cuts:
    """Where a call's samples are cut, in C order.

    Attributes
    ----------
    points : list of int
        The limits of the pieces.
    own : list of int
        The calling rank's pieces.
    parts : list of ndarray
        The parts of its shard that they are, 1-d views.
    """

    def __init__(self, points: list[int], own: Sequence[int], parts: list[np.ndarray]) -> None:
        self.points, self.own, self.parts = points, own, parts

    @classmethod
    def between_ranks(cls, layout: Layout, block: np.ndarray) -> Cuts:
        """Those of the shards. Piece ``k`` belongs to rank ``k % size``."""
        (cut,) = layout.dims
        axis = cut.axis  # type: ignore[union-attr]
        shape, size = layout.shape, layout.size
        outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
        points = [
            (o * shape[axis] + point) * inner
            for o in range(outer)
            for point in cut.points[:-1]  # type: ignore[union-attr]
        ]
        points.append(prod(shape))
        rows = block.reshape(outer, -1)
        own = range(engine.runtime().rank, outer * size, size)
        return cls(points, own, [rows[number] for number in range(outer)])

    @classmethod
    def between_threads(cls, samples: np.ndarray, threads: int) -> Cuts:
        """Those of the only rank, for each thread a piece."""
        points = [len(samples) * k // threads for k in range(threads + 1)]
        return cls(points, range(threads), np.split(samples, points[1:-1]))


def make(draw: Draw, front: Front, shape: tuple[int, ...], split_it: bool = True) -> engine.Handle:
    """A distributed array of the next samples of `front`, which is then where NumPy's would be.

    Parameters
    ----------
    draw : Draw
    front : numpy.random.Generator or numpy.random.RandomState
        In the same state on every rank.
    shape : tuple of int
    split_it : bool
        Whether `draw` says truly how many units a token takes; without, every rank makes all.
    """
    runtime, total = engine.runtime(), prod(shape)
    layout = layout_of_shape(shape)
    if is_small(shape, draw.dtype) or layout is None:
        return array_of(front, _whole(draw, front, total).reshape(shape))
    drawn_from = _compared(front)
    # Written straight into the new array's memory: nothing was recorded that could read it.
    made = engine.empty(shape, draw.dtype, layout=layout)
    with nullcontext() if runtime.recorder is None else runtime.recorder.function("random numbers"):
        if leaves_out(made.nbytes // runtime.size):
            pass  # nothing is computed
        elif not (split_it and _made_on_device(draw, front, made, layout)):
            with engine.writing(made) as block:
                if runtime.size > 1:
                    _fill(draw, front, Cuts.between_ranks(layout, block), split_it)
                else:
                    _fill_alone(draw, front, block.reshape(-1), split_it)
    _note(drawn_from)
    return made


def _made_on_device(draw: Draw, front: Front, made: engine.Handle, layout: Layout) -> bool:
    """Make this rank's samples where they lie, if that is a device which knows how; the same on all ranks."""
    device = engine.device(draw.dtype) if draw.bounds is not None else None
    stream = None if device is None else stream_of(_bit_generator(front), draw.unit)
    if device is None or stream is None or draw.bounds is None:
        return False
    low, span = draw.bounds
    with engine.writing(made, library=True) as block:
        if device.size == 1:
            pieces = [(0, block.reshape(-1))]
        else:
            cuts = Cuts.between_ranks(layout, block)
            pieces = [(cuts.points[piece], part) for piece, part in zip(cuts.own, cuts.parts, strict=True)]
        for start, part in pieces:
            if not device.library.uniform(part, stream.at(start).state, low, span):
                return False
    split.restore(front, split.fixed_end(draw, stream, prod(layout.shape)).state)
    return True


def _fill(draw: Draw, front: Front, cuts: Cuts, split_it: bool) -> None:
    """Make this rank's pieces, by the cheapest way; see `make`."""
    size, total = engine.runtime().size, cuts.points[-1]
    stream = stream_of(_bit_generator(front), draw.unit) if split_it else None
    if stream is None or not worthwhile(draw, stream, total, len(cuts.own), size):
        _keep(draw, front, cuts)
    else:
        _split(draw, stream, front, cuts)


def _fill_alone(draw: Draw, front: Front, samples: np.ndarray, split_it: bool) -> None:
    """Make the samples of the only rank, on several threads where that is cheaper."""
    threads = min(threads_of_rank(), len(samples) // _FEW)
    stream = stream_of(_bit_generator(front), draw.unit) if split_it and threads > 1 else None
    if stream is None or not worthwhile(draw, stream, len(samples), 1, threads):
        draw.fill(front, samples)
    else:
        _split(draw, stream, front, Cuts.between_threads(samples, threads))


def worthwhile(draw: Draw, stream: Stream, total: int, pieces: int, size: int) -> bool:
    """Whether splitting a call is faster than making all of it; the same on every rank."""
    overhead = stream.seek_seconds
    overhead += pieces * (stream.seek_seconds if draw.kind == "fixed" else stream.parse_seconds)
    return overhead < SECONDS[draw.kind] * total * (1 - 1 / size)


def _bit_generator(front: Front) -> np.random.BitGenerator:
    return front._bit_generator if isinstance(front, np.random.RandomState) else front.bit_generator


def _whole(draw: Draw, front: Front, total: int) -> np.ndarray:
    samples = np.empty(total, draw.dtype)
    draw.fill(front, samples)
    return samples


def _keep(draw: Draw, front: Front, cuts: Cuts) -> None:
    """Make every sample, and keep this rank's."""
    total = cuts.points[-1]
    chunk = total if draw.kind == "filtered" else CHUNK
    scratch = np.empty(min(chunk, total), draw.dtype)
    limits = [(cuts.points[piece], cuts.points[piece + 1]) for piece in cuts.own]
    first = 0
    for begin in range(0, total, chunk):
        end = min(begin + chunk, total)
        draw.fill(front, scratch[: end - begin])
        while first < len(limits) and limits[first][1] <= begin:
            first += 1
        for (start, stop), part in zip(limits[first:], cuts.parts[first:], strict=True):
            if start >= end:
                break
            low, high = max(start, begin), min(stop, end)
            part[low - start : high - start] = scratch[low - begin : high - begin]


def _split(draw: Draw, stream: Stream, front: Front, cuts: Cuts) -> None:
    """Make this rank's pieces from their places in the sequence, and go to the end of the call."""
    with Postponed():  # threads have the memory until all have ended
        if draw.kind == "fixed":
            _make_fixed(draw, stream, front, cuts)
        else:
            _make_variable(draw, stream, front, cuts)


def _make_fixed(draw: Draw, stream: Stream, front: Front, cuts: Cuts) -> None:
    tasks: list[Callable[[], None]] = []
    for piece, part in zip(cuts.own, cuts.parts, strict=True):
        count = max(min(threads_of_rank(), len(part) // _FEW), 1)
        inner = Cuts.between_threads(part, count if worthwhile(draw, stream, len(part), 1, count) else 1)
        for point, its in zip(inner.points[:-1], inner.parts, strict=True):
            tasks.append(partial(split.fixed_piece, draw, stream, cuts.points[piece] + point, its))
    _run(tasks)
    split.restore(front, split.fixed_end(draw, stream, cuts.points[-1]).state)


def _make_variable(draw: Draw, stream: Stream, front: Front, cuts: Cuts) -> None:
    """Make samples of a draw with rejection."""
    state = split.state_of(front)
    # A normal that the legacy generator holds back is the call's first sample, and takes nothing from the sequence.
    held = int(state.get("has_gauss", 0)) if draw.unit == "pair" else 0
    points = [max(0, point - held) for point in cuts.points]
    raw = split.raw_cuts(draw, points)
    lengths = [points[piece + 1] - points[piece] for piece in cuts.own]
    places = [part[len(part) - length :] for part, length in zip(cuts.parts, lengths, strict=True)]
    parsed: dict[int, split.Parsed] = {}

    def parse(turn: int) -> None:
        piece = cuts.own[turn]
        parsed[turn] = split.speculate(draw, stream, raw[piece], raw[piece + 1], places[turn])

    def collect(turn: int) -> None:
        piece = cuts.own[turn]
        split.collect(draw, stream, parsed[turn], piece, anchors, points[piece], places[turn])

    _run([partial(parse, turn) for turn in range(len(places))])
    summaries = [parsed[turn].summary for turn in range(len(places))]
    everywhere = _agree(state, summaries) if engine.runtime().size > 1 else [summaries]
    anchors = split.resolve([theirs[turn] for turn in range(len(cuts.own)) for theirs in everywhere])
    _run([partial(collect, turn) for turn in range(len(places))])
    if held and 0 in cuts.own:
        cuts.parts[0][:1] = draw.make(front, 1)
    split.restore(front, split.finish(draw, stream, anchors, points[-1]))


def _run(tasks: Sequence[Callable[[], None]]) -> None:
    """Do all of this on the threads of the rank."""
    threads = min(threads_of_rank(), len(tasks))

    def work(first: int) -> None:
        for task in tasks[first::threads]:
            task()

    if threads:
        run_together([partial(work, first) for first in range(threads)])


def _compared(front: Front) -> bytes:
    """The state of a generator, compared with those of other ranks with ``CHECK=on``; to be noted after the draw.

    Draws that compare states themselves raise before anything is noted that ranks would never agree on again.
    """
    if engine.runtime().size == 1:
        return b""
    state = split.state_of(front)
    if config.CHECK == "on":
        _agree(state, None)
    return flat(state)


def _note(what: bytes) -> None:
    """Note that random numbers were drawn, and what all ranks must do alike: they are compared where they meet."""
    checks = engine.runtime().comm.checks
    if checks is not None:
        checks.draws(f"{zlib.crc32(what):08x}")


def _agree(state: State, mine: object) -> list[Any]:
    """What every rank says, and proof that their generators are in one state. Collective.

    Raises
    ------
    DivergenceError
        On every rank, if they are not.
    """
    told = engine.runtime().comm.allgather((zlib.crc32(flat(state)), mine))
    differ = [rank for rank, (mark, _) in enumerate(told) if mark != told[0][0]]
    if differ:
        raise DivergenceError(
            f"random numbers were asked for, but the bit generators of ranks {differ} are not in the state of rank "
            "0's: they were seeded differently, or used on some ranks only. Seed them alike, and draw on every rank; "
            f"what one rank draws for itself comes from a generator of its own. See {PAGE}."
        )
    return [said for _, said in told]


def flat(value: object) -> bytes:
    """The bytes of a state dictionary."""
    if isinstance(value, dict):
        return b"".join(key.encode() + flat(value[key]) for key in sorted(value))
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
