"""Array manipulation routines that give views, so that nothing is moved: shapes, transpositions, splitting, flipping.

Each lets NumPy apply the function to the meta array of the array: shapes, strides, flags and errors are NumPy's own.
Beside them the basic operations of that topic: `copyto`, `ndim`, `shape`, `size`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Axes, Shape
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import truth
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.replicate import everywhere
from numpy_dist.dispatch.patterns.structural import ours, view_or_self, views
from numpy_dist.ir import structure
from numpy_dist.ir.rules import memory_axes, memory_order

if TYPE_CHECKING:
    from numpy import _CastingKind
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

_roll = numpy_source(np.roll)


@implements(np.roll, kind="composed")
def roll(a: object, shift: object, axis: Axes = None) -> object:
    if engine.is_handle(shift):
        shift = everywhere(shift, np.roll, "every rank cuts at the shifts")
    return _roll(a, shift, axis)


# -- shapes ----------------------------------------------------------------------------------------------------------


@implements(np.reshape, kind="structural", varies=("shape", "newshape"))
def reshape(a: DistArray, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> engine.Handle:
    if copy:
        a = engine.copy(a, order=order)
    try:
        return a._view(structure.reshape, shape, order)
    except ValueError:
        # Either the sizes do not fit, which the second attempt says again, or NumPy would have copied.
        if copy is not None:
            raise
    return engine.copy(a, order=_copy_order(a, order))._view(structure.reshape, shape, order)


if "newshape" in inspect.signature(np.reshape).parameters:
    # Before NumPy 2.4 the shape can have this name, too: NumPy warns, and reshapes.
    adopt(__name__, np.reshape, kind="structural")


def _copy_order(a: engine.Handle, order: str) -> str:
    """The memory order in which NumPy's reshape copies."""
    if order in ("A", "a"):
        return "F" if a._array.flags.fnc else "C"
    return order


@implements(np.ravel, kind="structural")
def ravel(a: DistArray, order: str = "C") -> engine.Handle:
    given = a
    order = memory_order(order, "C")
    flags = a._array.flags
    if order == "A":
        order = "F" if flags.fnc else "C"
    elif order == "K" and not flags.c_contiguous:
        axes = memory_axes([a._array], tuple(a.shape)) or tuple(range(a.ndim))  # as NumPy's iterator goes
        a, order = a._view(np.ndarray.transpose, axes), "C"
    elif order == "K":
        order = "C"
    flags = a._array.flags
    if order == "F" and flags.f_contiguous or order == "C" and flags.c_contiguous:
        return given._owned(a._view(structure.reshape, -1, order))
    return engine.as_made(engine.copy(a, order=order)._view(structure.reshape, -1, order))


@implements(np.squeeze, kind="structural")
def squeeze(a: DistArray, axis: Axes = None) -> engine.Handle:
    return view_or_self(a, np.ndarray.squeeze, axis)


@implements(np.expand_dims, kind="structural")
def expand_dims(a: DistArray, axis: Axes) -> engine.Handle:
    return a._view(np.expand_dims, axis)


def _atleast(
    function: structure.Operation, arys: Arguments
) -> engine.Handle | np.ndarray | tuple[engine.Handle | np.ndarray, ...]:
    found = tuple(view_or_self(x, function) if engine.is_handle(x) else ours(function(x), x) for x in arys)
    return found[0] if len(found) == 1 else found


@implements(np.atleast_1d, kind="structural")
def atleast_1d(*arys: object) -> engine.Handle | np.ndarray | tuple[engine.Handle | np.ndarray, ...]:
    return _atleast(np.atleast_1d, arys)


@implements(np.atleast_2d, kind="structural")
def atleast_2d(*arys: object) -> engine.Handle | np.ndarray | tuple[engine.Handle | np.ndarray, ...]:
    return _atleast(np.atleast_2d, arys)


@implements(np.atleast_3d, kind="structural")
def atleast_3d(*arys: object) -> engine.Handle | np.ndarray | tuple[engine.Handle | np.ndarray, ...]:
    return _atleast(np.atleast_3d, arys)


@implements(np.broadcast_to, kind="structural")
def broadcast_to(array: DistArray, shape: Shape, subok: bool = False) -> engine.Handle:
    return array._view(np.broadcast_to, shape)


@implements(np.broadcast_arrays, kind="structural")
def broadcast_arrays(*args: object, subok: bool = False) -> tuple[engine.Handle | np.ndarray, ...]:
    given: list[Any] = [x if engine.is_handle(x) else np.asarray(x) for x in args]
    theirs = np.broadcast_arrays(*(structure.stand_in(x._array) if engine.is_handle(x) else x for x in given))
    mine = structure.broadcast_arrays([x._array if engine.is_handle(x) else structure.stand_in(x) for x in given])
    return tuple(
        (x if part is x._array else x._seen_as(part)) if engine.is_handle(x) else ours(found, original)
        for x, part, found, original in zip(given, mine, theirs, args, strict=True)
    )


def _nonzero_box(filt: DistArray) -> tuple[np.ndarray, np.ndarray]:
    """First and last indices of what is not zero, along each axis; empty if there is nothing (collective)."""
    # The zeros of dates and texts are no numbers.
    kind = filt.dtype.kind
    nonzero: object
    if kind == "V":
        nonzero = truth(filt)
    else:
        nonzero = np.not_equal(filt, "" if kind == "T" else 0 if kind == "O" else np.zeros((), filt.dtype)[()])
    first, last = [], []
    for axis, n in enumerate(filt.shape):
        line = np.any(nonzero, axis=tuple(other for other in range(filt.ndim) if other != axis))
        if not np.any(line):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        first.append(np.argmax(line))
        last.append(n - 1 - np.argmax(np.flip(line)))
    return np.array(first, np.intp), np.array(last, np.intp)


_numpys_trim_zeros = numpy_source(np.trim_zeros, _arg_trim_zeros=_nonzero_box)

if "axis" in inspect.signature(np.trim_zeros).parameters:
    implements(np.trim_zeros, kind="structural", source=__name__)(_numpys_trim_zeros)
else:

    @implements(np.trim_zeros, kind="structural")
    def trim_zeros(filt: DistArray, trim: str = "fb") -> object:
        # Before NumPy 2.2 for one axis, of which it reads one element after the other.
        if filt.ndim != 1 or filt.dtype.kind not in "biufcmMSU" or not isinstance(trim, str):
            return _numpys_trim_zeros(filt, trim)
        if filt.dtype.kind not in "biufc":  # no date and no text is the number that it compares with
            return filt[:]
        first, last = _nonzero_box(filt)
        n = filt.shape[0]
        start = 0 if "F" not in trim.upper() else int(first[0]) if first.size else n
        stop = n if "B" not in trim.upper() else int(last[0]) + 1 if last.size else 0
        return filt[start:stop]


# -- transpositions --------------------------------------------------------------------------------------------------


@implements(np.transpose, kind="structural")
def transpose(a: DistArray, axes: Axes = None) -> engine.Handle:
    return a._view(np.ndarray.transpose, axes)


@implements(np.matrix_transpose, kind="structural")
def matrix_transpose(x: DistArray, /) -> engine.Handle:
    return x._view(np.matrix_transpose)


@implements(np.swapaxes, kind="structural")
def swapaxes(a: DistArray, axis1: int, axis2: int) -> engine.Handle:
    return a._owned(a._view(np.ndarray.swapaxes, axis1, axis2))


@implements(np.moveaxis, kind="structural")
def moveaxis(a: DistArray, source: object, destination: object) -> engine.Handle:
    return a._view(np.moveaxis, source, destination)


@implements(np.rollaxis, kind="structural")
def rollaxis(a: DistArray, axis: int, start: int = 0) -> engine.Handle:
    return a._owned(a._view(np.rollaxis, axis, start))


@implements(np.flip, kind="structural")
def flip(m: DistArray, axis: Axes = None) -> object:
    if m.ndim == 0 and axis in (None, ()):
        return engine.item(m)
    return m._view(structure.flip, axis)


@implements(np.fliplr, kind="structural")
def fliplr(m: DistArray) -> engine.Handle:
    return m._view(np.fliplr)


@implements(np.flipud, kind="structural")
def flipud(m: DistArray) -> engine.Handle:
    return m._view(np.flipud)


@implements(np.rot90, kind="structural")
def rot90(m: DistArray, k: int = 1, axes: Axes = (0, 1)) -> engine.Handle:
    return m._view(np.rot90, k, axes)


# -- splitting -------------------------------------------------------------------------------------------------------


def _split(
    function: Callable[..., list[np.ndarray]], ary: object, indices_or_sections: object, *rest: int
) -> list[engine.Handle] | list[np.ndarray]:
    if engine.is_handle(indices_or_sections):
        indices_or_sections = everywhere(indices_or_sections, function, "shapes depend on the positions")
    if not engine.is_handle(ary):
        return function(ary, indices_or_sections, *rest)
    return views(ary, structure.split(ary._array, function, indices_or_sections, *rest))


@implements(np.split, kind="structural")
def split(ary: object, indices_or_sections: object, axis: int = 0) -> list[engine.Handle] | list[np.ndarray]:
    return _split(np.split, ary, indices_or_sections, axis)


@implements(np.array_split, kind="structural")
def array_split(ary: object, indices_or_sections: object, axis: int = 0) -> list[engine.Handle] | list[np.ndarray]:
    return _split(np.array_split, ary, indices_or_sections, axis)


@implements(np.hsplit, kind="structural")
def hsplit(ary: object, indices_or_sections: object) -> list[engine.Handle] | list[np.ndarray]:
    return _split(np.hsplit, ary, indices_or_sections)


@implements(np.vsplit, kind="structural")
def vsplit(ary: object, indices_or_sections: object) -> list[engine.Handle] | list[np.ndarray]:
    return _split(np.vsplit, ary, indices_or_sections)


@implements(np.dsplit, kind="structural")
def dsplit(ary: object, indices_or_sections: object) -> list[engine.Handle] | list[np.ndarray]:
    return _split(np.dsplit, ary, indices_or_sections)


@implements(np.unstack, kind="structural")
def unstack(x: Any, /, *, axis: int = 0) -> tuple[DistArray, ...]:
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(np.moveaxis(x, axis, 0))


# -- basic operations ------------------------------------------------------------------------------------------------


def _copied(dst: engine.Handle, src: Any, where: ArrayLike, casting: _CastingKind) -> object:
    """The source of a copy; where NumPy casts a scalar depends on what it is, and on how many elements there are."""
    src = engine.plain(src)
    if np.ndim(src) or isinstance(src, list | tuple):
        return src
    is_weak = type(src) in (int, float, complex) and dst.dtype.kind in "biufc"
    if is_weak and casting != "unsafe":
        np.copyto(np.empty(0, dst.dtype), type(src)(), casting)  # NumPy's error
    src = np.asarray(src, np.result_type(dst.dtype, src) if is_weak else None)
    if np.can_cast(src.dtype, dst.dtype) or dst.size > 1 or (dst.size and (where is True or np.any(where))):
        return src[()]
    if casting != "unsafe":
        np.copyto(np.empty(0, dst.dtype), src, casting)  # NumPy's error
    # Nothing is chosen, of one element or none, and NumPy does not cast.
    return np.zeros((), src.dtype if src.dtype.kind in "biufc" else dst.dtype)[()]


@implements(np.copyto, kind="native")
def copyto(dst: Any, src: object, casting: _CastingKind = "same_kind", where: Any = True) -> None:
    if engine.is_handle(dst):
        source = src if engine.is_sharded(src) else _copied(dst, src, where, casting)
        engine.assign(dst, source, where=where, casting=casting)
    else:
        moved = [x for x in (src, where) if engine.is_sharded(x)]
        if moved:
            policy.permit(
                "numpy.copyto",
                "its target is an ndarray, which every rank holds whole",
                sum(x._array.nbytes for x in moved),
                action="bring the values to every rank",
            )
        whole: list[Any] = [engine.gather(x) if engine.is_handle(x) else x for x in (src, where)]
        np.copyto(dst, whole[0], casting, whole[1])


@implements(np.shape, kind="native")
def shape(a: DistArray) -> tuple[int, ...]:
    return a.shape


@implements(np.ndim, kind="native")
def ndim(a: DistArray) -> int:
    return a.ndim


@implements(np.size, kind="native")
def size(a: DistArray, axis: int | tuple[int, ...] | None = None) -> int:
    # In a new version of NumPy `axis` may be a tuple: it decides.
    return np.size(np.broadcast_to(np.uint8(0), a.shape), axis)
