"""Reductions of an author's own: one value of each block, combined in the order of the ranks.

NumPy's reductions are the engine's, which folds partial results of known operations where they lie, or
`dispatch.patterns.reduce` and `fold`. Here neither the values nor the function that combines them are known: a value is
anything that can be pickled, and all ranks that need a result combine the values alike.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.authoring.agreement import disagree, everyones, on_blocks
from numpy_dist.authoring.blocks import block_of, common_layout
from numpy_dist.layout.layout import Copies, Layout
from numpy_dist.layout.regions import box_empty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def reduction(
    map: Function, combine: Callable[[object, object], object], finish: Callable[[object], object] | None = None
) -> Function:
    """A reduction made of a function on blocks and one that combines two of its results.

    Parameters
    ----------
    map : callable
        ``map(block)`` returns anything that can be pickled, such as a number or a tuple; ``map(block, axis)``, where
        an axis or a tuple of axes is given, an array without them. It is not called on ranks that hold no element,
        unless none does.
    combine : callable
        ``combine(a, b)`` of two results, in the order of the ranks; it must be associative.
    finish : callable, optional
        ``finish(result)``, at last, on every rank.

    Returns
    -------
    callable
        ``f(x, axis=None)``. It is collective: it executes the program, and communicates one result of each rank, and
        whether all could be combined.
        Without `axis` it returns what `combine` returned, the same on all ranks; else a distributed array.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> extent = numpy_dist.reduction(
    ...     lambda block: (block.min(), block.max()), lambda a, b: (min(a[0], b[0]), max(a[1], b[1]))
    ... )
    >>> extent(numpy_dist.arange(100_000))
    (np.int64(0), np.int64(99999))
    """

    @functools.wraps(map, assigned=("__name__", "__doc__"), updated=())
    def reduce(x: ArrayLike, axis: int | tuple[int, ...] | None = None) -> object:
        x = x if engine.is_handle(x) else np.asarray(x)
        if not x.ndim:
            x = np.reshape(x, (1,))
        layout = common_layout((x,), x.shape)
        block = block_of(x, layout)
        if axis is None:
            return _to_one(map, combine, finish, block, layout)
        axes = np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
        return _along(map, combine, finish, block, layout, axes)

    return reduce


def _holds(layout: Layout, rank: int) -> bool:
    """Whether `map` is called on a rank."""
    box = layout.box(rank)
    return box is not None and (not layout.nelements or not box_empty(box))


def _to_one(
    map: Function,
    combine: Function,
    finish: Function | None,
    block: np.ndarray,
    layout: Layout,
) -> object:
    comm = engine.runtime().comm
    value, failure = None, None
    if _holds(layout, comm.rank):
        try:
            value = map(block)
        except Exception as error:  # every rank raises it
            failure = error
    mapped = everyones(value, failure, map, "reduction")
    values = [one for rank, one in enumerate(mapped) if _holds(layout, rank)]
    # Without elements every rank has mapped the same.
    result, failure, function = _combined(combine, finish, values if layout.nelements else values[:1])
    everyones(None, failure, function, "reduction")
    return result


def _combined(
    combine: Function, finish: Function | None, values: Sequence[object]
) -> tuple[object, Exception | None, Function]:
    """What results make together; or what was raised, and by which function."""
    function = combine
    try:
        result = functools.reduce(combine, values)
        if finish is not None:
            function = finish
            result = finish(result)
    except Exception as error:  # every rank raises it
        return None, error, function
    return result, None, function


def _along(
    map: Function,
    combine: Function,
    finish: Function | None,
    block: np.ndarray,
    layout: Layout,
    axes: tuple[int, ...],
) -> object:
    """Ranks whose blocks differ along the reduced axes only exchange their results, and all combine them alike."""
    comm = engine.runtime().comm
    calls = (lambda: map(block, axes if len(axes) > 1 else axes[0])) if _holds(layout, comm.rank) else None
    result, found = on_blocks(map, calls, "reduction")
    kept = layout.drop_axes(axes)
    known = [one for one in found if one is not None]
    boxes = [kept.box(rank) for rank in range(kept.size)]
    shapes = [None if box is None else tuple(hi - lo for lo, hi in box) for box in boxes]
    if len({one[1] for one in known}) > 1 or any(
        one is not None and one[0] != shape for one, shape in zip(found, shapes, strict=True)
    ):
        disagree(map, "reduction", found, f"arrays of one dtype, without axis {axes} of the block")
    dtype = known[0][1]
    group = _group(layout, kept, comm.rank)
    partials = _exchanged(result, group, [rank for rank in group if found[rank] is not None], shapes[comm.rank], dtype)
    combined, failure, function = _combined(combine, finish, partials) if partials else (None, None, combine)
    combined = np.asarray(combined) if partials else None
    kinds = everyones(None if combined is None else combined.dtype, failure, function, "reduction")
    kind = next(one for one in kinds if one is not None)
    mine = shapes[comm.rank]
    if combined is None:
        combined = np.empty(mine or (0,) * len(kept.shape), kind)
    return engine.from_local(np.ascontiguousarray(combined), kept) if kept.shape else combined[()]


def _group(layout: Layout, kept: Layout, rank: int) -> list[int]:
    """The ranks whose results belong to one another, ascending."""
    mesh = layout.mesh
    at = mesh.coordinates(rank)
    free = [
        range(extent) if isinstance(new, Copies) and not isinstance(old, Copies) else (place,)
        for extent, place, old, new in zip(mesh.shape, at, layout.dims, kept.dims, strict=True)
    ]
    return sorted(mesh.rank(coordinates) for coordinates in product(*free))


def _exchanged(
    result: np.ndarray | np.generic | None, group: list[int], ranks: list[int], shape: object, dtype: np.dtype
) -> list[np.ndarray]:
    """The results that some ranks of a group have, on all of the group, in the order of the ranks."""
    comm = engine.runtime().comm
    mine = None if result is None else np.ascontiguousarray(result)
    received = {rank: np.empty(shape, dtype) for rank in ranks if rank != comm.rank}
    sends = [(rank, mine) for rank in group if rank != comm.rank] if mine is not None else []
    comm.transfer(sends, list(received.items()))
    parts = [mine if rank == comm.rank else received[rank] for rank in ranks]
    return [part for part in parts if part is not None]
