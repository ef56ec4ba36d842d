"""Linear algebra of stacks of matrices: each rank has whole matrices, and NumPy's LAPACK treats them there.

A single matrix is gathered: what LAPACK does to it in place has no distributed form with the same rounding here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.common import NoValue, as_handle, given
from numpy_dist.dispatch.functions.numpy_source import numpy_source
from numpy_dist.dispatch.functions.shards import on_stacks

SINGLE = "a single matrix"

implements(np.linalg.svdvals, kind="composed")(numpy_source(np.linalg.svdvals))


def _of_each(function: Callable[..., Any], a: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of one matrix, for each in a stack (collective)."""
    a = as_handle(a)
    return _of_stacks(lambda *blocks: function(*blocks, *args, **kwargs), function, [a], [2])


def _of_stacks(local: Callable[..., Any], function: Callable[..., Any], operands: list[Any], items: list[int]) -> Any:
    """`local` on stacks of matrices; a single one is declined, unless its shape and dtype are wrong already."""
    name = function.__name__
    if operands[0].ndim < 2:
        local(*(np.zeros(x.shape, x.dtype) for x in operands))  # NumPy's error
        decline("an array that is no matrix")
    if all(x.ndim <= depth for x, depth in zip(operands, items, strict=True)):
        first, *others = (np.zeros(x.shape, x.dtype) for x in operands)
        local(first[None][:0], *others)  # NumPy's errors
        decline(SINGLE)
    return on_stacks(local, operands, items, name=name)


@implements(np.linalg.inv, kind="axis-local")
def inv(a: Any) -> Any:
    return _of_each(np.linalg.inv, a)


@implements(np.linalg.det, kind="axis-local")
def det(a: Any) -> Any:
    return _of_each(np.linalg.det, a)


@implements(np.linalg.slogdet, kind="axis-local")
def slogdet(a: Any) -> Any:
    return _of_each(np.linalg.slogdet, a)


@implements(np.linalg.cholesky, kind="axis-local")
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    return _of_each(np.linalg.cholesky, a, upper=upper)


@implements(np.linalg.qr, kind="axis-local")
def qr(a: Any, mode: Any = "reduced") -> Any:
    return _of_each(np.linalg.qr, a, mode)


@implements(np.linalg.svd, kind="axis-local")
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    return _of_each(np.linalg.svd, a, full_matrices, compute_uv, hermitian)


@implements(np.linalg.eig, kind="axis-local")
def eig(a: Any) -> Any:
    return _of_each(np.linalg.eig, a)


@implements(np.linalg.eigvals, kind="axis-local")
def eigvals(a: Any) -> Any:
    return _of_each(np.linalg.eigvals, a)


@implements(np.linalg.eigh, kind="axis-local")
def eigh(a: Any, UPLO: Any = "L") -> Any:
    return _of_each(np.linalg.eigh, a, UPLO)


@implements(np.linalg.eigvalsh, kind="axis-local")
def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    return _of_each(np.linalg.eigvalsh, a, UPLO)


@implements(np.linalg.cond, kind="axis-local")
def cond(x: Any, p: Any = None) -> Any:
    return _of_each(np.linalg.cond, x, p)


@implements(np.linalg.pinv, kind="axis-local")
def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = NoValue) -> Any:
    if np.ndim(rcond) == 0 and (rtol is NoValue or np.ndim(rtol) == 0):
        return _of_each(np.linalg.pinv, a, rcond, hermitian, **given(rtol=rtol))
    name = "rcond" if np.ndim(rcond) else "rtol"
    if name == "rcond" and rtol is not NoValue:
        np.linalg.pinv(np.zeros((0, 1, 1)), 0.0, rtol=0.0)  # NumPy's error

    def local(matrices: np.ndarray, cutoffs: np.ndarray) -> Any:
        return np.linalg.pinv(matrices, hermitian=hermitian, **{name: cutoffs})

    return _of_stacks(local, np.linalg.pinv, [as_handle(a), as_handle(rcond if name == "rcond" else rtol)], [2, 0])


@implements(np.linalg.matrix_rank, kind="axis-local")
def matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Any:
    A = as_handle(A)
    if A.ndim < 2 and (tol is None or rtol is None):
        return int(not np.all(A == 0))
    if np.ndim(tol) == 0 and np.ndim(rtol) == 0:
        return _of_each(np.linalg.matrix_rank, A, tol, hermitian, rtol=rtol)
    name = "tol" if np.ndim(tol) else "rtol"
    if tol is not None and rtol is not None:
        np.linalg.matrix_rank(np.zeros((1, 1)), 0.0, rtol=0.0)  # NumPy's error

    def local(matrices: np.ndarray, cutoffs: np.ndarray) -> Any:
        return np.linalg.matrix_rank(matrices, hermitian=hermitian, **{name: cutoffs})  # type: ignore[call-overload]

    return _of_stacks(local, np.linalg.matrix_rank, [A, as_handle(tol if name == "tol" else rtol)], [2, 0])


@implements(np.linalg.solve, kind="axis-local")
def solve(a: Any, b: Any) -> Any:
    a, b = as_handle(a), as_handle(b)
    return _of_stacks(np.linalg.solve, np.linalg.solve, [a, b], [2, 1 if b.ndim == 1 else 2])
