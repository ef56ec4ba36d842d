"""Factorizations, triangular systems, spectra and the exponential of `scipy.linalg`, of one matrix that ranks share.

What all ranks do together is what they do for `numpy.linalg` (`dispatch.patterns.dealt_columns`). Small matrices, and
those of a single rank, are SciPy's. Options that choose a LAPACK routine or permit overwriting change nothing.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.linalg

from numpy_dist import engine
from numpy_dist.argument_types import Function, Keywords
from numpy_dist.backends.library import on_host
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.functions import linear_algebra_single_matrix as single_matrix
from numpy_dist.dispatch.patterns import dealt_columns, matrices
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.blocks import row_bounds
from numpy_dist.dispatch.patterns.replicate import few
from numpy_dist.frames import stack_level
from numpy_dist.interop.matrix_exponential import expm
from numpy_dist.parallel import factors
from numpy_dist.parallel.column_products import multiply, multiply_adjoint
from numpy_dist.parallel.columns import Columns
from numpy_dist.parallel.phases import phases_of
from numpy_dist.parallel.substitution import substitute

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

_TRANSPOSED = {"N": 0, "T": 1, "C": 2}
NoValue = inspect.signature(scipy.linalg.qr).parameters["lwork"].default  # None before SciPy 1.18
_DRIVERS = (None, "ev", "evd", "evr", "evx", "gv", "gvd", "gvx")


def register() -> None:
    """Register the functions."""
    for function in (
        qr,
        svd,
        svdvals,
        eigh,
        eigvalsh,
        cholesky,
        cho_factor,
        cho_solve,
        lu_factor,
        lu_solve,
        solve_triangular,
        expm,
    ):
        implements(getattr(scipy.linalg, function.__name__), kind="parallel")(function)


# -- arguments -------------------------------------------------------------------------------------------------------


def _matrix(function: Callable[..., object], x: ArrayLike, check_finite: bool) -> DistArray:
    """A matrix of numbers, or stacks of them, for `numpy.linalg`."""
    a = as_handle(x)
    if a.ndim < 2:
        engine.numpy_error(function, (a,))
    if a.dtype.kind not in "biufc":
        decline(f"matrices of dtype {a.dtype}")
    _check(a, check_finite)
    if a.dtype.char in "gG" and (np.abs(a) > np.finfo(float).max).any():  # type: ignore[operator]
        decline("numbers that double precision cannot hold")
    if a.dtype.char in _OF_LAPACK:
        a = engine.copy(a, dtype=np.dtype(_OF_LAPACK[a.dtype.char]))
    if a.dtype.kind in "biu":  # of which SciPy's results may have single precision, and NumPy's have not
        a = engine.copy(a, dtype=_kind(function, a))
    return a


_OF_LAPACK = {"e": "f", "g": "d", "G": "D"}  # in which SciPy computes with other precisions


def _refuse(function: Function, operands: Sequence[object], options: Keywords | None = None) -> NoReturn:
    """Raise SciPy's error for arguments of these shapes; where it has none it gets the arguments."""
    with contextlib.suppress(AssertionError):
        engine.numpy_error(function, operands, options)
    decline("arguments that SciPy takes all the same")


def _check(a: Any, check_finite: bool) -> None:
    """SciPy's error, which it has for floating-point numbers only."""
    if check_finite and a.dtype.char in np.typecodes["AllFloat"] and not np.isfinite(a).all():
        raise ValueError("array must not contain infs or NaNs")


def _of_matrices(
    function: Function,
    operands: list[Any],
    single: Function,
    check_finite: bool,
    normalize: Callable[[object], None] | None = None,
    **options: object,
) -> Any:
    """SciPy's `function` of small matrices, and `single` of large ones that several ranks hold.

    `normalize` gives vectors that SciPy has found the phases that `single` gives them, in place.
    """
    if any(x.ndim > 2 for x in operands):
        decline("stacks of matrices")
    if any(x.dtype.kind not in "biufc" for x in operands):
        decline("matrices of other things than numbers")
    how = matrices.treatment(operands, [2] * len(operands), together=True)

    def local(*parts: object) -> object:
        made = function(*map(on_host, parts), check_finite=check_finite, **options)
        if normalize is not None and matrices.follows_rule_of_phases(operands):
            normalize(made)
        return made

    if how == "alone":
        return matrices.alone(local, function.__name__, operands)
    if how == "replicated":
        return matrices.on_every_rank(local, function, operands, chosen=True)
    if how != "single":
        decline("an array that is no matrix")
    for x in operands:
        _check(x, check_finite)
    if not check_finite and not all(np.isfinite(x).all() for x in operands):
        found = single_matrix.by_lapack(local, *operands)
        if found is not None:
            return found
    with np.errstate(all="ignore"):  # as LAPACK
        return single(*operands)


def _kind(function: Function, *operands: DistArray | np.ndarray) -> np.dtype:
    """The dtype of what SciPy computes of such matrices."""
    made = function(*(np.eye(1, dtype=x.dtype) for x in operands))
    kind: np.dtype = (made[0] if isinstance(made, tuple) else made).dtype
    return kind


def _is_square(a: DistArray | np.ndarray) -> bool:
    return bool(a.shape[0] == a.shape[1])


# -- by numpy.linalg -------------------------------------------------------------------------------------------------


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = NoValue,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> object:
    if lwork is not NoValue:
        _tell_of_lwork(lwork, as_handle(a).shape)
    if mode not in ("full", "qr", "r", "economic", "raw"):
        _refuse(scipy.linalg.qr, (a,), {"mode": mode})
    a = _matrix(scipy.linalg.qr, a, check_finite and not pivoting)
    if a.ndim > 2:
        decline("stacks of matrices")
    if not a.size:
        decline("a matrix without elements")
    if lwork is not None and NoValue is None:
        _check_lwork(lwork, a, mode, pivoting)
    if pivoting:
        single = functools.partial(_pivoted, mode=mode)
        return _of_matrices(scipy.linalg.qr, [a], single, check_finite, mode=mode, pivoting=True)
    if mode == "raw":
        found, taus = np.linalg.qr(a, "raw")
        packed = np.transpose(found)
        return (packed, taus), np.triu(packed[: min(a.shape)])
    if mode != "r":
        return tuple(np.linalg.qr(a, "reduced" if mode == "economic" else "complete"))
    return (_with_zeros_below(np.linalg.qr(a, "r"), a.shape),)


def _pivoted(a: DistArray, mode: str) -> tuple[object, ...]:
    """SciPy's tuple, of a large matrix. Collective, as `parallel.pivoted`."""
    if mode == "raw":
        (found, taus), order = single_matrix.pivoted_factors(a, "raw")
        packed = np.transpose(found)
        return (packed, taus), np.triu(packed[: min(a.shape)]), order
    if mode != "r":
        made, order = single_matrix.pivoted_factors(a, "reduced" if mode == "economic" else "complete")
        return *made, order
    (triangle,), order = single_matrix.pivoted_factors(a, "r")
    return _with_zeros_below(triangle, a.shape), order


def _with_zeros_below(triangle: Any, shape: Sequence[int]) -> object:
    missing = max(shape[0] - shape[1], 0)
    return np.pad(triangle, ((0, missing), (0, 0))) if missing else triangle


def _tell_of_lwork(lwork: object, shape: Sequence[int]) -> None:
    """SciPy's errors and warnings of an argument that means nothing here, from a matrix without columns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scipy.linalg.qr(np.empty((*shape[:-1], 0)), lwork=lwork)
    for warning in caught:
        warnings.warn(warning.message, warning.category, stacklevel=stack_level())


def _check_lwork(lwork: object, a: DistArray, mode: str, pivoting: bool) -> None:
    """SciPy's errors of a workspace that is too small, or no number, for what makes the triangle and the basis."""
    (m, n), steps = a.shape, []
    if not pivoting:
        steps.append(("geqrf", n))
    if mode in ("full", "qr", "economic"):
        steps.append(("orgqr", min(m, n) if mode == "economic" else m))
    for name, least in steps:
        if isinstance(lwork, (int, np.integer)) and (lwork == -1 or lwork >= least):
            continue
        row = np.zeros((1, least), a.dtype)  # the routine looks at the number of its columns
        (routine,) = scipy.linalg.get_lapack_funcs((name,), (row,))
        routine(row, *(() if name == "geqrf" else (row[0, :1],)), lwork=lwork)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> object:
    if lapack_driver not in ("gesdd", "gesvd"):
        _refuse(scipy.linalg.svd, (a,), {"lapack_driver": lapack_driver})
    a = _matrix(scipy.linalg.svd, a, check_finite)

    def single(a: DistArray) -> object:
        made = np.linalg.svd(a, full_matrices, compute_uv)  # type: ignore[call-overload]
        return tuple(made) if compute_uv else made

    if a.ndim > 2 or matrices.follows_rule_of_phases([a]):  # also of one rank, which reduces tall ones by blocks
        return single(a)
    chosen: dict[str, Any] = {"full_matrices": full_matrices, "compute_uv": compute_uv, "lapack_driver": lapack_driver}
    small = single_matrix.refusing_infinity(scipy.linalg.svd) if compute_uv else scipy.linalg.svd
    return _of_matrices(small, [a], single, False, **chosen)


def svdvals(a: DistArray, overwrite_a: bool = False, check_finite: bool = True) -> object:
    return np.linalg.svd(_matrix(scipy.linalg.svdvals, a, check_finite), compute_uv=False)


# -- eigenvalues -----------------------------------------------------------------------------------------------------


def eigh(
    a: ArrayLike,
    b: object = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: object = None,
    subset_by_value: object = None,
    driver: str | None = None,
) -> object:
    a = _matrix(scipy.linalg.eigh, a, check_finite)
    operands = [a] if b is None else [a, as_handle(b)]
    options = {"type": type, "subset_by_index": subset_by_index, "subset_by_value": subset_by_value, "driver": driver}
    if not _is_eigh(operands, **options):
        _refuse(scipy.linalg.eigh, operands, options)
    chosen: dict[str, Any] = {"lower": lower, "eigvals_only": eigvals_only, **options}

    def single(*operands: DistArray) -> Any:
        made: Any
        if len(operands) > 1:
            made = _generalized(operands[0], operands[1], lower, not eigvals_only, type)
        else:
            made = (np.linalg.eigvalsh if eigvals_only else np.linalg.eigh)(a, "L" if lower else "U")  # type: ignore[operator]
        which = _subset(made if eigvals_only else made[0], subset_by_index, subset_by_value)
        return made[which] if eigvals_only else (made[0][which], made[1][:, which])

    if a.ndim > 2 and b is None:
        return single(a)
    normalize = None if eigvals_only else single_matrix.normalize_eigen
    return _of_matrices(scipy.linalg.eigh, operands, single, check_finite, normalize, **chosen)


def eigvalsh(a: DistArray, b: object = None, **options: Any) -> object:
    return eigh(a, b, eigvals_only=True, **options)


eigvalsh.__signature__ = inspect.signature(scipy.linalg.eigvalsh)  # type: ignore[attr-defined]


def _is_eigh(operands: list[Any], type: object, subset_by_index: Any, subset_by_value: Any, driver: object) -> bool:
    """Whether SciPy takes these arguments."""
    a, n = operands[0], operands[0].shape[-1]
    if any(subset is not None and len(subset) != 2 for subset in (subset_by_index, subset_by_value)):
        return False
    if subset_by_index is not None:
        low, high = subset_by_index
        if subset_by_value is not None or not 0 <= low <= high < n:
            return False
    if subset_by_value is not None:
        low, high = subset_by_value
        if not -np.inf <= low < high <= np.inf:
            return False
    generalized = len(operands) > 1
    drivers = _DRIVERS if driver is None else _DRIVERS[5:] if generalized else _DRIVERS[1:5]
    subset = subset_by_index is not None or subset_by_value is not None
    if driver not in drivers or (subset and driver in ("ev", "evd", "gv", "gvd")):
        return False
    return a.shape[-2] == n and (not generalized or (operands[1].shape == a.shape and type in (1, 2, 3)))


def _subset(values: object, by_index: Any, by_value: Any) -> slice:
    """Which of the eigenvalues, in ascending order, are wanted."""
    if by_index is not None:
        return slice(int(by_index[0]), int(by_index[1]) + 1)
    if by_value is None:
        return slice(None)
    found = few(values)
    return slice(*(int(np.searchsorted(found, limit, side="right")) for limit in by_value))


def _generalized(a: DistArray, b: DistArray, lower: bool, vectors: bool, type: int) -> object:
    """Eigenvalues of ``a v = w b v`` (type 1), ``a b v = w v`` (2) or ``b a v = w v`` (3).

    With Cholesky's factor of `b` they are those of a Hermitian matrix, as in LAPACK's ``sygst``. Collective: the panels
    of that factor are sent to all once for each product or system.
    """
    values_kind, kind = (x.dtype for x in scipy.linalg.eigh(np.eye(1, dtype=a.dtype), np.eye(1, dtype=b.dtype)))
    work = np.result_type(kind, np.double)
    factor = dealt_columns.columns_of(b, work)
    factor = factor if lower else factor.adjoint()
    if order := factors.cholesky(factor):
        raise np.linalg.LinAlgError(
            f"The leading minor of order {order} of B is not positive definite. The factorization of B could not be "
            "completed and no eigenvalues or eigenvectors were computed."
        )
    columns = dealt_columns.columns_of(a, work)
    single_matrix.take_triangle(columns, lower)
    if type == 1:
        substitute(factor, columns.values, lower=True)
        columns = columns.adjoint()
        substitute(factor, columns.values, lower=True)
    else:
        columns = multiply_adjoint(factor, multiply(columns, factor))
    values, basis = single_matrix.eigen_of(columns, True, vectors)
    found = engine.wrap(values.astype(values_kind))
    if basis is None:
        return found
    columns = dealt_columns.columns_of(basis, work)
    if type == 3:
        columns = multiply(factor, columns)
    else:
        substitute(factor, columns.values, lower=True, adjoint=True)
    if matrices.follows_rule_of_phases([a, b]):
        columns.values *= phases_of(columns.values)
    return found, dealt_columns.array_of(columns, kind)


# -- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky(a: DistArray, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> object:
    a = as_handle(a)
    if a.ndim != 2 or not _is_square(a):
        _refuse(scipy.linalg.cholesky, (a,))

    single = functools.partial(_cholesky_factor, lower=lower)
    return _of_matrices(scipy.linalg.cholesky, [a], single, check_finite, lower=lower)


def _cholesky_factor(a: DistArray, lower: bool) -> Any:
    """One triangle of zeros, the other of a large matrix's factor. Collective, as `factors.cholesky`."""
    kind = _kind(scipy.linalg.cholesky, a)
    columns = dealt_columns.columns_of(a, np.result_type(kind, np.double))
    columns = columns if lower else columns.adjoint()
    if order := factors.cholesky(columns):
        raise np.linalg.LinAlgError(_text_of_minor(order))
    return dealt_columns.array_of(columns if lower else columns.adjoint(), kind)


def _text_of_minor(order: int) -> str:
    """SciPy's words for a leading minor that is not positive definite, from a matrix of one element."""
    try:
        scipy.linalg.cholesky(-np.eye(1))
    except np.linalg.LinAlgError as error:
        return str(error).replace("1", str(order), 1)
    raise AssertionError("the matrix -1 is not positive definite")


def cho_factor(a: DistArray, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> object:
    a = as_handle(a)
    if a.ndim != 2 or not _is_square(a):
        _refuse(scipy.linalg.cho_factor, (a,))

    def single(a: DistArray) -> tuple[object, object]:
        kind = a.dtype if a.dtype.kind != "b" else np.dtype(int)
        small, flag = scipy.linalg.cho_factor(np.array([[2, 1], [1, 2]], kind), lower)
        factor, layout = dealt_columns.rows_of(_cholesky_factor(a, lower), _kind(scipy.linalg.cholesky, a))
        rows: np.ndarray | int = 0  # in the other triangle, of most dtypes since SciPy 1.18
        if small.all():
            rows, _ = dealt_columns.rows_of(a, factor.dtype)  # whose other triangle stays
        first = row_bounds(layout)[engine.runtime().rank][0]
        triangle = np.tri(len(factor), len(a), first if lower else first - 1, dtype=bool)
        made = engine.from_local(np.where(triangle == lower, factor, rows), layout)
        return made, as_handle(flag) if isinstance(flag, np.ndarray) else flag

    return _of_matrices(scipy.linalg.cho_factor, [a], single, check_finite, lower=lower)


def cho_solve(
    c_and_lower: tuple[object, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> object:
    (c, lower), b = c_and_lower, as_handle(b)
    c = as_handle(c)
    _check(b, check_finite)
    if c.ndim != 2 or not _is_square(c) or b.ndim < 1 or c.shape[1] != b.shape[0]:
        _refuse(scipy.linalg.cho_solve, ((c, lower), b))

    def theirs(c: np.ndarray, b: np.ndarray, check_finite: bool) -> np.ndarray:
        return scipy.linalg.cho_solve((c, lower), b, check_finite=check_finite)

    def single(c: DistArray, b: DistArray) -> object:
        def solve(columns: Columns, right: np.ndarray) -> None:
            substitute(columns, right, lower, adjoint=not lower)
            substitute(columns, right, lower, adjoint=lower)

        return _solved(_kind(lambda c, b: theirs(c, b, check_finite=False), c, b), c, b, solve)

    theirs.__name__ = "cho_solve"
    return _of_matrices(theirs, [c, b], single, check_finite)


def _solved(
    kind: np.dtype, a: DistArray, b: DistArray, solve: Callable[[Columns, np.ndarray], None], conjugate: bool = False
) -> DistArray:
    """What `solve` makes of right-hand sides (collective); of conjugated ones, conjugated, for transposed systems."""
    work = np.result_type(kind, np.double)
    right, layout = dealt_columns.right_hand_sides(b, work)
    if conjugate:
        np.conjugate(right, out=right)
    solve(dealt_columns.columns_of(a, work), right)
    if conjugate:
        np.conjugate(right, out=right)
    return dealt_columns.solution_of(right, layout, tuple(b.shape), kind)


# -- LU --------------------------------------------------------------------------------------------------------------


def lu_factor(a: DistArray, overwrite_a: bool = False, check_finite: bool = True) -> object:
    a = as_handle(a)
    if a.ndim < 2:
        decline("an array that is no matrix")

    def single(a: DistArray) -> tuple[object, object]:
        kind = _kind(scipy.linalg.lu_factor, a)
        columns = dealt_columns.columns_of(a, np.result_type(kind, np.double))
        found = factors.eliminate(columns)
        factors.exchange_multipliers(columns, found.pivots)
        if found.singular:
            warnings.warn(
                f"Diagonal number {found.singular} is exactly zero. Singular matrix.",
                scipy.linalg.LinAlgWarning,
                stacklevel=stack_level(),
            )
        return dealt_columns.array_of(columns, kind), engine.wrap(found.pivots.astype(np.int32))

    return _of_matrices(scipy.linalg.lu_factor, [a], single, check_finite)


def lu_solve(
    lu_and_piv: tuple[object, object],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> object:
    (lu, piv), b = lu_and_piv, as_handle(b)
    lu = as_handle(lu)
    if lu.ndim > 2 or b.ndim > 2:
        decline("stacks of matrices")
    if lu.ndim == 2 and b.ndim and 0 in lu.shape and lu.shape[0] == b.shape[0] and not _is_square(lu):
        decline("an array without elements that is no matrix")
    _check(b, check_finite)  # SciPy does not look at the factors
    if trans not in (0, 1, 2) or lu.ndim < 2 or b.ndim < 1 or lu.shape[0] != b.shape[0] or not _is_square(lu):
        _refuse(scipy.linalg.lu_solve, ((lu, piv), b, trans))
    pivots = few(as_handle(piv))

    def theirs(lu: np.ndarray, b: np.ndarray, check_finite: bool) -> np.ndarray:
        return scipy.linalg.lu_solve((lu, pivots), b, trans, check_finite=check_finite)

    def single(lu: DistArray, b: DistArray) -> object:
        def solve(columns: Columns, right: np.ndarray) -> None:
            if not trans:
                right[...] = right[factors.exchanged_rows(pivots)]
                substitute(columns, right, lower=True, unit=True)
            substitute(columns, right, adjoint=bool(trans))
            if trans:
                substitute(columns, right, lower=True, adjoint=True, unit=True)
                right[...] = right[factors.exchanged_rows(pivots, back=True)]

        kind = _kind(lambda lu, b: scipy.linalg.lu_solve((lu, np.zeros(1, np.int32)), b), lu, b)
        return _solved(kind, lu, b, solve, conjugate=trans == 1)

    theirs.__name__ = "lu_solve"
    return _of_matrices(theirs, [lu, b], single, False)


# -- triangular systems ----------------------------------------------------------------------------------------------


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> object:
    a, b, how = as_handle(a), as_handle(b), _TRANSPOSED.get(trans, trans)  # type: ignore[arg-type]
    if a.ndim > 2 or b.ndim > 2:
        decline("stacks of matrices")
    if how not in (0, 1, 2) or a.ndim < 2 or b.ndim < 1 or not _is_square(a) or a.shape[0] != b.shape[0]:
        for x in (a, b):
            _check(x, check_finite)
        _refuse(scipy.linalg.solve_triangular, (a, b, trans))

    def single(a: DistArray, b: DistArray) -> object:
        def solve(columns: Columns, right: np.ndarray) -> None:
            zeros = np.flatnonzero(columns.diagonal() == 0)
            if len(zeros) and not unit_diagonal and b.size:
                raise np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {zeros[0]}")
            substitute(columns, right, lower, bool(how), unit_diagonal)

        return _solved(_kind(scipy.linalg.solve_triangular, a, b), a, b, solve, conjugate=how == 1)

    options: dict[str, Any] = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal}
    return _of_matrices(scipy.linalg.solve_triangular, [a, b], single, check_finite, **options)
