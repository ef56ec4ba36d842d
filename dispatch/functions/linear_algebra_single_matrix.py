"""Linear algebra of one matrix that several ranks hold: its columns are cut between them (`parallel.factors`).

What NumPy would say of wrong arguments has been said before (`linear_algebra_decompositions`). All is computed in
double precision, as in NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.engine import events_reported
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.factors import Columns, cholesky, eliminate, substitute

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray


def solved(a: DistArray, b: DistArray) -> DistArray | np.ndarray:
    """``numpy.linalg.solve``. Collective: both are cut between columns, and each panel of `a` is sent to all twice."""
    kind = np.linalg.solve(np.zeros((0, 1, 1), a.dtype), np.zeros((1, 1), b.dtype)).dtype
    work = np.result_type(kind, np.double)
    right = np.reshape(b, (b.shape[0], 1)) if b.ndim == 1 else b
    layout = engine.default_layout(right.shape, split=1)
    return np.reshape(_solution(_columns(a, work), _values(right, layout, work), layout, kind), b.shape)


def inverse(a: DistArray) -> DistArray:
    """``numpy.linalg.inv``. Collective, as `solved`."""
    kind = np.linalg.inv(np.zeros((0, 1, 1), a.dtype)).dtype
    columns = _columns(a, np.result_type(kind, np.double))
    identity = np.zeros_like(columns.values)
    np.fill_diagonal(identity[columns.low :], 1)
    return _solution(columns, identity, engine.default_layout(a.shape, split=1), kind)


def _solution(columns: Columns, right: np.ndarray, layout: Layout, kind: np.dtype) -> DistArray:
    if eliminate(columns, right) is None:
        raise np.linalg.LinAlgError("Singular matrix")
    substitute(columns, right)
    made = engine.aligned(engine.from_local(right, layout), engine.default_layout(layout.shape))
    return made if made.dtype == kind else engine.copy(made, dtype=kind)


def sign_and_logarithm(a: DistArray) -> tuple[np.inexact, np.floating]:
    """``numpy.linalg.slogdet``. Collective: each panel is sent to all."""
    like = np.linalg.slogdet(np.eye(1, dtype=a.dtype))
    kind, real = like.sign.dtype.type, like.logabsdet.dtype.type
    found = eliminate(_columns(a, np.result_type(like.sign.dtype, np.double)))
    if found is None:
        return rebuild(type(like), [kind(0), real(-np.inf)])
    diagonal, swaps = found
    sizes = np.abs(diagonal)
    with np.errstate(invalid="ignore"):  # infinity by infinity is NaN in NumPy's, too
        sign = np.multiply.reduce(diagonal / sizes, initial=-1 if swaps % 2 else 1)
        return rebuild(type(like), engine.agreed([kind(sign), real(np.log(sizes).sum())]))


def determinant(a: DistArray) -> np.inexact:
    """``numpy.linalg.det``: the exponential of a logarithm, as there. Collective, as `sign_and_logarithm`."""
    sign, logarithm = sign_and_logarithm(a)
    with events_reported("det", alike=True):
        return sign * np.exp(logarithm)


def cholesky_factor(a: DistArray, upper: bool) -> DistArray:
    """``numpy.linalg.cholesky``. Collective: each panel is sent to all."""
    kind = np.linalg.cholesky(np.eye(1, dtype=a.dtype)).dtype
    columns = _columns(np.conj(np.transpose(a)) if upper else a, np.result_type(kind, np.double))
    if not cholesky(columns):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    factor = engine.from_local(columns.values, engine.default_layout(a.shape, split=1))
    factor = factor if factor.dtype == kind else engine.copy(factor, dtype=kind)
    return engine.copy(np.conj(np.transpose(factor)), order="C") if upper else factor


def _columns(a: DistArray | np.ndarray, kind: np.dtype) -> Columns:
    """The columns of a square matrix on each rank, for overwriting."""
    layout, comm = engine.default_layout(a.shape, split=1), engine.runtime().comm
    boxes = [layout.box(rank) for rank in range(comm.size)]
    return Columns(_values(a, layout, kind), [(0, 0) if box is None else box[1] for box in boxes], comm)


def _values(a: DistArray | np.ndarray, layout: Layout, kind: np.dtype) -> np.ndarray:
    """This rank's columns, as an array of its own."""
    (held,) = blocks((engine.aligned(a, layout), layout))
    return np.array(held.reshape(len(a), -1) if len(a) else held.reshape(0, 0), kind, order="C")
