"""Input from files: each rank reads its part of binary files and of large texts (`numpy_dist.files`)."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.functions.array_creation_from_data import by_every_rank, from_local, ingest
from numpy_dist.dispatch.patterns.creation import OURS, Shape, chosen_layout, elsewhere, is_replicated, permuted
from numpy_dist.dispatch.patterns.threads import threads_of_rank
from numpy_dist.files.npy import ArrayInFile, array_of_bytes, array_of_npy
from numpy_dist.files.npz import member_reader
from numpy_dist.files.reading import Reader, agreed
from numpy_dist.files.texts import can_be_divided, line_pieces, line_ranges, lines_as_file
from numpy_dist.parallel.threads import run_together

if TYPE_CHECKING:
    from typing import IO

    from numpy._typing import _SupportsArrayFunc

    from numpy_dist.backends.base import TextReader
    from numpy_dist.distarray.array import DistArray
    from numpy_dist.layout.layout import Layout
    from numpy_dist.layout.mesh import Mesh


class NpzFile(Mapping[str, Any]):
    """What `numpy.load` returns for an ``.npz`` file, with distributed arrays in it.

    An array is read when it is asked for: each rank reads its part, if the file was given by name (collective).
    """

    def __init__(self, file: np.lib.npyio.NpzFile, path: str | None) -> None:
        self._file, self._path = file, path
        self.files = file.files

    def __getitem__(self, name: str) -> Any:
        reader = self._reader(name)
        if reader is not None and not is_replicated(reader.array.shape, reader.dtype, None):
            return read_array(reader, None)
        made = self._file[name] if self._path is None else _alike(self._path, lambda: self._file[name])
        return ingest(made, None, None, None, None, None) if isinstance(made, np.ndarray) else made

    def _reader(self, name: str) -> Reader | None:
        """What reads parts of an array (collective); None for other members, and where the file has no name."""
        path, archive = self._path, self._file.zip
        if path is None or archive is None:
            return None
        member = name if name in archive.namelist() else f"{name}.npy"
        found: Reader | None = None

        def look() -> ArrayInFile | None:
            nonlocal found
            if name in self._file:
                found = member_reader(path, archive, member)
            return None if found is None else found.array

        agreed(engine.runtime().comm, path, look)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file)

    def __len__(self) -> int:
        return len(self._file)

    def __contains__(self, name: object) -> bool:
        return name in self._file

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __repr__(self) -> str:
        return repr(self._file)


@functools.wraps(np.load)
def load(
    file: str | os.PathLike[str] | IO[bytes],
    mmap_mode: Literal["r", "r+", "w+", "c"] | None = None,
    *args: Any,
    **kwargs: Any,
) -> object:
    """As `numpy.load`; each rank reads only its part of an ``.npy`` file that is given by name (collective)."""
    comm, named = engine.runtime().comm, isinstance(file, str | bytes | os.PathLike)
    if mmap_mode is None and isinstance(file, str | os.PathLike):
        found = agreed(comm, file, functools.partial(array_of_npy, file))
        if found is not None and not is_replicated(found.shape, found.dtype, None):
            return read_array(Reader(file, found), None)
    read = functools.partial(np.load, file, mmap_mode, *args, **kwargs)
    made = _alike(file, read) if named else read()
    if isinstance(made, np.lib.npyio.NpzFile):
        return NpzFile(made, os.fspath(file) if isinstance(file, str | os.PathLike) else None)
    return ingest(made, None, None, None, None, None) if isinstance(made, np.ndarray) else made


def _described(made: object) -> str:
    """What all ranks must find alike in a file, in words."""
    if isinstance(made, np.ndarray):
        return f"an array of shape {made.shape}, {made.dtype}"
    if isinstance(made, np.lib.npyio.NpzFile):
        return f"an archive of {', '.join(made.files) or 'nothing'}"
    return f"an object of {type(made).__name__}"


def _alike(path: Any, read: Callable[[], object]) -> Any:
    """What every rank reads of a file by itself (collective, one allgather)."""
    made: object = None

    def look() -> str:
        nonlocal made
        made = read()
        return _described(made)

    agreed(engine.runtime().comm, path, look)
    return made


def _of_all_ranks(function: Callable[..., object], *args: object, **kwargs: object) -> object:
    """What a function of NumPy reads; of a file that is given by name, alike on all ranks (collective then)."""
    path = args[0] if args else kwargs.get("fname", kwargs.get("file"))
    read = functools.partial(function, *args, **kwargs)
    return _alike(path, read) if isinstance(path, str | os.PathLike) else read()


def read_array(reader: Reader, split: int | None, mesh: Mesh | Sequence[int] | None = None) -> object:
    """A distributed array of the elements in a file, of which `reader` reads parts (collective)."""
    found = reader.array
    layout = chosen_layout(found.shape, split, mesh)

    def make(shape: Shape, layout: Layout | None) -> engine.Handle:
        return engine.from_filler(reader.fill, shape, found.dtype, layout)

    axes = tuple(range(len(found.shape)))[::-1] if found.fortran and len(found.shape) > 1 else None
    made = None
    try:
        made = permuted(make, found.shape, layout, axes)
    except MemoryError as error:  # of this rank
        reader.failure = error
    reader.finish(engine.runtime().comm)
    return made


@functools.wraps(np.fromregex)
def fromregex(*args: object, **kwargs: object) -> DistArray:
    return ingest(_of_all_ranks(np.fromregex, *args, **kwargs), None, None, None, None, None)


_loadtxt_by_every_rank = by_every_rank(__name__, np.loadtxt, _of_all_ranks)


@implements(np.loadtxt, varies=OURS, replicated=True)
def loadtxt(
    fname: object,
    dtype: DTypeLike | None = float,
    comments: object = "#",
    delimiter: str | None = None,
    converters: object = None,
    skiprows: int = 0,
    usecols: object = None,
    unpack: bool = False,
    ndmin: Literal[0, 1, 2] = 0,
    encoding: str | None = None,
    max_rows: int | None = None,
    *,
    quotechar: str | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> object:
    """As `numpy.loadtxt`; each rank reads and parses its part of the lines of a large file given by name (collective).

    What NumPy complains about, and all else than plain numbers in an encoding where lines are found by their bytes, is
    read as a whole by every rank.
    """
    kind = None if dtype is None else np.dtype(dtype)
    plain = not elsewhere(like) and isinstance(fname, str | os.PathLike) and max_rows is None and quotechar is None
    if plain and kind is not None and kind.kind in "biufcmM" and ndmin in (0, 1, 2) and encoding != "bytes":
        parse = functools.partial(
            np.loadtxt,
            dtype=kind,
            comments=comments,
            delimiter=delimiter,
            converters=converters,
            usecols=usecols,
            ndmin=2,
            encoding=encoding,
        )
        simple = kind == np.float64 and kind.isnative and converters is None and usecols is None
        read = _number_reader(comments, delimiter) if simple else None
        rows = _parsed_in_parts(fname, skiprows, encoding, parse, read)
        if rows is not None:
            return _as_asked_for(rows, ndmin, unpack, split, mesh)
    return _loadtxt_by_every_rank(
        fname,
        dtype,
        comments,
        delimiter,
        converters,
        skiprows,
        usecols,
        unpack,
        ndmin,
        encoding,
        max_rows,
        quotechar=quotechar,
        like=like,
        split=split,
        mesh=mesh,
    )


def _as_asked_for(
    rows: Any, ndmin: int, unpack: bool | None, split: int | None, mesh: Mesh | Sequence[int] | None
) -> object:
    """The rows of a text with the axes and the layout that a caller wants."""
    made = rows[:, 0] if rows.shape[1] == 1 and ndmin < 2 else rows
    layout = chosen_layout(made.shape, split, mesh) or engine.runtime().default_layout(made.shape)
    if made is not rows or engine.layout_of(made) != layout:
        made = engine.copy(made, layout=layout)
    return made.T if unpack else made


_NUMERIC = frozenset("0123456789+-.eE \t\r\n")
_PIECE = 1 << 23  # bytes of text that a thread reads at once

Parse = Callable[[str], np.ndarray]
"""The rows of a file of whole lines."""
Read = Callable[[bytes], np.ndarray | None]
"""The rows of a text of whole lines; None where only NumPy can tell."""


def _number_reader(comments: object, delimiter: object) -> Read | None:
    """What reads plain numbers quicker than NumPy does; None if there is nothing, or numbers may be comments."""
    reader: TextReader | None = getattr(engine.runtime().backend, "text_reader", None)
    words = [] if comments is None else [comments] if isinstance(comments, str) else comments
    if reader is None or not (isinstance(words, Sequence) and all(isinstance(word, str) and word for word in words)):
        return None
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii()):
        return None
    if delimiter is not None and delimiter in _NUMERIC - {"\t"}:
        return None
    if any(_NUMERIC.union(delimiter or "").intersection(word) for word in words):
        return None
    return functools.partial(reader.rows, delimiter=delimiter)


def _rows_of_lines(
    path: str | os.PathLike[str],
    span: tuple[int, int],
    parse: Parse,
    read: Read | None,
    empty: Callable[..., np.ndarray],
) -> np.ndarray:
    """The rows in a range of the bytes of a text, parsed by all threads of the rank; `empty` makes their memory."""
    if read is None:
        with lines_as_file(path, span) as lines:
            return parse(lines)
    pieces = line_pieces(path, span, _PIECE)
    threads = min(threads_of_rank(), len(pieces))
    found: dict[int, np.ndarray] = {}

    def work(first: int) -> None:
        for number in range(first, len(pieces), threads):
            start, stop = pieces[number]
            with open(path, "rb", buffering=0) as file:
                file.seek(start)
                text = file.read(stop - start)
            if len(text) < stop - start:
                raise OSError(f"{os.fspath(path)} has become shorter while it was read")
            rows = read(text)
            if rows is None:
                with lines_as_file(path, (start, stop)) as lines:
                    rows = parse(lines)
            found[number] = rows

    with Postponed():
        run_together([functools.partial(copy_context().run, work, first) for first in range(threads)])
    parts = [found[number] for number in range(len(pieces)) if len(found[number])] or [found[0]]
    if len({part.shape[1] for part in parts}) > 1:
        raise ValueError("lines of several lengths")  # NumPy says which
    return np.concatenate(parts, out=empty((sum(map(len, parts)), parts[0].shape[1])))


class _DividedText(NamedTuple):
    """A text that all ranks must see alike: its bytes, and the ranges of them that are theirs, if it is divided."""

    nbytes: int
    ranges: list[tuple[int, int]] | None

    def __str__(self) -> str:
        return f"a text of {self.nbytes} bytes"


def _parsed_in_parts(path: Any, skipped: Any, encoding: str | None, parse: Parse, read: Read | None) -> object:
    """The rows of a large text, of which each rank has parsed some (collective); None where every rank reads it.

    Parameters
    ----------
    path : str or path-like
    skipped : int
        Lines at the beginning.
    encoding : str, optional
    parse : callable
    read : callable, optional
        As far as it can it is asked in place of `parse`.
    """
    comm = engine.runtime().comm
    if comm.size == 1 and read is None:
        return None

    def look() -> _DividedText | None:
        if not can_be_divided(path, encoding):
            return None
        size = os.stat(path).st_size
        worth = os.path.isfile(path) and engine.default_shard(size) and type(skipped) is int and skipped >= 0
        # What is not worth it, or has lines skipped in another way, is NumPy's to read or to refuse.
        return _DividedText(size, line_ranges(path, skipped, comm.size) if worth else None)

    try:
        found = agreed(comm, path, look)
    except FileNotFoundError as error:
        if getattr(error, "__notes__", None):  # other ranks see it
            raise
        return None  # NumPy says it
    if found is None or found.ranges is None:
        return None
    part: np.ndarray | None = None
    with engine.Scratch() as scratch:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.filterwarnings("ignore", "loadtxt: input contained no data")
                part = _rows_of_lines(path, found.ranges[comm.rank], parse, read, scratch.empty)
        except Exception as error:  # NumPy tells it of the whole file, where it can number the rows
            del error
        told = comm.allgather(None if part is None else part.shape)
        widths = {shape[1] for shape in told if shape is not None and shape[0]}
        if part is None or None in told or len(widths) != 1 or sum(shape[0] for shape in told) < 2:
            return None
        return from_local(part if len(part) else part.reshape(0, *widths))


_genfromtxt_by_every_rank = by_every_rank(__name__, np.genfromtxt, _of_all_ranks)
_GENFROMTXT = inspect.signature(np.genfromtxt)
# What may be given for lines to be parsed apart from others; None is the default of all else that may be None.
_OF_LINES = frozenset({"fname", "dtype", "comments", "delimiter", "skip_header", "unpack", "encoding", "ndmin"})


@implements(np.genfromtxt, replicated=True)
@functools.wraps(np.genfromtxt, assigned=())  # it is of this module
def genfromtxt(
    *args: object,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
    **kwargs: object,
) -> object:
    """As `numpy.genfromtxt`; each rank parses its part of the lines of a large file of numbers (collective).

    That is what it does with float64 and the arguments that say how lines are divided, where missing values are NaN;
    every rank reads all of other files, and of what NumPy complains about.
    """
    given = {} if elsewhere(like) else _GENFROMTXT.bind(*args, **kwargs).arguments
    if given and all(name in _OF_LINES or value is None for name, value in given.items()):
        options = {name: given.get(name, _GENFROMTXT.parameters[name].default) for name in _OF_LINES}
        fname, comments, delimiter, ndmin = (options[name] for name in ("fname", "comments", "delimiter", "ndmin"))
        numbers = options["dtype"] in (float, np.float64) and (comments is None or isinstance(comments, str))
        if numbers and isinstance(fname, str | os.PathLike) and ndmin in (0, 1, 2) and options["encoding"] != "bytes":
            parse = functools.partial(
                np.genfromtxt, comments=comments, delimiter=delimiter, encoding=options["encoding"], ndmin=2
            )
            read = _number_reader(comments, delimiter)
            rows = _parsed_in_parts(fname, options["skip_header"], options["encoding"], parse, read)
            if rows is not None:
                return _as_asked_for(rows, ndmin, options["unpack"], split, mesh)
    return _genfromtxt_by_every_rank(*args, like=like, split=split, mesh=mesh, **kwargs)


@implements(np.fromfile, varies=OURS, replicated=True)
def fromfile(
    file: str | os.PathLike[str] | IO[bytes],
    dtype: DTypeLike | None = None,
    count: int = -1,
    sep: str = "",
    offset: int = 0,
    *,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> object:
    """The contents of a file, as `numpy.fromfile`; each rank reads only its part of a binary file given by name."""
    kind = np.dtype(float if dtype is None else dtype)
    if elsewhere(like):
        return np.fromfile(file, kind, count, sep, offset, like=like)
    if not sep and isinstance(file, str | os.PathLike) and kind.itemsize:
        look = functools.partial(array_of_bytes, file, kind, count, offset)
        found = agreed(engine.runtime().comm, file, look)
        if found.shape[0] and not is_replicated(found.shape, kind, chosen_layout(found.shape, split, mesh)):
            return read_array(Reader(file, found), split, mesh)
    return ingest(np.fromfile(file, kind, count, sep, offset), None, None, None, split, mesh)
