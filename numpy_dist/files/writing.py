"""Output of distributed arrays to files: each rank writes its part, and nobody sees a file that is half written.

Rank 0 makes the `Replacement` of a file; its path counts. Where every rank sees that, and the parts of the ranks are
long runs of bytes, each rank writes its own from where they lie. Else pieces of some megabytes go to one rank after the
other, which writes them. Where ranks do not see the file of rank 0, or it is no regular one, rank 0 writes all of it,
piece by piece. Ranks agree on errors before the file gets its name.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.portable import agree, on_root
from numpy_dist.files.nowhere import Told, Unwritten, close, open_nowhere
from numpy_dist.files.pieces import bytes_of, in_long_runs, write_all, write_box, write_piece
from numpy_dist.files.replacement import Replacement, named_as, replacing
from numpy_dist.ir import structure
from numpy_dist.layout.runs import run_length, runs

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator
    from numpy_dist.layout.regions import Box

__all__ = [
    "Path",
    "count_pieces",
    "in_file_order",
    "on_every_rank",
    "write_array",
    "write_file",
    "write_on_root",
    "write_parts",
    "write_pieces",
]

Path = str | bytes | os.PathLike[str]
_ROOT = 0
_SOME_NUMBER = 1 << 24  # in the place of a file's, which takes as much room in a message


def in_file_order(x: Any) -> tuple[Any, bool]:
    """The view of an array whose C order a file has, and whether that is the Fortran order of the array."""
    fortran = x.flags.f_contiguous and not x.flags.c_contiguous
    return (x._view(structure.attribute, "T") if fortran else x), fortran


def write_on_root(
    path: Path,
    arrays: Sequence[engine.Handle],
    write: Callable[[IO[Any], engine.Read], None],
    opened: Callable[[IO[bytes]], Any] | None = None,
) -> None:
    """Let rank 0 write a file, which gets the values piece by piece (collective).

    Parameters
    ----------
    path : str, bytes or path-like
    arrays : list of DistArray
    write : callable
        ``write(file, read)``, as for `engine.stream`.
    opened : callable, optional
        As for `replacing`.
    """

    def on_root(read: engine.Read) -> None:
        with replacing(path, opened, engine.runtime().comm.unwritten) as file:
            write(file, read)

    engine.stream(arrays, on_root)


def write_array(path: Path, header: bytes, x: Any) -> None:
    """Write a file that has the elements of an array in C order behind a header (collective).

    Parameters
    ----------
    path : str, bytes or path-like
        Rank 0's counts.
    header : bytes
    x : DistArray

    Raises
    ------
    OSError
        On every rank, naming the path and the rank that has met it; the file is as it was before.
    GatherError
        If not even pieces may be gathered.
    """
    comm = engine.runtime().comm
    nbytes = x._array.nbytes

    def by_all(descriptor: int) -> None:
        if nbytes:
            write_parts(comm, descriptor, len(header), x, path)

    def on_rank_0(file: IO[bytes], read: engine.Read) -> None:
        file.write(header)
        for key in engine.parts_in_order(x.shape, x.dtype.itemsize):
            file.write(read(0, key).tobytes())

    write_file(comm, path, header, len(header) + nbytes, by_all, [x], on_rank_0)


def write_pieces(path: Path, x: Any, keys: list[tuple], text_of: Callable[[int, np.ndarray], bytes]) -> None:
    """Write a file of what is made of the pieces of an array, one after the other (collective).

    Each rank gets some of them, in turn, and makes and writes what becomes of these.

    Parameters
    ----------
    path : str, bytes or path-like
        Rank 0's counts.
    x : DistArray
    keys : list of tuple
        Basic indices of the pieces.
    text_of : callable
        ``text_of(number, piece)``: what is to be written of a piece.

    Raises
    ------
    OSError, GatherError
        As `write_array`.
    Exception
        On every rank, what the first of `text_of` has raised.
    """
    comm = engine.runtime().comm

    lengths_of: dict[tuple[int, ...], int] = {}  # by the shapes of pieces, where texts are only counted

    def by_all(descriptor: int) -> None:
        place = 0
        for first in range(0, len(keys), comm.size):
            pieces = [
                engine.gather(x._view(structure.index, key), rank)
                for rank, key in enumerate(keys[first : first + comm.size])
            ]
            text, failure = b"", None
            try:
                if comm.rank < len(pieces) and pieces[comm.rank].shape not in lengths_of:
                    text = text_of(first + comm.rank, pieces[comm.rank])
            except Exception as error:
                failure = error
            agree(failure, comm)
            length = len(text)
            if comm.unwritten is not None and comm.rank < len(pieces):
                length = lengths_of.setdefault(pieces[comm.rank].shape, length)
                comm.unwritten(length)
                text = b""
            lengths = comm.allgather(length)
            start = place + sum(lengths[: comm.rank])
            on_every_rank(comm, path, functools.partial(write_piece, descriptor, text, start) if text else None)
            place += sum(lengths)

    def on_rank_0(file: IO[bytes], read: engine.Read) -> None:
        for number, key in enumerate(keys):
            file.write(text_of(number, read(0, key)))

    write_file(comm, path, b"", 0, by_all, [x], on_rank_0)


def count_pieces(unwritten: Told, arrays: Sequence[Any], read: engine.Read) -> None:
    """Count what rank 0 would write of arrays that it gets piece by piece."""
    for number, x in enumerate(arrays):
        for key in engine.parts_in_order(x.shape, x.dtype.itemsize):
            unwritten(read(number, key).nbytes)


def write_file(
    comm: Communicator,
    path: Path,
    header: bytes,
    nbytes: int,
    by_all: Callable[[int], None],
    arrays: Sequence[engine.Handle],
    on_rank_0: Callable[[IO[bytes], engine.Read], None],
) -> None:
    """Write a file (collective).

    Parameters
    ----------
    comm : Communicator
    path : str, bytes or path-like
    header : bytes
        What is in it when `by_all` is called.
    nbytes : int
        How much room it needs, if that is known.
    by_all : callable
        What all ranks call with their descriptors, if all see the file.
    arrays : list of DistArray
    on_rank_0 : callable
        What rank 0 calls if they do not, as for `engine.stream`.
    """
    comm.signals.install()
    with comm.signals:
        target = _new(comm, path, header, nbytes)
        descriptor = -1
        try:
            descriptor = _joined(comm, target)
            if all(comm.allgather(descriptor >= 0)) if comm.size > 1 else descriptor >= 0:
                by_all(descriptor)
            else:

                def write(read: engine.Read) -> None:
                    assert target.replacement is not None
                    with target.replacement.open() as file:
                        on_rank_0(file, read)

                total = sum(x._array.nbytes for x in arrays)
                with engine.activity(f"writing {_name(path)}", total, stepwise=True):
                    engine.stream(arrays, write)
            synchronised = descriptor >= 0 and target.replacement is None and comm.unwritten is None
            on_every_rank(comm, path, functools.partial(os.fsync, descriptor) if synchronised else None)
            on_root(target.commit, comm, _ROOT)
        except BaseException:
            if target.is_named:  # rank 0 may have ended
                with contextlib.suppress(OSError):
                    os.unlink(target.where)
            raise
        finally:
            if target.replacement is not None:
                target.replacement.discard()
            elif descriptor >= 0:
                close(descriptor)


class _Target(NamedTuple):
    """A file that is being written.

    Attributes
    ----------
    replacement : Replacement, Unwritten or None
        On rank 0.
    where : str
        Where it is.
    identity : tuple of int or None
        What tells that it is the same file; None for one that is written as it is.
    """

    replacement: Replacement | Unwritten | None
    where: str
    identity: tuple[int, int] | None

    @property
    def is_named(self) -> bool:
        """Whether it has a name of its own."""
        return self.identity is not None and not self.where.startswith("/proc/")

    def commit(self) -> None:
        """Give it the name of the file, on rank 0."""
        assert self.replacement is not None
        self.replacement.commit()


def _new(comm: Communicator, path: Path, header: bytes, nbytes: int) -> _Target:
    """The new contents of a file, with the header and room for all (collective); rank 0 makes them."""
    made: list[Replacement | Unwritten] = []

    def make() -> tuple[str, tuple[int, int] | None]:
        if comm.unwritten is not None:
            made.append(Unwritten(path, comm.unwritten, len(set(comm.nodes)) > 1))
            write_all(made[0].descriptor, header, 0)
            return made[0].where, (_SOME_NUMBER, nbytes)
        try:
            made.append(Replacement(path, comm.node_size < comm.size))
            if made[0].in_place:
                return made[0].where, None
            made[0].reserve(nbytes)
            write_all(made[0].descriptor, header, 0)
            return made[0].where, _identity(made[0].descriptor)
        except OSError as error:
            raise named_as(error, path) from None

    try:
        where, identity = on_root(make, comm, _ROOT)
    except BaseException:
        for replacement in made:
            replacement.discard()
        raise
    return _Target(made[0] if made else None, where, identity)


def _identity(descriptor: int) -> tuple[int, int]:
    """What tells whether two machines see the same file: the numbers of file systems are each machine's own."""
    found = os.fstat(descriptor)
    return found.st_ino, found.st_size


def _joined(comm: Communicator, target: _Target) -> int:
    """This rank's descriptor of the file; -1 for none."""
    if target.identity is None:
        return -1
    if comm.unwritten is not None and target.replacement is None:
        return open_nowhere(comm.unwritten)
    return _opened(target.where, target.identity) if target.replacement is None else target.replacement.descriptor


def _opened(where: str, identity: tuple[int, int]) -> int:
    """The descriptor of a file, -1 where it cannot be opened, or is another one: of another machine, or a user's."""
    try:
        descriptor = os.open(where, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return -1
    with contextlib.suppress(OSError):
        if _identity(descriptor) == identity:
            return descriptor
    os.close(descriptor)
    return -1


def write_parts(
    comm: Communicator,
    descriptor: int,
    offset: int,
    x: Any,
    path: Path,
    seen: Callable[[int, memoryview], object] | None = None,
) -> None:
    """Write the elements of an array in C order into a file that all ranks see, each rank some of them (collective).

    Parameters
    ----------
    comm : Communicator
    descriptor : int
        Of the file.
    offset : int
        Bytes before the first element.
    x : DistArray
    path : str, bytes or path-like
        The file's name in errors.
    seen : callable, optional
        ``seen(place, data)`` gets each run of bytes that this rank writes, and how many bytes of the array lie before
        it; ascending.

    Raises
    ------
    OSError
        On every rank, naming the path and the rank that has met it.
    """
    share = engine.share(x)
    if share is not None and (comm.size == 1 or in_long_runs(share.boxes, x.shape, x.dtype.itemsize)):
        box, block = share.boxes[comm.rank], share.block
        if comm.unwritten is not None:
            comm.unwritten(0 if box is None else block.nbytes)
            on_every_rank(comm, path, None)
        elif box is not None:
            told = () if seen is None else (functools.partial(_seen_in_box, seen, x.shape, x.dtype.itemsize),)
            with engine.activity(f"writing {_name(path)}", block.nbytes, stepwise=True):
                on_every_rank(comm, path, lambda: write_box(descriptor, offset, x.shape, box, block, *told))
        else:
            on_every_rank(comm, path, None)
        return

    def put(place: int, piece: np.ndarray) -> None:
        data = bytes_of(np.ascontiguousarray(piece))
        if seen is not None and comm.unwritten is None:
            seen(place, data)
        write_piece(descriptor, data, offset + place)

    place = 0
    for number, key in enumerate(engine.parts_in_order(x.shape, x.dtype.itemsize)):
        view = x._view(structure.index, key)
        writer = number % comm.size
        piece = engine.gather(view, writer)
        on_every_rank(comm, path, functools.partial(put, place, piece) if comm.rank == writer else None)
        place += view._array.nbytes


def _seen_in_box(
    seen: Callable[[int, memoryview], object], shape: Sequence[int], itemsize: int, part: Box, data: memoryview
) -> None:
    """Hand out the runs of a box of an array, as `write_box` writes them."""
    count = run_length(shape, part) * itemsize
    for number, first in enumerate(runs(shape, part)):
        seen(first * itemsize, data[number * count : (number + 1) * count])


def _name(path: Path) -> str:
    return os.path.basename(os.fsdecode(os.fspath(path)))


def on_every_rank(comm: Communicator, path: Path, work: Callable[[], None] | None) -> None:
    """Do this rank's work on a file, if it has some; an error is raised on every rank, naming the first that met one.

    Collective: one allgather.
    """
    failure: Exception | None = None
    if work is not None:
        try:
            work()
        except Exception as error:
            failure = named_as(error, path) if isinstance(error, OSError) else error
            if comm.size > 1:
                failure.add_note(f"rank {comm.rank} has met this")
    agree(failure, comm)
