"""Linear algebra of one matrix that several ranks hold: its columns are dealt out to them (`parallel.columns`).

What NumPy would say of wrong arguments has been said before (`linear_algebra_decompositions`). All is computed in
double precision, as in NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.backends.library import Array, on_host
from numpy_dist.comm.portable import portable_error, restored
from numpy_dist.dispatch.core import outcome
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.dispatch.patterns.blocks import row_bounds
from numpy_dist.dispatch.patterns.dealt_columns import (
    array_of,
    columns_of,
    right_hand_sides,
    rows_of,
    solution_of,
)
from numpy_dist.dispatch.patterns.matrices import agreed, follows_rule_of_phases
from numpy_dist.dispatch.patterns.threads import threads_of_rank
from numpy_dist.engine import events_reported
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel import phases, spectra, tall
from numpy_dist.parallel.columns import Columns
from numpy_dist.parallel.factors import Reflections, cholesky, eliminate
from numpy_dist.parallel.pivoted import pivoted
from numpy_dist.parallel.substitution import substitute

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

_NO_EIGENVALUES = "Eigenvalues did not converge"
_NO_SINGULAR_VALUES = "SVD did not converge"
NO_SOLUTION = "SVD did not converge in Linear Least Squares"
SILENT = np.errstate(all="ignore")  # as LAPACK is: an event of one rank, raised, would leave the others waiting


def refusing_infinity(local: Function, words: str = _NO_SINGULAR_VALUES) -> Function:
    """`local`, LAPACK's singular vectors or what needs them, for matrices that have no infinite element.

    Of one with such elements LAPACK finds undefined numbers, or none, or never returns (4 by 3 elements are enough).
    Here it is always the error, as of a matrix that all ranks treat together.
    """

    @functools.wraps(local)
    def refusing(*parts: object, **options: object) -> object:
        a = parts[0]
        if isinstance(a, np.ndarray) and a.dtype.kind in "fc" and np.isinf(a).any():  # a device's library is no LAPACK
            raise np.linalg.LinAlgError(words)
        return local(*parts, **options)

    return refusing


def in_double_precision(function: Function) -> Function:
    """A function of matrices which, if all are of single precision, computes in double precision, as NumPy's do.

    What it finds is converted as NumPy converts it: with its floating-point events, which all ranks tell.
    """

    @functools.wraps(function)
    def wrapper(*operands: object, **options: object) -> Any:
        if any(engine.is_handle(x) and x.dtype.char not in "fF" for x in operands):
            return function(*operands, **options)
        wide = (_in_precision(x, np.double) if engine.is_handle(x) else x for x in operands)
        found = function(*wide, **options)
        if isinstance(found, tuple):
            return rebuild(type(found), [_in_precision(x, np.single) for x in found])
        return _in_precision(found, np.single)

    return wrapper


def _in_precision(x: Any, real: type[np.floating]) -> object:
    """An array of floating-point numbers, or an ndarray that all ranks have, in double or single precision."""
    kind = np.dtype(real) if x.dtype.kind == "f" else np.result_type(real, np.complex64)
    if engine.is_handle(x):
        return engine.copy(x, dtype=kind)
    with events_reported("cast", alike=True):
        return x.astype(kind)


def by_lapack(function: Function, *operands: DistArray) -> object:
    """NumPy's or SciPy's `function` of matrices with NaN or infinity, on one rank; None if that has no room for them.

    Where such a matrix leaves NaN depends on the order of LAPACK's operations. Collective: the matrices go to rank 0,
    and what it finds, its warnings and its error come back.
    """
    runtime = engine.runtime()
    if _TIMES * sum(x.nbytes for x in operands) > engine.budget(runtime):
        return None
    comm, error = runtime.comm, None
    told: list[tuple[type[Warning], Warning | str]] = []
    columns: list[Any] = [np.reshape(x, (len(x), -1)) for x in operands]
    wholes = [columns_of(x, x.dtype).on(0) for x in columns]
    made: object = None
    if comm.rank == 0:
        parts = [x.reshape(its.shape) for x, its in zip(wholes, operands, strict=True) if x is not None]
        with outcome.Recorded(told), np.errstate(all="ignore"):
            try:
                made = function(*parts)
            except Exception as raised:  # whatever it raises, every rank raises
                error = portable_error(raised)
    told, error = comm.bcast((told, error))
    outcome.warn_again(told)
    if error is not None:
        raise restored(error)
    return _from_one(made)


def _from_one(made: Any) -> object:
    """What rank 0 has found: matrices are cut between rows, and all else comes to every rank."""
    comm = engine.runtime().comm
    kind, count = comm.bcast((type(made), len(made) if isinstance(made, tuple) else 0))
    if count:
        return rebuild(kind, [_from_one(None if made is None else made[number]) for number in range(count)])
    shape = comm.bcast(getattr(made, "shape", ()))
    if len(shape) < 2:
        found = comm.bcast(made)
        return engine.wrap(found) if shape else found
    return engine.from_root(made, layout=engine.default_layout(shape, split=0))


def _is_finite(columns: Columns) -> bool:
    """Whether a matrix has only numbers. Collective: an allgather."""
    return all(columns.comm.allgather(bool(np.isfinite(columns.values).all())))


_TIMES = 5  # as many matrices a rank has for a moment: what comes, a copy, factors, and what LAPACK needs


# -- systems of equations --------------------------------------------------------------------------------------------


@in_double_precision
@SILENT
def solved(a: DistArray, b: DistArray) -> DistArray:
    """``numpy.linalg.solve``. Collective: the columns of `a` are dealt out, and each panel is sent to all twice."""
    kind = np.linalg.solve(np.zeros((0, 1, 1), a.dtype), np.zeros((1, 1), b.dtype)).dtype
    work = np.result_type(kind, np.double)
    values, layout = right_hand_sides(b, work)
    _solve(columns_of(a, work), values)
    return solution_of(values, layout, tuple(b.shape), kind)


@in_double_precision
@SILENT
def inverse(a: DistArray) -> DistArray:
    """``numpy.linalg.inv``. Collective, as `solved`."""
    kind = np.linalg.inv(np.zeros((0, 1, 1), a.dtype)).dtype
    columns = columns_of(a, np.result_type(kind, np.double))
    made = columns.like()
    made.add_to_diagonal(1)
    _solve(columns, made.values)
    return array_of(made, kind)


def _solve(columns: Columns, right: np.ndarray) -> None:
    if eliminate(columns, right).singular:
        raise np.linalg.LinAlgError("Singular matrix")
    substitute(columns, right)


def sign_and_logarithm(a: DistArray, name: str = "slogdet") -> tuple[np.inexact, np.floating]:
    """``numpy.linalg.slogdet``. Collective: each panel is sent to all."""
    like = np.linalg.slogdet(np.eye(1, dtype=a.dtype))
    kind, real = like.sign.dtype.type, like.logabsdet.dtype.type
    found = eliminate(columns_of(a, np.result_type(like.sign.dtype, np.double)))
    if found.singular:
        return rebuild(type(like), [kind(0), real(-np.inf)])
    sizes, swaps = np.abs(found.diagonal), np.count_nonzero(found.pivots != np.arange(len(found.pivots)))
    # Infinity by infinity is NaN in NumPy's, too; of a matrix that is only counted there are zeros.
    with np.errstate(invalid="ignore", divide="ignore"):
        if found.diagonal.dtype.kind == "c":  # NumPy's quotient of complex numbers overflows with the smallest
            signs = found.diagonal.real / sizes + 1j * (found.diagonal.imag / sizes)
        else:
            signs = np.where(found.diagonal < 0, -1.0, 1.0)
        sign = np.multiply.reduce(signs, initial=-1 if swaps % 2 else 1)
        sign, logarithm = engine.agreed([kind(sign), real(np.log(sizes).sum())])
    if np.isnan(logarithm) or np.isnan(sign):  # NumPy tells of it: of LAPACK's factors, or of a phase of infinity
        with events_reported(name, alike=True):
            np.subtract(np.inf, np.inf)
    return rebuild(type(like), [sign, logarithm])


def determinant(a: DistArray) -> np.inexact:
    """``numpy.linalg.det``: the exponential of a logarithm, as there. Collective, as `sign_and_logarithm`."""
    sign, logarithm = sign_and_logarithm(a, "det")
    with events_reported("det", alike=True):
        return sign * np.exp(logarithm)


@in_double_precision
@SILENT
def cholesky_factor(a: DistArray, upper: bool) -> DistArray:
    """``numpy.linalg.cholesky``. Collective: each panel is sent to all."""
    kind = np.linalg.cholesky(np.eye(1, dtype=a.dtype)).dtype
    columns = columns_of(a, np.result_type(kind, np.double))
    columns = columns.adjoint() if upper else columns
    if cholesky(columns):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return array_of(columns.adjoint() if upper else columns, kind)


# -- orthogonal factors ----------------------------------------------------------------------------------------------


@in_double_precision
@SILENT
def orthogonal_factors(a: DistArray, mode: str) -> object:
    """``numpy.linalg.qr``. Collective: each panel is sent to all, twice where the orthogonal factor is wanted."""
    like = np.linalg.qr(np.zeros((1, 1), a.dtype))
    kind = like.R.dtype
    reflections = Reflections(columns_of(a, np.result_type(kind, np.double)))
    reflections.reduce()
    if not _is_finite(reflections.columns):
        found = by_lapack(functools.partial(np.linalg.qr, mode=mode), a)
        if found is not None:
            return found
    made = factors_of(reflections, mode, kind)
    return made[0] if mode == "r" else made if mode == "raw" else rebuild(type(like), list(made))


def pivoted_factors(a: DistArray, mode: str) -> tuple[tuple[Any, ...], DistArray]:
    """What `factors_of` makes of a matrix whose columns are permuted, and their order. Collective, as `pivoted`."""
    kind = np.linalg.qr(np.zeros((1, 1), a.dtype)).R.dtype
    reflections, order = pivoted(columns_of(a, np.result_type(kind, np.double)))
    return factors_of(reflections, mode, kind), engine.wrap(order.astype(np.intc))


def factors_of(reflections: Reflections, mode: str, kind: np.dtype) -> tuple[object, ...]:
    """What ``numpy.linalg.qr`` returns, as a tuple, of what reflections have left; they are given up.

    Collective: a message from each rank to each, and each panel is sent to all for the orthogonal factor.
    """
    columns = reflections.columns
    if mode == "raw":
        return np.transpose(array_of(columns, kind)), _taus(reflections, kind)
    upper = columns.like((columns.end, columns.shape[1]))
    upper.values[...] = reflections.upper()
    if mode == "complete" and columns.end < columns.shape[0]:
        upper = columns.like()
        upper.values[: columns.end] = reflections.upper()
    triangle = array_of(upper, kind)
    if mode == "r":
        return (triangle,)
    basis = reflections.basis(columns.shape[0] if mode == "complete" else columns.end)
    return array_of(basis, kind), triangle


def _taus(reflections: Reflections, kind: np.dtype) -> DistArray:
    made = np.zeros(reflections.columns.end, reflections.columns.values.dtype)
    for found in reflections.columns.comm.allgather(reflections.taus):
        for start, tau in found.items():
            made[start : start + len(tau)] = tau
    return engine.wrap(made.astype(kind))


@in_double_precision
@SILENT
def tall_factors(a: DistArray, mode: str) -> object:
    """``numpy.linalg.qr`` of a tall matrix: its rows stay where they are. Collective, as `tall.factors`."""
    like = np.linalg.qr(np.zeros((1, 1), a.dtype))
    kind = like.R.dtype
    rows, layout = rows_of(a, np.result_type(kind, np.double))
    basis, triangle = tall.factors(rows, _first_row(layout), engine.runtime().comm, threads_of_rank())
    if not np.isfinite(triangle).all():
        found = by_lapack(functools.partial(np.linalg.qr, mode=mode), a)
        if found is not None:
            return found
    triangle = triangle.astype(kind)
    if mode == "r":
        return engine.wrap(triangle)
    return rebuild(type(like), [engine.from_local(basis.astype(kind), layout), engine.wrap(triangle)])


@in_double_precision
@SILENT
def tall_singular(a: DistArray, by_rule: bool) -> object:
    """``numpy.linalg.svd`` of a tall matrix, without all left vectors. Collective, as `tall.factors`.

    `by_rule` tells whether phases are those of `parallel.phases`.
    """
    like = np.linalg.svd(np.zeros((1, 1), a.dtype))
    rows, layout = rows_of(a, np.result_type(like.U.dtype, np.double))
    first, comm, threads = _first_row(layout), engine.runtime().comm, threads_of_rank()
    basis, triangle = tall.factors(rows, first, comm, threads)
    scale = 1.0 if np.isfinite(triangle).all() else power_of_two(rows)
    if scale != 1.0:
        basis, triangle = tall.factors(rows * scale, first, comm, threads)
    left, values, right = found = agreed(lambda: refusing_infinity(np.linalg.svd)(triangle))
    values /= scale
    if by_rule:
        normalize_singular(found)
    made = engine.from_local((basis @ left).astype(like.U.dtype, copy=False), layout)
    found = [engine.wrap(x.astype(its.dtype, copy=False)) for x, its in ((values, like.S), (right, like.Vh))]
    return rebuild(type(like), [made, *found])


def power_of_two(rows: Array) -> float:
    """By what a tall matrix is to be multiplied such that no norm overflows; 1 where it has no norm. Collective."""
    largest = np.max(engine.runtime().comm.allgather(np.abs(on_host(rows)).max(initial=0)))
    return float(2.0 ** -np.ceil(np.log2(largest))) if np.isfinite(largest) and largest else 1.0


def _first_row(layout: Layout) -> int:
    box = layout.box(engine.runtime().rank)
    return layout.shape[0] if box is None else box[0][0]


# -- eigenvalues and singular values ---------------------------------------------------------------------------------


@in_double_precision
@SILENT
def eigen(a: DistArray, uplo: str, vectors: bool) -> object:
    """``numpy.linalg.eigh`` and ``eigvalsh``. Collective, as `spectra.eigh`."""
    like = np.linalg.eigh(np.zeros((1, 1), a.dtype))
    width = spectra.panel_width(len(a), engine.runtime().size, vectors)
    columns = columns_of(a, np.result_type(like.eigenvectors.dtype, np.double), width)
    lower = uplo.upper() == "L"
    take_triangle(columns, lower)
    if not _is_finite(columns):
        made = by_lapack(functools.partial(np.linalg.eigh if vectors else np.linalg.eigvalsh, UPLO=uplo), a)
        if made is not None:
            return made
    values, basis = eigen_of(columns, lower, vectors)
    found = engine.wrap(values.astype(like.eigenvalues.dtype))
    if basis is None:
        return found
    kind = like.eigenvectors.dtype
    return rebuild(type(like), [found, basis if basis.dtype == kind else engine.copy(basis, dtype=kind)])


def eigen_of(columns: Columns, lower: bool, vectors: bool) -> tuple[np.ndarray, DistArray | None]:
    """Eigenvalues of a Hermitian matrix, on every rank, and eigenvectors. Collective, as `spectra.eigh`.

    `lower` tells which triangle LAPACK would read, which decides phases of small matrices' vectors.
    """
    scale = _scaled(columns)
    layout = engine.default_layout(columns.shape, split=0)
    bounds = row_bounds(layout)
    if not np.isfinite(scale) and columns.shape[0] <= spectra.SMALL:
        scale = 1.0  # LAPACK treats it as it is
    if not np.isfinite(scale):
        if not vectors:
            raise np.linalg.LinAlgError(_NO_EIGENVALUES)
        low, high = bounds[engine.runtime().rank]  # with vectors, LAPACK finds NaN
        undefined = np.full((high - low, columns.shape[1]), np.nan, columns.values.dtype)
        return np.full(columns.shape[1], np.nan), engine.from_local(undefined, layout)
    values, rows = spectra.eigh(columns, vectors, bounds=bounds, uplo="L" if lower else "U")
    return engine.agreed(values * scale), None if rows is None else engine.from_local(rows, layout)


def normalize_eigen(found: Any) -> None:
    """Give LAPACK's eigenvectors the phases of those that `eigen` finds, in place."""
    values, vectors = found
    if np.isfinite(values).all():  # what NumPy makes of NaN stays
        vectors *= phases.phases_of(vectors)


def normalize_singular(found: Any) -> None:
    """Give LAPACK's singular vectors the phases of those that `singular` finds, in place."""
    left, values, right = found
    if np.isfinite(values).all():
        phases.normalize_singular(left, right, len(values))


@functools.cache
def _has_values_of_infinity() -> bool:
    """Whether NumPy's LAPACK finds singular values, which are NaN, where the matrix has infinity; newer ones do not."""
    try:
        np.linalg.svd(np.diag([np.inf, 1.0]), compute_uv=False)
    except np.linalg.LinAlgError:
        return False
    return True


@in_double_precision
@SILENT
def singular(a: DistArray, full: bool, vectors: bool) -> object:
    """``numpy.linalg.svd``. Collective, as `spectra.svd`."""
    like = np.linalg.svd(np.zeros((1, 1), a.dtype))
    kind = like.U.dtype
    width = 0 if vectors else spectra.panel_width(a.shape[1], engine.runtime().size, False)
    columns = columns_of(a, np.result_type(kind, np.double), width)
    wide = a.shape[0] < a.shape[1]
    columns = columns.adjoint() if wide else columns
    scale = _scaled(columns)
    if np.isnan(scale) or np.isinf(scale) and (vectors or not columns.comm.bcast(_has_values_of_infinity())):
        raise np.linalg.LinAlgError(_NO_SINGULAR_VALUES)
    if np.isinf(scale):
        columns.values[...] = 0
    values, left, right = spectra.svd(columns, vectors, full, adjoint=wide)
    found = engine.wrap(engine.agreed(values * (np.nan if np.isinf(scale) else scale)).astype(like.S.dtype))
    if left is None or right is None:
        return found
    left, right = (right, left) if wide else (left, right)
    return rebuild(type(like), [array_of(left, kind), found, array_of(right.adjoint(), kind)])


def singular_of_hermitian(a: DistArray, vectors: bool) -> object:
    """``numpy.linalg.svd`` with ``hermitian=True``. Collective, as `eigen`."""
    found, basis = np.linalg.eigh(a) if vectors else (np.linalg.eigvalsh(a), None)
    values = np.asarray(engine.plain(found))
    order = np.argsort(np.abs(values))[::-1]
    sizes = engine.wrap(np.abs(values)[order])
    if basis is None:
        return sizes
    left = np.take(basis, order, axis=1)
    right = left * np.copysign(1.0, values)[order].astype(left.dtype)
    if follows_rule_of_phases([a]) and np.isfinite(values).all():
        left, right = right, left  # of which the phases are known
    return rebuild(type(np.linalg.svd(np.zeros((1, 1)))), [left, sizes, np.conj(np.transpose(right))])


def _scaled(columns: Columns) -> float:
    """The power of two by which a matrix is divided, such that squares do not overflow; or what is not finite in it."""
    sizes = columns.comm.allgather(float(np.abs(columns.values).max(initial=0)))
    largest = float(np.max(sizes))
    if not np.isfinite(largest) or not largest:
        return largest or 1.0
    exponent = int(np.floor(np.log2(largest)))
    values = columns.values  # whose zeros keep their signs, by which LAPACK chooses phases
    for half in (values.real, values.imag) if values.dtype.kind == "c" else (values,):
        for part in (exponent // 2, exponent - exponent // 2):  # of the smallest numbers the reciprocal would overflow
            half *= 2.0**-part
    return 2.0**exponent


def take_triangle(columns: Columns, lower: bool) -> None:
    """Make a matrix Hermitian of one of its triangles. Collective: a message from each rank to each."""
    rows, which = np.arange(columns.shape[0])[:, None], columns.indices()
    values, diagonal = columns.values, (which, np.arange(len(which)))
    values[(rows < which) if lower else (rows > which)] = 0
    values[diagonal] = values[diagonal].real / 2
    columns.add_adjoint()


@functools.cache
def _has_condition_of_nan() -> bool:
    """Whether this NumPy has a condition number where it finds no singular values; before 2.5.5 it raises."""
    try:
        np.linalg.cond(np.full((1, 1), np.nan))
    except np.linalg.LinAlgError:
        return False
    return True


def condition_by_values(find: Callable[[], np.ndarray], a: DistArray, order: object) -> np.floating:
    """``numpy.linalg.cond`` by the singular values that `find` gives. Collective, as `find`."""
    try:
        values = find()
    except np.linalg.LinAlgError:
        if not _has_condition_of_nan():
            raise
        values = np.full(1, np.nan, np.linalg.cond(np.eye(1, dtype=a.dtype)).dtype)
    with np.errstate(all="ignore"):
        ratio: np.floating = values[-1] / values[0] if order == -2 else values[0] / values[-1]
    return type(ratio)(np.inf) if np.isnan(ratio) and not np.isnan(a).any() else ratio


def condition_by_inverse(a: DistArray, order: float | Literal["fro", "nuc"] | None) -> object:
    """``numpy.linalg.cond`` by norms other than those of singular values. Collective, as `inverse`, and two norms."""
    like = np.linalg.cond(np.eye(1, dtype=a.dtype), order)  # or NumPy's error
    if a.shape[0] != a.shape[1]:
        engine.numpy_error(np.linalg.cond, (np.zeros((1, 2)), order))
    found: object
    with np.errstate(all="ignore"):
        try:
            size = np.linalg.norm(a, order)
            found = size * np.linalg.norm(inverse(engine.copy(a, dtype=np.result_type(a.dtype, np.double))), order)
        except np.linalg.LinAlgError:
            if order == "nuc" and not _has_condition_of_nan():  # of NaN, which NumPy has for the inverse
                raise np.linalg.LinAlgError(_NO_SINGULAR_VALUES) from None
            found = np.nan
        if np.isnan(found) and not np.isnan(a).any():
            found = np.inf
        return like.dtype.type(found)


@SILENT
def least_squares(a: DistArray, b: DistArray, cutoff: float) -> tuple[DistArray, DistArray, int, DistArray]:
    """``numpy.linalg.lstsq`` for columns `b`, of double precision. Collective, as `singular`, and two products."""
    try:
        left, sizes, right = np.linalg.svd(a, full_matrices=False)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(NO_SOLUTION) from None
    values = engine.gather(sizes)  # some ways of finding them leave them on the ranks
    largest = values.max(initial=0)
    if largest and not 2.0**-512 < largest < 2.0**512:  # as LAPACK, which multiplies such matrices, too
        factor = 2.0 ** -np.clip(np.log2(largest).round(), -1000, 64 if np.isinf(largest) else None)
        found = least_squares(a * factor, b, cutoff)
        return found[0] * factor, found[1], found[2], found[3] / factor
    large = values > cutoff * largest
    divisors = np.where(large, values, np.inf)  # the reciprocals of the smallest numbers would overflow
    inner: object = left.mT.conj() @ b
    solution: Any = right.mT.conj() @ (inner / divisors[:, None])
    rest = engine.wrap(np.zeros(0))
    if large.all() and a.shape[0] > a.shape[1]:  # of numbers that are finite also where the solution overflows
        rest = np.square(np.abs(b - left @ inner)).sum(axis=0)
    return solution, rest, int(np.count_nonzero(large)), engine.wrap(values)


def pseudo_inverse(a: DistArray, cutoff: float, hermitian: bool) -> DistArray:
    """``numpy.linalg.pinv``. Collective, as `singular`, and a product."""
    left, sizes, right = np.linalg.svd(np.conj(a), full_matrices=False, hermitian=hermitian)
    values = engine.gather(sizes)
    large = values > np.asarray(cutoff)[None] * values.max(initial=0, keepdims=True)
    inverse = np.divide(1, values, out=np.zeros_like(values), where=large)
    return right.mT @ (inverse[:, None] * left.mT)
