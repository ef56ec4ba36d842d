"""Arrays that are decoded from streams: each piece by one rank, some rows at a time, which go to their owners.

While a rank decodes its next rows, those before travel, straight into the memory of the array that is made. A rank that
cannot decode goes on with its messages, of whatever values, until all have told each other. Where nothing is delivered
(plans), a rank sends as many bytes as it would, and reads its own rows by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.formats.dealing import DecodingStep, Rows, Want, deal
from numpy_dist.formats.source import StreamSource

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["Reading", "read_streams"]


class Reading(NamedTuple):
    """An array that is being read.

    Attributes
    ----------
    source : StreamSource
    parts : sequence of rows
        Those of each rank.
    block : ndarray or None
        For this rank's rows; None where there is no memory for them.
    everywhere : bool
        Whether every rank is to have the same rows.
    """

    source: StreamSource
    parts: Sequence[Rows]
    block: np.ndarray | None
    everywhere: bool


def read_streams(comm: Communicator, readings: Sequence[Reading]) -> tuple[int, Exception] | None:
    """Read arrays (collective); which one this rank could not read, and what it has met, None for nothing."""
    cut = [number for number, reading in enumerate(readings) if not reading.everywhere]
    whole = [number for number, reading in enumerate(readings) if reading.everywhere]
    failures = []
    for numbers, share in ((cut, _exchange), (whole, _spread)):
        chosen = [readings[number] for number in numbers]
        plan = deal([_want(reading) for reading in chosen], comm.size)
        decoder = _StepDecoder(chosen, comm.delivers)
        if comm.delivers:
            for step, rows in decoder.decoded(plan.own[comm.rank]):
                _keep(chosen[step.want], comm.rank, step.rows, rows)
        if any(plan.shared):
            share(comm, chosen, plan.shared, decoder)
        if decoder.failure is not None:
            failures.append((numbers[decoder.failure[0]], decoder.failure[1]))
    if not comm.delivers:
        failures += _read_alone(comm.rank, readings)
    return failures[0] if failures else None


def _read_alone(rank: int, readings: Sequence[Reading]) -> Iterator[tuple[int, Exception]]:
    """Read this rank's rows of arrays, by itself; which it could not read, and what it has met."""
    for number, reading in enumerate(readings):
        if reading.block is not None and reading.block.size:
            try:
                reading.source.read((reading.parts[rank],), reading.block)
            except Exception as error:
                yield number, error


def _want(reading: Reading) -> Want:
    stream = reading.source.metadata.stream
    assert stream is not None
    return Want(stream, reading.source.metadata.dtype.itemsize, reading.parts)


class _StepDecoder:
    """What this rank decodes.

    Parameters
    ----------
    readings : sequence of Reading
    is_wanted : bool
        Whether somebody gets the rows; else those are zeros whose number of bytes is that of their dtype.

    Attributes
    ----------
    failure : (int, Exception) or None
        The first that it has met, and the number of the array.
    """

    def __init__(self, readings: Sequence[Reading], is_wanted: bool) -> None:
        self._readings, self._is_wanted = readings, is_wanted
        self.failure: tuple[int, Exception] | None = None

    def decoded(self, steps: Sequence[DecodingStep]) -> Iterator[tuple[DecodingStep, np.ndarray | None]]:
        """The steps, each with its rows; None behind a failure."""
        for (number, piece), group in groupby(steps, key=lambda step: (step.want, step.piece)):
            rows = self._rows(number, piece)
            for step in group:
                yield step, None if self.failure is not None else self._next(rows, step)

    def _next(self, rows: _Rows, step: DecodingStep) -> np.ndarray | None:
        dtype = self._readings[step.want].source.metadata.dtype
        if not self._is_wanted and not dtype.hasobject:
            return np.zeros(step.rows[1] - step.rows[0], dtype)
        try:
            return rows.take(*step.rows)
        except Exception as error:
            self.failure = step.want, error
            return None

    def _rows(self, number: int, piece: int) -> _Rows:
        source = self._readings[number].source
        stream = source.metadata.stream
        assert stream is not None
        return _Rows(source.decode(piece), stream.edges[piece], source.metadata.dtype)


class _Rows:
    """The rows of a piece, which come in batches of any length, in parts of the lengths that are asked for."""

    def __init__(self, batches: Iterator[np.ndarray], first: int, dtype: np.dtype) -> None:
        self._batches, self._at, self._dtype = batches, first, dtype
        self._batch: np.ndarray = np.empty(0, dtype)

    def take(self, start: int, stop: int) -> np.ndarray:
        """Rows behind those that were taken before."""
        made = np.empty(stop - start, self._dtype)
        while True:
            lo, hi = max(start, self._at), min(stop, self._at + len(self._batch))
            if lo < hi:
                made[lo - start : hi - start] = self._batch[lo - self._at : hi - self._at]
            if hi == stop:
                return made
            self._at += len(self._batch)
            batch = next(self._batches, None)
            if batch is None:
                raise ValueError(f"the file has {self._at} rows where it says that there are more")
            self._batch = batch


def _keep(reading: Reading, rank: int, rows: Rows, values: np.ndarray | None) -> None:
    if values is not None and reading.block is not None:
        lo, hi = rows[0] - reading.parts[rank][0], rows[1] - reading.parts[rank][0]
        reading.block[lo:hi] = values


def _exchange(
    comm: Communicator, readings: Sequence[Reading], shared: Sequence[Sequence[DecodingStep]], decoder: _StepDecoder
) -> None:
    """Decode this rank's share, whose rows go to the ranks that are to have them."""
    pending = None
    mine = decoder.decoded(shared[comm.rank])
    for number in range(max(map(len, shared))):
        receives = []
        for rank, steps in enumerate(shared):
            if rank != comm.rank and number < len(steps):
                reading, rows = readings[steps[number].want], _common(readings, steps[number], comm.rank)
                if rows is not None:
                    receives.append((rank, _target(reading, comm.rank, rows)))
        sends = []
        if number < len(shared[comm.rank]):
            step, values = next(mine)
            if values is None:
                values = np.zeros(step.rows[1] - step.rows[0], readings[step.want].source.metadata.dtype)
            for rank in range(comm.size):
                rows = _common(readings, step, rank)
                if rows is None:
                    continue
                part = values[rows[0] - step.rows[0] : rows[1] - step.rows[0]]
                if rank == comm.rank:
                    _keep(readings[step.want], rank, rows, part)
                else:
                    sends.append((rank, part.view(np.uint8)))
        if pending is not None:
            pending.wait()
        pending = comm.start_transfer(sends, receives)
    if pending is not None:
        pending.wait()


def _common(readings: Sequence[Reading], step: DecodingStep, rank: int) -> Rows | None:
    """The rows of a step that a rank is to have, None for none."""
    lo, hi = readings[step.want].parts[rank]
    lo, hi = max(lo, step.rows[0]), min(hi, step.rows[1])
    return (lo, hi) if lo < hi else None


def _target(reading: Reading, rank: int, rows: Rows) -> np.ndarray:
    """Where rows of this rank come to lie, as bytes; nowhere, if there is no memory for them."""
    if reading.block is None:
        return np.empty((rows[1] - rows[0]) * reading.source.metadata.dtype.itemsize, np.uint8)
    start = reading.parts[rank][0]
    return reading.block[rows[0] - start : rows[1] - start].view(np.uint8)


def _spread(
    comm: Communicator, readings: Sequence[Reading], shared: Sequence[Sequence[DecodingStep]], decoder: _StepDecoder
) -> None:
    """Decode this rank's share, whose rows go to all ranks."""
    mine = decoder.decoded(shared[comm.rank])
    for number in range(max(map(len, shared))):
        told = comm.allgather(next(mine)[1] if number < len(shared[comm.rank]) else None)
        for steps, values in zip(shared, told, strict=True):
            if number < len(steps) and comm.delivers:
                _keep(readings[steps[number].want], comm.rank, steps[number].rows, values)
