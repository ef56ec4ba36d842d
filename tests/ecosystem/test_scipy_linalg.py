"""Factorizations, triangular systems, spectra and the exponential of `scipy.linalg`, of a matrix that ranks share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import numpy_dist as nd
from numpy_dist.comm.detect import get_communicator
from numpy_dist.spmd_testing import forbid_gathers

pytestmark = pytest.mark.spmd
PLUGINS = "scipy"

KINDS = "fdFDi"
N = 23


def matrix_of(kind: str, m: int = N, n: int = N, seed: int = 0) -> np.ndarray:
    """Random numbers; well conditioned where the matrix is square."""
    rng = np.random.default_rng((m, n, seed))
    made = rng.standard_normal((m, n)) + (1j * rng.standard_normal((m, n)) if kind in "FD" else 0)
    return (made * 1.5 if kind == "i" else made / 4).astype(kind) + 9 * np.eye(m, n, dtype=kind)


def positive(kind: str, seed: int = 0) -> np.ndarray:
    """A Hermitian positive definite matrix."""
    made = matrix_of(kind, seed=seed)
    return made @ made.conj().T


def compare(function: Callable[..., Any], *operands: np.ndarray) -> None:
    """A function gives for distributed arrays what SciPy's gives for NumPy's."""
    expected = function(*(x.copy() for x in operands))
    with forbid_gathers():
        found = function(*map(nd.asarray, operands))
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    kinds = (np.result_type(x.dtype, np.float32) for x in operands)
    eps = max(np.finfo(kind).eps if kind.char not in "gG" else np.finfo(np.double).eps for kind in kinds)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for ours, theirs in pairs:
        assert isinstance(ours, nd.DistArray) == isinstance(theirs, np.ndarray)
        if isinstance(ours, nd.DistArray):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours.gather(), theirs, rtol=0, atol=2000 * eps * np.abs(theirs).max(initial=1))
        else:
            assert ours == theirs and type(ours) is type(theirs)


def assert_same_error(function: Callable[..., Any], *operands: object) -> None:
    """Both raise the same."""
    with pytest.raises(Exception) as theirs:
        function(*operands)
    with pytest.raises(type(theirs.value)) as ours:
        function(*(nd.asarray(x) if isinstance(x, np.ndarray) else x for x in operands))
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["full", "qr", "economic", "r"])
@pytest.mark.parametrize("shape", [(N, N), (40, 17), (17, 40)])
def test_qr(shape: tuple[int, int], mode: str, kind: str) -> None:
    compare(lambda a: sl.qr(a, mode=mode, overwrite_a=True), matrix_of(kind, *shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(N, N), (40, 17), (17, 40)])
def test_packed_qr(shape: tuple[int, int], kind: str) -> None:
    def flat(a: Any) -> tuple:
        packed, triangle = sl.qr(a, mode="raw")
        return (*packed, triangle)

    compare(flat, matrix_of(kind, *shape))


PIVOTED = [(70, 70), (90, 40), (40, 90), (41, 1), (1, 41)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["full", "economic", "r", "raw"])
@pytest.mark.parametrize("shape", PIVOTED)
def test_pivoted_qr(shape: tuple[int, int], mode: str, kind: str) -> None:
    def flat(a: Any) -> tuple:
        made = sl.qr(a, mode=mode, pivoting=True)
        return (*made[0], *made[1:]) if mode == "raw" else made

    matrix = matrix_of(kind, *shape)
    compare(flat, matrix)
    compare(lambda a: flat(a.T), np.asfortranarray(matrix))


def test_pivoted_qr_of_lengths_that_lose_their_digits() -> None:
    rng = np.random.default_rng(0)
    nearly_equal = np.ones((60, 60)) + 1e-9 * rng.standard_normal((60, 60))
    graded = rng.standard_normal((60, 60)) * np.logspace(0, -30, 60)
    huge = rng.standard_normal((60, 60)) * 1e200
    deficient = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 60))
    for matrix in (nearly_equal, graded, graded.T, huge, deficient, np.zeros((60, 60)), np.eye(60)):
        with forbid_gathers():
            made = sl.qr(nd.asarray(matrix), pivoting=True)
        basis, triangle, order = (x.gather() for x in made)
        sizes = np.abs(triangle.diagonal())
        assert sorted(order) == list(range(60))
        assert np.all(sizes[1:] <= sizes[:-1] * (1 + 1e-12) + 1e-14 * sizes[0])
        largest = np.abs(matrix).max(initial=0)
        np.testing.assert_allclose(basis @ triangle, matrix[:, order], rtol=0, atol=1e-13 * largest)
        np.testing.assert_allclose(basis.T @ basis, np.eye(60), atol=1e-13)
        if matrix is not deficient:  # of which LAPACK permutes what rounding leaves
            np.testing.assert_array_equal(order, sl.qr(matrix, pivoting=True)[2])


def test_pivoted_qr_of_undefined_numbers() -> None:
    matrix = matrix_of("d", 60, 60)
    matrix[3, 7] = np.nan
    assert_same_error(lambda a: sl.qr(a, pivoting=True), matrix)
    _, triangle, order = sl.qr(nd.asarray(matrix), pivoting=True, check_finite=False)
    assert np.isnan(triangle.gather()).any() and sorted(order.gather()) == list(range(60))


@pytest.mark.parametrize("kind", "?bHil")
@pytest.mark.parametrize("name", ["qr", "svd", "svdvals", "eigh", "eigvalsh"])
def test_precision_of_integers_is_that_of_scipy(name: str, kind: str) -> None:
    matrix = np.diag(np.arange(1, N + 1)).astype(kind)
    dtypes = []
    for a in (matrix, nd.asarray(matrix)):
        made = getattr(sl, name)(a)
        dtypes.append([part.dtype for part in made] if isinstance(made, tuple) else [made.dtype])
    assert dtypes[1] == dtypes[0]


def test_nothing_is_solved_by_factors_of_nothing() -> None:
    factors = (np.zeros((0, 3)), np.zeros(0, int))
    with nd.config(FALLBACK="silent"):
        found = sl.lu_solve((nd.asarray(factors[0]), factors[1]), nd.asarray(np.zeros((0, 2))))
    assert found.shape == sl.lu_solve(factors, np.zeros((0, 2))).shape


def test_a_workspace_is_told_about_as_scipy_tells() -> None:
    matrix = matrix_of("d", N, N)
    told = []
    for a in (matrix, nd.asarray(matrix)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sl.qr(a, lwork=-1)
        told.append([(warning.category, str(warning.message)) for warning in caught])
    assert told[1] == told[0]
    assert all(warning.filename == __file__ for warning in caught)


@pytest.mark.parametrize("kind", "dF")
@pytest.mark.parametrize("shape", [(50, 30), (30, 50), (40, 40)])
@pytest.mark.parametrize("mode", ["full", "economic", "r", "raw"])
@pytest.mark.parametrize("pivoting", [False, True])
def test_workspaces_that_are_too_small(pivoting: bool, mode: str, shape: tuple[int, int], kind: str) -> None:
    matrix = matrix_of(kind, *shape)
    for lwork in (0, 29, 30, 39, 40, 49, 50, "many"):
        told = []
        for a in (matrix, nd.asarray(matrix)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    sl.qr(a, lwork=lwork, mode=mode, pivoting=pivoting)
                    told.append("")
                except Exception as error:
                    told.append(f"{type(error)}: {error}")
        assert told[1] == told[0]


@pytest.mark.parametrize("kind", "egG")
def test_precisions_that_lapack_has_not(kind: str) -> None:
    """SciPy computes with half precision in single precision, and with what is longer than double in double."""
    matrix = positive("D" if kind == "G" else "d").astype(kind)
    for function in (sl.qr, sl.svdvals, sl.cholesky, sl.lu_factor):
        compare(function, matrix)
    compare(lambda a: sl.eigh(a, eigvals_only=True), matrix)
    with forbid_gathers():
        for name in ("svd", "eigh"):
            ours, theirs = (getattr(sl, name)(a) for a in (nd.asarray(matrix), matrix))
            assert [x.dtype for x in ours] == [x.dtype for x in theirs]


def test_numbers_that_double_precision_cannot_hold() -> None:
    """SciPy makes infinity of them."""
    matrix = positive("d").astype("g")
    matrix[3, 4] = np.finfo("g").max
    if np.isinf(np.double(matrix[3, 4])):
        with nd.config(FALLBACK="silent"), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            triangles = [np.asarray(sl.qr(a, mode="r", check_finite=False)[0]) for a in (nd.asarray(matrix), matrix)]
        np.testing.assert_array_equal(*map(np.isnan, triangles))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(N, N), (40, 17), (17, 40)])
def test_singular_values(shape: tuple[int, int], kind: str) -> None:
    matrix = matrix_of(kind, *shape)
    compare(sl.svdvals, matrix)
    compare(lambda a: sl.svd(a, compute_uv=False), matrix)
    for full in (True, False):
        with forbid_gathers():
            made = sl.svd(nd.asarray(matrix), full_matrices=full, lapack_driver="gesvd")
        left, values, right = (x.gather() for x in made)
        assert type(made) is tuple
        assert [x.shape for x in (left, right)] == [x.shape for x in sl.svd(matrix, full)[::2]]
        k = len(values)
        np.testing.assert_allclose((left[:, :k] * values) @ right[:k], matrix, atol=1e-4 if kind in "fF" else 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", [True, False])
def test_eigenvalues(lower: bool, kind: str) -> None:
    matrix = matrix_of(kind)
    for options in ({}, {"subset_by_index": [3, 7]}, {"subset_by_value": (-1, 9)}, {"driver": "evr"}):
        compare(lambda a, options=options: sl.eigh(a, lower=lower, eigvals_only=True, **options), matrix)
        compare(lambda a, options=options: sl.eigvalsh(a, lower=lower, **options), matrix)
    with forbid_gathers():
        values, basis = sl.eigh(nd.asarray(matrix), lower=lower, subset_by_index=(20, 22))
    half = (np.tril(matrix) if lower else np.triu(matrix)).astype(basis.dtype)
    np.fill_diagonal(half, half.diagonal().real / 2)
    whole = half + half.conj().T
    rest = whole @ basis.gather() - basis.gather() * values.gather()
    assert basis.shape == (N, 3) and np.abs(rest).max() < (1e-4 if kind in "fF" else 1e-11) * (9 if kind == "i" else 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type_", [1, 2, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_generalized_eigenvalues(lower: bool, type_: int, kind: str) -> None:
    a, b = positive(kind), positive(kind, seed=1)
    compare(lambda a, b: sl.eigh(a, b, lower=lower, eigvals_only=True, type=type_), a, b)
    compare(lambda a, b: sl.eigvalsh(a, b, lower=lower, type=type_, subset_by_index=(0, 4)), a, b)
    triangle = np.tril if lower else np.triu  # of the other one nothing is read
    for x in (a, b):
        np.copyto(x, -7, where=triangle(np.ones((N, N))) == 0)
    with forbid_gathers():
        made = sl.eigh(nd.asarray(a), nd.asarray(b), lower=lower, type=type_)
    values, basis = (x.gather() for x in made)
    a, b = (triangle(x) + triangle(x, -1 if lower else 1).conj().T for x in (a, b))
    products = {1: (a @ basis, b @ basis), 2: (a @ b @ basis, basis), 3: (b @ a @ basis, basis)}
    left, right = products[type_]
    assert np.abs(left - right * values).max() <= (1e-3 if kind in "fF" else 1e-11) * np.abs(left).max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(lower: bool, kind: str) -> None:
    matrix, right = positive(kind), matrix_of("d", N, 4)
    other = np.triu if lower else np.tril
    matrix = matrix - other(matrix, 1 if lower else -1)  # is not read
    compare(lambda a: sl.cholesky(a, lower), matrix)
    for b in (right, right[:, 0], right[:, :0]):
        compare(lambda a, b: sl.cho_solve(sl.cho_factor(a, lower), b), matrix, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", [False, True])
def test_cho_factor_leaves_the_other_triangle(kind: str, lower: bool) -> None:
    compare(lambda a: sl.cho_factor(a, lower), positive(kind))


@pytest.mark.parametrize("kind", "dF")
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_and_not_checked(kind: str, number: float) -> None:
    """NaN is where LAPACK leaves it; warnings and errors are SciPy's."""

    def told(function: Callable[..., Any], *operands: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                made = function(*operands, check_finite=False)
            except np.linalg.LinAlgError as error:
                return str(error)
        return made if isinstance(made, tuple) else (made,), [str(w.message) for w in caught]

    for place in ((3, N - 4), (N - 4, 3)):
        matrix, right = positive(kind), matrix_of(kind, N, 4)
        matrix[place] = number
        for function, *others in (
            (sl.cho_factor,),
            (sl.cholesky,),
            (sl.lu_factor,),
            (sl.qr,),
            (sl.eigvalsh,),
            (sl.solve_triangular, right),
            (sl.solve_triangular, right[:, 0]),
        ):
            theirs = told(function, matrix.copy(), *others)
            with forbid_gathers():
                ours = told(function, *map(nd.asarray, (matrix, *others)))
            if isinstance(theirs, str):
                assert ours == theirs
                continue
            assert ours[1] == theirs[1]
            for found, expected in zip(ours[0], theirs[0], strict=True):
                found = found.gather() if isinstance(found, nd.DistArray) else found
                np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_triangular_factors(kind: str) -> None:
    matrix, right = matrix_of(kind), matrix_of("D", N, 4)
    compare(sl.lu_factor, matrix)
    compare(sl.lu_factor, matrix_of(kind, 40, 17))
    compare(sl.lu_factor, matrix_of(kind, 17, 40))
    for trans in (0, 1, 2):
        for b in (right, right[:, 0], right.real):
            compare(lambda a, b, trans=trans: sl.lu_solve(sl.lu_factor(a), b, trans), matrix, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems(lower: bool, unit: bool, kind: str) -> None:
    matrix = matrix_of(kind)
    matrix = np.where(np.eye(N, dtype=bool), matrix, matrix // 9 if kind == "i" else matrix / 9).astype(kind)
    matrix = np.clip(matrix, -1, 9) if kind == "i" and not unit else matrix
    matrix = np.where(np.eye(N, dtype=bool), matrix, 0).astype(kind) if kind == "i" and unit else matrix
    right = matrix_of("D", N, 4)
    for trans in (0, "T", "C"):
        for b in (right, right[:, 0], right.real):
            compare(lambda a, b, trans=trans: sl.solve_triangular(a, b, trans, lower, unit), matrix, b)


@pytest.mark.parametrize("kind", "fdFDi")
@pytest.mark.parametrize("size", [0, 1e-3, 0.05, 0.4, 1.5, 3, 40])
def test_exponential(size: float, kind: str) -> None:
    matrix = (matrix_of(kind) - 9 * np.eye(N, dtype=kind)) * size
    matrix = matrix.astype(kind) // 5 if kind == "i" else (matrix / 4).astype(kind)
    compare(sl.expm, matrix)
    compare(sl.expm, np.stack([matrix, -matrix]))


def test_exponential_of_a_matrix_whose_powers_are_small() -> None:
    nilpotent = np.triu(np.full((N, N), 1e3), N // 2)
    compare(sl.expm, nilpotent)
    assert np.isnan(sl.expm(nd.asarray(np.full((N, N), np.nan))).gather()).all()


def not_definite(order: int) -> np.ndarray:
    """A matrix with a leading minor of that order that is not positive definite."""
    matrix = np.eye(N)
    matrix[order - 1, order - 1] = 0
    return matrix


WRONG: Sequence[tuple[str | Callable[..., Any], Sequence[object]]] = [
    ("qr", (np.ones(5),)),
    (lambda a: sl.qr(a, mode="sideways"), (np.ones((5, 5)),)),
    ("qr", (np.full((5, 5), np.nan),)),
    ("svd", (np.full((5, 5), np.inf),)),
    ("svd", (np.ones((5, 5)), True, True, False, True, "gesxx")),
    ("eigh", (np.ones((5, 4)),)),
    (lambda a: sl.eigh(a, subset_by_index=[2, 5]), (np.eye(5),)),
    (lambda a: sl.eigh(a, subset_by_index=[2, 3], subset_by_value=[0, 1]), (np.eye(5),)),
    (lambda a: sl.eigh(a, subset_by_value=[1, 1]), (np.eye(5),)),
    (lambda a: sl.eigh(a, driver="gv"), (np.eye(5),)),
    (lambda a: sl.eigh(a, np.eye(5), type=4), (np.eye(5),)),
    ("eigh", (np.eye(N), np.eye(4))),
    ("eigh", (np.eye(N), not_definite(7))),
    ("cholesky", (np.ones((5, 4)),)),
    ("cholesky", (not_definite(1),)),
    ("cholesky", (not_definite(20),)),
    (lambda c, b: sl.cho_solve((c, True), b), (np.eye(5), np.ones(4))),
    ("solve_triangular", (np.ones((5, 4)), np.ones(5))),
    ("solve_triangular", (np.eye(5), np.ones(4))),
    ("solve_triangular", (not_definite(12), np.ones(N))),
    (lambda lu, b: sl.lu_solve((lu, np.arange(5)), b), (np.eye(5), np.ones(4))),
    (lambda c, b: sl.cho_solve((c, True), b), (np.eye(5), np.full(4, np.inf))),
    (lambda lu, b: sl.lu_solve((lu, np.arange(5)), b), (np.eye(5), np.full(4, np.nan))),
    (lambda lu, b: sl.lu_solve((lu, np.arange(5)), b, 3), (np.eye(5), np.full(5, np.nan))),
    ("lu_factor", (np.full((5, 5), np.nan),)),
    ("expm", (np.ones((5, 4)),)),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_errors(case: int) -> None:
    function, operands = WRONG[case]
    # Looked up while the plug-in is on.
    assert_same_error(getattr(sl, function) if isinstance(function, str) else function, *operands)


def test_a_singular_matrix_has_factors() -> None:
    matrix = np.triu(np.ones((N, N)))
    matrix[11, 11] = 0
    with pytest.warns(sl.LinAlgWarning, match="Diagonal number 12 is exactly zero. Singular matrix.") as told:
        made, pivots = sl.lu_factor(nd.asarray(matrix))
    assert told[0].filename == __file__ or get_communicator().size == 1  # else SciPy's own warning
    with pytest.warns(sl.LinAlgWarning):
        theirs = sl.lu_factor(matrix)
    np.testing.assert_array_equal(made.gather(), theirs[0])
    np.testing.assert_array_equal(pivots.gather(), theirs[1])


def test_what_is_left_to_scipy() -> None:
    for call, text in [
        (lambda: sl.lu_factor(nd.asarray(np.ones((2, 5, 5)))), "stacks of matrices"),
        (lambda: sl.svdvals(nd.asarray(np.ones((5, 5), "m8[s]"))), "matrices of dtype timedelta64"),
    ]:
        with pytest.raises(nd.FallbackError, match=text):
            call()


@pytest.mark.parametrize("driver", ["gesdd", "gesvd"])
def test_small_matrices_have_the_vectors_of_scipys_drivers(driver: str) -> None:
    """One rank treats them, by the routine that was asked for."""
    matrix = matrix_of("f")
    symmetric = matrix + matrix.T
    with nd.config(MIN_SHARD_BYTES=1 << 9, FALLBACK="silent"):
        for function, operand in (
            (lambda a: sl.svd(a, lapack_driver=driver), matrix),
            (lambda a: sl.eigh(a, subset_by_index=[2, 5]), symmetric),
            (lambda a: sl.eigh(a, driver="evd", lower=False), symmetric),
        ):
            for ours, theirs in zip(function(nd.asarray(operand)), function(operand.copy()), strict=True):
                np.testing.assert_array_equal(ours.gather(), theirs)


def test_what_scipy_takes_all_the_same() -> None:
    """Arguments that look wrong, and matrices without elements."""
    triangle, right = np.triu(matrix_of("d")), np.ones((N, 2))
    nothing = np.zeros((0, 0))
    with nd.config(FALLBACK="silent"):
        for function, operands in (
            (lambda a, b: sl.solve_triangular(a, b, trans="x"), (triangle, right)),
            (lambda a: sl.eigh(a, subset_by_index=[2, 1], driver="evx"), (nothing,)),
            (lambda a: sl.svd(a, lapack_driver="gesxx"), (nothing,)),
            (lambda a: sl.qr(a), (nothing.astype("i"),)),
            (sl.expm, (np.ones((1, 1), bool),)),
            (sl.expm, (np.ones((1, 1), "B"),)),
            (lambda c, b: sl.cho_solve((c, False), b), (triangle, right.astype(object))),
            (lambda lu, b: sl.lu_solve((lu, np.arange(N)), b), (triangle.astype(object), right)),
            (sl.solve_triangular, (triangle, right.astype(object))),
        ):
            try:
                expected = function(*operands)
            except Exception as error:  # as newer versions raise for some
                with pytest.raises(type(error), match=re.escape(str(error))):
                    function(*map(nd.asarray, operands))
                continue
            found = function(*map(nd.asarray, operands))
            pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
            for ours, theirs in pairs:
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours.gather(), theirs)


def test_factors_that_are_not_finite() -> None:
    """SciPy looks at the right-hand sides only."""
    factors, pivots = np.triu(np.ones((N, N))), np.arange(N, dtype=np.int32)
    factors[2, 5] = np.nan
    right = np.ones((N, 2))
    with np.errstate(invalid="ignore"):
        found = sl.lu_solve((nd.asarray(factors), pivots), nd.asarray(right))
        np.testing.assert_array_equal(np.isnan(found.gather()), np.isnan(sl.lu_solve((factors, pivots), right)))

    def solve(b: Any) -> object:
        return sl.lu_solve((factors if type(b) is np.ndarray else nd.asarray(factors), pivots), b)

    assert_same_error(solve, right * np.nan)
    assert_same_error(sl.solve_triangular, np.full((N, N), np.nan), np.ones(4))
    singular = np.zeros((N, N))
    assert sl.solve_triangular(nd.asarray(singular), nd.asarray(right[:, :0])).shape == (N, 0)
