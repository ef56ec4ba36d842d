"""Helpers: the pure part for any number of pieces without ranks, test bodies on several ranks, comparisons."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import numpy_dist.distarray  # noqa: F401  (registers the class of handles)
from numpy_dist import engine
from numpy_dist.comm import launchers
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.random import split
from numpy_dist.random.draws import Draw
from numpy_dist.random.streams import Stream, stream_of


def even_cuts(total: int, pieces: int) -> list[int]:
    return [total * piece // pieces for piece in range(pieces + 1)]


def stream_for(draw: Draw, bit_generator: np.random.BitGenerator) -> Stream:
    stream = stream_of(bit_generator, draw.unit)
    assert stream is not None
    return stream


def generate(draw: Draw, bit_generator: np.random.BitGenerator, cuts: list[int]) -> tuple[list[np.ndarray], dict]:
    """The pieces of a call, each made for itself, and the state after the call.

    What the pieces tell each other is a list here.
    """
    stream, total = stream_for(draw, bit_generator), cuts[-1]
    if draw.kind == "fixed":
        pieces = []
        for start, stop in zip(cuts, cuts[1:], strict=False):
            pieces.append(np.empty(stop - start, draw.dtype))
            split.fixed_piece(draw, stream, start, pieces[-1])
        return pieces, split.fixed_end(draw, stream, total).state
    raw = split.raw_cuts(draw, cuts)
    pieces = [np.empty(stop - start, draw.dtype) for start, stop in zip(cuts, cuts[1:], strict=False)]
    parsed = [split.speculate(draw, stream, *limits) for limits in zip(raw, raw[1:], pieces, strict=False)]
    anchors = split.resolve([one.summary for one in parsed])
    for index, one in enumerate(parsed):
        split.collect(draw, stream, one, index, anchors, cuts[index], pieces[index])
    return pieces, split.finish(draw, stream, anchors, total)


def same_state(a: dict, b: dict) -> bool:
    """Whether two state dictionaries are equal, arrays in them too."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[key], b[key]) for key in a)
    return np.array_equal(a, b)


def on_ranks(body: Callable[[], None]) -> None:
    """Run a test on the ranks that there are; without MPI on 2, 3 and 7 simulated ones too."""
    body()
    if launchers.launched_ranks(os.environ) is None:
        for size in (2, 3, 7):
            run_simulated(size, body)


def plain(x: Any) -> Any:
    """The values of a result of ours."""
    return engine.gather(x) if engine.is_handle(x) else x


def same(ours: Any, numpys: Any) -> None:
    """Ours is a distributed array where NumPy's is an array, and each rank's part is equal to the last bit."""
    assert engine.is_handle(ours) == isinstance(numpys, np.ndarray), (type(ours), type(numpys))
    if isinstance(numpys, np.ndarray):
        assert ours._array.dtype == numpys.dtype and ours._array.shape == numpys.shape
        if engine.is_sharded(ours):
            box = engine.layout_of(ours).box(engine.runtime().rank)
            numpys = numpys[tuple(slice(*limits) for limits in box)] if box else numpys[:0]
        ours = engine.shard(ours)
        assert type(ours) is np.ndarray and ours.tobytes() == numpys.tobytes()
    else:
        assert type(ours) is type(numpys) and ours == numpys
