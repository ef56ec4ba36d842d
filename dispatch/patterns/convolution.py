"""The convolution pattern: sums over a sequence that slides along another; the longer one stays cut.

Needs: the longer sequence in ascending parts, the shorter one on every rank (`replicate.known`). A rank convolves its
part with NumPy; of its neighbours it gets as many elements as the shorter sequence has. The result is cut so that a
rank's part lies around its own elements. The sums take time in proportion to both: where 16 MiB of numbers are the
shorter one, each element of the result takes two million multiplications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.blocks import blocks, row_layout
from numpy_dist.dispatch.patterns.replicate import known
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.parallel.overlap import Interval, intervals

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.dispatch.patterns.structural import H


def checked_sequences(function: Function, a: ArrayLike, v: ArrayLike, mode: object) -> tuple[object, object]:
    """The two sequences, if NumPy takes them."""
    # What every rank has is not cut: the shorter one will be needed whole.
    a, v = (x if engine.is_handle(x) else engine.replicated(np.array(x)) for x in (a, v))
    least = 1 if function is np.correlate else 0
    if not (least <= a.ndim <= 1 and least <= v.ndim <= 1 and a.size and v.size):
        engine.numpy_error(function, (a, v, mode))
    if not (engine.shardable(a.dtype) and engine.shardable(v.dtype)):
        decline("arrays of Python objects")
    function(np.ones(1, a.dtype), np.ones(1, v.dtype), mode)  # NumPy's errors
    return np.atleast_1d(a), np.atleast_1d(v)


def sliding_sums(long: H, short: object, function: Function, mode: object) -> H:
    """The sums of products of `long` with `short` turned round: of each rank's part of the result, by NumPy itself."""
    short = known(short, function, "shorter sequence")
    n, m = long.size, short.size
    # Where in the full result this one begins, and how long it is.
    length = {2: n - m + 1, 3: n, 4: n + m - 1}[len(function(np.ones(3), np.ones(2), mode))]
    begin = {n + m - 1: 0, n: m - 1 - m // 2}.get(length, m - 1) if m > 1 else 0
    layout = row_layout(long)
    (block,) = blocks((engine.aligned(long, layout), layout))
    held = _parts(layout)
    # A rank computes what lies around its own elements, so that only neighbours talk.
    points = [min(max(0, high - begin + m // 2), length) for _, high in held]
    result = Layout((length,), Mesh((layout.size,)), (Cut(0, (0, *points[:-1], length)),))
    ranges = [(first + begin, last + begin) for first, last in _parts(result)]
    wanted = [(max(0, first - m + 1), min(n, last)) if last > first else (0, 0) for first, last in ranges]
    part = intervals(block, held, wanted, engine.runtime().comm)
    me = engine.runtime().rank
    (low, high), (first, last) = wanted[me], ranges[me]
    with np.errstate(all="ignore"):  # as NumPy, which does not look at what these loops meet
        if first == last:
            made = np.convolve(np.ones(1, long.dtype), short[:1])[:0]
        elif low == first - m + 1 and high == last:
            made = np.convolve(part, short, "valid")
        else:
            made = np.convolve(part, short, "full")[first - low : last - low]
    return engine.from_local(made, result)


def _parts(layout: Layout) -> list[Interval]:
    return [(0, 0) if box is None else box[0] for box in map(layout.box, range(layout.size))]
