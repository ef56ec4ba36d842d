"""Functions on the blocks that the ranks hold, and on whole rows along an axis.

The patterns are those of NumPy's functions (`dispatch.patterns`: blocks, axis-local), with three differences for
functions that are not known: blocks are read-only, each element has one owner (no rank computes a copy of what another
has), and the ranks tell each other shapes, dtypes and errors of what was returned.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.authoring.agreement import Found, disagree, on_blocks
from numpy_dist.dispatch.core import fallback
from numpy_dist.dispatch.patterns.axis_local import whole_layout
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.ir.rules import broadcast_shapes
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.regions import box_empty

if TYPE_CHECKING:
    from numpy_dist.distarray.array import DistArray


def map_blocks(function: Function, *arrays: Any, layout: Layout | None = None, **options: object) -> DistArray:
    """Call a function on each rank's block of some arrays, and make a distributed array of what it returns.

    Collective: executes the program, redistributes arrays that are cut otherwise than the first sharded one, and agrees
    on the results' shapes. It communicates nothing else.

    Parameters
    ----------
    function : callable
        ``function(*blocks, **options)`` gets ndarrays, which it must not write to, and returns an array with as many
        axes: of the same shape, or with other lengths along any axis. A parameter called `box` gets the block's place:
        a pair (start, stop) of global indices for each axis. It is not called on ranks that hold no element, unless
        none does.
    *arrays
        Distributed arrays and ndarrays, which broadcast; scalars are handed on.
    layout : Layout, optional
        How the arrays are cut; by default as the first sharded one is.
    **options
        For the function.

    Returns
    -------
    DistArray
        Cut as the arrays are; where lengths have changed along a cut axis the blocks follow one another.

    Raises
    ------
    OverrideError
        If the results of the ranks do not make one array. What the function raises on one rank is raised on all.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> x = numpy_dist.linspace(0, 1, 100_000)
    >>> numpy_dist.map_blocks(lambda block: block * 2, x).max()
    np.float64(2.0)
    """
    arrays = tuple(x if np.isscalar(x) or engine.is_handle(x) else np.asarray(x) for x in arrays)
    shape = broadcast_shapes(*(x.shape for x in arrays if not np.isscalar(x)))
    layout = layout or common_layout(arrays, shape)
    held = [x if np.isscalar(x) else block_of(x, layout) for x in arrays]
    box = layout.box(engine.runtime().rank)
    if "box" in _parameters(function):
        options = {**options, "box": box}
    has_any = bool(layout.nelements)
    calls = None
    if box is not None and (not has_any or not box_empty(box)):

        def calls() -> object:
            return function(*held, **options)

    result, found = on_blocks(function, calls, "map_blocks")
    return assembled(function, "map_blocks", result, found, layout)


@functools.lru_cache(maxsize=256)
def _parameters(function: Function) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # functions written in C
        return frozenset()


def common_layout(arrays: Sequence[object], shape: tuple[int, ...]) -> Layout:
    """The layout of the first sharded array of this shape in which each element has one owner, else the default one."""
    for x in arrays:
        if engine.is_sharded(x) and x.shape == shape:
            layout = engine.layout_of(x)
            if layout is not None and all(isinstance(dim, Cut) for dim in layout.dims):
                return layout
    if not shape:
        raise ValueError("map_blocks needs an array with at least one axis")
    split = max(range(len(shape)), key=lambda axis: (shape[axis], -axis))
    default = engine.default_layout(shape)
    return default if all(isinstance(dim, Cut) for dim in default.dims) else engine.default_layout(shape, split=split)


def block_of(x: engine.Handle | np.ndarray, layout: Layout) -> np.ndarray:
    """This rank's block of an array that broadcasts to the layout's shape (collective where it must be moved)."""
    shape = layout.shape
    if engine.is_sharded(x) and x.shape == shape:
        view = blocks((engine.aligned(x, layout), layout))[0].view()
        view.flags.writeable = False
        return view
    if engine.is_sharded(x):
        return blocks((engine.copy(np.broadcast_to(x, shape), layout=layout), layout))[0]
    box = layout.box(engine.runtime().rank)
    whole = np.broadcast_to(engine.plain(x), shape)
    return whole[tuple(slice(lo, hi) for lo, hi in box)] if box is not None else whole[(slice(0, 0),) * len(shape)]


def assembled(
    function: Function, what: str, result: np.ndarray | np.generic | None, found: list[Found], layout: Layout
) -> DistArray:
    """The distributed array of the ranks' results, which lie as their blocks do."""
    known = [one for one in found if one is not None]
    ndim, dtypes = len(layout.shape), {one[1] for one in known}
    if len(dtypes) > 1 or any(len(one[0]) != ndim for one in known):
        disagree(function, what, found, f"arrays of {ndim} axes and one dtype")
    made = _result_layout(function, what, found, layout)
    rank = engine.runtime().rank
    box = made.box(rank)
    if box is None or result is None:
        result = np.empty(tuple(hi - lo for lo, hi in box) if box is not None else (0,) * ndim, known[0][1])
    return engine.from_local(np.ascontiguousarray(result), made)


def _result_layout(function: Function, what: str, found: list[Found], layout: Layout) -> Layout:
    """The blocks' layout with the lengths that the results have."""
    shape, dims = list(layout.shape), list(layout.dims)
    cuts = {dim.axis: number for number, dim in enumerate(dims) if isinstance(dim, Cut)}
    for axis in range(len(shape)):
        lengths: dict[int, set[int]] = {}
        for rank, one in enumerate(found):
            if one is not None:
                place = layout.mesh.coordinates(rank)[cuts[axis]] if axis in cuts else 0
                lengths.setdefault(place, set()).add(one[0][axis])
        if any(len(several) > 1 for several in lengths.values()):
            disagree(function, what, found, f"equal lengths along axis {axis} on ranks that lie side by side")
        if axis not in cuts:
            shape[axis] = min(lengths[0])
            continue
        cut = dims[cuts[axis]]
        assert isinstance(cut, Cut)
        order = range(cut.extent - 1, -1, -1) if cut.descends else range(cut.extent)
        points = [0]
        for place in order:
            points.append(points[-1] + min(lengths.get(place, {0})))
        shape[axis] = points[-1]
        dims[cuts[axis]] = Cut(axis, tuple(points[::-1] if cut.descends and points[-1] else points))
        if cut.descends and not points[-1]:
            dims[cuts[axis]] = Cut(axis, (0,) * len(points))
    return Layout(tuple(shape), layout.mesh, tuple(dims))


def axis_local(function: Function, axis: int) -> Function:
    """A function of distributed arrays that calls another one on blocks in which an axis is whole.

    What it returns is collective: it redistributes where the axis is cut, and then does what `map_blocks` does.

    Parameters
    ----------
    function : callable
        ``function(block, *args, **kwargs)``: it treats each row along the axis by itself, such as a sort, a Fourier
        transform or a cumulative sum along it. It is told nothing of `axis`.
    axis : int
        The axis that must be whole.

    Returns
    -------
    callable
        ``f(x, *args, **kwargs)``. Arrays of one axis are gathered (with the warning): there is nothing to cut.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> x = numpy_dist.asarray(np.random.default_rng(0).random((400, 300)))
    >>> smallest_first = numpy_dist.axis_local(np.sort, axis=0)
    >>> bool((np.diff(smallest_first(x, axis=0), axis=0) >= 0).all())
    True
    """

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def local(x: DistArray, *args: object, **kwargs: object) -> object:
        if not engine.is_sharded(x):
            return fallback.call(function, (x, *args), kwargs, "no argument is sharded")
        whole = normalize_axis_index(axis, x.ndim)
        layout = _whole_along(x, whole)
        if layout is None:
            return fallback.call(function, (x, *args), kwargs, "the array has no other axis that could be cut")
        return map_blocks(lambda block: function(block, *args, **kwargs), x, layout=layout)

    return local


def _whole_along(x: DistArray, axis: int) -> Layout | None:
    """A layout in which an axis is whole: the array's own if it is; None where there is no other axis.

    Unlike for NumPy's functions (`patterns.axis_local.layout_along`), each element has one owner, so that what an
    author's function does beside returning its result happens once.
    """
    layout = engine.layout_of(x)
    if layout is not None and all(isinstance(dim, Cut) for dim in layout.dims):
        cut = layout.cut_of(axis)
        if cut is None or cut.extent == 1:
            return layout
    return whole_layout(tuple(x.shape), axis) if x.ndim > 1 else None
