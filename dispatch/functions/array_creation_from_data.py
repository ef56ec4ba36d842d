"""Array creation routines from existing data: ndarrays, lists, buffers, anything that can be sliced, arrays of ours."""

from __future__ import annotations

import functools
import hashlib
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.comm.divergence.diagnosis import PAGE
from numpy_dist.comm.portable import first_error, portable_error, restored
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.creation import (
    OURS,
    Shape,
    axes_in_order,
    chosen_layout,
    elsewhere,
    from_parts,
    is_replicated,
)
from numpy_dist.errors import DivergenceError
from numpy_dist.ir import structure
from numpy_dist.ir.rules import memory_order
from numpy_dist.ir.samples import text_of
from numpy_dist.layout.regions import Box
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy import _OrderKACF, _SupportsDLPack
    from numpy._typing import _SupportsArrayFunc
    from numpy.typing import ArrayLike

    from numpy_dist.backends.library import Array
    from numpy_dist.distarray.array import DistArray
    from numpy_dist.layout.mesh import Mesh

    class _Sliced(Protocol):
        """What is read part by part: an ndarray, a memory map, a data set in a file."""

        def __getitem__(self, key: tuple[slice, ...], /) -> ArrayLike: ...


_NO_COPY = "Unable to avoid copy while creating an array as requested: each rank keeps a copy of its part."


# NumPy's enumeration of what `copy` means, which is also accepted for it.
_COPIES = {np._CopyMode.ALWAYS: True, np._CopyMode.IF_NEEDED: None, np._CopyMode.NEVER: False}


def ingest(
    obj: Any,
    dtype: DTypeLike | None,
    order: _OrderKACF,
    copy: bool | None,
    split: int | None,
    mesh: Mesh | Sequence[int] | None,
    root: int | None = None,
) -> DistArray:
    """Make an array of ours of anything that NumPy makes an array of, and of what is read part by part."""
    if isinstance(copy, np._CopyMode):
        copy = _COPIES[copy]
    if root is not None:
        return _from_root(obj, dtype, order, split, mesh, root)
    if engine.is_handle(obj):
        return _converted(obj, dtype, order, copy, split, mesh)
    if copy is False:
        raise ValueError(_NO_COPY)
    reads = getattr(type(obj), "__distarray__", None)
    if reads is not None:
        return _converted(reads(obj, split, mesh), dtype, order, None, split, mesh)
    rt = engine.runtime()
    if not isinstance(obj, np.ndarray) and rt.backend.memory.holds(obj):
        if not rt.uneven:
            return _from_device(obj, dtype, order, split, mesh)
        obj = rt.backend.memory.download(obj)  # other ranks have theirs on the host, and go this way
    if isinstance(obj, list | tuple) and _holds_handle(obj):
        made = _stacked(obj)
        return _of_unlike(obj, dtype) if made is None else _converted(made, dtype, order, None, split, mesh)
    if not isinstance(obj, np.ndarray) and _can_be_sliced(obj):
        return _read(obj, tuple(obj.shape), np.dtype(obj.dtype), None, dtype, order, split, mesh)
    if isinstance(obj, np.memmap):
        from numpy_dist.files.memory_maps import compare_maps

        compare_maps(engine.runtime().comm, obj)
        return _read(obj, obj.shape, obj.dtype, obj, dtype, order, split, mesh)
    try:
        array = np.asarray(obj) if isinstance(obj, np.ndarray) else np.asarray(obj, dtype)
    except ValueError:
        made = obj.__array__() if hasattr(type(obj), "__array__") else None
        if not engine.is_handle(made):
            raise
        return _converted(made, dtype, order, copy, split, mesh)
    if config.CHECK == "on":
        compare_ranks(array)
    made = _read(array, array.shape, array.dtype, array, dtype, order, split, mesh)
    checks = engine.runtime().comm.checks
    if checks is not None and config.CHECK == "on" and made._storage is not None:
        checks.journal.number_input(made._storage)
    return made


def _holds_handle(value: list | tuple) -> bool:
    return any(engine.is_handle(x) or (isinstance(x, list | tuple) and _holds_handle(x)) for x in value)


def _stacked(obj: list | tuple) -> Any:
    """The array of a list with arrays of ours, None if these have not one shape."""
    parts = [
        _stacked(item)
        if isinstance(item, list | tuple) and _holds_handle(item)
        else ingest(item, None, None, None, None, None)
        for item in obj
    ]
    return np.stack(parts) if all(x is not None and x.shape == parts[0].shape for x in parts) else None


def _of_unlike(obj: list | tuple, dtype: DTypeLike | None) -> DistArray:
    """An array of arrays as Python objects, as NumPy makes it of those that have not one shape; else NumPy's error."""

    def in_place_of(item: object) -> object:
        if engine.is_handle(item):
            return structure.stand_in(item._array)
        return [in_place_of(x) for x in item] if isinstance(item, list | tuple) else item

    made = np.empty(np.array(in_place_of(obj), dtype).shape, object)
    for index in np.ndindex(made.shape):
        made[index] = functools.reduce(operator.getitem, index, obj)
    return engine.replicated(made)


def _can_be_sliced(obj: object) -> bool:
    """Whether an object has a shape, a NumPy dtype and slices, as datasets of h5py and zarr; no other array class."""
    kind = type(obj)
    if isinstance(obj, np.generic) or hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_function__"):
        return False
    return (
        isinstance(getattr(obj, "shape", None), tuple)
        and isinstance(getattr(obj, "dtype", None), np.dtype)
        and hasattr(kind, "__getitem__")
    )


def _read(
    source: _Sliced,
    shape: Shape,
    kind: np.dtype,
    memory: np.ndarray | None,
    dtype: DTypeLike | None,
    order: _OrderKACF,
    split: int | None,
    mesh: Mesh | Sequence[int] | None,
) -> DistArray:
    """An array of which each rank reads its part from `source` (`memory`: the ndarray that it is, if it is one)."""
    target = kind if dtype is None else np.zeros(0, kind).astype(dtype).dtype
    layout = chosen_layout(shape, split, mesh)
    if is_replicated(shape, target, layout):
        whole = source if memory is not None else source[(slice(None),) * len(shape)] if shape else source[()]
        return engine.replicated(np.array(whole, dtype, order=order or "K", copy=True))  # type: ignore[call-overload]

    def part(box: Box) -> np.ndarray:
        block = source[tuple(slice(lo, hi) for lo, hi in box)]
        return np.asarray(block, target)

    return from_parts(part, shape, target, layout, axes_in_order(memory, order, len(shape)))


def _from_device(
    obj: Array, dtype: DTypeLike | None, order: _OrderKACF, split: int | None, mesh: Mesh | Sequence[int] | None
) -> DistArray:
    """An array of one of the backend's device, of which each rank copies its part there, in C order unless asked."""
    target = obj.dtype if dtype is None else np.dtype(dtype)
    layout = chosen_layout(obj.shape, split, mesh)
    if target != obj.dtype or is_replicated(obj.shape, target, layout):
        values = engine.runtime().backend.memory.download(obj)
        return ingest(values, dtype, order, None, split, mesh)
    axes = axes_in_order(None, order, len(obj.shape))
    return from_parts(lambda box: obj[tuple(slice(lo, hi) for lo, hi in box)], obj.shape, target, layout, axes)


def _converted(
    x: Any,
    dtype: DTypeLike | None,
    order: str | None,
    copy: bool | None,
    split: int | None,
    mesh: Mesh | Sequence[int] | None,
) -> DistArray:
    """An array of ours with another dtype, memory order or layout; itself where nothing is to be done or copied."""
    layout = chosen_layout(x.shape, split, mesh)
    kind = x.dtype if dtype is None else np.zeros(0, x.dtype).astype(dtype).dtype
    flags = x._array.flags
    order = memory_order(order)
    in_order = order in ("K", "A") or flags[f"{order}_CONTIGUOUS"]
    changed = kind != x.dtype or not in_order or (layout is not None and layout != engine.layout_of(x))
    if copy is False and changed:
        np.array(np.zeros(1, "f8"), "i8", copy=False)  # NumPy's error
    if not changed and not copy:
        return x
    return engine.copy(x, dtype=kind, order=order, layout=layout)


def _from_root(
    obj: object,
    dtype: DTypeLike | None,
    order: _OrderKACF,
    split: int | None,
    mesh: Mesh | Sequence[int] | None,
    root: int,
) -> DistArray:
    """An array that only rank `root` has (collective); what goes wrong there is raised on every rank."""
    comm = engine.runtime().comm
    root = operator.index(root)
    if not 0 <= root < comm.size:
        raise ValueError(f"root={root} is no rank: there are {comm.size}")
    array, failure = None, None
    if comm.rank == root:
        try:
            array = _on_root(obj, dtype, order)
        except Exception as error:
            failure = error
    told, shape = comm.bcast((portable_error(failure), None if array is None else array.shape), root)
    if told is not None:
        raise restored(told) if failure is None else failure
    return engine.from_root(array, root, chosen_layout(shape, split, mesh))


def _on_root(obj: object, dtype: DTypeLike | None, order: _OrderKACF) -> np.ndarray:
    if obj is None:
        raise ValueError("the rank that root= names passes the array, and the others pass None")
    if engine.is_handle(obj):
        raise TypeError("root= is for arrays that one rank has: this one is distributed already")
    return np.asarray(obj, dtype, order)


def compare_ranks(array: np.ndarray) -> None:
    """Make sure that every rank has the same array (collective).

    Raises
    ------
    DivergenceError
        On every rank, naming those that differ from rank 0.
    """
    comm = engine.runtime().comm
    if comm.size == 1:
        return
    if array.dtype.hasobject:
        content: Any = text_of(array.tolist()).encode()
    else:
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    seen = comm.allgather((array.shape, str(array.dtype), hashlib.blake2b(content, digest_size=16).hexdigest()))
    others = [rank for rank, what in enumerate(seen) if what != seen[0]]
    if others:
        metadata = {rank: what[:2] for rank, what in enumerate(seen)}
        alike = all(what == metadata[0] for what in metadata.values())
        detail = "the same shapes and dtypes, but other values" if alike else f"(shape, dtype) by rank: {metadata}"
        raise DivergenceError(
            "asarray was given an array that the ranks disagree about: "
            f"rank(s) {', '.join(map(str, others))} differ from rank 0 ({detail}). "
            "Every rank must pass the same array: seed the random generators that it comes from, and read no clock; "
            f"asarray(x, root=0) takes that of one rank. See {PAGE}."
        )


@implements(np.asarray, varies=(*OURS, "root"), replicated=True)
def asarray(
    a: object,
    dtype: DTypeLike | None = None,
    order: _OrderKACF = None,
    *,
    device: Literal["cpu"] | None = None,
    copy: bool | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
    root: int | None = None,
) -> Any:
    """A distributed array of the data.

    Parameters
    ----------
    a : array_like
        An array that every rank has (each copies its part), nested lists or scalars, a distributed array (returned as
        it is where nothing is to be changed), or anything with `shape`, `dtype` and slices, such as a memory map or a
        dataset of h5py or zarr: each rank then reads only its part. An object whose class has a method
        ``__distarray__(split, mesh)`` is asked for the array, as those of `numpy_dist.open` are.
    dtype, order, device, copy, like
        As in `numpy.asarray`.
    split : int, optional
        Cut this axis, for all ranks. By default the layout has the smallest halos, and arrays of less than
        ``config.MIN_SHARD_BYTES`` are not cut: every rank has them whole.
    mesh : tuple of int, optional
        Extents of the mesh of ranks, whose dimensions cut the leading axes in order.
    root : int, optional
        The rank that has the array; the others pass None. This is collective.

    Raises
    ------
    DivergenceError
        With ``config.CHECK = "on"``, if the ranks pass different arrays (this makes the call collective).
    ValueError
        If the ranks have mapped different arrays, or a file that has become shorter: collective of memory maps.
    """
    if elsewhere(like):
        return np.asarray(a, dtype, order, device=device, copy=copy, like=like)
    np.empty(0, device=device)  # NumPy's error for other devices than "cpu"
    return ingest(a, dtype, order, copy, split, mesh, root)


@implements(np.asanyarray, varies=(*OURS, "root"), replicated=True)
def asanyarray(
    a: object,
    dtype: DTypeLike | None = None,
    order: _OrderKACF = None,
    *,
    device: Literal["cpu"] | None = None,
    copy: bool | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
    root: int | None = None,
) -> Any:
    """The same as `asarray`: subclasses of ndarray are not kept."""
    if elsewhere(like):
        return np.asanyarray(a, dtype, order, device=device, copy=copy, like=like)
    return asarray(a, dtype, order, device=device, copy=copy, split=split, mesh=mesh, root=root)


@implements(np.array, varies=(*OURS, "root", "ndmax"), replicated=True)
def array(
    object: object,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: _OrderKACF = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 64,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
    root: int | None = None,
) -> Any:
    """A distributed array that is a copy of the data: `numpy.array` with the options of `asarray`."""
    if elsewhere(like):
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, like=like)
    if ndmax != 64 and engine.is_handle(object):
        np.array(np.zeros((1,) * object.ndim, object.dtype), dtype, copy=copy, ndmax=ndmax)  # type: ignore[call-overload]
    elif ndmax != 64:
        object, copy = np.array(object, dtype, ndmax=ndmax), True  # type: ignore[call-overload]
    made = ingest(object, dtype, order, copy, split, mesh, root)
    missing = ndmin - made.ndim
    return made._view(structure.index, (None,) * missing) if missing > 0 else made


@implements(np.copy, varies=OURS, replicated=True)
def copy(
    a: object,
    order: _OrderKACF = "K",
    subok: bool = False,
    *,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray:
    """A distributed array that is a copy of the data, as `numpy.copy`."""
    return array(a, order=order, copy=True, split=split, mesh=mesh)


@implements(np.ascontiguousarray, replicated=True)
def ascontiguousarray(a: object, dtype: DTypeLike | None = None, *, like: _SupportsArrayFunc | None = None) -> object:
    """A distributed array in C order with at least one axis, as `numpy.ascontiguousarray`."""
    if elsewhere(like):
        return np.ascontiguousarray(a, dtype, like=like)
    return array(a, dtype, copy=None, order="C", ndmin=1)


# -- buffers and iterators -------- ------------------------------------------------------------------------------------


def by_every_rank(module: str, function: Function, run: Callable[..., object] | None = None) -> Function:
    """`function` of NumPy, run on every rank, of which each keeps its part; registered in the name of a module.

    ``run(function, *args, **kwargs)`` runs it, where that is more than to call it.
    """

    @functools.wraps(function)
    def read(
        *args: object,
        like: object = None,
        split: int | None = None,
        mesh: Mesh | Sequence[int] | None = None,
        **kwargs: object,
    ) -> object:
        if elsewhere(like):
            return function(*args, like=like, **kwargs)
        made = function(*args, **kwargs) if run is None else run(function, *args, **kwargs)
        if isinstance(made, list | tuple):  # loadtxt(unpack=True) of structured data
            return type(made)(ingest(part, None, None, None, split, mesh) for part in made)
        if isinstance(made, np.ma.MaskedArray):  # there are none of ours
            return made
        return ingest(made, None, None, None, split, mesh)

    read.__module__ = module
    return implements(function, replicated=True)(read)


frombuffer = by_every_rank(__name__, np.frombuffer)
fromiter = by_every_rank(__name__, np.fromiter)
fromstring = by_every_rank(__name__, np.fromstring)


@implements(np.astype, kind="native")
def astype(x: DistArray, dtype: DTypeLike | None, /, *, copy: bool = True, device: object = None) -> DistArray:
    if not (device is None or device == "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')
    if not copy and x.dtype == dtype:
        return x
    return engine.copy(x, dtype=np.dtype(dtype))


@functools.wraps(np.from_dlpack)
def from_dlpack(
    x: _SupportsDLPack[None], /, *, device: Literal["cpu"] | None = None, copy: bool | None = None
) -> DistArray:
    """As `numpy.from_dlpack`, but always a copy: each rank keeps its part."""
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested: each rank keeps a copy.")
    return ingest(np.from_dlpack(x, device=device), None, None, None, None, None)


# -- blocks that the ranks have --------------------------------------------------------------------------------------


def from_local(block: object, axis: int = 0) -> DistArray:
    """The distributed array whose parts the ranks have (collective).

    Parameters
    ----------
    block : array_like
        This rank's part; it is copied. Parts may have different lengths along `axis`, also none.
    axis : int
        The axis along which the parts follow one another, in the order of the ranks.

    Returns
    -------
    DistArray

    Raises
    ------
    ValueError
        On every rank, if the parts differ in their number of axes, dtype or in the length of another axis.
    """
    from numpy_dist.layout.layout import Cut, Layout
    from numpy_dist.layout.mesh import Mesh

    comm = engine.runtime().comm
    failure, mine = None, None
    try:
        mine = np.asarray(block) if engine.is_sharded(block) else np.asarray(engine.plain(block))
    except Exception as error:
        failure = error
    seen = comm.allgather((portable_error(failure), None if mine is None else (mine.shape, mine.dtype), axis))
    found = first_error((told for told, *_ in seen), comm.rank, failure)
    if found is not None:
        rank, reason = found
        raise ValueError(f"from_local: the block of rank {rank} is no array: {reason}") from reason
    shapes = [what[0] for _, what, _ in seen]
    _check_blocks(shapes, [what[1] for _, what, _ in seen], [given for _, _, given in seen])
    axis = axis % len(shapes[0])
    points = [0]
    for shape in shapes:
        points.append(points[-1] + shape[axis])
    whole = (*shapes[0][:axis], points[-1], *shapes[0][axis + 1 :])
    assert mine is not None
    if mine.dtype.hasobject or math.prod(whole) == 0:
        return engine.replicated(np.concatenate(comm.allgather(mine), axis))
    return engine.from_local(mine, Layout(whole, Mesh((comm.size,)), (Cut(axis, tuple(points)),)))


def _check_blocks(shapes: list[Shape], dtypes: list[np.dtype], axes: list[int]) -> None:
    """The same complaint on every rank about blocks that do not make one array."""

    def listed(values: list) -> str:
        return ", ".join(f"rank {rank}: {value}" for rank, value in enumerate(values))

    if any(axis != axes[0] for axis in axes):
        raise ValueError(f"from_local: the ranks give different axes ({listed(axes)})")
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise ValueError(f"from_local: the ranks' blocks have different numbers of axes (shapes: {listed(shapes)})")
    ndim = len(shapes[0])
    if ndim == 0:
        raise ValueError("from_local: the blocks have no axis along which they could follow one another")
    if not -ndim <= axes[0] < ndim:
        raise ValueError(f"from_local: axis {axes[0]} is out of bounds for blocks with {ndim} axes")
    if any(dtype != dtypes[0] for dtype in dtypes):
        raise ValueError(f"from_local: the ranks' blocks have different dtypes ({listed(dtypes)})")
    axis = axes[0] % ndim
    others = [shape[:axis] + shape[axis + 1 :] for shape in shapes]
    if any(other != others[0] for other in others):
        raise ValueError(
            f"from_local: the ranks' blocks differ along another axis than {axis} (shapes: {listed(shapes)})"
        )
