"""Linear algebra of matrices and of stacks of them, by LAPACK or by all ranks together (`patterns.matrices`).

A single matrix that all ranks factor together is in `linear_algebra_single_matrix`; where it is tall, its rows stay
where they are (`parallel.tall`). Only for eigenvalues of matrices that need not be Hermitian it is gathered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Axes
from numpy_dist.backends.library import on_host
from numpy_dist.dispatch.core.registry import Outlook, decline, implements
from numpy_dist.dispatch.functions import linear_algebra_single_matrix as single_matrix
from numpy_dist.dispatch.patterns import replicate
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype, given
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.dispatch.patterns.matrices import (
    SINGLE,
    agreed,
    alone,
    follows_rule_of_phases,
    local_of,
    of_each,
    of_stacks,
    on_every_rank,
    outlook_of,
    outlook_of_each,
    outlook_of_triangles,
    treatment,
)
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.threads import threads_of_rank
from numpy_dist.engine import events_reported
from numpy_dist.layout.layout import Pinned
from numpy_dist.parallel.tall import has_blocks, reduced_system, triangles

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.backends.library import Array
    from numpy_dist.distarray import DistArray

# Of a matrix that one process factors block by block: more bytes than what is at hand has, which has LAPACK's bits.
_COLUMNS, _LARGE = 8, 1 << 21

adopt(__name__, np.linalg.svdvals, np.linalg.tensorinv)
_tensorsolve = numpy_source(np.linalg.tensorsolve)


# -- a single tall matrix --------------------------------------------------------------------------------------------


def _is_tall(a: DistArray) -> bool:
    """Whether the triangles of all ranks are smaller than the matrix, and small enough for every rank to have them."""
    if a.ndim != 2 or a.dtype.kind not in "biufc" or a.dtype.itemsize > 16 or a.dtype in (np.float16, np.longdouble):
        return False
    (m, n), size = a.shape, engine.runtime().size
    return m >= n > 0 and (m > size * n or size == 1) and 16 * n * n * size <= replicate.MOST_KNOWN


def _upright(a: DistArray) -> Any:
    """A matrix, or its transpose if it is wide."""
    return np.transpose(a) if a.ndim == 2 and a.shape[0] < a.shape[1] else a


def _tall_rows(a: DistArray, *others: DistArray | np.ndarray) -> list[Array]:
    """This rank's rows of a tall matrix and of what has as many rows, in double precision."""
    m, n = a.shape
    layout = engine.layout_of(a) if engine.is_sharded(a) else None
    if layout is None or any(layout.cut_axes) or any(isinstance(what, Pinned) for what in layout.dims):
        layout = engine.default_layout((m, n), split=0)
    kind = np.result_type(float, *(x.dtype for x in (a, *others)))
    layouts = [layout.with_shape((m, x.shape[1])) for x in (a, *others)]
    pairs = ((engine.aligned(x, its), its) for x, its in zip((a, *others), layouts, strict=True))
    held = blocks(*pairs, library=True)
    mine = None if layout.primary(engine.runtime().rank) else 0  # copies, which another rank has already
    return [x[:mine].astype(kind) for x in held]


@single_matrix.in_double_precision
@single_matrix.SILENT
def _singular_values(a: DistArray) -> np.ndarray:
    """Those of a single tall or wide matrix, as NumPy's `svd` returns them."""
    (rows,), comm = _tall_rows(_upright(a)), engine.runtime().comm
    small = triangles(rows, comm, threads_of_rank())
    scale = 1.0 if np.isfinite(small).all() else single_matrix.power_of_two(rows)
    small = small if scale == 1.0 else triangles(on_host(rows) * scale, comm, threads_of_rank())
    kind = np.linalg.svd(np.zeros((1, 1), a.dtype), compute_uv=False).dtype
    try:
        found = agreed(lambda: np.linalg.svd(small, compute_uv=False))
    except np.linalg.LinAlgError:
        found = None
    if scale != 1.0 and found is not None:
        found /= scale
    elif found is None or not np.isfinite(found).all():
        # Infinity may have become NaN in the triangles; of the two NumPy's SVD makes different things.
        sample = np.eye(small.shape[1])
        sample[0, 0] = np.nan if np.isnan(a).any() else np.inf
        found = np.linalg.svd(sample, compute_uv=False)
    return found.astype(kind, copy=False)


def _outlook_of_system(a: DistArray, b: DistArray, rcond: object = None) -> Outlook:
    a, b = as_handle(a), as_handle(b)
    if _takes_triangles(a, b):
        return outlook_of_triangles("parallel", a)
    return outlook_of("parallel", [a, b], [2, b.ndim], together=True)


def _takes_triangles(a: DistArray, b: DistArray) -> bool:
    """Whether a system is solved by the triangles of all ranks."""
    columns = b.shape[1] if b.ndim == 2 else 1
    return _is_tall(a) and columns > 0 and columns * 16 * a.shape[1] * engine.runtime().size <= replicate.MOST_KNOWN


@implements(np.linalg.lstsq, kind="parallel", outlook=_outlook_of_system)
def lstsq(a: DistArray, b: DistArray, rcond: float | None = None) -> tuple[DistArray, DistArray, int, DistArray]:
    """Collective: one allgather of small triangles where the matrix is tall, else as `linear_algebra_single_matrix`."""
    a, b = as_handle(a), as_handle(b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        engine.numpy_error(np.linalg.lstsq, (a, b, rcond))
    like = np.linalg.lstsq(np.zeros((1, 1), a.dtype), np.zeros((1, 1), b.dtype), 0.0)  # NumPy's dtypes and errors
    kinds = [like[0].dtype, like[1].dtype, like[3].dtype]
    work = np.result_type(kinds[0], np.double)  # in which NumPy computes, whatever the operands' precision
    cutoff = np.finfo(work).eps * max(a.shape) if rcond is None else rcond
    right = np.reshape(b, (b.shape[0], 1)) if b.ndim == 1 else b
    if _takes_triangles(a, b):
        x, rest, rank, values = _with_undefined_sides(_of_reduced_system, a, right, cutoff)
    else:
        how = treatment([a, b], [2, b.ndim], True)
        local = single_matrix.refusing_infinity(local_of(np.linalg.lstsq, rcond), single_matrix.NO_SOLUTION)
        if how == "alone":
            return alone(local, "lstsq", [a, b])
        if how == "replicated":
            return on_every_rank(local, np.linalg.lstsq, [a, b], chosen=True)  # type: ignore[return-value]
        if how != "single" or not a.size:
            decline(SINGLE)
        matrix, right = engine.copy(a, dtype=work), engine.copy(right, dtype=work)
        x, rest, rank, values = _with_undefined_sides(single_matrix.least_squares, matrix, right, cutoff)
    x = x[:, 0] if b.ndim == 1 else x
    x, rest, values = (engine.copy(x, dtype=kind) for x, kind in zip((x, rest, values), kinds, strict=True))
    return x, rest, type(like[2])(rank), values  # type: ignore[return-value]


Solution = tuple[Any, Any, int, Any]


@single_matrix.SILENT
def _with_undefined_sides(solve: Callable[..., Solution], a: object, b: Any, cutoff: float) -> Solution:
    """What `solve` finds, with LAPACK's undefined numbers where right-hand sides are not finite.

    LAPACK scales them by the largest number. That is no number where one is NaN, so that nothing is scaled, and columns
    do not touch each other; else, where it is infinite, nothing is left of any column, and all becomes NaN.
    """
    x, rest, rank, values = found = solve(a, b, cutoff)
    if np.isfinite(x).all() and np.isfinite(rest).all():
        return found
    infinite = replicate.few(np.isinf(b).any(axis=0))
    undefined = replicate.few((np.isnan(b) & ~np.isinf(b)).any(axis=0))
    wrong = infinite | undefined
    if not wrong.any():
        return found
    x, rest, rank, values = solve(a, np.where(wrong, 0, b), cutoff)
    if np.max(values, initial=0) > 0:  # of a matrix of zeros nothing else is looked at
        scaled = not undefined.any()
        x = np.where(wrong | scaled, np.nan, x)
        rest = np.where(wrong, np.nan, 0 if scaled else rest) if len(rest) else rest
    return x, rest, rank, values


@single_matrix.SILENT
def _of_reduced_system(
    a: DistArray, b: DistArray | np.ndarray, cutoff: float
) -> tuple[DistArray, DistArray, int, DistArray]:
    """Least-squares solutions, residuals, rank and singular values of a tall matrix."""
    (m, n), (rows, sides), comm = a.shape, _tall_rows(a, b), engine.runtime().comm
    matrix, right, rest = reduced_system(rows, sides, comm, threads_of_rank())
    scale = 1.0 if np.isfinite(matrix).all() else single_matrix.power_of_two(rows)
    if scale != 1.0:
        matrix, right, rest = reduced_system(on_host(rows) * scale, on_host(sides), comm, threads_of_rank())
    solve = single_matrix.refusing_infinity(np.linalg.lstsq, single_matrix.NO_SOLUTION)
    x, more, rank, values = agreed(lambda: solve(matrix, right, cutoff))
    if rank < n or m == n:
        rest = np.zeros(0)
    elif len(more):  # what is left of several triangles
        rest = rest + more
    return engine.wrap(x * scale), engine.wrap(rest), rank, engine.wrap(values / scale)


# -- one function after the other ------------------------------------------------------------------------------------


_TOGETHER = outlook_of_each("parallel", together=True)
_AT_ONE = outlook_of_each("axis-local")
_numpys_rank = numpy_source(np.linalg.matrix_rank)


@implements(np.linalg.inv, kind="parallel", outlook=_TOGETHER)
def inv(a: object) -> DistArray:
    return of_each(np.linalg.inv, a, single=single_matrix.inverse)


def _outlook_of_det(a: DistArray) -> Outlook:
    a = as_handle(a)
    return outlook_of("parallel", [a], [2], together=True, widened=2 if a.dtype.char in "fF" else 1)


@implements(np.linalg.det, kind="parallel", outlook=_outlook_of_det)
def det(a: object) -> DistArray | np.inexact:
    a = as_handle(a)
    kind = a.dtype
    if kind.char not in "fF":
        return of_each(np.linalg.det, a, single=single_matrix.determinant)
    # What NumPy has is a double; one that single precision cannot hold overflows in the cast.
    found = det(astype(a, np.result_type(kind, np.double)))
    if engine.is_handle(found):
        return engine.copy(found, dtype=kind)
    with events_reported("cast", alike=True):
        return found.astype(kind)


@implements(np.linalg.slogdet, kind="parallel", outlook=_TOGETHER)
def slogdet(a: object) -> tuple[DistArray | np.inexact, DistArray | np.floating]:
    return of_each(np.linalg.slogdet, a, single=single_matrix.sign_and_logarithm)


@implements(np.linalg.cholesky, kind="parallel", outlook=_TOGETHER)
def cholesky(a: object, /, *, upper: bool = False) -> DistArray:
    factor = functools.partial(single_matrix.cholesky_factor, upper=upper)
    return of_each(np.linalg.cholesky, a, single=factor, upper=upper)


def _gains_by_blocks(a: DistArray) -> bool:
    """Whether several ranks share a matrix, or one has so much of it that LAPACK is faster block by block."""
    rt = engine.runtime()
    if rt.size > 1:
        return True
    return rt.backend.memory.on_host and a.shape[1] >= _COLUMNS and a.nbytes > _LARGE and has_blocks(a.shape)


def _qr_by_triangles(a: DistArray, mode: object = "reduced") -> bool:
    return mode in ("reduced", "r") and _is_tall(a) and _gains_by_blocks(a)


_OUTLOOK_OF_QR = outlook_of_each("parallel", together=True, by_triangles=_qr_by_triangles)


@implements(np.linalg.qr, kind="parallel", outlook=_OUTLOOK_OF_QR)
def qr(a: DistArray, mode: str = "reduced") -> object:
    a = as_handle(a)
    if _qr_by_triangles(a, mode):
        return single_matrix.tall_factors(a, mode)
    together = mode in ("reduced", "complete", "r", "raw")
    single = functools.partial(single_matrix.orthogonal_factors, mode=mode) if together else None
    return of_each(np.linalg.qr, a, mode, single=single)


def _svd_by_triangles(
    a: DistArray, full_matrices: object = True, compute_uv: object = True, hermitian: object = False
) -> bool:
    if hermitian or compute_uv and full_matrices:
        return False
    if not compute_uv:
        return _is_tall(_upright(a))
    if engine.runtime().size == 1 and not follows_rule_of_phases([a]):
        return False  # LAPACK's phases are those of its own way
    return _is_tall(a) and _gains_by_blocks(a)


_OUTLOOK_OF_SVD = outlook_of_each("parallel", together=True, by_triangles=_svd_by_triangles)


@implements(np.linalg.svd, kind="parallel", outlook=_OUTLOOK_OF_SVD)
def svd(a: DistArray, full_matrices: object = True, compute_uv: object = True, hermitian: object = False) -> object:
    a = as_handle(a)
    if _svd_by_triangles(a, full_matrices, compute_uv, hermitian):
        if not compute_uv:
            return engine.wrap(_singular_values(a))
        return single_matrix.tall_singular(a, by_rule=follows_rule_of_phases([a]))

    def single(a: DistArray) -> object:
        if hermitian:
            return single_matrix.singular_of_hermitian(a, bool(compute_uv))
        return single_matrix.singular(a, bool(full_matrices), bool(compute_uv))

    local = local_of(np.linalg.svd, full_matrices, compute_uv, hermitian)
    if compute_uv and not hermitian:
        local = single_matrix.refusing_infinity(local)
    normalize = single_matrix.normalize_singular if compute_uv else None
    return of_stacks(local, np.linalg.svd, [a], [2], single, normalize)


@implements(np.linalg.eig, kind="axis-local", outlook=_AT_ONE)
def eig(a: object) -> tuple[DistArray, DistArray]:
    return of_each(np.linalg.eig, a)


@implements(np.linalg.eigvals, kind="axis-local", outlook=_AT_ONE)
def eigvals(a: object) -> DistArray:
    return of_each(np.linalg.eigvals, a)


@implements(np.linalg.eigh, kind="parallel", outlook=_TOGETHER)
def eigh(a: object, UPLO: str = "L") -> tuple[DistArray, DistArray]:
    single = functools.partial(single_matrix.eigen, uplo=UPLO, vectors=True)
    return of_each(np.linalg.eigh, a, UPLO, single=single, normalize=single_matrix.normalize_eigen)


@implements(np.linalg.eigvalsh, kind="parallel", outlook=_TOGETHER)
def eigvalsh(a: object, UPLO: str = "L") -> DistArray:
    single = functools.partial(single_matrix.eigen, uplo=UPLO, vectors=False)
    return of_each(np.linalg.eigvalsh, a, UPLO, single=single)


def _cond_by_triangles(x: DistArray, p: object = None) -> bool:
    return (p is None or p in (2, -2)) and _is_tall(_upright(x))


_OUTLOOK_OF_COND = outlook_of_each("parallel", together=True, by_triangles=_cond_by_triangles)


@implements(np.linalg.cond, kind="parallel", outlook=_OUTLOOK_OF_COND)
def cond(x: DistArray, p: float | Literal["fro", "nuc"] | None = None) -> object:
    x = as_handle(x)
    if _cond_by_triangles(x, p):
        return single_matrix.condition_by_values(lambda: _singular_values(x), x, p)

    def single(x: DistArray) -> object:
        if p is None or p in (2, -2):
            return single_matrix.condition_by_values(lambda: engine.gather(np.linalg.svd(x, compute_uv=False)), x, p)
        return single_matrix.condition_by_inverse(x, p)

    return of_each(np.linalg.cond, x, p, single=single)


def _outlook_of_pinv(a: object, rcond: object = None, hermitian: object = False, *, rtol: object = None) -> Outlook:
    return _with_cutoffs(a, rcond, rtol)


def _with_cutoffs(a: object, *cutoffs: Any) -> Outlook:
    many = [as_handle(x) for x in cutoffs if np.ndim(x)]
    return outlook_of("parallel", [as_handle(a), *many], [2, *(0 for _ in many)], together=not many)


@implements(np.linalg.pinv, kind="parallel", outlook=_outlook_of_pinv)
def pinv(a: ArrayLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NoValue) -> DistArray:
    if np.ndim(rcond) == 0 and (rtol is NoValue or np.ndim(rtol) == 0):

        def single(a: DistArray) -> object:
            least = max(a.shape) * np.finfo(a.dtype if a.dtype.kind in "fc" else float).eps
            cutoff = rcond if rcond is not None else 1e-15 if rtol is NoValue else least if rtol is None else rtol
            return single_matrix.pseudo_inverse(a, cutoff, hermitian)

        whole = local_of(np.linalg.pinv, rcond, hermitian, **given(rtol=rtol))
        whole = whole if hermitian else single_matrix.refusing_infinity(whole)
        return of_stacks(whole, np.linalg.pinv, [as_handle(a)], [2], single)
    name = "rcond" if np.ndim(rcond) else "rtol"
    if name == "rcond" and rtol is not NoValue:
        np.linalg.pinv(np.zeros((0, 1, 1)), 0.0, rtol=0.0)  # NumPy's error
    if 0 in np.shape(a)[-2:]:  # NumPy looks at no cutoff
        return of_each(np.linalg.pinv, a, None, hermitian)

    def local(matrices: object, cutoffs: object) -> np.ndarray:
        return np.linalg.pinv(on_host(matrices), hermitian=hermitian, **{name: on_host(cutoffs)})

    checked = local if hermitian else single_matrix.refusing_infinity(local)
    return of_stacks(checked, np.linalg.pinv, [as_handle(a), as_handle(rcond if name == "rcond" else rtol)], [2, 0])


def _outlook_of_rank(A: DistArray, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Outlook:
    A, plain = as_handle(A), np.ndim(tol) == np.ndim(rtol) == 0 and (tol is None or rtol is None)
    if A.ndim < 2 and (tol is None or rtol is None):
        return Outlook("parallel", "communicated: one partial result of each rank")
    if plain and not hermitian and _is_tall(_upright(A)):
        return outlook_of_triangles("parallel", A)
    return _with_cutoffs(A, tol, rtol)


@implements(np.linalg.matrix_rank, kind="parallel", outlook=_outlook_of_rank)
def matrix_rank(A: DistArray, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> object:
    A = as_handle(A)
    if A.ndim < 2 and (tol is None or rtol is None):
        return int(not np.all(A == 0))
    plain = np.ndim(tol) == np.ndim(rtol) == 0
    if plain and not hermitian and (tol is None or rtol is None) and _is_tall(_upright(A)):
        return _numpys_rank(A, tol, hermitian, rtol=rtol)
    if plain:

        def single(A: DistArray) -> object:
            return _numpys_rank(A, tol, hermitian, rtol=rtol)

        return of_each(np.linalg.matrix_rank, A, tol, hermitian, single=single, rtol=rtol)
    name = "tol" if np.ndim(tol) else "rtol"
    if tol is not None and rtol is not None:
        np.linalg.matrix_rank(np.zeros((1, 1)), 0.0, rtol=0.0)  # NumPy's error

    def local(matrices: object, cutoffs: object) -> object:
        values, limits = on_host(matrices), {name: on_host(cutoffs)}
        return np.linalg.matrix_rank(values, hermitian=hermitian, **limits)  # type: ignore[call-overload]

    return of_stacks(local, np.linalg.matrix_rank, [A, as_handle(tol if name == "tol" else rtol)], [2, 0])


def _outlook_of_solve(a: DistArray, b: DistArray) -> Outlook:
    a, b = as_handle(a), as_handle(b)
    return outlook_of("parallel", [a, b], [2, 1 if b.ndim == 1 else 2], together=True)


@implements(np.linalg.solve, kind="parallel", outlook=_outlook_of_solve)
def solve(a: DistArray, b: DistArray) -> DistArray:
    a, b = as_handle(a), as_handle(b)
    depths = [2, 1 if b.ndim == 1 else 2]
    return of_stacks(local_of(np.linalg.solve), np.linalg.solve, [a, b], depths, single_matrix.solved)


@implements(np.linalg.tensorsolve, kind="composed")
def tensorsolve(a: object, b: object, axes: Axes = None) -> object:
    return _tensorsolve(as_handle(a), b, axes)
