"""Run the pure part for any number of pieces, without ranks: what the pieces tell each other is a list here."""

from __future__ import annotations

import numpy as np

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
    """The pieces of a call, each made for itself, and the state after the call."""
    stream, total = stream_for(draw, bit_generator), cuts[-1]
    if draw.kind == "fixed":
        pieces = []
        for start, stop in zip(cuts, cuts[1:], strict=False):
            pieces.append(np.empty(stop - start, draw.dtype))
            split.fixed_piece(draw, stream, start, pieces[-1])
        return pieces, split.fixed_end(draw, stream, total).state
    raw = split.raw_cuts(draw, cuts)
    parsed = [split.speculate(draw, stream, a, b, 16) for a, b in zip(raw, raw[1:], strict=False)]
    anchors = split.resolve([one.summary for one in parsed])
    pieces = [
        split.collect(draw, stream, one, index, anchors, cuts[index], cuts[index + 1])
        for index, one in enumerate(parsed)
    ]
    return pieces, split.finish(draw, stream, anchors, total)


def same_state(a: dict, b: dict) -> bool:
    """Whether two state dictionaries are equal, arrays in them too."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[key], b[key]) for key in a)
    return np.array_equal(a, b)
