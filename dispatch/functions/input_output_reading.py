"""Input from files: each rank reads its part of a binary file (`numpy_dist.files`), and the whole of a text."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.functions.array_creation_from_data import by_every_rank, ingest
from numpy_dist.dispatch.patterns.creation import OURS, Shape, chosen_layout, elsewhere, is_replicated, permuted
from numpy_dist.files.npy import ArrayInFile, array_of_bytes, array_of_npy
from numpy_dist.files.npz import member_reader
from numpy_dist.files.reading import Reader, agreed

if TYPE_CHECKING:
    from typing import IO

    from numpy._typing import _SupportsArrayFunc

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
        made = self._file[name]
        return ingest(made, None, None, None, None, None) if isinstance(made, np.ndarray) else made

    def _reader(self, name: str) -> Reader | None:
        """What reads parts of an array (collective); None for other members, and where the file has no name."""
        path, archive = self._path, self._file.zip
        if path is None or archive is None or name not in self._file:
            return None
        member = name if name in archive.namelist() else f"{name}.npy"
        found: list[Reader | None] = []

        def look() -> ArrayInFile | None:
            found.append(member_reader(path, archive, member))
            return None if found[0] is None else found[0].array

        agreed(engine.runtime().comm, path, look)
        return found[0]

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
) -> Any:
    """As `numpy.load`; each rank reads only its part of an ``.npy`` file that is given by name (collective)."""
    if mmap_mode is None and isinstance(file, str | os.PathLike):
        found = agreed(engine.runtime().comm, file, functools.partial(array_of_npy, file))
        if found is not None and not is_replicated(found.shape, found.dtype, None):
            return read_array(Reader(file, found), None)
    made = np.load(file, mmap_mode, *args, **kwargs)
    if isinstance(made, np.lib.npyio.NpzFile):
        return NpzFile(made, os.fspath(file) if isinstance(file, str | os.PathLike) else None)
    return ingest(made, None, None, None, None, None) if isinstance(made, np.ndarray) else made


def read_array(reader: Reader, split: int | None, mesh: Mesh | Sequence[int] | None = None) -> Any:
    """A distributed array of the elements in a file, of which `reader` reads parts (collective)."""
    found = reader.array
    layout = chosen_layout(found.shape, split, mesh)

    def make(shape: Shape, layout: Layout | None) -> engine.Handle:
        return engine.from_filler(reader.fill, shape, found.dtype, layout)

    axes = tuple(range(len(found.shape)))[::-1] if found.fortran and len(found.shape) > 1 else None
    made = permuted(make, found.shape, layout, axes)
    reader.finish(engine.runtime().comm)
    return made


@functools.wraps(np.fromregex)
def fromregex(*args: Any, **kwargs: Any) -> DistArray:
    return ingest(np.fromregex(*args, **kwargs), None, None, None, None, None)


loadtxt = by_every_rank(__name__, np.loadtxt)
genfromtxt = by_every_rank(__name__, np.genfromtxt)


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
) -> Any:
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
