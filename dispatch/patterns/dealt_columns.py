"""The dealt columns pattern: what all ranks do together with one matrix whose columns are dealt out to them.

Needs: a matrix, and for systems of equations right-hand sides, in any layout. They are redistributed: the matrix into
panels of columns, one to each rank in turn (`parallel.columns`), right-hand sides into whole columns. Panels are sent
to all, one at a time. The result is cut between rows, as by default.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.patterns.blocks import blocks, row_bounds
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.columns import Columns


def rows_of(a: engine.Handle, kind: np.dtype) -> tuple[np.ndarray, Layout]:
    """This rank's rows of a matrix, to be read at once, and how the rows are cut."""
    layout = engine.default_layout(tuple(a.shape), split=0)
    (held,) = blocks((engine.aligned(a, layout), layout))
    return held.reshape(-1, a.shape[1]).astype(kind, copy=False), layout


def columns_of(a: engine.Handle, kind: np.dtype, width: int = 0) -> Columns:
    """The columns of a matrix on each rank, for overwriting; panels are of this width, if any is given."""
    rows, layout = rows_of(a, kind)
    columns = Columns.dealt(rows, row_bounds(layout), engine.runtime().comm, width)
    if not engine.runtime().computes:  # a plan, or counts: of the identity all functions make something
        columns.values[...] = 0
        columns.add_to_diagonal(1)
    return columns


def array_of(columns: Columns, kind: np.dtype) -> Any:
    """A matrix of these columns, cut between rows."""
    layout = engine.default_layout(columns.shape, split=0)
    return engine.from_local(columns.rows(row_bounds(layout)).astype(kind, copy=False), layout)


def right_hand_sides(b: engine.Handle, kind: np.dtype) -> tuple[np.ndarray, Layout]:
    """This rank's columns of right-hand sides (of a vector, one), for overwriting, and how the columns are cut."""
    right = np.reshape(b, (b.shape[0], 1)) if b.ndim == 1 else b
    layout = engine.default_layout(tuple(right.shape), split=1)
    (held,) = blocks((engine.aligned(right, layout), layout))
    return np.array(held.reshape(len(right), -1) if len(right) else held.reshape(0, 0), kind, order="C"), layout


def solution_of(values: np.ndarray, layout: Layout, shape: tuple[int, ...], kind: np.dtype) -> Any:
    """An array of this shape of what `right_hand_sides` have become, in the default layout."""
    made = engine.aligned(engine.from_local(values, layout), engine.default_layout(layout.shape))
    return np.reshape(made if made.dtype == kind else engine.copy(made, dtype=kind), shape)
