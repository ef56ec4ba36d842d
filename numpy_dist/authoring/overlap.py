"""Functions on blocks with a halo: each block is widened by its neighbours' elements, and at the ends by a rule.

Like `map_blocks`, with halos of any width. NumPy's convolutions (`dispatch.patterns.convolution`) fetch neighbouring
elements in another way, since their results have other lengths and are cut anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.authoring.agreement import disagree, on_blocks
from numpy_dist.authoring.blocks import assembled, common_layout
from numpy_dist.engine.recording.pieces import intervals_of, pieces
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import box_empty

if TYPE_CHECKING:
    from numpy_dist.authoring.agreement import Found
    from numpy_dist.distarray.array import DistArray
    from numpy_dist.engine.recording.pieces import Intervals

BOUNDARIES = ("symmetric", "reflect", "edge", "wrap", "constant", "none")
Depth = tuple[tuple[int, int], ...]


def map_overlap(
    function: Function,
    x: Any,
    depth: int | Sequence[int | tuple[int, int]] | Mapping[int, int | tuple[int, int]],
    boundary: str | Sequence[str] = "symmetric",
    *,
    value: complex | np.generic = 0,
    trim: bool = True,
    **options: object,
) -> DistArray:
    """Call a function on each rank's block of an array together with its surroundings (collective).

    Communicates the halos, of any width, also wider than a shard; then the shapes of the results.

    Parameters
    ----------
    function : callable
        ``function(block, **options)`` gets an ndarray of its own and returns one.
    x : DistArray
    depth : int, sequence or mapping
        How many elements are added: one number for all axes, or for each axis (a mapping leaves the others at 0) a
        number or a pair (below, above).
    boundary : str or sequence of str
        What stands beyond the ends of the array, for all axes or for each, in the words of `numpy.pad`: "symmetric",
        "reflect", "edge", "wrap", "constant" (`value`), or "none": nothing; blocks at the ends are smaller then.
    value : scalar
        For "constant".
    trim : bool
        Whether the result has the widened block's shape, and what was added is cut off here. Otherwise the function
        returns an array of the block's own shape.
    **options
        For the function.

    Returns
    -------
    DistArray
        Of the shape of `x`, cut as `x` is.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> x = numpy_dist.arange(100_000.0)
    >>> def smooth(block):
    ...     return np.convolve(block, [0.25, 0.5, 0.25], "same")
    >>> y = numpy_dist.map_overlap(smooth, x, depth=1, boundary="edge")
    >>> y[:3]
    array([0.25, 1.  , 2.  ])
    """
    x = x if engine.is_handle(x) else engine.from_global(np.asarray(x), compared=True)
    depths, modes = depths_of(depth, x.ndim), _modes(boundary, x.ndim)
    for axis, (mode, (below, above)) in enumerate(zip(modes, depths, strict=True)):
        if max(below, above) and x.shape[axis] == 0 and mode not in ("constant", "none"):
            raise ValueError(f"axis {axis} has no elements that could be continued by {mode!r}")
    return _mapped(function, x, depths, modes, value, trim, options)


def _mapped(
    function: Function,
    x: DistArray,
    depths: Depth,
    modes: tuple[str, ...],
    value: object,
    trim: bool,
    options: dict,
) -> DistArray:
    layout = common_layout((x,), x.shape)
    block, added = widened(x, layout, depths, modes, value)
    box = layout.box(engine.runtime().rank)
    own = tuple(hi - lo for lo, hi in box or ())
    calls = None
    if box is not None and (not layout.nelements or not box_empty(box)):

        def calls() -> object:
            return function(block, **options)

    expected = block.shape if trim else own
    result, found = on_blocks(function, calls, "map_overlap")
    fits = result is None or result.shape == expected
    if not all(engine.runtime().comm.allgather(fits)):
        what = "the widened block's shape" if trim else "the block's own shape (trim=False)"
        disagree(function, "map_overlap", found, f"arrays of {what}")
    if trim and result is not None:
        result = result[tuple(slice(low, n - high) for (low, high), n in zip(added, result.shape, strict=True))]
    return assembled(function, "map_overlap", result, found if not trim else _trimmed(found, layout), layout)


def depths_of(depth: int | Sequence[int | tuple[int, int]] | Mapping[int, int | tuple[int, int]], ndim: int) -> Depth:
    """For each axis how many elements are added below and above."""
    if isinstance(depth, Mapping):
        given = {axis % ndim if -ndim <= axis < ndim else axis: n for axis, n in depth.items()}
        if any(not 0 <= axis < ndim for axis in given):
            raise ValueError(f"depth={depth} names an axis that an array of {ndim} axes does not have")
        depth = [given.get(axis, 0) for axis in range(ndim)]
    elif isinstance(depth, int | np.integer):
        depth = [depth] * ndim
    if len(depth) != ndim:
        raise ValueError(f"depth={depth} is not for an array of {ndim} axes")
    pairs = tuple((int(n), int(n)) if isinstance(n, int | np.integer) else (int(n[0]), int(n[1])) for n in depth)
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError(f"depth={depth} must not be negative")
    return pairs


def _modes(boundary: str | Sequence[str], ndim: int) -> tuple[str, ...]:
    modes = (boundary,) * ndim if isinstance(boundary, str) else tuple(boundary)
    if len(modes) != ndim or any(mode not in BOUNDARIES for mode in modes):
        allowed = f"one of {', '.join(BOUNDARIES)}, or one for each axis"
        raise ValueError(f"boundary={boundary!r} is not allowed; it is {allowed}")
    return modes


@lru_cache(maxsize=4096)
def _sources(lo: int, hi: int, n: int, depth: tuple[int, int], mode: str) -> tuple[np.ndarray, int, int]:
    """Where the elements of a widened interval come from; how many are added below and above (fewer for "none").

    Indices of -1 stand for the constant.
    """
    if mode == "none":
        low, high = max(lo - depth[0], 0), min(hi + depth[1], n)
        return np.arange(low, high), lo - low, high - hi
    at = np.arange(lo - depth[0], hi + depth[1])
    if mode == "constant":
        at = np.where((at < 0) | (at >= n), -1, at)
    elif mode == "edge":
        at = np.clip(at, 0, n - 1)
    elif mode == "wrap":
        at = at % n
    elif mode == "symmetric":
        at = at % (2 * n)
        at = np.where(at >= n, 2 * n - 1 - at, at)
    elif n > 1:
        at = at % (2 * n - 2)
        at = np.where(at >= n, 2 * n - 2 - at, at)
    else:
        at = np.zeros_like(at)
    return at, depth[0], depth[1]


def widened(
    x: DistArray, layout: Layout, depths: Depth, modes: Sequence[str], value: object
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """This rank's block with its surroundings, and for each axis how much was added (collective)."""
    rank, shape = engine.runtime().rank, layout.shape
    wanted: list[tuple[Intervals, ...]] = []
    for other in range(layout.size):
        box = layout.box(other)
        if box is None or (layout.nelements and box_empty(box)):
            wanted.append(((),) * len(shape))
            continue
        sources = [_sources(lo, hi, n, d, m)[0] for (lo, hi), n, d, m in zip(box, shape, depths, modes, strict=True)]
        wanted.append(tuple(intervals_of(at[at >= 0]) for at in sources))
    fetched = pieces(x, layout, wanted)
    box, added = layout.box(rank), []
    if box is None or (layout.nelements and box_empty(box)):
        return fetched, [(0, 0)] * len(shape)
    for axis, ((lo, hi), n, d, m) in enumerate(zip(box, shape, depths, modes, strict=True)):
        at, low, high = _sources(lo, hi, n, d, m)
        added.append((low, high))
        fetched = _spread(fetched, axis, at, wanted[rank][axis], value)
    return fetched, added


def _spread(block: np.ndarray, axis: int, at: np.ndarray, intervals: Intervals, value: object) -> np.ndarray:
    """Bring elements that were fetched once to all their places along an axis."""
    known = np.concatenate([np.arange(lo, hi) for lo, hi in intervals] or [np.arange(0)])
    if np.array_equal(at, known):
        return block
    outside = at < 0
    places = np.searchsorted(known, np.where(outside, known[0] if known.size else 0, at))
    if known.size == 0:
        shape = (*block.shape[:axis], at.size, *block.shape[axis + 1 :])
        return np.full(shape, value, block.dtype)
    made = np.take(block, places, axis)
    if outside.any():
        made[(slice(None),) * axis + (outside,)] = value
    return made


def _trimmed(found: list[Found], layout: Layout) -> list[Found]:
    """What the ranks' results are once that which was added is cut off: their blocks' shapes."""
    boxes = [layout.box(rank) for rank in range(layout.size)]
    return [
        None if one is None or box is None else (tuple(hi - lo for lo, hi in box), one[1])
        for one, box in zip(found, boxes, strict=True)
    ]
