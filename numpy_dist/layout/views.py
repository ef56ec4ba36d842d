"""Views as affine maps: from the strides of a view to the coordinates of its storage, and to who owns what.

The *geometry* of a storage is its shape and a last axis of ``itemsize`` bytes, so that ``.real`` and dtype views are
affine too. Where a view is not affine there (a reshape that merges axes), neighbouring axes of the geometry are merged,
but never a cut axis into its predecessor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, product
from math import gcd, prod
from typing import NamedTuple

from numpy_dist.layout.layout import BoxList, Copies, Cut, Layout, Pinned
from numpy_dist.layout.regions import EMPTY_RANGE, Box, Region

_CACHED = 4096


@dataclass(frozen=True)
class ViewMap:
    """An affine map from the indices of a view to the coordinates of a storage's geometry.

    Coordinate ``a`` of the first byte of the element at ``index`` is ``offset[a] + sum(index[v] * steps[v][a])``.

    Parameters
    ----------
    shape : tuple of int
        Shape of the view.
    axes_shape : tuple of int
        Extents of the geometry that the map refers to, the bytes included.
    offset : tuple of int
        Coordinates of the first element.
    steps : tuple of tuple of int
        For each view axis its step along each geometry axis; 0 for axes of extent 0 or 1, and for broadcast axes.
    groups : tuple of tuple of int
        Which axes of the storage each geometry axis merges; the bytes are the axis after the last.
    storage_shape : tuple of int
        Shape of the storage, followed by its item size.
    element_bytes : int
        Bytes that an element of the view covers.
    """

    shape: tuple[int, ...]
    axes_shape: tuple[int, ...]
    offset: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    storage_shape: tuple[int, ...]
    element_bytes: int = 1
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        key = (self.shape, self.axes_shape, self.offset, self.steps, self.storage_shape, self.element_bytes)
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[ViewMap], tuple]:
        state = (self.shape, self.axes_shape, self.offset, self.steps, self.groups, self.storage_shape)
        return ViewMap, (*state, self.element_bytes)

    @property
    def merged(self) -> bool:
        """Whether axes of the storage are merged."""
        return len(self.axes_shape) < len(self.storage_shape)

    @property
    def is_identity(self) -> bool:
        """Whether the view is the whole storage, element by element."""
        return (
            self.shape == self.storage_shape[:-1]
            and not any(self.offset)
            and all(
                not any(row[:v]) and not any(row[v + 1 :]) and (row[v] == 1 or n <= 1)
                for v, (row, n) in enumerate(zip(self.steps, self.shape, strict=True))
            )
        )

    def coordinates(self, index: Sequence[int]) -> tuple[int, ...]:
        """The geometry coordinates of one element."""
        coordinates = list(self.offset)
        for i, row in zip(index, self.steps, strict=True):
            for axis, step in enumerate(row):
                coordinates[axis] += i * step
        return tuple(coordinates)


# -- decoding --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=_CACHED)
def decode(
    shape: tuple[int, ...],
    itemsize: int,
    cut_axes: tuple[int, ...],
    offset_bytes: int,
    view_shape: tuple[int, ...],
    view_strides_bytes: tuple[int, ...],
    view_itemsize: int = 1,
) -> ViewMap | None:
    """The affine map of a view over a C-contiguous storage, None when there is none.

    Parameters
    ----------
    shape, itemsize : tuple of int, int
        Shape and item size of the storage.
    cut_axes : tuple of int
        Axes that may not be merged into their predecessor.
    offset_bytes : int
        Where the view's first element begins.
    view_shape, view_strides_bytes : tuple of int
        Shape and strides of the view.
    view_itemsize : int, optional
        Item size of the view, which matters when it is larger than the storage's: unless it is given, only the first
        byte of each element counts.
    """
    sizes = (*shape, itemsize)
    separate: tuple[tuple[int, ...], ...] = tuple((axis,) for axis in range(len(sizes)))
    vmap = _decode(sizes, separate, offset_bytes, view_shape, view_strides_bytes, view_itemsize)
    if vmap is None:
        groups = _merged_groups(len(sizes), cut_axes)
        if len(groups) < len(sizes):
            vmap = _decode(sizes, groups, offset_bytes, view_shape, view_strides_bytes, view_itemsize)
    if vmap is None and 0 in view_shape:
        # A view without elements may point anywhere.
        zeros = (0,) * len(sizes)
        return ViewMap(view_shape, sizes, zeros, (zeros,) * len(view_shape), separate, sizes, view_itemsize)
    return vmap


def _merged_groups(count: int, cut_axes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    starts = sorted({0, *cut_axes})
    return tuple(tuple(range(a, b)) for a, b in zip(starts, [*starts[1:], count], strict=True))


def _decode(
    sizes: tuple[int, ...],
    groups: tuple[tuple[int, ...], ...],
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    element_bytes: int,
) -> ViewMap | None:
    """Decode the first element and the last one along each axis; the map through them is the only candidate."""
    extents = sizes if len(groups) == len(sizes) else tuple(prod([sizes[a] for a in group]) for group in groups)
    if 0 in extents:
        return None
    first = _unravel(offset, extents)
    if first is None:
        return None
    low, high = list(first), list(first)
    # Merged or not, the bytes belong to the last axis of the geometry.
    high[-1] += element_bytes - 1
    rows = []
    zeros = (0,) * len(extents)
    for n, stride in zip(shape, strides, strict=True):
        if n <= 1 or stride == 0:
            rows.append(zeros)
            continue
        last = _unravel(offset + (n - 1) * stride, extents)
        if last is None:
            return None
        row = []
        for axis, (a, b) in enumerate(zip(first, last, strict=True)):
            if a == b:
                row.append(0)
                continue
            step, rest = divmod(b - a, n - 1)
            if rest:
                return None
            row.append(step)
            if b > a:
                high[axis] += b - a
            else:
                low[axis] += b - a
        rows.append(tuple(row))
    if min(low) < 0 or any(a >= n for a, n in zip(high, extents, strict=True)):
        return None
    return ViewMap(shape, extents, first, tuple(rows), groups, sizes, element_bytes)


def _unravel(position: int, extents: tuple[int, ...]) -> tuple[int, ...] | None:
    coordinates = []
    for extent in reversed(extents):
        position, coordinate = divmod(position, extent)
        coordinates.append(coordinate)
    return None if position else tuple(reversed(coordinates))


# -- layouts of views ------------------------------------------------------------------------------------------------


class _Motion(NamedTuple):
    """How the elements of a view move along the geometry axis of a cut."""

    scale: int  # geometry indices for each index of the cut axis
    offset: int
    low: int  # the lowest byte or cell reached, relative to the offset
    high: int
    driving: list[tuple[int, int, int]]  # (view axis, its extent, its step)


def _motion(cut: Cut, vmap: ViewMap) -> _Motion:
    axis, scale = cut.axis, 1
    if vmap.merged:
        starts = [group[0] for group in vmap.groups]
        if cut.axis not in starts:
            raise ValueError(f"the view was decoded as if axis {cut.axis} were whole, but it is cut")
        axis = starts.index(cut.axis)
        scale = prod([vmap.storage_shape[a] for a in vmap.groups[axis][1:]])
    low, high = 0, vmap.element_bytes - 1 if axis == len(vmap.groups) - 1 else 0
    driving = []
    for v, row in enumerate(vmap.steps):
        step = row[axis]
        if step:
            n = vmap.shape[v]
            driving.append((v, n, step))
            if step < 0:
                low += step * (n - 1)
            else:
                high += step * (n - 1)
    return _Motion(scale, vmap.offset[axis], low, high, driving)


class _Drive(NamedTuple):
    """What the cut of a storage axis can become in a view."""

    only: int | None  # the coordinate that owns everything, if there is one
    exact: list[tuple[int, tuple[int, ...]]]  # (view axis, cut points) with exactly the storage's owners, best first
    rough: tuple[int, tuple[int, ...]] | None  # the same, but cells of other owners may be needed


def _drive(cut: Cut, vmap: ViewMap) -> _Drive:
    if not cut.ascending[-1]:
        return _Drive(0, [], None)
    scale, offset, low, high, driving = _motion(cut, vmap)
    points = _scaled(cut, scale)
    first, last = cut.owner((offset + low) // scale), cut.owner((offset + high) // scale)
    exact = []
    rough = None
    for v, n, step in sorted(driving, key=lambda entry: (-abs(entry[2]), entry[0])):
        reach = step * (n - 1)
        rest_low, rest_high = low - min(reach, 0), high - max(reach, 0)
        mapped = _map_points(points, offset + rest_low, step, n)
        if rough is None:
            rough = (v, mapped)
        # The other axes keep within the owner if both ends of their reach give the same cut.
        if rest_low == rest_high or mapped == _map_points(points, offset + rest_high, step, n):
            exact.append((v, mapped))
    return _Drive(first if first == last else None, exact, rough)


def _scaled(cut: Cut, scale: int) -> tuple[int, ...]:
    return cut.points if scale == 1 else tuple([p * scale for p in cut.points])


def _map_points(points: tuple[int, ...], offset: int, step: int, n: int) -> tuple[int, ...]:
    """Cut points for the index i, where the storage is cut at `points` and i lies at offset + i * step."""
    if step > 0:
        mapped = [-((offset - p) // step) for p in points]
    else:
        mapped = [(offset - p) // -step + 1 for p in points]
    return tuple([0 if p < 0 else n if p > n else p for p in mapped])


def _resolve_simple(layout: Layout, vmap: ViewMap) -> Layout | None:
    """The layout of a view in which no two axes move along, or follow, the same cut: the usual case."""
    used: set[int] = set()
    dims: list[Cut | Copies | Pinned] = []
    for what in layout.dims:
        if not isinstance(what, Cut):
            dims.append(what)
            continue
        scale, offset, low, high, driving = _motion(what, vmap)
        if not driving and low == high and what.ascending[-1]:
            dims.append(Pinned(what.owner(offset // scale)))
            continue
        if len(driving) != 1:
            return None
        v, n, step = driving[0]
        if v in used or high - low != abs(step) * (n - 1):
            return None
        used.add(v)
        dims.append(Cut(v, _map_points(_scaled(what, scale), offset, step, n)))
    return Layout(vmap.shape, layout.mesh, tuple(dims))


def _resolve(layout: Layout, vmap: ViewMap, rough: bool) -> Layout | None:
    drives = {dim: _drive(what, vmap) for dim, what in enumerate(layout.dims) if isinstance(what, Cut)}
    dims = list(layout.dims)
    used: set[int] = set()
    # What one coordinate owns alone could be pinned too, so it gives way to cuts that need the view axis.
    for dim in sorted(drives, key=lambda d: (drives[d].only is not None, d)):
        drive = drives[dim]
        choices = [*drive.exact]
        if rough and drive.only is None and drive.rough is not None:
            choices.append(drive.rough)
        chosen = next(((v, points) for v, points in choices if v not in used), None)
        if chosen is not None:
            used.add(chosen[0])
            dims[dim] = Cut(*chosen)
        elif drive.only is not None:
            dims[dim] = Pinned(drive.only)
        else:
            return None
    return Layout(vmap.shape, layout.mesh, tuple(dims))


@lru_cache(maxsize=_CACHED)
def view_layout(layout: Layout, vmap: ViewMap) -> Layout | None:
    """The layout of a view with exactly the owners of its storage, None when there is none.

    There is none for a diagonal over two cut axes, for windows that straddle a cut, or for an axis that is split
    elsewhere than at its cut points.
    """
    if vmap.is_identity:
        return layout
    return _resolve_simple(layout, vmap) or _resolve(layout, vmap, rough=False)


@lru_cache(maxsize=_CACHED)
def iteration_layout(layout: Layout, vmap: ViewMap) -> Layout | None:
    """A layout in which to iterate over a view.

    It is that of `view_layout`, or else one that goes by the lowest cell that each index reaches: a rank may then need
    cells of other owners. None for a diagonal over two cut axes: see `owned_boxes`.
    """
    return view_layout(layout, vmap) or _resolve(layout, vmap, rough=True)


@lru_cache(maxsize=_CACHED)
def owned_boxes(layout: Layout, vmap: ViewMap) -> BoxList | None:
    """The box of the view that each rank owns as the primary owner, None when these are no boxes.

    Boxes exist wherever each cut axis follows one axis of the view, also when several follow the same one (diagonals).
    """
    # For each mesh dimension, what each coordinate owns: (view axis, low, high), True for everything, None for nothing.
    shares: list[list[tuple[int, int, int] | bool | None]] = []
    for what, extent in zip(layout.dims, layout.mesh.shape, strict=True):
        if isinstance(what, Cut):
            drive = _drive(what, vmap)
            if drive.only is not None:
                shares.append([True if c == drive.only else None for c in range(extent)])
            elif drive.exact:
                axis, points = drive.exact[0]
                shares.append([(axis, min(p, q), max(p, q)) for p, q in pairwise(points)])
            else:
                return None
        else:
            owner = what.coordinate if isinstance(what, Pinned) else 0
            shares.append([True if c == owner else None for c in range(extent)])
    return BoxList(vmap.shape, tuple(_common_box(vmap.shape, mine) for mine in product(*shares)))


def _common_box(shape: tuple[int, ...], shares: tuple[tuple[int, int, int] | bool | None, ...]) -> Box | None:
    if None in shares:
        return None
    box = [(0, n) for n in shape]
    for share in shares:
        if isinstance(share, tuple):
            axis, a, b = share
            lo, hi = box[axis]
            lo = max(lo, a)
            box[axis] = (lo, max(lo, min(hi, b)))
    return tuple(box)


# -- images ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=_CACHED)
def image(vmap: ViewMap, box: Box) -> Region:
    """The smallest region of the geometry that contains the first byte of every element of a box of the view."""
    return _image(vmap, box)


def _image(vmap: ViewMap, box: Box) -> Region:
    if any(hi <= lo for lo, hi in box):
        return (EMPTY_RANGE,) * len(vmap.axes_shape)
    region = []
    for axis, start in enumerate(vmap.offset):
        low = high = start
        step = 0
        for (lo, hi), row in zip(box, vmap.steps, strict=True):
            s = row[axis]
            if s:
                a, b = lo * s, (hi - 1) * s
                low += a if a < b else b
                high += b if a < b else a
                if hi - lo > 1:
                    step = gcd(step, s)
        region.append(range(low, high + 1, step or 1))
    return tuple(region)


@lru_cache(maxsize=_CACHED)
def storage_region(vmap: ViewMap, box: Box) -> Region:
    """A region of the storage that contains a box of the view: its image, or a hull where axes are merged."""
    return compute_storage_region(vmap, box)


def compute_storage_region(vmap: ViewMap, box: Box) -> Region:
    """As `storage_region`, which is kept; this is for what other ranks have."""
    region: list[range] = []
    if not vmap.merged:
        return _image(vmap, box)[:-1]
    for group, r in zip(vmap.groups, _image(vmap, box), strict=True):
        extra = vmap.element_bytes - 1 if group[-1] == len(vmap.storage_shape) - 1 else 0
        if not r:
            region.extend(EMPTY_RANGE for _ in group)
        elif len(group) == 1:
            region.append(r)
        else:
            region.extend(_unmerge(r, extra, [vmap.storage_shape[a] for a in group]))
    return tuple(region[:-1])


def addressable_region(vmap: ViewMap, region: Region) -> Region:
    """A region of the storage that contains another one and in which the view's elements can be addressed.

    Where the view merges axes, what is merged is whole but for the first axis of each group, which has no steps.
    """
    if not vmap.merged:
        return region
    found = list(region)
    for first, *rest in (group for group in vmap.groups if len(group) > 1):
        found[first] = range(region[first].start, region[first].stop)
        for axis in rest:
            if axis < len(found):  # behind the last axis are the bytes
                found[axis] = range(vmap.storage_shape[axis])
    return tuple(found)


def _unmerge(r: range, extra: int, extents: list[int]) -> list[range]:
    """Divide a range along a merged axis into ranges along its parts; each index covers `extra` more ones."""
    region = []
    low, high, step = r[0], r[-1], r.step
    inner = prod(extents)
    for position, extent in enumerate(extents):
        inner //= extent
        a, b = low // inner, (high + extra) // inner
        if a == b:
            region.append(range(a, a + 1))
            low, high = low - a * inner, high - a * inner
        elif step % inner == 0 and low % inner + extra < inner:
            region.append(range(a, b + 1, step // inner))
            low = high = low % inner
        else:
            region.append(range(a, b + 1))
            region.extend(range(n) for n in extents[position + 1 :])
            break
    return region
