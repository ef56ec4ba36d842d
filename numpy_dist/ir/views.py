"""Views over storages as metadata: interned, so that plans can be looked up by identity."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from numpy_dist.ir.phantoms import offset_of
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.views import ViewMap, decode, iteration_layout, owned_boxes, view_layout


class View:
    """What a phantom says of a storage with a given layout and dtype. Made by `view_of`: equal views are identical.

    Attributes
    ----------
    layout, itemsize
        The storage's.
    offset : int
        Bytes.
    shape, strides, dtype
        The view's.
    """

    def __init__(
        self, layout: Layout, itemsize: int, offset: int, shape: tuple, strides: tuple, dtype: np.dtype
    ) -> None:
        self.layout, self.itemsize, self.offset, self.shape, self.strides, self.dtype = (
            layout,
            itemsize,
            offset,
            shape,
            strides,
            dtype,
        )

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


_VIEWS: dict[tuple, View] = {}


def view_of(layout: Layout, itemsize: int, array: np.ndarray) -> View:
    """The view that a phantom is of a storage with this layout and item size."""
    key = (layout, itemsize, offset_of(array), array.shape, array.strides, array.dtype)
    found = _VIEWS.get(key)
    if found is None:
        if len(_VIEWS) > 8192:
            _VIEWS.clear()
        found = _VIEWS[key] = View(*key)
    return found
