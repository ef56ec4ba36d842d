"""Make any part of a call's samples: pure functions of a bit generator's state, without a communicator.

A call for `total` samples is cut at given sample numbers into *pieces*, which may be made anywhere in any order.

*Fixed* draws: :func:`fixed_piece` goes to the piece's place and makes it.

*Variable* and *filtered* draws need to know where the n-th sample begins. The raw sequence is cut at
:func:`raw_cuts`, where each piece is expected to begin, less a margin. (1) :func:`speculate` parses one raw segment.
The parse begins some draws before the segment, so that it has met the true one when it gets there, and says where it
began, where it ended and how many samples it made. (2) The pieces tell each other these three numbers (the only
communication). :func:`resolve` checks that each segment begins exactly where the one before it ended, which proves by
induction that all parses are the true one, and numbers the samples. (3) :func:`collect` drops the first few samples
of a segment, which belong to the piece before, and makes the few that its piece has beyond the segment. No sample is
moved. (4) :func:`finish` makes the few samples after the last segment, everywhere alike, and so arrives at NumPy's
own state after the call.

Should a parse not have met the true one, or a margin not suffice (both are less likely than 1e-14), the piece is made
from the nearest place that is known, which is slow and exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numpy_dist.random import mersenne
from numpy_dist.random.draws import Draw, Front
from numpy_dist.random.streams import State, Stream

#: Units that a parse begins before its segment. Two parses that differ meet at each token with a probability of 0.98.
RUN_UP = 256


class Anchor(NamedTuple):
    """A known place: sample number `sample` begins at `position` of the raw sequence."""

    position: int
    sample: int


class Summary(NamedTuple):
    """What one parse tells the others: where it began and ended, and how many samples it made."""

    begin: int
    end: int
    samples: int


class Samples:
    """The samples of a segment: in their piece's place as far as that goes, the others beside it."""

    def __init__(self, place: np.ndarray) -> None:
        self._place = place
        self._beyond = place[:0]
        self.count = 0

    def fill(self, draw: Draw, front: Front, more: int) -> None:
        """Make `more` samples after those that are there; raise `count` when they are wanted."""
        inside = self._place[self.count : self.count + more]
        if len(inside):
            draw.fill(front, inside)
        more -= len(inside)
        if more:
            have = self.count + len(inside) - len(self._place)
            if have + more > len(self._beyond):
                grown = np.empty(have + more + len(self._place) // 64, self._place.dtype)
                grown[:have] = self._beyond[:have]
                self._beyond = grown
            draw.fill(front, self._beyond[have : have + more])

    def drop(self, first: int) -> None:
        """Let the piece begin with sample `first`, provided that there are as many more than it has."""
        size = len(self._place)
        stay = max(0, size - first)
        self._place[:stay] = self._place[size - stay :]
        self._place[stay:] = self._beyond[first - (size - stay) : first]


class Parsed(NamedTuple):
    """A parsed segment: its summary, the front that stands after it, and its samples (a filtered draw has none yet)."""

    summary: Summary
    front: Front
    samples: Samples | None


def state_of(front: Front) -> State:
    """The state of a Generator's bit generator, or of a RandomState."""
    return front.get_state(legacy=False) if isinstance(front, np.random.RandomState) else front.bit_generator.state


def restore(front: Front, state: State) -> None:
    """Put a front into a state; a normal that a RandomState holds back stays, where the state says nothing of it."""
    if isinstance(front, np.random.RandomState):
        front.set_state({**front.get_state(legacy=False), **state})
    else:
        front.bit_generator.state = state


def fixed_piece(draw: Draw, stream: Stream, start: int, out: np.ndarray) -> None:
    """Samples `start` to ``start + len(out)`` of a call whose tokens are fixed."""
    token, inside = divmod(start, draw.samples)
    front = draw.front(stream.at(token * int(draw.units)))
    if inside:
        # A token is made as a whole: begin with it, and forget what comes before the piece.
        head = min(len(out), draw.samples - inside)
        whole = np.empty(inside + len(out) if len(out) == head else draw.samples, draw.dtype)
        draw.fill(front, whole)
        out[:head] = whole[inside : inside + head]
        out = out[head:]
    if len(out):
        draw.fill(front, out)


def fixed_end(draw: Draw, stream: Stream, total: int) -> np.random.BitGenerator:
    """A bit generator in the state after a call for `total` samples whose tokens are fixed."""
    return stream.at(-(-total // draw.samples) * int(draw.units))


def margin(draw: Draw, units: float) -> int:
    """How far the place of a sample may be from where it is expected, `units` from the origin."""
    # Eight standard deviations, the error of the mean itself, and a few tokens.
    return math.ceil(8 * math.sqrt(units * draw.variance / draw.units) + 5e-5 * units + 16 * draw.units)


def raw_cuts(draw: Draw, cuts: Sequence[int]) -> list[int]:
    """The raw positions that are the segments' limits, for sample numbers `cuts` (ascending, from 0 to the total)."""
    found: list[int] = []
    for cut in cuts:
        units = cut / draw.samples * draw.units
        found.append(max(0, int(units) - margin(draw, units), *found[-1:]))
    return found


def speculate(draw: Draw, stream: Stream, begin: int, stop: int, place: np.ndarray) -> Parsed:
    """Parse the segment of the raw sequence from `begin` to `stop`.

    Parameters
    ----------
    draw : Draw
        Of a variable or filtered kind.
    stream : Stream
    begin, stop : int
        Neighbours among the positions of `raw_cuts`. The samples of the segment are those whose tokens begin at or
        after the first beginning of a token that is not before `begin`, and before `stop`.
    place : ndarray
        The piece's, where the samples are put for the time being.

    Returns
    -------
    Parsed
    """
    if draw.accepted is not None:
        return _count_accepted(draw, stream, begin, stop)
    position = max(0, begin - RUN_UP)
    front = draw.front(stream.at(position))
    if begin > 0:
        position = _run(draw, stream, front, position, begin, Samples(np.empty(RUN_UP, draw.dtype)))
    samples = Samples(place)
    end = _run(draw, stream, front, position, stop, samples)
    return Parsed(Summary(position, end, samples.count), front, samples)


def _run(draw: Draw, stream: Stream, front: Front, position: int, stop: int, samples: Samples) -> int:
    """Make the tokens that begin before `stop`; returns the position after them."""
    most = stop - position
    while position < stop:
        ahead = stop - position
        unlikely = 6 * math.sqrt(ahead * draw.variance / draw.units) + 1
        tokens = max(1, min(most, int((ahead - unlikely) / draw.units)))
        before = state_of(front)
        samples.fill(draw, front, tokens * draw.samples)
        after = position + stream.between(before, state_of(front), tokens * draw.units)
        if after > stop and tokens > 1:
            # Some of these tokens began after the stop, which only the last one may cross.
            restore(front, before)
            most = tokens // 2
        else:
            samples.count += tokens * draw.samples
            position = after
    return position


def _count_accepted(draw: Draw, stream: Stream, begin: int, stop: int) -> Parsed:
    """The segment of a filtered draw: how many samples the raw draws between the two positions give."""
    bit_generator = stream.at(begin)
    count, left = 0, stop - begin
    while left > 0:
        count += accepted_in(draw, mersenne.words(bit_generator, min(left, 1 << 15)))
        left -= 1 << 15
    # The samples are made in one go, when it is known how many are wanted.
    return Parsed(Summary(begin, stop, count), None, None)


def accepted_in(draw: Draw, words: np.ndarray) -> int:
    """How many samples a filtered draw takes from these 32-bit draws (lowest part first)."""
    assert draw.accepted is not None
    parts = words.astype("<u4", copy=False).view("u1" if len(draw.accepted) == 256 else "<u2")
    return int(np.count_nonzero(draw.accepted[parts]))


def resolve(summaries: Sequence[Summary]) -> list[Anchor]:
    """Where the segments begin, as far as they fit together, and the end of the last of these.

    ``len(summaries) + 1`` anchors mean that all fit; with fewer, nothing is known of the segments beyond.
    """
    anchors = [Anchor(0, 0)]
    for summary in summaries:
        position, sample = anchors[-1]
        if summary.begin != position:
            break
        anchors.append(Anchor(summary.end, sample + summary.samples))
    return anchors


def collect(
    draw: Draw, stream: Stream, parsed: Parsed, index: int, anchors: Sequence[Anchor], start: int, place: np.ndarray
) -> None:
    """Samples from `start` on in their place, for which `parsed`, segment number `index`, was parsed."""
    if not len(place):
        return
    known = index < len(anchors) - 1 and anchors[index].sample <= start
    anchor = anchors[index] if known else max(other for other in anchors if other.sample <= start)
    ahead = start - anchor.sample
    if draw.accepted is not None:
        front = draw.front(stream.at(anchor.position))
        place[:] = draw.make(front, ahead + len(place))[ahead:]
    elif known and parsed.samples is not None:
        missing = ahead + len(place) - parsed.samples.count
        if missing > 0:
            parsed.samples.fill(draw, parsed.front, missing)
        parsed.samples.drop(ahead)
    else:
        front = draw.front(stream.at(anchor.position))
        draw.skip(front, ahead)
        draw.fill(front, place)


def finish(draw: Draw, stream: Stream, anchors: Sequence[Anchor], total: int) -> State:
    """The state after a call for `total` samples, without the normal held back where the call does not touch it."""
    # Strictly before the end: NumPy stops right after the last sample, not after draws that give none.
    anchor = max(known for known in anchors if known.sample < total)
    front = draw.front(stream.at(anchor.position))
    if draw.accepted is not None:
        draw.make(front, total - anchor.sample)
    else:
        draw.skip(front, total - anchor.sample)
    state = state_of(front)
    return state if draw.unit == "pair" else {key: state[key] for key in state if "gauss" not in key}
