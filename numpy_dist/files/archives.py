"""``.npz`` archives that all ranks write.

What is not compressed has places that are known beforehand, so each rank writes its part of every array where it
belongs, and what it contributes to the checksum (`files.checksums`). What is compressed is cut into pieces, which the
ranks compress in turn, each as deflate blocks that end at a byte; their lengths tell where they lie. Such pieces, one
behind the other, are one deflate stream (RFC 1951; pigz of M. Adler compresses files on several threads so).
"""

from __future__ import annotations

import functools
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from operator import xor
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.portable import agree, on_root
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.files.checksums import PartialCrc32, moved_crc32
from numpy_dist.files.pieces import bytes_of, write_all
from numpy_dist.files.writing import Path, on_every_rank, write_file, write_parts
from numpy_dist.files.zip_records import directory, local_header, member
from numpy_dist.ir import structure
from numpy_dist.parallel.threads import run_together

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["Member", "PlainMember", "ShardedMember", "stream_archive", "write_archive"]

_PIECE = 1 << 22  # bytes that a rank compresses at once
_BLOCK = 1 << 20  # bytes of them that a thread does
_WINDOW = 1 << 15  # bytes that deflate looks back
_SOME_SUM = 1 << 30  # in the place of a CRC-32 that nobody computes, which takes about as much room in a message


class ShardedMember(NamedTuple):
    """A distributed array that is to be a member.

    Attributes
    ----------
    header : bytes
        What stands before the elements.
    elements : DistArray
        That has them in C order.
    """

    header: bytes
    elements: Any


class PlainMember(NamedTuple):
    """An array of NumPy's that is to be a member; rank 0's counts.

    Attributes
    ----------
    array : ndarray
    allow_pickle : bool
        As for `numpy.save`.
    """

    array: np.ndarray
    allow_pickle: bool

    def write(self, file: Any) -> None:
        """Write header and elements."""
        np.lib.format.write_array(file, self.array, allow_pickle=self.allow_pickle)


Member = ShardedMember | PlainMember


def write_archive(path: Path, members: Mapping[str, Member], compression: int) -> None:
    """Write an archive of members in order (collective).

    Parameters
    ----------
    path : str, bytes or path-like
        Rank 0's counts.
    members : mapping of str to Member
        By their names in the archive.
    compression : int
        `zipfile.ZIP_STORED` or `zipfile.ZIP_DEFLATED`.

    Raises
    ------
    OSError
        On every rank, naming the path and the rank that has met it; the file is as it was before.
    ValueError
        On every rank, if Python objects are not to be pickled.
    """
    comm = engine.runtime().comm
    sharded = [value for value in members.values() if isinstance(value, ShardedMember)]
    plain: dict[str, _MeasuredMember] = {}
    if compression == zipfile.ZIP_STORED:

        def lay_out() -> _ArchivePlan:
            for name, value in members.items():
                if isinstance(value, PlainMember):
                    plain[name] = _MeasuredMember(value)
            return _plan(members, plain)

        plan = on_root(lay_out, comm)
        size = plan.directory + plan.directory_size
        by_all: Callable[[int], None] = functools.partial(_write_stored, comm, path, members, plain, plan)
    else:
        size, by_all = 0, functools.partial(_write_deflated, comm, path, members)

    on_rank_0 = functools.partial(stream_archive, members, compression)
    write_file(comm, path, b"", size, by_all, [value.elements for value in sharded], on_rank_0)


def stream_archive(members: Mapping[str, Member], compression: int, file: IO[bytes], read: engine.Read) -> None:
    """Write an archive of members into a file, on one rank, which reads the values piece by piece.

    Parameters
    ----------
    members, compression
        As for `write_archive`.
    file : file object
    read : callable
        As `engine.stream` has it, of the distributed arrays in the order of the members.
    """
    number = -1
    with zipfile.ZipFile(file, mode="w", compression=compression, allowZip64=True) as archive:
        for name, value in members.items():
            with archive.open(name, "w", force_zip64=True) as opened:
                if isinstance(value, PlainMember):
                    value.write(opened)
                    continue
                number += 1
                opened.write(value.header)
                for key in engine.parts_in_order(value.elements.shape, value.elements.dtype.itemsize):
                    opened.write(read(number, key).tobytes())


class _MeasuredMember:
    """A plain member with the length and the CRC-32 of its bytes."""

    def __init__(self, value: PlainMember) -> None:
        if value.array.dtype.hasobject:  # which might not be pickled twice alike
            buffer = io.BytesIO()
            value.write(buffer)
            data = buffer.getvalue()
            self.write: Callable[[Any], object] = lambda file: file.write(data)
        else:
            self.write = value.write
        tally = _ArchiveTally()
        self.write(tally)
        self.nbytes, self.crc = tally.nbytes, tally.crc


class _ArchiveTally:
    """A file that keeps nothing but the length and the CRC-32 of what is written."""

    def __init__(self) -> None:
        self.nbytes = self.crc = 0

    def write(self, data: bytes) -> None:
        self.nbytes, self.crc = self.nbytes + len(data), zlib.crc32(data, self.crc)


class _FileAtPlace:
    """A file whose bytes go to a place of another one."""

    def __init__(self, descriptor: int, place: int) -> None:
        self._descriptor, self.place = descriptor, place

    def write(self, data: bytes | memoryview) -> None:
        write_all(self._descriptor, data, self.place)
        self.place += len(data)


class _ArchivePlan(NamedTuple):
    """Where everything lies in an archive that is not compressed.

    Attributes
    ----------
    places : dict of str to int
        Where the header of each member is.
    bodies : dict of str to int
        Where its bytes begin.
    directory, directory_size : int
    """

    places: dict[str, int]
    bodies: dict[str, int]
    directory: int
    directory_size: int


def _plan(members: Mapping[str, Member], plain: Mapping[str, _MeasuredMember]) -> _ArchivePlan:
    place, infos = 0, []
    places, bodies = {}, {}
    for name, value in members.items():
        info = member(name, zipfile.ZIP_STORED)
        info.header_offset = places[name] = place
        bodies[name] = place + len(local_header(info))
        if isinstance(value, ShardedMember):
            info.file_size = len(value.header) + value.elements._array.nbytes
        else:
            info.file_size = plain[name].nbytes
        info.compress_size = info.file_size
        place = bodies[name] + info.file_size
        infos.append(info)
    return _ArchivePlan(places, bodies, place, len(directory(infos, place)))


def _write_stored(
    comm: Communicator,
    path: Path,
    members: Mapping[str, Member],
    plain: Mapping[str, _MeasuredMember],
    plan: _ArchivePlan,
    descriptor: int,
) -> None:
    contributions = {}
    for name, value in members.items():
        if isinstance(value, ShardedMember):
            checksum = PartialCrc32(value.elements._array.nbytes)
            if value.elements._array.nbytes:
                begin = plan.bodies[name] + len(value.header)
                write_parts(comm, descriptor, begin, value.elements, path, checksum.add)
            contributions[name] = checksum.value if comm.unwritten is None else _SOME_SUM
    told = comm.allgather(contributions) if comm.size > 1 else [contributions]

    def surround() -> None:
        infos = []
        for name, value in members.items():
            info = member(name, zipfile.ZIP_STORED)
            info.header_offset = plan.places[name]
            body = _FileAtPlace(descriptor, plan.bodies[name])
            if isinstance(value, ShardedMember):
                nbytes = value.elements._array.nbytes
                info.file_size = len(value.header) + nbytes
                crc = functools.reduce(xor, (each[name] for each in told))
                info.CRC = moved_crc32(zlib.crc32(value.header), nbytes) ^ crc
                body.write(value.header)
            else:
                info.file_size, info.CRC = plain[name].nbytes, plain[name].crc
                plain[name].write(body)
            info.compress_size = info.file_size
            write_all(descriptor, local_header(info), plan.places[name])
            infos.append(info)
        write_all(descriptor, directory(infos, plan.directory), plan.directory)

    on_every_rank(comm, path, surround if comm.rank == 0 else None)


def _write_deflated(comm: Communicator, path: Path, members: Mapping[str, Member], descriptor: int) -> None:
    place, infos = 0, []
    for name, value in members.items():
        info = member(name, zipfile.ZIP_DEFLATED)
        info.header_offset, place = place, place + len(local_header(info))
        if isinstance(value, ShardedMember):
            told = _deflate_sharded(comm, path, descriptor, place, value)
        else:
            told = _deflate_plain(comm, path, descriptor, place, value)
        info.file_size, info.compress_size, info.CRC = told
        place += info.compress_size
        infos.append(info)

    def surround() -> None:
        for info in infos:
            write_all(descriptor, local_header(info), info.header_offset)
        write_all(descriptor, directory(infos, place), place)

    on_every_rank(comm, path, surround if comm.rank == 0 else None)


def _deflate_plain(
    comm: Communicator, path: Path, descriptor: int, place: int, value: PlainMember
) -> tuple[int, int, int]:
    """Length, compressed length and CRC-32 of a member that rank 0 writes (collective)."""

    def write() -> tuple[int, int, int]:
        out = _Deflating(_FileAtPlace(descriptor, place))
        value.write(out)
        return out.end()

    result: list[tuple[int, int, int]] = []
    on_every_rank(comm, path, (lambda: result.append(write())) if comm.rank == 0 else None)
    return comm.bcast(result[0] if result else None, 0)


class _Deflating(_ArchiveTally):
    """A file that writes into another one what it compresses."""

    def __init__(self, file: _FileAtPlace) -> None:
        super().__init__()
        self._file, self._begin, self._compressor = file, file.place, _compressor()

    def write(self, data: bytes) -> None:
        super().write(data)
        self._file.write(self._compressor.compress(data))

    def end(self) -> tuple[int, int, int]:
        """Length, compressed length and CRC-32 of what was written."""
        self._file.write(self._compressor.flush())
        return self.nbytes, self._file.place - self._begin, self.crc


def _deflate_sharded(
    comm: Communicator, path: Path, descriptor: int, place: int, value: ShardedMember
) -> tuple[int, int, int]:
    """Length, compressed length and CRC-32 of a member whose pieces all ranks compress in turn (collective)."""
    x, begin = value.elements, place
    nbytes, crc = 0, 0
    keys = list(engine.parts_in_order(x.shape, x.dtype.itemsize, limit=_PIECE))
    for first in range(0, len(keys), comm.size):
        pieces = [
            engine.gather(x._view(structure.index, key), rank)
            for rank, key in enumerate(keys[first : first + comm.size])
        ]
        number, failure = first + comm.rank, None
        blocks: Sequence[bytes | memoryview] = []
        length, own = 0, 0
        try:
            if number < len(keys):
                data = bytes_of(np.ascontiguousarray(pieces[comm.rank]))
                if number == 0:
                    data = memoryview(b"".join((value.header, data)))
                length = len(data)
                if comm.unwritten is None:
                    blocks, own = _deflated(data, number == len(keys) - 1), zlib.crc32(data)
                else:  # as if nothing could be compressed
                    blocks, own = [data], _SOME_SUM
                del data
        except Exception as error:
            failure = error
        del pieces
        agree(failure, comm)
        told = comm.allgather((length, sum(map(len, blocks)), own))
        start = place + sum(compressed for _, compressed, _ in told[: comm.rank])

        def put(start: int = start, blocks: Sequence[bytes | memoryview] = blocks) -> None:
            out = _FileAtPlace(descriptor, start)
            for block in blocks:
                out.write(block)

        on_every_rank(comm, path, put if blocks else None)
        for more, compressed, each in told:
            nbytes, place, crc = nbytes + more, place + compressed, moved_crc32(crc, more) ^ each
    return nbytes, place - begin, crc


def _deflated(data: memoryview, last: bool) -> list[bytes]:
    """Deflate blocks of a piece of a stream, which end at a byte; made by all threads of the rank.

    Parts of the piece see the end of what comes before them, as if they were compressed behind it; the piece does not.
    """
    edges = [*range(0, max(len(data), 1), _BLOCK), len(data)]
    made: list[bytes] = [b""] * (len(edges) - 1)
    threads = min(getattr(engine.runtime().backend, "threads", 1), len(made))

    def work(first: int) -> None:
        for number in range(first, len(made), threads):
            start, stop = edges[number], edges[number + 1]
            compressor = _compressor(bytes(data[max(start - _WINDOW, 0) : start]))
            end = zlib.Z_FINISH if last and number == len(made) - 1 else zlib.Z_SYNC_FLUSH
            made[number] = compressor.compress(data[start:stop]) + compressor.flush(end)

    with Postponed():
        run_together([functools.partial(copy_context().run, work, first) for first in range(threads)])
    return made


def _compressor(before: bytes = b"") -> Any:
    """As `zipfile` has it: a deflate stream without a header, behind other bytes."""
    words: dict[str, Any] = {"zdict": before} if before else {}
    return zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS, **words)
