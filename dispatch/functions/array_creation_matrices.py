"""Array creation routines for matrices: diagonals and triangles."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.lib import _twodim_base_impl
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.creation import OURS, as_shape, axes_in_order, chosen_layout, elsewhere, from_parts
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy import _OrderCF
    from numpy._typing import _SupportsArrayFunc

    from numpy_dist.distarray import DistArray
    from numpy_dist.layout.mesh import Mesh

adopt(__name__, np.vander)


def _block(function: Callable[..., np.ndarray], k: int, dtype: np.dtype) -> Callable[[Box], np.ndarray]:
    def part(box: Box) -> np.ndarray:
        (top, bottom), (left, right) = box
        return function(bottom - top, right - left, k + top - left, dtype)

    return part


@implements(np.eye, varies=OURS, replicated=True)
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = float,
    order: _OrderCF = "C",
    *,
    device: Literal["cpu"] | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> object:
    """Ones on a diagonal, zeros elsewhere, as `numpy.eye`; `split` and `mesh` as in `arange`."""
    if elsewhere(like):
        return np.eye(N, M, k, dtype, order, device=device, like=like)
    kind = np.eye(0, 0, k, dtype, order, device=device).dtype
    shape = as_shape((N, N if M is None else M))
    axes = axes_in_order(None, order, 2)
    offset = operator.index(k)
    part = _block(np.eye, offset, kind)
    return from_parts(part, shape, kind, chosen_layout(shape, split, mesh), axes, made_of=(offset,))


@implements(np.identity, varies=OURS, replicated=True)
def identity(
    n: int,
    dtype: DTypeLike | None = None,
    *,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> object:
    """The identity matrix, as `numpy.identity`; `split` and `mesh` as in `arange`."""
    if elsewhere(like):
        return np.identity(n, dtype, like=like)
    return eye(n, dtype=float if dtype is None else dtype, split=split, mesh=mesh)


@implements(np.tri, varies=OURS, replicated=True)
def tri(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = float,
    *,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> object:
    """Ones at and below a diagonal, zeros elsewhere, as `numpy.tri`; `split` and `mesh` as in `arange`."""
    if elsewhere(like):
        return np.tri(N, M, k, dtype, like=like)
    kind = np.tri(0, 0, 0, dtype).dtype
    M = N if M is None else M
    if all(isinstance(n, int | np.integer) for n in (N, M, k)):
        shape = (max(int(N), 0), max(int(M), 0))
        offset, layout = int(k), chosen_layout(shape, split, mesh)
        return from_parts(_block(np.tri, offset, kind), shape, kind, layout, made_of=(offset,))
    rows, columns = numbered_lines(N, M, k)
    shape = (len(rows), len(columns))

    def part(box: Box) -> np.ndarray:
        (top, bottom), (left, right) = box
        return np.greater_equal.outer(rows[top:bottom], columns[left:right]).astype(kind)

    return from_parts(part, shape, kind, chosen_layout(shape, split, mesh))


_min_int: Callable[[float, float], type[np.integer]] = vars(_twodim_base_impl)["_min_int"]


def numbered_lines(N: float, M: float, k: float) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of rows and columns that `numpy.tri` compares, also of extents and diagonals that are no integers."""
    lines = np.arange(N, dtype=_min_int(0, N)), np.arange(-k, M - k, dtype=_min_int(-k, M - k))
    if not all(isinstance(x, int | np.integer) for x in (N, M, k)):
        given: tuple[Any, ...] = 0 * N, 0 * M, k
        np.tri(*given)  # NumPy's warning: 2.5 deprecates them
    return lines


@implements(np.diag, kind="structural")
def diag(v: DistArray | np.ndarray, k: int = 0) -> DistArray | np.ndarray:
    if v.ndim != 1:
        # NumPy's error, if it is not a matrix.
        return np.diagonal(v, k) if v.ndim == 2 else np.diag(np.empty((0,) * v.ndim), k)
    length = v.shape[0]
    n = length + abs(k)
    made = engine.full((n, n), np.zeros((), v.dtype)[()], v.dtype, layout=engine.default_layout((n, n)))
    start = k if k >= 0 else -k * n
    engine.assign(np.reshape(made, -1)[start :: n + 1][:length], v)
    return made


@implements(np.diagflat, kind="composed")
def diagflat(v: DistArray, k: int = 0) -> DistArray | np.ndarray:
    return diag(np.ravel(v), k)


def _triangle(m: DistArray, k: int, keep_lower: bool) -> object:
    m = as_handle(m)
    if not m.ndim:
        np.tril(np.zeros((), m.dtype))  # NumPy's error
    rows, columns = m.shape[-2:] if m.ndim > 1 else (m.shape[0], m.shape[0])
    above, beside = numbered_lines(rows, columns, k if keep_lower else k - 1)
    shape = (len(above), len(beside))
    lower = engine.empty(shape, bool, layout=engine.default_layout(shape))
    np.greater_equal(above[:, None], beside, out=lower)
    zero = np.zeros((), m.dtype)[()]
    return np.where(lower, m, zero) if keep_lower else np.where(lower, zero, m)


@implements(np.tril, kind="composed")
def tril(m: DistArray, k: int = 0) -> object:
    return _triangle(m, k, True)


@implements(np.triu, kind="composed")
def triu(m: DistArray, k: int = 0) -> object:
    return _triangle(m, k, False)
