"""Storages: what a rank holds of one global array, and the meta arrays that stand for the array itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.engine.memory.liveness import ATTRIBUTE
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.engine.memory.views import allocation_view
from numpy_dist.ir.meta_arrays import meta_array
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from weakref import ref

    from numpy_dist.backends.memory import Array, Block
    from numpy_dist.ir.views import View
    from numpy_dist.layout.regions import Region
    from numpy_dist.layout.views import ViewMap


class Token:
    """Held by handles only: its reference count tells whether anybody can still ask for the storage."""

    __slots__ = ()


class Storage:
    """A global array's data on this rank.

    Attributes
    ----------
    shape, dtype, layout, nbytes
        Of the global array, the same on every rank.
    axes : tuple of int or None
        The user's axes from outermost to innermost in memory; None for C order.
    movable : bool
        Whether `layout` may still move (`planning.layout_propagation`): a pending result, of no known layout yet.
    moved : bool
        Whether it has.
    deferred : bool
        Whether it need not be stored though it may be alive (`engine.scheduling.deferred`).
    memory : ndarray of uint8 or None
        The rank's allocation; None until a statement has stored something here (or on ranks that hold nothing).
    low : tuple of int
        Global index of the allocation's first element: the owned box's start less the margin.
    extent : tuple of int
        The allocation's shape, margins included.
    fresh : sequence
        Ghost regions of all ranks that were exchanged since the last write.
    last_write : int
        Serial of the last recorded statement that writes here; -1 if none.
    last_reader : int
        Serial of a statement that reads here, the one that was found last; -1 if none (`Program.is_read`).
    pinned : bool
        Memory was handed out: it may neither move nor be swapped.
    reserved : bool
        Statements that were deferred read it: its memory may not be taken over.
    spare : tuple or None
        A second allocation for versions, and the region of the last versioned write.
    rewritten : int
        How often it was written other than by statements.
    ahead : ReadAhead or None
        Elements that were fetched around one that was read (`engine.data.elements`).
    owner : weakref or None
        Of the handle of which the first view was taken.
    made_as : ndarray or None
        Meta array of the array that is no view to the user, where its axes (`handle.as_made`) or flags are not those
        of the whole.
    number : str
        What is the same on every rank for the same array, where that is compared (`comm.divergence.journal`).
    origin : int
        Where it comes from, the same on every rank: the first statement that writes it, as its serial and one, or a
        place in the program, less than 0; 0 before.
    window : weakref or None
        Of the window through which small work sees its elements (`engine.data.windows`).
    walk : Walk or None
        What is known of small work on it, with several ranks (`engine.data.walks`).
    lost : str
        Why the values are lost (see `execution`); empty where they are not.
    """

    # What most storages never change stands in the class: making one is on the path of every recorded statement.
    memory: Any = None  # an ndarray of uint8, or None
    low: tuple[int, ...] = ()
    extent: tuple[int, ...] = ()
    fresh: Sequence[Sequence[tuple[Region, ...]]] = ()
    spare: tuple[Array, View | None] | None = None
    axes: tuple[int, ...] | None = None
    made_as: np.ndarray | None = None
    movable = False
    moved = False
    deferred = False
    pinned = False
    reserved = False
    last_write = -1
    last_reader = -1
    rewritten = 0
    ahead: Any = None
    owner: ref[Any] | None = None
    number = ""
    origin = 0
    lost = ""
    window: ref[Any] | None = None
    walk: Any = None

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, layout: Layout, pool: Pool, nbytes: int | None = None
    ) -> None:
        self.shape, self.dtype, self.layout, self.pool = shape, dtype, layout, pool
        self.nbytes = layout.nelements * dtype.itemsize if nbytes is None else nbytes
        self.token = Token()

    @property
    def version(self) -> tuple[int, int]:
        """Another one after each write."""
        return self.last_write, self.rewritten

    def meta_array(self) -> np.ndarray:
        """The meta array of the whole array."""
        return meta_array(self.shape, self.dtype)

    @property
    def alive(self) -> bool:
        """Whether a handle refers to it."""
        return sys.getrefcount(self.token) > ATTRIBUTE or self.is_seen

    @property
    def wanted(self) -> bool:
        """Whether its values must be stored for a handle."""
        return not self.deferred and (sys.getrefcount(self.token) > ATTRIBUTE or self.is_seen)

    @property
    def is_seen(self) -> bool:
        """Whether arrays look at it through a window."""
        return self.window is not None and self.window() is not None

    def allocate(self, box: Box, margin: Sequence[tuple[int, int]] | None = None) -> None:
        """Make the local allocation for an owned `box` and margins (the memory is not initialised)."""
        low, extent = geometry(box, margin)
        nbytes = prod(extent) * self.dtype.itemsize
        try:
            self.memory = self.pool.take(nbytes)
        except MemoryError as error:
            error.add_note(
                f"{nbytes} bytes were for the part {box} of an array of shape {self.shape}, {self.dtype}, "
                f"{self.layout.describe()}"
            )
            raise
        self.low, self.extent = low, extent
        self.__class__ = _Allocated

    def adopt(self, box: Box, memory: Block) -> None:
        """Have memory of the pool, without margins, for the local allocation of an owned `box`."""
        self.low, self.extent = geometry(box)
        self.memory = memory
        self.pool.count(memory.size)
        self.__class__ = _Allocated

    def take_over(self, other: Storage) -> None:
        """Get the memory of a storage that nobody needs any more, with what is in it."""
        self.low, self.extent = other.low, other.extent
        self.__class__ = _Allocated
        other.drop_spare()
        if sys.getrefcount(other.memory) > ATTRIBUTE:  # somebody else sees it
            self.memory = self.pool.take(other.memory.size)
            self.pool.memory.copy(self.memory, other.memory)
        else:
            self.memory, other.memory = other.memory, None

    def return_to(self, other: Storage) -> None:
        """Undo `take_over`."""
        if other.memory is None:
            other.memory = self.memory
        if self.memory is other.memory:
            self.memory = None
        else:
            self.release()

    def return_to_version(self, old: Array) -> None:
        """Undo a new version: have this memory again, and no other."""
        others = [self.memory, None if self.spare is None else self.spare[0]]
        self.memory, self.spare = old, None
        for other in others:
            if other is not None and other is not old:
                self.pool.give(other)

    def array(self) -> np.ndarray:
        """The whole local allocation, margins included."""
        return self.pool.memory.array(self.memory, self.extent, self.dtype)

    def part(self, region: Sequence[range] | Box) -> np.ndarray:
        """A part of the allocation given in global coordinates (a box, or a region of ranges)."""
        return self.parts()(region)

    def parts(self) -> Callable[[Sequence[range] | Box], np.ndarray]:
        """`part` of the present allocation, whichever the storage has when it is called."""
        whole, lows = self.array(), self.low

        def part(region: Sequence[range] | Box) -> np.ndarray:
            slices = []
            for r, low in zip(region, lows, strict=True):
                start, stop, step = (r.start, r.stop, r.step) if isinstance(r, range) else (r[0], r[1], 1)
                slices.append(slice(start - low, max(stop, start) - low, step))
            key: tuple[slice | EllipsisType, ...] = (*slices, ...)
            return whole[key]

        return part

    def view(self, vmap: ViewMap, box: Box, dtype: np.dtype) -> np.ndarray:
        """A box of a view, whose owner this rank is, as an array over the allocation."""
        found = allocation_view(self.dtype.itemsize, self.low, self.extent, None, vmap, box, dtype)
        return found.over(self.memory, self.pool.memory)

    def drop_spare(self) -> None:
        """Give the second allocation back."""
        if self.spare is not None:
            memory = self.spare[0]
            self.spare = None
            self.pool.give(memory)

    def release(self) -> None:
        """Give the memory back to the pool, unless somebody else still sees it."""
        memory, spare = self.memory, self.spare[0] if self.spare is not None else None
        self.memory = self.spare = None
        if memory is not None:
            self.pool.give(memory)
        if spare is not None:
            self.pool.give(spare)


class _Allocated(Storage):
    """A storage that gives memory back in the end. Most results are never stored, and have no finalizer to be run."""

    def __del__(self) -> None:
        if self.memory is not None or self.spare is not None:
            self.release()


def geometry(box: Box, margin: Sequence[tuple[int, int]] | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The global index of the first element of an allocation for an owned `box` and margins, and its shape."""
    if margin is None:
        return tuple([lo for lo, _ in box]), tuple([hi - lo for lo, hi in box])
    low = tuple(lo - below for (lo, _), (below, _) in zip(box, margin, strict=True))
    return low, tuple(hi - lo + below + above for (lo, hi), (below, above) in zip(box, margin, strict=True))
