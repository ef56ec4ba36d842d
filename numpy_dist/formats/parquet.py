"""Parquet: columns as arrays of one axis, read by `pyarrow`, some rows after the others; rank 0 writes.

A group of rows may be the whole file. A column of it is a stream (`formats.streams`): it is decoded from its beginning,
by one rank for all, but never all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.files.writing import write_on_root
from numpy_dist.formats.dealing import RowStream
from numpy_dist.formats.source import StoredMetadata, library
from numpy_dist.layout.regions import Box

__all__ = ["ParquetFile", "write"]

_ROWS = 1 << 20  # of a group that is written
_BATCH = 1 << 18  # rows that are decoded at once
_BATCH_BYTES = 1 << 22  # and what they have in the file, decompressed
_BUFFER = 1 << 20  # bytes of a column that are read from the file at once


class _Column:
    attributes: Mapping[str, object] = MappingProxyType({})

    def __init__(self, file: Any, name: str, dtype: np.dtype, edges: tuple[int, ...]) -> None:
        self._file, self._name = file, name
        stream = RowStream(edges, _rows_at_once(file.metadata, name))
        self.metadata = StoredMetadata((edges[-1],), dtype, stream=stream)

    def read(self, box: Box, into: np.ndarray) -> None:
        ((lo, hi),) = box
        stream = self.metadata.stream
        assert stream is not None
        for group, (start, stop) in enumerate(pairwise(stream.edges)):
            if max(lo, start) < min(hi, stop):
                for batch in self.decode(group):
                    first, last = max(lo, start), min(hi, start + len(batch))
                    if first < last:
                        into[first - lo : last - lo] = batch[first - start : last - start]
                    start += len(batch)
                    if start >= hi:
                        break

    def decode(self, piece: int) -> Iterator[np.ndarray]:
        """The rows of a group."""
        assert self.metadata.stream is not None
        pyarrow = library("pyarrow", "Parquet")
        for batch in self._file.iter_batches(self.metadata.stream.rows, row_groups=[piece], columns=[self._name]):
            found = batch.column(0)
            if found.null_count and self.metadata.dtype.kind not in "fcmMO":
                raise ValueError(f"column {self._name!r} has missing values that its file does not tell of")
            if pyarrow.types.is_dictionary(found.type):  # to_numpy takes missing ones for the last category
                found = found.dictionary_decode()
            yield found.to_numpy(zero_copy_only=False)


class ParquetFile:
    """A Parquet file that is open for reading.

    Missing values are NaN or NaT. Integers that miss some are float64; texts, lists and records are Python objects;
    categories are their values, and moments of a time zone are those of UTC: as `pyarrow` gives them to NumPy.
    """

    def __init__(self, path: str) -> None:
        parquet = library("pyarrow.parquet", "Parquet")
        self._file = parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
        metadata = self._file.metadata
        edges = (0, *accumulate(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)))
        self.sources = {
            field.name: _Column(self._file, field.name, _dtype(field, _has_missing(metadata, field.name)), edges)
            for field in self._file.schema_arrow
        }

    def attributes_of(self, group: str) -> Mapping[str, object]:
        return dict(self._file.metadata.metadata or {})

    def close(self) -> None:
        self._file.close()


def _has_missing(metadata: Any, name: str) -> bool:
    """Whether a column has missing values, as far as the file tells."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for j in range(row_group.num_columns):
            column = row_group.column(j)
            if column.path_in_schema == name and column.statistics is not None and column.statistics.null_count:
                return True
    return False


def _rows_at_once(metadata: Any, name: str) -> int:
    """How many rows of a column are decoded at once: fewer where they are long, as far as the file tells."""
    nbytes = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        columns = [row_group.column(j) for j in range(row_group.num_columns)]
        nbytes += sum(c.total_uncompressed_size for c in columns if c.path_in_schema.partition(".")[0] == name)
    return max(1, min(_BATCH, _BATCH_BYTES * metadata.num_rows // max(nbytes, 1)))


def _dtype(field: Any, has_missing: bool) -> np.dtype:
    """The dtype of a column, in which its missing values can be told: that of the array which `pyarrow` makes."""
    pyarrow = library("pyarrow", "Parquet")
    made: np.dtype = pyarrow.nulls(int(has_missing), field.type).to_numpy(zero_copy_only=False).dtype
    return made


def write(path: str, arrays: Mapping[str, engine.Handle]) -> None:
    """Write distributed arrays of one axis as columns (collective): rank 0 writes what it gets piece by piece."""
    if len({x.shape for x in arrays.values()}) > 1 or any(x.ndim != 1 for x in arrays.values()):
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"columns of a Parquet file have one axis and one length; these have {shapes}")
    given = list(arrays.values())
    rows = given[0].shape[0] if given else 0

    def fill(file: object, read: engine.Read) -> None:
        parts = [(slice(start, min(start + _ROWS, rows)),) for start in range(0, rows, _ROWS)]
        if (unwritten := engine.runtime().comm.unwritten) is not None:
            for part in parts:
                unwritten(sum(read(number, part).nbytes for number in range(len(given))))
            return
        pyarrow, parquet = library("pyarrow", "Parquet"), library("pyarrow.parquet", "Parquet")
        fields = [(name, pyarrow.from_numpy_dtype(x.dtype)) for name, x in arrays.items()]
        with parquet.ParquetWriter(file, pyarrow.schema(fields)) as writer:
            for part in parts:
                writer.write_table(
                    pyarrow.table([pyarrow.array(read(number, part)) for number in range(len(given))], writer.schema)
                )

    write_on_root(path, given, fill)
