"""The layout: which rank holds which elements of an array."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod

from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.regions import Box, Region, box_empty, clip

_KEPT = 256  # boxes of ranks that a layout remembers: those of neighbours, or all of a job that is not large


@dataclass(frozen=True)
class Cut:
    """A mesh dimension that divides one array axis.

    Parameters
    ----------
    axis : int
        The array axis.
    points : tuple of int
        One more than the extent of the mesh dimension, ascending from 0 or descending to 0. Coordinate ``c`` owns the
        indices between ``points[c]`` and ``points[c + 1]``; shards may be empty.
    """

    axis: int
    points: tuple[int, ...]
    ascending: tuple[int, ...] = field(init=False, repr=False, compare=False)
    descends: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        points = tuple(self.points)
        if len(points) < 2:
            raise ValueError(f"a cut needs at least two points, not {points}")
        descends = points[0] > points[-1]
        ascending = points[::-1] if descends else points
        if ascending[0] != 0 or any(a > b for a, b in pairwise(ascending)):
            raise ValueError(f"cut points must ascend from 0 or descend to 0, not {points}")
        if self.axis < 0:
            raise ValueError(f"the axis of a cut must not be negative, not {self.axis}")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "ascending", ascending)
        object.__setattr__(self, "descends", descends)
        object.__setattr__(self, "_hash", hash((self.axis, points)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Cut], tuple[int, tuple[int, ...]]]:
        return Cut, (self.axis, self.points)

    @property
    def extent(self) -> int:
        """Number of mesh coordinates along this mesh dimension."""
        return len(self.points) - 1

    def interval(self, coordinate: int) -> tuple[int, int]:
        """The half-open interval of indices that a coordinate owns."""
        a, b = self.points[coordinate], self.points[coordinate + 1]
        return (b, a) if self.descends else (a, b)

    def owner(self, index: int) -> int:
        """The coordinate that owns an index."""
        ascending = self.ascending
        if not 0 <= index < ascending[-1]:
            raise ValueError(f"index {index} is not in an axis of extent {ascending[-1]}")
        position = bisect_right(ascending, index) - 1
        return len(ascending) - 2 - position if self.descends else position

    def split(self, r: range) -> list[tuple[int, range]]:
        """The owners of an ascending range, by ascending coordinate, each with its part."""
        if not r:
            return []
        ascending, step, end = self.ascending, r.step, r[-1] + 1
        index, last = r.start, len(ascending) - 2
        if index < 0 or end > ascending[-1]:
            raise ValueError(f"{r} is not in an axis of extent {ascending[-1]}")
        parts = []
        while index < end:
            position = bisect_right(ascending, index) - 1
            part = clip(range(index, end, step), ascending[position], ascending[position + 1])
            parts.append((last - position if self.descends else position, part))
            index = part[-1] + step
        if self.descends:
            parts.reverse()
        return parts


@dataclass(frozen=True)
class Copies:
    """A mesh dimension along which every coordinate holds the same elements."""


@dataclass(frozen=True)
class Pinned:
    """A mesh dimension of which only one coordinate holds the elements."""

    coordinate: int


@dataclass(frozen=True)
class Layout:
    """Which rank holds which elements of an array of a given shape.

    Parameters
    ----------
    shape : tuple of int
        Global shape of the array.
    mesh : Mesh
        The grid of ranks.
    dims : tuple of Cut, Copies or Pinned
        What each mesh dimension does; an axis is cut by at most one of them.
    """

    shape: tuple[int, ...]
    mesh: Mesh
    dims: tuple[Cut | Copies | Pinned, ...]
    size: int = field(init=False, repr=False, compare=False)
    _cuts: tuple[tuple[int, Cut], ...] = field(init=False, repr=False, compare=False)
    _boxes: dict[int, Box | None] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape, dims = tuple(self.shape), tuple(self.dims)
        cuts = tuple((dim, what) for dim, what in enumerate(dims) if isinstance(what, Cut))
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dims", dims)
        object.__setattr__(self, "size", self.mesh.size)
        object.__setattr__(self, "_cuts", cuts)
        object.__setattr__(self, "_boxes", {})
        object.__setattr__(self, "_hash", hash((shape, self.mesh, dims)))
        self._validate()

    def _validate(self) -> None:
        if any(n < 0 for n in self.shape):
            raise ValueError(f"extents must not be negative: {self.shape}")
        if len(self.dims) != self.mesh.ndim:
            raise ValueError(f"a mesh of shape {self.mesh.shape} needs {self.mesh.ndim} entries, not {len(self.dims)}")
        axes = [cut.axis for _, cut in self._cuts]
        if len(set(axes)) != len(axes):
            raise ValueError(f"an axis is cut by at most one mesh dimension, but the cut axes are {axes}")
        for extent, what in zip(self.mesh.shape, self.dims, strict=True):
            if isinstance(what, Cut):
                if what.axis >= len(self.shape):
                    raise ValueError(f"axis {what.axis} is cut, but the array has {len(self.shape)} axes")
                if what.extent != extent:
                    raise ValueError(f"{extent} coordinates need {extent + 1} cut points, not {len(what.points)}")
                if what.ascending[-1] != self.shape[what.axis]:
                    raise ValueError(f"cut points {what.points} do not span axis {what.axis} of shape {self.shape}")
            elif isinstance(what, Pinned):
                if not 0 <= what.coordinate < extent:
                    raise ValueError(f"pinned to coordinate {what.coordinate} of a mesh dimension of extent {extent}")
            elif not isinstance(what, Copies):
                raise ValueError(f"a mesh dimension is Cut, Copies or Pinned, not {what!r}")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Layout):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.shape == other.shape
            and self.mesh == other.mesh
            and self.dims == other.dims
        )

    def __reduce__(self) -> tuple[type[Layout], tuple[tuple[int, ...], Mesh, tuple[Cut | Copies | Pinned, ...]]]:
        return Layout, (self.shape, self.mesh, self.dims)

    @property
    def ndim(self) -> int:
        """Number of array axes."""
        return len(self.shape)

    @property
    def nelements(self) -> int:
        """Number of elements of the array."""
        return prod(self.shape)

    @property
    def is_replicated(self) -> bool:
        """Whether every rank of the mesh holds the whole array."""
        return all(isinstance(what, Copies) for what in self.dims)

    @property
    def has_copies(self) -> bool:
        """Whether a mesh dimension holds copies."""
        return any(isinstance(what, Copies) for what in self.dims)

    @property
    def cut_axes(self) -> tuple[int, ...]:
        """The axes that are cut, ascending."""
        return tuple(sorted(cut.axis for _, cut in self._cuts))

    def cut_of(self, axis: int) -> Cut | None:
        """The cut of an axis, None when it is whole."""
        return next((cut for _, cut in self._cuts if cut.axis == axis), None)

    def box(self, rank: int) -> Box | None:
        """The box that a rank holds, perhaps empty; None when pinned elsewhere or no rank of this mesh."""
        try:
            return self._boxes[rank]
        except KeyError:
            box = self._box(rank)
            if len(self._boxes) < _KEPT:
                self._boxes[rank] = box
            return box

    def _box(self, rank: int) -> Box | None:
        if not 0 <= rank < self.size:
            return None
        box = [(0, n) for n in self.shape]
        for coordinate, what in zip(self.mesh.coordinates(rank), self.dims, strict=True):
            if isinstance(what, Cut):
                box[what.axis] = what.interval(coordinate)
            elif isinstance(what, Pinned) and what.coordinate != coordinate:
                return None
        return tuple(box)

    def primary(self, rank: int) -> bool:
        """Whether a rank holds its box as the primary owner, not as a copy."""
        if self.box(rank) is None:
            return False
        coordinates = self.mesh.coordinates(rank)
        return not any(c and isinstance(what, Copies) for c, what in zip(coordinates, self.dims, strict=True))

    def holders(self) -> tuple[int, ...]:
        """The ranks that hold at least one element."""
        boxes = [(rank, self.box(rank)) for rank in range(self.size)]
        return tuple(rank for rank, box in boxes if box is not None and not box_empty(box))

    def holds_for(self, rank: int, near: int) -> bool:
        """Whether `locate` may name `rank` for `near`: not pinned elsewhere, and the same copies."""
        if self.box(rank) is None:
            return False
        theirs = self._near(near)
        return all(
            mine == other
            for mine, other, what in zip(self.mesh.coordinates(rank), theirs, self.dims, strict=True)
            if isinstance(what, Copies)
        )

    def _near(self, near: int) -> tuple[int, ...]:
        return self.mesh.coordinates(near) if 0 <= near < self.size else (0,) * self.mesh.ndim

    def locate(self, region: Region, near: int = 0) -> list[tuple[int, Region]]:
        """One holder for each element of a region, by ascending rank.

        Parameters
        ----------
        region : Region
            Which elements.
        near : int, optional
            Along mesh dimensions that hold copies, the copy of this rank is taken, if it is a rank of this mesh.
        """
        if len(region) != len(self.shape):
            raise ValueError(f"a region of {len(region)} axes does not fit shape {self.shape}")
        if not all(region):
            return []
        near_coordinates = self._near(near)
        base, stride = 0, 1
        choices: list[list[tuple[int, int, range]]] = []
        for dim in range(self.mesh.ndim - 1, -1, -1):
            what = self.dims[dim]
            if isinstance(what, Cut):
                choices.append([(c * stride, what.axis, part) for c, part in what.split(region[what.axis])])
            else:
                base += stride * (what.coordinate if isinstance(what, Pinned) else near_coordinates[dim])
            stride *= self.mesh.shape[dim]
        if not choices:
            return [(base, region)]
        located = []
        for chosen in product(*reversed(choices)):
            part_region = list(region)
            rank = base
            for share, axis, part in chosen:
                rank += share
                part_region[axis] = part
            located.append((rank, tuple(part_region)))
        return located

    def transpose(self, axes: Sequence[int] | None = None) -> Layout:
        """The layout of the array with its axes permuted, as in `numpy.transpose`."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(a + self.ndim if a < 0 else a for a in axes)
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"axes {axes} are no permutation of {self.ndim} axes")
        place = {axis: new for new, axis in enumerate(order)}
        return Layout(tuple(self.shape[a] for a in order), self.mesh, self._moved(place))

    def drop_axes(self, axes: Sequence[int]) -> Layout:
        """The layout without some axes, as after a reduction: what cut them holds copies."""
        gone = {a % self.ndim for a in axes}
        kept = [axis for axis in range(self.ndim) if axis not in gone]
        place = {axis: new for new, axis in enumerate(kept)}
        return Layout(tuple(self.shape[a] for a in kept), self.mesh, self._moved(place))

    def insert_axes(self, axes: Sequence[int], extents: Sequence[int] | None = None) -> Layout:
        """The layout with uncut axes inserted, as in `numpy.expand_dims`; their extents are 1 unless given."""
        ndim = self.ndim + len(axes)
        new = {a % ndim: n for a, n in zip(axes, extents or [1] * len(axes), strict=True)}
        old = [axis for axis in range(ndim) if axis not in new]
        place = dict(enumerate(old))
        remaining = iter(self.shape)
        shape = tuple(new[axis] if axis in new else next(remaining) for axis in range(ndim))
        return Layout(shape, self.mesh, self._moved(place))

    def with_shape(self, shape: Sequence[int]) -> Layout:
        """The same layout for another shape of as many axes, which may differ where no axis is cut."""
        return Layout(tuple(shape), self.mesh, self.dims)

    def _moved(self, place: dict[int, int]) -> tuple[Cut | Copies | Pinned, ...]:
        dims: list[Cut | Copies | Pinned] = []
        for what in self.dims:
            if isinstance(what, Cut):
                axis = place.get(what.axis)
                dims.append(Copies() if axis is None else Cut(axis, what.points))
            else:
                dims.append(what)
        return tuple(dims)

    def describe(self) -> str:
        """A short text for people."""
        parts = []
        for extent, what in zip(self.mesh.shape, self.dims, strict=True):
            if isinstance(what, Cut):
                shown = [str(p) for p in what.points]
                text = "|".join(shown if len(shown) <= 9 else [*shown[:4], "...", *shown[-2:]])
                parts.append(f"axis {what.axis} cut at {text}")
            elif isinstance(what, Pinned):
                parts.append(f"pinned to {what.coordinate} of {extent}")
            else:
                parts.append(f"{extent} copies")
        return f"shape {self.shape} on mesh {self.mesh.shape}: {', '.join(parts)}"


def replicated_layout(shape: Sequence[int], nranks: int) -> Layout:
    """The layout in which each of `nranks` ranks holds the whole array."""
    return Layout(tuple(shape), Mesh((nranks,)), (Copies(),))


@dataclass(frozen=True)
class BoxList:
    """One box for each rank: a split of an iteration space that need not be a Layout (a diagonal of a cut array).

    Parameters
    ----------
    shape : tuple of int
        The iteration space.
    boxes : tuple of Box or None
        What each rank has; None, or an empty box, for nothing.
    """

    shape: tuple[int, ...]
    boxes: tuple[Box | None, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.shape, self.boxes)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[BoxList], tuple[tuple[int, ...], tuple[Box | None, ...]]]:
        return BoxList, (self.shape, self.boxes)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.boxes)

    def box(self, rank: int) -> Box | None:
        """The box of a rank, None when it has none."""
        return self.boxes[rank] if 0 <= rank < len(self.boxes) else None
