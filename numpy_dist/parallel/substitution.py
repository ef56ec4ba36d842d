"""Systems with a triangular matrix whose columns are dealt out to the ranks: see `parallel.columns`.

Substitution by panels, each of which the right-hand sides of all ranks need: "Parallel solution of triangular systems
on distributed-memory multiprocessors", M. T. Heath and C. H. Romine, SIAM J. Sci. Stat. Comput. 1988. Right-hand sides
are whole columns here, so that one panel at a time is sent and nothing else.
"""

from __future__ import annotations

import numpy as np

from numpy_dist.parallel.columns import Columns, Form, Panel, Values, column_chunks
from numpy_dist.parallel.gemm import subtract_product


def substitute(
    columns: Columns, right: np.ndarray, lower: bool = False, adjoint: bool = False, unit: bool = False
) -> None:
    """Solve a triangular system in place. Collective: each panel is sent to all.

    Parameters
    ----------
    columns : Columns
        A square matrix, of which one triangle is read.
    right : ndarray, (n, k)
        This rank's columns of right-hand sides, of the same dtype.
    lower : bool
        Which triangle that is.
    adjoint : bool
        Whether the system is that of its conjugate transpose.
    unit : bool
        Whether ones are taken for the diagonal.
    """
    from scipy.linalg import get_blas_funcs

    n, kind = len(columns.values), columns.values.dtype
    (trsm,) = get_blas_funcs(("trsm",), dtype=kind)

    def rows(panel: Panel) -> slice:
        return slice(panel.start, n) if lower else slice(0, panel.stop)

    def triangle(panel: Panel) -> Values:
        return (np.ascontiguousarray(columns.part(panel)[rows(panel)]),)

    def forms(panel: Panel) -> list[Form]:
        return [((rows(panel).stop - rows(panel).start, panel.width), kind)]

    panels = columns.panels if lower != adjoint else columns.panels[::-1]
    for panel, (part,) in columns.sent(panels, triangle, forms):
        width = panel.width
        corner, rest = (part[:width], part[width:]) if lower else (part[panel.start :], part[: panel.start])
        others = slice(panel.stop, n) if lower else slice(0, panel.start)
        for chunk in column_chunks(right):
            mine = chunk[panel.start : panel.stop]
            if adjoint:
                subtract_product(mine, rest.conj().T, chunk[others])
            mine[...] = trsm(1.0, columns.divisor(corner), mine, lower=lower, trans_a=2 if adjoint else 0, diag=unit)
            if not adjoint:
                subtract_product(chunk[others], rest, mine)
