"""Counts of a program at any number of ranks, without these ranks and without computing anything."""

from __future__ import annotations

import contextvars
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product

import numpy as np

from numpy_dist import distarray as distarray  # arrays are DistArrays
from numpy_dist import engine
from numpy_dist.backends.memory import Block, make_zero_block
from numpy_dist.comm import detect
from numpy_dist.comm.counting import Broadcasts, CountingCommunicator
from numpy_dist.comm.process_state import ProcessState
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.engine.scheduling.counters import EngineCounters
from numpy_dist.layout.default import default_layout
from numpy_dist.settings import config

ALL_RANKS = 16  # at most so many are all counted, of more ranks some


@dataclass
class RankCounts(EngineCounters):
    """What one rank does: `EngineCounters`, and what it communicates.

    Attributes
    ----------
    messages, bytes : int
        Messages that it sends, and bytes that it sends in messages and collectives.
    collectives : int
        Collective operations.
    written : int
        Bytes that it would write to files.
    """

    messages: int = 0
    bytes: int = 0
    collectives: int = 0
    written: int = 0

    def wrote(self, nbytes: int) -> None:
        """Count what would be written."""
        self.written += nbytes


class ProgramCounts(Mapping[int, RankCounts]):
    """The counts of the ranks that were looked at, by rank; it prints itself as a table.

    Attributes
    ----------
    ranks : int
        How many ranks the program was for.
    """

    def __init__(self, ranks: int, counts: dict[int, RankCounts]) -> None:
        self.ranks, self._counts = ranks, counts

    def __getitem__(self, rank: int) -> RankCounts:
        return self._counts[rank]

    def __iter__(self) -> Iterator[int]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def most(self, name: str) -> int:
        """The largest count of this name."""
        return max(getattr(counts, name) for counts in self._counts.values())

    def __str__(self) -> str:
        alike: dict[tuple[int, ...], list[int]] = {}
        names = [field.name for field in fields(RankCounts)]
        for rank, counts in self._counts.items():
            alike.setdefault(tuple(getattr(counts, name) for name in names), []).append(rank)
        shown = [n for n, _ in enumerate(names) if any(values[n] for values in alike)]
        rows = [["ranks", *(names[n] for n in shown)]]
        rows += [[_listed(ranks), *(f"{values[n]:,}" for n in shown)] for values, ranks in alike.items()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(text.rjust(w) for text, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        which = "all" if len(self) == self.ranks else f"{len(self)} of them"
        return "\n".join([f"Program for {self.ranks:,} ranks, {which} counted one by one", *lines])

    __repr__ = __str__


def _listed(ranks: list[int]) -> str:
    shown = [str(rank) for rank in ranks]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:4], "...", shown[-1]])


NO_MATRIX = (
    "Nothing is computed where a program is only counted or planned: a matrix holds what was in memory, of which this "
    "function makes nothing. Leave the call out, or give it a matrix of its own, as numpy_dist.eye(n)"
)
"""What is to be said of an error that says that a matrix has no inverse, or that something does not converge."""


def count_program(
    function: Callable[..., object], *args: object, ranks: int, only: Iterable[int] | None = None, value: float = 0.0
) -> ProgramCounts:
    """Count what each of `ranks` ranks would do in ``function(*args)``: loops, reads, writes, messages, bytes, gathers.

    Plans depend on metadata and the rank's number only, so one rank after another is run here by itself, with the
    backend ``null``, which computes nothing, and a communicator that counts and delivers nothing. Memory is at most one
    rank's share. Not collective: it has nothing to do with the ranks of the running program.

    Parameters
    ----------
    function : callable
        Runs unchanged; it is called once for each rank that is counted. What it prints, it prints each time. What it
        writes by functions of `numpy_dist`, or of NumPy's with distributed arrays, comes to no file and is counted;
        what it writes itself (``open(path, "w")``, `numpy.save` of an ndarray) is written, each time.
    *args
        Its arguments. For arrays it gets distributed arrays of the same shape and dtype in the default layout for
        `ranks` ranks, without values (replicated ones, with the values, below ``MIN_SHARD_BYTES``). An array that is
        too large for this machine is given as ``np.broadcast_to(0.0, shape)``.
    ranks : int
        The number of ranks.
    only : iterable of int, optional
        Which ranks are counted. Default: all of up to 16 ranks; of more, those at the corners, on the edges and inside
        of the default meshes of one, two and three dimensions.
    value : float
        What the result of every reduction is taken to be (``float(x.sum())`` too), on all ranks alike.

    Returns
    -------
    ProgramCounts
        `RankCounts` by rank, from the call of the function until all that it recorded would have run.

    Raises
    ------
    RuntimeError
        Where a rank needs the broadcast of a rank that was not counted before it (rank 0 always is).

    Notes
    -----
    Values mean nothing here: computed arrays hold zeros or whatever was there, reductions give `value`, and so a loop
    ``while residual > tolerance`` ends at once; other ranks' parts of a collective are taken to be like this rank's.
    Counts that depend on values (of masks, sorts, convergence) are then those of such a program. A matrix that all
    ranks factor together is taken to be the identity.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> def smooth(grid):
    ...     grid[1:-1] = (grid[:-2] + grid[2:]) / 2
    >>> counts = numpy_dist.count_program(smooth, np.broadcast_to(0.0, 64_000), ranks=64)
    >>> counts[0].loops, counts[0].messages, counts[32].messages, counts.most("bytes")
    (1, 1, 2, 16)
    """
    chosen = representatives(ranks) if only is None else sorted({int(rank) for rank in only})
    outside = [rank for rank in chosen if not 0 <= rank < ranks]
    if outside:
        raise ValueError(f"there is no rank {outside[0]} of {ranks}")
    counts = _count_ranks(ranks, sorted({0, *chosen}), value, function, args)
    return ProgramCounts(ranks, {rank: counts[rank] for rank in chosen})


def _count_ranks(
    size: int, ranks: list[int], value: float, function: Callable[..., object], args: tuple
) -> dict[int, RankCounts]:
    """Run the function as one rank after another."""
    broadcasts: Broadcasts = {}
    state = ProcessState.capture()
    counts = {}
    try:
        for rank in ranks:
            state.fork().restore()
            if rank:  # every rank issues each warning; one rank's are enough to see
                warnings.showwarning = _show_nothing
            comm = CountingCommunicator(rank, size, broadcasts)
            counts[rank] = contextvars.copy_context().run(_count_rank, comm, value, function, args)
    finally:
        state.restore()
    return counts


def _show_nothing(*args: object, **kwargs: object) -> None:
    """In place of `warnings.showwarning`; filters that make errors of warnings still do."""


def _count_rank(comm: CountingCommunicator, value: float, function: Callable[..., object], args: tuple) -> RankCounts:
    """Run the function as one rank, in a context of its own."""
    detect.reset_rank_local()
    detect.current.set(comm)
    counts = RankCounts()
    comm.unwritten = counts.wrote
    with config(BACKEND="null"):
        rt = engine.runtime()
        rt.backend.value = value  # type: ignore[attr-defined]
        rt.pool = _Zeros()
        given = [_without_values(x) for x in args]
        rt.counters.reset()
        comm.counters.reset()
        try:
            try:
                result = function(*given)  # held: what it returns is wanted
            except np.linalg.LinAlgError as error:
                error.add_note(NO_MATRIX)
                raise
            rt.program.run()
        except Exception as error:
            error.add_note(f"raised as rank {comm.rank} of {comm.size} was counted")
            raise
        del result
    return replace(counts, **vars(rt.counters), **vars(rt.comm.counters))


def _without_values(x: object) -> object:
    """A distributed array like an array, without its values; anything else as it is."""
    if engine.is_handle(x):
        x = _Like(x._array) if engine.is_sharded(x) else engine.plain(x)
    if not isinstance(x, np.ndarray | _Like):
        return x
    order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    made = engine.empty(x.shape, x.dtype, order)
    if made._storage is None:
        return engine.replicated(np.array(x)) if isinstance(x, np.ndarray) else made
    box = made._storage.layout.box(engine.runtime().rank)
    if box is not None:
        made._storage.allocate(box)
    return made


class _Like:
    """Metadata of an array whose values must not be read."""

    def __init__(self, array: np.ndarray) -> None:
        self.shape, self.dtype, self.flags = array.shape, array.dtype, array.flags


class _Zeros(Pool):
    """Allocations of zeros, whose pages do not exist before something is written to them; nothing is reused."""

    def __init__(self) -> None:
        super().__init__(limit=0)

    def take(self, nbytes: int, announces: bool = True) -> Block:
        self.held += nbytes
        self.peak = max(self.peak, self.held)
        return make_zero_block(nbytes)


def representatives(ranks: int) -> list[int]:
    """All of a few ranks; of many those that differ in their neighbours on the default meshes."""
    if ranks <= ALL_RANKS:
        return list(range(ranks))
    chosen: set[int] = set()
    for ndim in (1, 2, 3):
        mesh = default_layout((1 << 20,) * ndim, ranks).mesh
        chosen.update(map(mesh.rank, product(*(sorted({0, n // 2, n - 1}) for n in mesh.shape))))
    return sorted(chosen)
