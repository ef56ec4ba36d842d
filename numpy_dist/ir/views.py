"""Views over storages as metadata: interned, so that plans, and slices of slices, can be looked up by identity.

Interned views are held weakly: one that anything refers to stays *the* view of its kind, however many others a rank has
looked at. So identity means equality at any time and on every rank, although the tables of ranks differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import ref as weak

import numpy as np

from numpy_dist.ir.meta_arrays import is_shared, is_writeable, offset_of
from numpy_dist.layout.frames import Frame, frame_of
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.marks import mark_of
from numpy_dist.layout.views import ViewMap, decode, iteration_layout, owned_boxes, view_layout


class View:
    """What a meta array says of a storage with a given layout and dtype. Made by `view_of`: equal views are identical.

    Attributes
    ----------
    layout, itemsize
        The storage's.
    offset : int
        Bytes.
    shape, strides, dtype
        The view's.
    array : ndarray
        A meta array of the view that nobody ever changes (a handle whose flags were asked for has one of its own).
        What was worked out for handles of this very meta array holds as long as it lives.
    writeable : bool
        That of `array`, and nobody is to be warned of it.
    parts : dict
        What basic indices select of it, by `index_of` them; never a single element.
    """

    # In slots, since they are read on the path of every statement; what is worked out later is in the dictionary.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "array",
        "dtype",
        "itemsize",
        "layout",
        "offset",
        "parts",
        "shape",
        "strides",
        "writeable",
    )

    def __init__(
        self,
        layout: Layout,
        itemsize: int,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype,
        array: np.ndarray,
    ) -> None:
        self.array = array if is_shared(array) else array.view()
        self.writeable = is_writeable(array)
        self.parts: dict[int | tuple, View] = {}
        self.layout, self.itemsize, self.offset = layout, itemsize, offset
        self.shape, self.strides, self.dtype = shape, strides, dtype

    @cached_property
    def vmap(self) -> ViewMap | None:
        """The affine map of the view, or None for a reshape that merges a cut axis into the one before it."""
        return decode(
            self.layout.shape,
            self.itemsize,
            self.layout.cut_axes,
            self.offset,
            self.shape,
            self.strides,
            self.dtype.itemsize,
        )

    @cached_property
    def mark(self) -> int:
        """The same on all ranks for equal views (see `layout.marks`)."""
        return mark_of(self.layout, self.itemsize, self.offset, self.shape, self.strides, self.dtype)

    @cached_property
    def exact_layout(self) -> Layout | None:
        """The layout of the view, with exactly the storage's owners; None where there is none."""
        return None if self.vmap is None else view_layout(self.layout, self.vmap)

    @cached_property
    def read_layout(self) -> Layout | None:
        """How work that reads this view is best divided: by its owners, or nearly so; None if these are no boxes."""
        if self.vmap is None:
            return None
        return self.exact_layout or iteration_layout(self.layout, self.vmap)

    @cached_property
    def write_space(self) -> Any:
        """The exact owners of the view's elements: a Layout, a BoxList, or None where they are no boxes."""
        if self.vmap is None or self.exact_layout is not None:
            return self.exact_layout
        return None if self.layout.has_copies else owned_boxes(self.layout, self.vmap)

    @cached_property
    def frame(self) -> Frame | None:
        """The space that work on the whole storage has, and where this view lies in it, if it is a box of it."""
        return None if self.vmap is None or self.exact_layout is None else frame_of(self.layout, self.vmap)


_VIEWS: dict[tuple, weak[View]] = {}
_LATEST: list[View] = []  # kept for a while though nothing refers to them, since slices come again
_MOST = 8192


def view_of(layout: Layout, itemsize: int, array: np.ndarray) -> View:
    """The view that a meta array is of a storage with this layout and item size."""
    metadata = (layout, itemsize, offset_of(array), array.shape, array.strides, array.dtype)
    key = *metadata, array.dtype.char  # which tells int64 from longlong: equal dtypes of other scalars
    known = _VIEWS.get(key)
    found = None if known is None else known()
    if found is None:
        if len(_LATEST) > _MOST:
            _LATEST.clear()
            forget_parts()
        found = View(*metadata, array)
        _VIEWS[key] = weak(found, _forgets(key))
        _LATEST.append(found)
    return found


def _forgets(key: tuple) -> Callable[[weak[View]], None]:
    def forget(gone: weak[View]) -> None:
        if _VIEWS.get(key) is gone:  # else another view has come in its place
            del _VIEWS[key]

    return forget


_DIVIDED: list[View] = []  # for each part that some view knows, that view


def forget_parts() -> None:
    """Forget the parts of all views."""
    while _DIVIDED:
        _DIVIDED.pop().parts.clear()


def index_of(key: object, shape: tuple[int, ...]) -> int | tuple | None:
    """A basic index as something hashable, the same for equal ones; None where it does not lend itself to that.

    Slices become what `slice.indices` makes of them: hashes do not tell 1.0 from 1. Where one has a part that is no
    integer NumPy says what is wrong, as it looks at other items first. Those must be of type `int` exactly. One slice
    is three integers, and two are a pair of these: `selected` makes them itself.
    """
    if type(key) is int:
        return key
    if type(key) is not tuple or len(key) > len(shape):
        return None
    index: list[int | tuple[int, int, int] | None] = [None]  # three integers would look like a slice
    for item, n in zip(key, shape, strict=False):
        if type(item) is slice:
            try:
                index.append(item.indices(n))
            except TypeError:
                return None
        elif type(item) is int:
            index.append(item)
        else:
            return None
    return tuple(index)


def slice_of(view: View, key: int | slice | tuple, index: int | tuple) -> View | None:
    """The view that a basic index selects, to be kept in `parts`; None where these cannot tell it.

    Raises
    ------
    IndexError
        NumPy's own.
    """
    array = view.array[(*key, ...) if type(key) is tuple else (key, ...)]
    found = view_of(view.layout, view.itemsize, array)
    if not array.ndim or found.writeable != view.writeable or found.array.dtype is not array.dtype:
        return None
    if len(_DIVIDED) >= _MOST:
        forget_parts()
    view.parts[index] = found
    _DIVIDED.append(view)
    return found
