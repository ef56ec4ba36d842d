"""Arrays in files as objects: an index reads what it selects, each rank its part, straight into its shard."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.comm.portable import agree
from numpy_dist.dispatch.patterns.creation import Shape, chosen_layout, is_replicated, permuted
from numpy_dist.formats.source import Contents, Source, StreamSource
from numpy_dist.formats.streams import Reading, read_streams
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray
    from numpy_dist.layout.layout import Layout
    from numpy_dist.layout.mesh import Mesh

__all__ = ["StoredArray", "StoredArrays"]


class StoredArray:
    """An array in a file, of which nothing is read before it is indexed.

    ``x[...]`` is all of it as a `DistArray`, ``x[100:200, 0]`` a part: every rank calls it, with the same index, and
    reads what it will hold. `numpy_dist.asarray` takes it with `split` and `mesh`; NumPy's functions take it for the
    array that it is, and read all of it. ``numpy.asarray(x)`` is all of it on every rank.

    Attributes
    ----------
    name : str
        As in the file; empty for a file that is one array.
    chunks : tuple of int or None
        The shape of the pieces in which it is stored.
    attrs : mapping
        What the file says of it.
    """

    def __init__(self, path: str, name: str, source: Source) -> None:
        self._path, self._source = path, source
        self.name = name
        self._metadata = source.metadata

    @property
    def shape(self) -> tuple[int, ...]:
        return self._metadata.shape

    @property
    def dtype(self) -> np.dtype:
        return self._metadata.dtype

    @property
    def chunks(self) -> tuple[int, ...] | None:
        return self._metadata.chunks

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self._source.attributes

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        where = f"{self._path}, {self.name}" if self.name else self._path
        return f"<StoredArray {where}: shape {self.shape}, {self.dtype}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("a StoredArray has no truth value: read it first, with x[...]")

    def __iter__(self) -> Iterator[Any]:
        return iter(self[...])

    def __getitem__(self, key: object) -> Any:
        """The elements that an index selects, as NumPy's indexing gives them (collective, one allgather).

        Integers and slices read the range that they span; of other indices (masks, lists, a new axis), all is read.

        Raises
        ------
        IndexError
        OSError, ValueError
            On every rank, what the first that could not read has met.
        """
        ranges, rest = _spanned(key, self.shape)
        made = self._read(ranges, None, None)
        return made if rest is None else _copied(made[rest])

    def __distarray__(self, split: int | None = None, mesh: Mesh | Sequence[int] | None = None) -> DistArray:
        """All of it (collective, one allgather): see `numpy_dist.asarray`."""
        return self._read(tuple((0, n) for n in self.shape), split, mesh)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """All of it, read by this rank. Not collective."""
        if copy is False:
            raise ValueError("an array in a file cannot be had without a copy")
        made = self._whole(tuple((0, n) for n in self.shape))
        return made if dtype is None else made.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> object:
        return getattr(ufunc, method)(*map(_all, inputs), **kwargs)

    def __array_function__(self, function: Function, types: object, args: Arguments, kwargs: Keywords) -> object:
        return function(*map(_all, args), **{name: _all(value) for name, value in kwargs.items()})

    def _whole(self, ranges: Box) -> np.ndarray:
        shape = tuple(hi - lo for lo, hi in ranges)
        made = np.empty(shape, self.dtype, order="F" if self._metadata.fortran else "C")
        if self._metadata.fortran:
            self._source.read(ranges[::-1], made.T)
        else:
            self._source.read(ranges, made)
        return made

    def _read(self, ranges: Box, split: int | None, mesh: Mesh | Sequence[int] | None) -> Any:
        """A distributed array of what lies in ranges of the axes (collective)."""
        comm = engine.runtime().comm
        if _is_streamed(self):
            return _decoded([self], ranges, split, mesh)[0]
        shape = tuple(hi - lo for lo, hi in ranges)
        layout = chosen_layout(shape, split, mesh)
        failure: Exception | None = None
        made: object = None
        fortran = self._metadata.fortran and len(shape) > 1
        first = [lo for lo, _ in ranges][:: -1 if fortran else 1]

        def fill(box: Box, block: np.ndarray) -> None:
            nonlocal failure
            there = tuple((lo + start, hi + start) for (lo, hi), start in zip(box, first, strict=True))
            try:
                self._source.read(there, block)
            except Exception as error:  # when all have their storages
                failure = error

        def make(shape: Shape, layout: Layout | None) -> engine.Handle:
            return engine.from_filler(fill, shape, self.dtype, layout)

        try:
            if is_replicated(shape, self.dtype, layout):
                made = self._whole(ranges)
            else:
                made = permuted(make, shape, layout, tuple(range(len(shape)))[::-1] if fortran else None)
        except Exception as error:
            failure = error
        if failure is not None:
            _as_met(failure, self)
        agree(failure, comm)
        return engine.replicated(made) if isinstance(made, np.ndarray) else made


class StoredArrays(Mapping[str, Any]):
    """The arrays of a file, by name; nothing of them is read before they are indexed.

    A name may lead into a group, as ``file["run/u"]`` or ``file["run"]["u"]``; the names are those of arrays.

    Attributes
    ----------
    attrs : mapping
        What the file says of itself, or of the group.
    """

    def __init__(self, path: str, contents: Contents, arrays: Mapping[str, StoredArray], group: str = "") -> None:
        self._path, self._contents, self._arrays, self._group = path, contents, arrays, group

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self._contents.attributes_of(self._group.rstrip("/"))

    def __getitem__(self, name: str) -> Any:
        if name in self._arrays:
            return self._arrays[name]
        prefix = name.rstrip("/") + "/"
        within = {key[len(prefix) :]: array for key, array in self._arrays.items() if key.startswith(prefix)}
        if not within:
            raise KeyError(f"{self._path} has no array {self._group + name!r}, but {', '.join(self._arrays) or 'none'}")
        return StoredArrays(self._path, self._contents, within, self._group + prefix)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        lines = (f"    {name}: shape {array.shape}, {array.dtype}" for name, array in self._arrays.items())
        return "\n".join([f"<StoredArrays {self._path}>", *lines])

    def read(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Several arrays, all of each, by name (collective).

        Columns of a Parquet file are dealt out, so that ranks decode them side by side, whatever the groups of rows.

        Parameters
        ----------
        names : iterable of str, optional
            Default: all.

        Raises
        ------
        KeyError
        OSError, ValueError
            On every rank, what the first that could not read has met.
        """
        chosen = {name: self[name] for name in (self if names is None else names)}
        groups = [name for name, array in chosen.items() if not isinstance(array, StoredArray)]
        if groups:
            raise KeyError(f"{groups[0]!r} is a group: read() of it reads its arrays")
        streamed = [name for name, array in chosen.items() if _is_streamed(array)]
        made: dict[str, object] = {}
        for shape in dict.fromkeys(chosen[name].shape for name in streamed):
            names = [name for name in streamed if chosen[name].shape == shape]
            whole = tuple((0, n) for n in shape)
            made |= zip(names, _decoded([chosen[name] for name in names], whole, None, None), strict=True)
        return {name: made[name] if name in made else array[...] for name, array in chosen.items()}

    def close(self) -> None:
        """Close the file. Not collective."""
        self._contents.close()

    def __enter__(self) -> StoredArrays:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _is_streamed(array: StoredArray) -> bool:
    """Whether ranks decode an array for each other."""
    return array._metadata.stream is not None and engine.runtime().comm.size > 1


def _decoded(arrays: Sequence[StoredArray], ranges: Box, split: int | None, mesh: Mesh | Sequence[int] | None) -> Any:
    """Distributed arrays of the same rows of several streams (collective)."""
    comm = engine.runtime().comm
    ((lo, hi),) = ranges
    shape = (hi - lo,)
    asked = chosen_layout(shape, split, mesh)
    failure: Exception | None = None
    readings: list[Reading] = []
    layouts: list[Layout | None] = []
    with engine.Scratch() as scratch:
        for array in arrays:
            layout, block = None, None
            if not is_replicated(shape, array.dtype, asked):
                layout = engine.default_layout(shape) if asked is None else asked
            parts = [ranges[0] if layout is None else _rows_of(layout, rank, lo) for rank in range(comm.size)]
            first, last = parts[comm.rank]
            try:
                block = np.empty(shape, array.dtype) if layout is None else scratch.empty(last - first, array.dtype)
            except MemoryError as error:  # the others are not to wait for this rank
                failure = failure or _as_met(error, array)
            layouts.append(layout)
            readings.append(Reading(cast(StreamSource, array._source), parts, block, layout is None))
        met = read_streams(comm, readings)
        if met is not None:
            failure = failure or _as_met(met[1], arrays[met[0]])
        agree(failure, comm)
        return [
            engine.replicated(reading.block) if layout is None else engine.from_local(reading.block, layout)  # type: ignore[arg-type]
            for reading, layout in zip(readings, layouts, strict=True)
        ]


def _rows_of(layout: Layout, rank: int, start: int) -> tuple[int, int]:
    """A rank's rows of a file, in an array that begins at row `start`."""
    box = layout.box(rank)
    return (start, start) if box is None else (start + box[0][0], start + box[0][1])


def _as_met(error: Exception, array: StoredArray) -> Exception:
    error.add_note(f"rank {engine.runtime().rank} has met this as it read {array!r}")
    return error


def _all(value: Any) -> Any:
    """An argument of a NumPy function, read if it is in a file."""
    if isinstance(value, StoredArray):
        return value[...]
    if type(value) in (list, tuple):
        return type(value)(map(_all, value))
    return value


def _copied(made: object) -> Any:
    """An array that does not keep what it was cut out of."""
    return made.copy() if isinstance(made, np.ndarray) or engine.is_handle(made) else made


def _spanned(key: object, shape: Shape) -> tuple[Box, object]:
    """The range of each axis that an index spans, and its index within them, None for all.

    Raises
    ------
    IndexError
    """
    whole = tuple((0, n) for n in shape)
    items = key if isinstance(key, tuple) else (key,)
    if not all(item is Ellipsis or isinstance(item, slice) or _is_integer(item) for item in items):
        return whole, key
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    given = len(items) - (Ellipsis in items)
    if given > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {given} were indexed")
    at = items.index(Ellipsis) if Ellipsis in items else len(items)
    full = (slice(None),) * (len(shape) - given)
    ranges: list[tuple[int, int]] = []
    rest: list[int | slice] = []
    for axis, (item, n) in enumerate(zip((*items[:at], *full, *items[at + 1 :]), shape, strict=True)):
        if not isinstance(item, slice):
            i = operator.index(item)
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
            ranges.append((i % n, i % n + 1))
            rest.append(0)
            continue
        chosen = range(n)[item]
        if not chosen:
            ranges.append((0, 0))
            rest.append(slice(None))
            continue
        lo, hi = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1]) + 1
        ranges.append((lo, hi))
        rest.append(slice(None, None, chosen.step))
    if all(item == slice(None, None, 1) for item in rest) and (rest or Ellipsis in items):
        return tuple(ranges), None
    return tuple(ranges), tuple(rest)


def _is_integer(item: object) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)
