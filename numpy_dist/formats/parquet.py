"""Parquet: columns as arrays of one axis, read by `pyarrow`, some rows after the others; rank 0 writes.

A group of rows may be the whole file. A column of it is decoded from its beginning, but never all at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.files.writing import write_on_root
from numpy_dist.formats.source import StoredMetadata, library
from numpy_dist.layout.regions import Box

__all__ = ["ParquetFile", "write"]

_ROWS = 1 << 20  # of a group that is written
_BATCH = 1 << 18  # rows that are decoded at once
_BUFFER = 1 << 20  # bytes of a column that are read from the file at once


class _Column:
    attributes: Mapping[str, object] = MappingProxyType({})

    def __init__(self, file: Any, name: str, dtype: np.dtype) -> None:
        self._file, self._name = file, name
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._first = [0, *accumulate(groups)]
        self.metadata = StoredMetadata((file.metadata.num_rows,), dtype)

    def read(self, box: Box, into: np.ndarray) -> None:
        ((lo, hi),) = box
        for group, start in enumerate(self._first[:-1]):
            last = min(hi, self._first[group + 1])
            if max(lo, start) < last:
                self._read_group(group, start, lo, last, into)

    def _read_group(self, group: int, start: int, lo: int, hi: int, into: np.ndarray) -> None:
        """Read the rows before `hi` of a group that begins at row `start`; `into` begins at row `lo`."""
        for batch in self._file.iter_batches(_BATCH, row_groups=[group], columns=[self._name]):
            first, last = max(lo, start), min(hi, start + batch.num_rows)
            if first < last:
                found = batch.column(0).slice(first - start, last - first)
                if found.null_count and into.dtype.kind not in "fcmMO":
                    raise ValueError(f"column {self._name!r} has missing values that its file does not tell of")
                into[first - lo : last - lo] = found.to_numpy(zero_copy_only=False)
            start += batch.num_rows
            if start >= hi:
                return


class ParquetFile:
    """A Parquet file that is open for reading.

    Missing values are NaN or NaT; integers that miss some are float64, texts are Python objects, as in `pandas`.
    """

    def __init__(self, path: str) -> None:
        parquet = library("pyarrow.parquet", "Parquet")
        self._file = parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
        self.sources = {
            field.name: _Column(self._file, field.name, _dtype(field, _has_missing(self._file.metadata, field.name)))
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


def _dtype(field: Any, has_missing: bool) -> np.dtype:
    """The dtype of a column, in which its missing values can be told."""
    made = np.dtype(field.type.to_pandas_dtype())
    if not has_missing or made.kind in "fcmMO":
        return made
    return np.dtype(object if made.kind == "b" else np.float64)


def write(path: str, arrays: Mapping[str, engine.Handle | np.ndarray]) -> None:
    """Write distributed arrays of one axis as columns (collective): rank 0 writes what it gets piece by piece."""
    if len({x.shape for x in arrays.values()}) > 1 or any(x.ndim != 1 for x in arrays.values()):
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"columns of a Parquet file have one axis and one length; these have {shapes}")
    given = list(arrays.values())
    rows = given[0].shape[0] if given else 0

    def fill(file: object, read: engine.Read) -> None:
        pyarrow, parquet = library("pyarrow", "Parquet"), library("pyarrow.parquet", "Parquet")
        fields = [(name, pyarrow.from_numpy_dtype(x.dtype)) for name, x in arrays.items()]
        with parquet.ParquetWriter(file, pyarrow.schema(fields)) as writer:
            for start in range(0, rows, _ROWS):
                part = (slice(start, min(start + _ROWS, rows)),)
                writer.write_table(
                    pyarrow.table([pyarrow.array(read(number, part)) for number in range(len(given))], writer.schema)
                )

    write_on_root(path, given, fill)
