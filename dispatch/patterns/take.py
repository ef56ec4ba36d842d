"""The take pattern: elements by their positions, fetched from their owners or stored there (`x[i]`, `x[i] = v`).

Needs: ascending rows of the indexed array on each rank, and the positions (`index_arrays.Picked`) divided between all
ranks. A rank asks the owners of its positions; these send elements, or store what they are sent, in the order of the
positions. What is fetched is divided as the positions are.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from numpy_dist import engine
from numpy_dist.dispatch.core import fallback, registry
from numpy_dist.dispatch.patterns import thread_take
from numpy_dist.dispatch.patterns.arguments import astype, broadcasts_to
from numpy_dist.dispatch.patterns.blocks import cuts_rows
from numpy_dist.dispatch.patterns.index_arrays import Picked, own_positions, own_values, rows
from numpy_dist.ir.meta_arrays import is_writeable
from numpy_dist.parallel import on_device, picking

if TYPE_CHECKING:
    from numpy_dist.backends.library import Array


@registry.internal("integer_getitem")
def integer_getitem(x: object, items: tuple) -> Any:
    """``x[items]`` for an index with arrays of integers, perhaps beside masks (collective)."""
    made = fallback.alone(operator.getitem, (x, items), {}, instead=thread_take.getitem)
    return fetch(Picked(x, items, "get")) if made is fallback.SLOW else made


def fetch(picked: Picked) -> engine.Handle:
    """What an index picks, as a new array (collective)."""
    rest = picked.rest
    if 0 in rest:  # nothing, from however many positions
        return picked.in_place(engine.empty((*picked.positions.shape, *rest), picked.view.dtype))
    device = engine.device(picked.view.dtype) if engine.is_sharded(picked.view) else None
    wanted, order = own_positions(picked.positions, picked.shape[0], library=device is not None)
    if device is not None:
        block, _, points = rows(np.reshape(picked.view, picked.shape), library=True)
        found = on_device.pick(block, points, device.own(wanted, np.intp), device)
        result = engine.from_local(found, order.insert_axes(range(1, 1 + len(rest)), rest), new=True)
    elif engine.is_sharded(picked.view):
        block, _, points = rows(np.reshape(picked.view, picked.shape))
        with engine.Scratch() as scratch:
            found = picking.pick(block, points, wanted, engine.runtime().comm, scratch)
            result = engine.from_local(found, order.insert_axes(range(1, 1 + len(rest)), rest))
    else:
        found = engine.plain(picked.view).reshape(picked.shape)[wanted]
        result = engine.from_local(found, order.insert_axes(range(1, 1 + len(rest)), rest))
    return picked.in_place(np.reshape(result, (*picked.positions.shape, *rest)))


@registry.internal("integer_setitem")
def integer_setitem(x: engine.Handle, items: tuple, value: object) -> None:
    """``x[items] = value`` for an index with arrays of integers, perhaps beside masks (collective).

    Of values for one element the last one stays, in the order of the whole index.
    """
    if fallback.alone(operator.setitem, (x, items, value), {}, (x,)) is not fallback.SLOW:
        return

    def convert(shape: tuple[int, ...], rest: tuple[int, ...]) -> None:
        """NumPy checks the value before the bounds of indices, and casts it then if each is that of an element."""
        nonlocal value
        value = _assignable(value, shape, x.dtype)
        value = value if rest else engine.without_imaginary_part(value, x.dtype)

    with engine.reported_together():
        _assign(Picked(x, items, "set", convert), value)


def assign(picked: Picked, value: object) -> None:
    """Assign a value that is broadcast to what is picked, or raise NumPy's error (collective)."""
    _assign(picked, _assignable(value, picked.result_shape, picked.view.dtype))


def _assign(picked: Picked, value: object) -> None:
    value = engine.without_imaginary_part(value, picked.view.dtype)
    if 0 not in picked.rest:
        scatter(picked, value)


def _assignable(value: object, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A value as an array that broadcasts to the shape of what is picked, or NumPy's error."""
    if not engine.is_handle(value):  # Python's objects are converted: a tuple may be a record, a number may not fit
        value = engine.without_imaginary_part(value, dtype) if isinstance(value, np.generic) else value
        value = np.asarray(value, None if isinstance(value, np.ndarray) else dtype)
    given, surplus = tuple(value.shape), value.ndim - len(shape)
    if surplus > 0 and all(n == 1 for n in value.shape[:surplus]):
        value = np.reshape(value, value.shape[surplus:])
    if not broadcasts_to(tuple(value.shape), shape):
        shown = [str(tuple(s)).replace(" ", "") for s in (given, shape)]
        raise ValueError(
            f"shape mismatch: value array of shape {shown[0]} could not be broadcast to indexing result of shape "
            f"{shown[1]}"
        )
    return value


def scatter(picked: Picked, value: Any) -> None:
    """Assign what broadcasts to `picked.result_shape` to what is picked (collective)."""
    dtype, rest = picked.view.dtype, picked.rest
    device = _device_of_rows(picked.view, picked.shape)
    wanted, order = own_positions(picked.positions, picked.shape[0], library=device is not None)
    if device is not None:
        if value.dtype != dtype:  # as a loop: the library's conversions are not NumPy's
            value = astype(value, dtype) if engine.is_handle(value) else _cast(value, dtype)
        values = device.own(own_values(value, picked, order, library=True))
        return _store_on_device(picked, device.own(wanted, np.intp), values, device)
    values = own_values(value, picked, order)
    values = _cast(values, dtype)
    if _store(picked, wanted, values):
        return
    layout = engine.default_layout(picked.shape, split=0)
    own, cut = layout.box(engine.runtime().rank), layout.cut_of(0)
    assert own is not None and cut is not None
    new, chosen = picking.put(
        np.empty([hi - lo for lo, hi in own], dtype), cut.points, wanted, values, engine.runtime().comm
    )
    where = engine.from_local(chosen, layout.drop_axes(range(1, 1 + len(rest))))
    write(picked, engine.from_local(new, layout), where)


def _cast(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with engine.events_reported("cast"):
        return values.astype(dtype, casting="unsafe", copy=False)


def _own_rows(view: engine.Handle, shape: tuple[int, ...]) -> Any:
    """How an array is cut, if the ranks have rows of it, and it is writeable; else None."""
    layout = engine.layout_of(view) if engine.is_sharded(view) and tuple(view.shape) == shape else None
    return layout.cut_of(0) if layout is not None and cuts_rows(layout) and is_writeable(view._array) else None


def _device_of_rows(view: engine.Handle, shape: tuple[int, ...]) -> engine.Device | None:
    """What writes to rows of an array where they lie; None where the host does."""
    return engine.device(view.dtype) if _own_rows(view, shape) is not None else None


def _store_on_device(picked: Picked, wanted: Array, values: Array, device: engine.Device) -> None:
    """As `_store`."""
    points = _own_rows(picked.view, picked.shape).points
    where, what = on_device.route(points, wanted, values, device)
    with engine.rewriting(picked.view, library=True) as block:
        device.library.put(block, where - points[device.rank], what)


def _store(picked: Picked, wanted: np.ndarray, values: np.ndarray) -> bool:
    """Write values where they belong, if the ranks have rows of the array itself (collective)."""
    view, comm = picked.view, engine.runtime().comm
    cut = _own_rows(view, picked.shape)
    if cut is None:
        return False
    with engine.Scratch() as scratch:
        where, what = picking.route(cut.points, wanted, values, comm, scratch)
        with engine.rewriting(view) as block:
            if engine.runtime().computes:  # else positions are what nobody has sent
                picking.store(block, cut.points[comm.rank], where, what, scratch)
    return True


def write(picked: Picked, new: ArrayLike, where: ArrayLike) -> None:
    """Assign rows to the view of an index: `new` has `picked.shape`, `where` is true for the rows that are written."""
    view, rest = picked.view, picked.rest
    lead = tuple(view.shape[: view.ndim - len(rest)])
    mask = np.reshape(where, (*lead, *(1,) * len(rest)))
    if engine.is_sharded(view):
        engine.assign(view, np.reshape(new, view.shape), where=mask)
    else:  # every rank has the array: the new rows come to all
        merged = np.where(mask, np.reshape(new, view.shape), view)
        engine.assign(view, merged)


def as_indices(indices: object) -> engine.Handle | np.ndarray:
    """Indices as an array: Python's numbers are converted to integers, of which fractions are cut off."""
    return indices if isinstance(indices, np.ndarray | engine.Handle) else np.asarray(indices, np.intp)


def within(indices: Any, n: int, mode: object) -> Any:
    """Indices as the mode "wrap" or "clip" has them; with "raise", as they are."""
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode in ("wrap", 1):
        return indices % max(n, 1)
    return np.clip(indices, 0, max(n - 1, 0)) if mode in ("clip", 0) else indices


def repeated(values: Any, count: int) -> Any:
    """So many values: the given ones in C order, again and again (collective where they are sharded and too few)."""
    size = int(values.size)
    if size == 1:
        return np.reshape(values, ())
    if size >= count:
        return np.reshape(values, -1)[:count]
    plain = None if engine.is_handle(values) else values.reshape(-1)
    layout = engine.default_layout((count,), split=0)
    if plain is not None:
        return engine.from_reader(lambda box: plain[np.arange(*box[0]) % size], (count,), plain.dtype, layout)
    positions = engine.from_reader(lambda box: np.arange(*box[0]) % size, (count,), np.intp, layout)
    return fetch(Picked.flat(values, positions))
