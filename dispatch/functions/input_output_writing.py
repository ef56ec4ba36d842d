"""Output to files, which are complete or as they were before (`numpy_dist.files`).

Each rank writes its part of ``.npy`` files and of archives, and some of the pieces of a text. Files that are open
already are written by rank 0, which gets the values piece by piece, so that no rank needs memory for all. A file in
memory is each rank's own.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import inspect
import io
import lzma
import os
import zipfile
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Keywords
from numpy_dist.dispatch.core import operands, targets
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.files.archives import Member, PlainMember, ShardedMember, stream_archive, write_archive
from numpy_dist.files.npy import header_of
from numpy_dist.files.texts import can_be_divided
from numpy_dist.files.writing import in_file_order, write_array, write_on_root, write_pieces

if TYPE_CHECKING:
    from numpy_dist.distarray.array import DistArray

_TEXT_PIECE = 1 << 21  # bytes of the elements of which a rank makes text at once


def _header(a: engine.Handle) -> bytes:
    """What stands before the elements."""
    try:
        return header_of(a.shape, a.dtype, in_file_order(a)[1])
    except ValueError:
        decline("the header of its file has the third version")


def _stream(
    function: Callable[..., None],
    file: Any,
    suffix: str,
    arrays: list[Any],
    write: Callable[[Any, engine.Read], None],
    opened: Callable[[IO[bytes]], Any] | None = None,
) -> None:
    """Let rank 0 write a file that is open, or given by name (with `suffix`); in memory, every rank its own."""
    if hasattr(file, "write"):
        in_memory = targets.writes_in_memory(function, (file,), {})
        engine.stream(arrays, functools.partial(write, file), in_memory)
    else:
        write_on_root(_with(suffix, file), arrays, write, opened)


def _with(suffix: str, path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return name if name.endswith(suffix) else name + suffix


def _plain(value: object) -> np.ndarray:
    return np.asanyarray(engine.plain(value))


def _write(file: IO[bytes], header: bytes, a: DistArray, number: int, read: engine.Read) -> None:
    file.write(header)
    for key in engine.parts_in_order(a.shape, a.dtype.itemsize):
        file.write(read(number, key).tobytes())


@implements(np.save, kind="composed", varies=("fix_imports",))
def save(file: str | os.PathLike[str] | IO[bytes], arr: DistArray, allow_pickle: bool = True) -> None:
    """Collective; see `files.writing`."""
    header, elements = _header(arr), in_file_order(arr)[0]
    if hasattr(file, "write"):
        _stream(np.save, file, ".npy", [elements], lambda opened, read: _write(opened, header, elements, 0, read))
    else:
        write_array(_with(".npy", file), header, elements)


def _savez(
    function: Callable[..., None],
    file: str | os.PathLike[str] | IO[bytes],
    args: Arguments,
    kwds: Keywords,
    allow_pickle: bool,
    compression: int,
) -> None:
    for i, value in enumerate(args):
        if f"arr_{i}" in kwds:
            raise ValueError(f"Cannot use un-named variables and keyword arr_{i}")
        kwds[f"arr_{i}"] = value
    if any(not engine.is_handle(value) and operands.find_handles((value,), {}) for value in kwds.values()):
        decline("lists of distributed arrays")
    headers = {name: _header(value) for name, value in kwds.items() if engine.is_sharded(value)}
    members: dict[str, Member] = {
        f"{name}.npy": ShardedMember(headers[name], in_file_order(value)[0])
        if name in headers
        else PlainMember(_plain(value), allow_pickle)
        for name, value in kwds.items()
    }
    if not hasattr(file, "write"):
        write_archive(_with(".npz", file), members, compression)
        return
    arrays = [value.elements for value in members.values() if isinstance(value, ShardedMember)]
    _stream(function, file, ".npz", arrays, functools.partial(stream_archive, members, compression))


def _register(function: Callable[..., None], compression: int) -> None:
    """`savez` or `savez_compressed`: collective; see `engine.stream`."""
    implementation: Callable[..., None]
    if "allow_pickle" in inspect.signature(function).parameters:

        def with_keyword(
            file: str | os.PathLike[str] | IO[bytes], *args: object, allow_pickle: bool = True, **kwds: object
        ) -> None:
            _savez(function, file, args, kwds, allow_pickle, compression)

        implementation = with_keyword
    else:  # before NumPy 2.2 it is the name of an array like others

        def without(file: str | os.PathLike[str] | IO[bytes], *args: object, **kwds: object) -> None:
            _savez(function, file, args, kwds, True, compression)

        implementation = without
    implementation.__name__ = implementation.__qualname__ = function.__name__
    implements(function, kind="composed")(implementation)


_register(np.savez, zipfile.ZIP_STORED)
_register(np.savez_compressed, zipfile.ZIP_DEFLATED)


@implements(np.savetxt, kind="composed")
def savetxt(
    fname: str | os.PathLike[str] | IO[str] | IO[bytes],
    X: DistArray,
    fmt: str | Sequence[str] = "%.18e",
    delimiter: str = " ",
    newline: str = "\n",
    header: str = "",
    footer: str = "",
    comments: str = "# ",
    encoding: str | None = None,
) -> None:
    """Collective; see `files.writing`. NumPy itself writes the rows of each piece, on the rank that has got it."""
    if not engine.is_handle(X):
        decline("lists of distributed arrays")
    has_rows = X.ndim in (1, 2)
    keys = list(engine.parts_in_order(X.shape, X.dtype.itemsize, True, _TEXT_PIECE)) if has_rows else [()]

    def write_piece(opened: Any, number: int, piece: np.ndarray) -> None:
        np.savetxt(
            opened,
            piece,
            fmt,
            delimiter,
            newline,
            header if number == 0 else "",
            footer if number == len(keys) - 1 else "",
            comments,
            encoding,
        )

    def text_of(number: int, piece: np.ndarray) -> bytes:
        text = io.StringIO()
        write_piece(text, number, piece)
        return text.getvalue().encode(encoding or "latin1")

    def write(opened: object, read: engine.Read) -> None:
        for number, key in enumerate(keys):
            write_piece(opened, number, read(0, key) if has_rows else np.zeros((1,) * X.ndim))

    if has_rows and not hasattr(fname, "write") and can_be_divided(fname, encoding or "latin1"):
        write_pieces(fname, X, keys, text_of)  # type: ignore[arg-type]
    else:
        _stream(np.savetxt, fname, "", [X], write, lambda binary: _text(os.fspath(fname), encoding, binary))  # type: ignore[arg-type]


def _text(path: str, encoding: str | None, binary: IO[bytes]) -> IO[str]:
    """A text file in a binary one, compressed if its name says so, as `numpy.savetxt` opens it."""
    encoding = encoding or "latin1"
    suffix = os.path.splitext(path)[1]
    if suffix == ".gz":
        return io.TextIOWrapper(gzip.GzipFile(path, "wb", fileobj=binary), encoding)
    compressed = {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}.get(suffix)
    return io.TextIOWrapper(binary if compressed is None else compressed(binary, "wb"), encoding)  # type: ignore[operator]
