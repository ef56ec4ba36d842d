"""Products of matrices whose columns are dealt out to the ranks: see `parallel.columns`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numpy_dist.parallel.columns import Columns, Form, Panel, Values, column_chunks
from numpy_dist.parallel.gemm import add_product


def multiply(left: Columns, right: Columns, low: int = 0, high: int | None = None) -> Columns:
    """The product of some columns of a matrix, between ends of panels, and another matrix.

    Collective: each panel of the left one is sent to all.
    """
    made = right.like((left.shape[0], right.shape[1]))
    high = left.shape[1] if high is None else high
    panels = [panel for panel in left.panels if low <= panel.start < high]
    for panel, (part,) in left.sent(panels, *_as_they_are(left)):
        rows = right.values[panel.start - low : panel.stop - low]
        for into, of in zip(column_chunks(made.values), column_chunks(rows), strict=True):
            add_product(into, part, of)
    return made


def multiply_adjoint(left: Columns, right: Columns) -> Columns:
    """The product of the adjoint of a matrix and another matrix. Collective, as `multiply`."""
    made = right.like((left.shape[1], right.shape[1]))
    for panel, (part,) in left.sent(left.panels, *_as_they_are(left)):
        parts = zip(column_chunks(made.values[panel.start : panel.stop]), column_chunks(right.values), strict=True)
        for into, of in parts:
            into[...] = part.conj().T @ of
    return made


def gram(x: Columns) -> Columns:
    """The product of the adjoint of a matrix and itself: of it, what lies below the diagonal, and some of the rest.

    Collective, as `multiply`.
    """
    made = x.like((x.shape[1], x.shape[1]))
    for panel, (part,) in x.sent(x.panels, *_as_they_are(x)):
        before = [its for its in x.own if its.start < panel.stop]
        rows = made.values[panel.start : panel.stop]
        for chunk, which in x.chunks(before):
            rows[:, : len(which)] = part.conj().T @ chunk
            rows = rows[:, len(which) :]
    return made


def _as_they_are(matrix: Columns) -> tuple[Callable[[Panel], Values], Callable[[Panel], list[Form]]]:
    """How whole panels are sent."""
    form = matrix.values.dtype
    return (
        lambda panel: (np.ascontiguousarray(matrix.part(panel)),),
        lambda panel: [((matrix.shape[0], panel.width), form)],
    )
