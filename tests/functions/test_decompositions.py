"""Decompositions of one matrix that several ranks hold: what NumPy's are, and nothing is gathered."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.conformance.fuzz.interpreter import replay
from numpy_dist.dispatch.patterns import matrices
from numpy_dist.parallel import spectra
from numpy_dist.spmd_testing import forbid_gathers
from tests.functions.harness import leaves, outcome

pytestmark = pytest.mark.spmd(ranks=(3,))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of these tests are divided, too."""
    monkeypatch.setattr(spectra, "SMALL", 10)


def _gathered(x: object) -> np.ndarray:
    return np.asarray(x.gather() if isinstance(x, nd.DistArray) else x)


def _close(ours: object, theirs: object, ulps: float = 2000) -> None:
    found, theirs = _gathered(ours), np.asarray(theirs)
    assert found.dtype == theirs.dtype and found.shape == theirs.shape
    if theirs.size:
        eps = np.finfo(theirs.dtype).eps if theirs.dtype.kind in "fc" else 0
        assert np.abs(found - theirs).max() <= ulps * eps * np.abs(theirs).max()


SHAPES = {
    "square": (60, 60),
    "high": (70, 50),
    "wide": (50, 70),
    "tall": (300, 7),
    "flat": (7, 300),
    "one": (1, 90),
}


def _rectangle(kind: str, shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind in "FD" else 0)).astype(kind)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_orthogonal_factors_where_a_matrix_begins_with_zero(columns: int, seed: int) -> None:
    """LAPACK's sign does not follow from such a pivot, and its zero has the sign of a difference."""
    a = np.random.default_rng(seed).integers(-2, 3, (12, columns))
    a[0, 0], a[5:8] = 0, np.array([3, 1, -2]).reshape(3, 1) ** np.arange(1, columns + 1)
    ours, theirs = np.linalg.qr(nd.asarray(a, split=0)), np.linalg.qr(a)
    _close(ours.Q, theirs.Q)
    _close(ours.R, theirs.R)
    zero = _gathered(ours.Q)[0, 0]
    assert zero == 0 and not np.signbit(zero)


@pytest.mark.parametrize("seed", range(4))
def test_orthogonal_factors_where_a_matrix_begins_with_an_imaginary_number(seed: int) -> None:
    """Its real part is a zero, whose sign decides."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((40, 4))
    beginning = a + 1j * a[::-1]
    for sign in (0.0, -0.0):
        beginning[0, 0] = complex(sign, a[0, 0])
        real = a.copy()
        real[0, 0] = sign
        for matrix in (beginning, real):
            ours, theirs = np.linalg.qr(nd.asarray(matrix, split=0)), np.linalg.qr(matrix)
            _close(ours.Q, theirs.Q)
            _close(ours.R, theirs.R)


@pytest.mark.parametrize("kind", "dD")
@pytest.mark.parametrize("reduced", [0, 1, 4, 9])
def test_orthogonal_factors_of_columns_that_are_reduced(reduced: int, kind: str) -> None:
    """LAPACK leaves columns with nothing below the diagonal as they are."""
    a = _rectangle(kind, (400, 9))
    a[:, :reduced] = np.triu(np.arange(-4.0, 396.0)[:, None] * 2 + np.arange(9.0) + 1)[:, :reduced]
    ours, theirs = np.linalg.qr(nd.asarray(a, split=0)), np.linalg.qr(a)
    _close(ours.Q, theirs.Q)
    _close(ours.R, theirs.R)


@pytest.mark.spmd(ranks=(1,))
def test_orthogonal_factors_of_a_large_square_matrix() -> None:
    """Its last column has nothing below the diagonal."""
    a = _rectangle("d", (600, 600))
    ours, theirs = np.linalg.qr(nd.asarray(a)), np.linalg.qr(a)
    _close(ours.Q, theirs.Q)
    _close(ours.R, theirs.R)


@pytest.mark.parametrize("kind", "fD")
@pytest.mark.parametrize("name", SHAPES)
def test_orthogonal_factors(name: str, kind: str) -> None:
    """Those of LAPACK itself: signs are the same."""
    matrix = _rectangle(kind, SHAPES[name])
    theirs = {mode: np.linalg.qr(matrix, mode) for mode in ("reduced", "complete", "r", "raw")}

    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        ours = {mode: np.linalg.qr(nd.asarray(matrix), mode) for mode in theirs}
    for mode, found in ours.items():
        assert type(found) is type(theirs[mode]) or mode == "r"
        pairs = [(found, theirs[mode])] if mode == "r" else zip(found, theirs[mode], strict=True)
        for mine, other in pairs:
            _close(mine, other)


@pytest.mark.parametrize("kind", "fD")
def test_eigenvalues(kind: str) -> None:
    matrix = _rectangle(kind, (60, 60))
    for uplo in "Lu":
        full = np.tril(matrix) if uplo == "L" else np.triu(matrix).conj().T
        full = full + np.tril(full, -1).conj().T - 1j * np.diag(full.diagonal().imag) if kind in "FD" else full
        full = (full if kind in "FD" else full + np.tril(full, -1).T).astype(kind)

        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            x = nd.asarray(matrix)
            ours, only = np.linalg.eigh(x, uplo), np.linalg.eigvalsh(x, UPLO=uplo)
        theirs = np.linalg.eigh(matrix, uplo)
        assert type(ours) is type(theirs)
        _close(ours.eigenvalues, theirs.eigenvalues)
        _close(only, theirs.eigenvalues)
        vectors = _gathered(ours.eigenvectors)
        assert vectors.dtype == theirs.eigenvectors.dtype
        _close((full @ vectors).astype(kind), (vectors * _gathered(ours.eigenvalues)).astype(kind))


@pytest.mark.parametrize("kind", "fD")
@pytest.mark.parametrize("name", SHAPES)
def test_singular_values(name: str, kind: str) -> None:
    matrix = _rectangle(kind, SHAPES[name])
    whole, reduced = np.linalg.svd(matrix), np.linalg.svd(matrix, full_matrices=False)

    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        x = nd.asarray(matrix)
        found = np.linalg.svd(x), np.linalg.svd(x, full_matrices=False)
        values = np.linalg.svdvals(x), np.linalg.svd(x, compute_uv=False)
        norms = np.linalg.norm(x, 2), np.linalg.norm(x, "nuc"), np.linalg.cond(x), np.linalg.cond(x, -2)
        rank = np.linalg.matrix_rank(x)
    for ours, theirs in zip(found, (whole, reduced), strict=True):
        assert type(ours) is type(theirs)
        assert [part.shape for part in ours] == [part.shape for part in theirs]
        left, sizes, right = map(_gathered, ours)
        _close(sizes, theirs.S)
        n = len(sizes)
        _close((left[:, :n] * sizes @ right[:n]).astype(kind), matrix)
        _close((left.conj().T @ left).astype(kind), np.eye(left.shape[1], dtype=kind))
        _close((right @ right.conj().T).astype(kind), np.eye(len(right), dtype=kind))
    for mine in values:
        _close(mine, whole.S)
    assert rank == np.linalg.matrix_rank(matrix)
    for ours, function in zip(norms, ((2,), ("nuc",)), strict=False):
        _close(ours, np.linalg.norm(matrix, *function))
    _close(norms[2], np.linalg.cond(matrix), 1e5)
    _close(norms[3], np.linalg.cond(matrix, -2), 1e5)


@pytest.mark.parametrize("kind", "dF")
@pytest.mark.parametrize("name", ["square", "high", "wide", "tall"])
def test_systems_without_a_solution(name: str, kind: str) -> None:
    matrix = _rectangle(kind, SHAPES[name])
    deficient = matrix.copy()
    deficient[:, 3] = deficient[:, 4]
    right = _rectangle(kind, (len(matrix), 3))

    for system in (matrix, deficient):
        for b in (right, right[:, 0]):
            with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
                ours = np.linalg.lstsq(nd.asarray(system), nd.asarray(b), 1e-5)
            theirs = np.linalg.lstsq(system, b, 1e-5)
            assert ours[2] == theirs[2] and type(ours[2]) is type(theirs[2])
            for mine, other in zip((ours[0], ours[1], ours[3]), (theirs[0], theirs[1], theirs[3]), strict=True):
                _close(mine, other, 1e5)
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            inverse = np.linalg.pinv(nd.asarray(system), rcond=1e-5)
            rank = np.linalg.matrix_rank(nd.asarray(system), tol=1e-3)
        _close(inverse, np.linalg.pinv(system, rcond=1e-5), 1e5)
        assert rank == np.linalg.matrix_rank(system, tol=1e-3) and type(rank) is np.int64


def test_hermitian_matrices() -> None:
    matrix = _rectangle("D", (60, 60))
    matrix = matrix + matrix.conj().T
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        right = np.linalg.svd(nd.asarray(np.diag(np.arange(60.0))), hermitian=True).Vh
    _close(_gathered(right) @ _gathered(right).T, np.eye(60))

    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        x = nd.asarray(matrix)
        left, sizes, right = np.linalg.svd(x, hermitian=True)
        only, inverse = np.linalg.svd(x, compute_uv=False, hermitian=True), np.linalg.pinv(x, hermitian=True)
        power, rank = np.linalg.matrix_power(x, 3), np.linalg.matrix_rank(x, hermitian=True)
    _close(only, np.linalg.svdvals(matrix))
    _close(_gathered(left) * _gathered(sizes) @ _gathered(right), matrix)
    _close(inverse, np.linalg.pinv(matrix, hermitian=True), 1e5)
    _close(power, np.linalg.matrix_power(matrix, 3))
    assert rank == 60


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite(number: float) -> None:
    """Errors are NumPy's where it raises, and NaN is found where it finds NaN."""
    matrix = _rectangle("d", (60, 60))
    matrix[10, 20] = matrix[20, 10] = number

    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        x = nd.asarray(matrix)
        with pytest.raises(np.linalg.LinAlgError, match="^SVD did not converge$"):
            np.linalg.svd(x)
        with pytest.raises(np.linalg.LinAlgError, match="^SVD did not converge in Linear Least Squares$"):
            np.linalg.lstsq(x, x)


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(90, 90), (90, 60), (60, 90), (600, 9)])
@pytest.mark.parametrize("kind", "dF")
def test_factors_of_what_is_not_finite(kind: str, shape: tuple[int, int], number: float) -> None:
    """NaN is where LAPACK leaves it, which depends on the order of its operations."""
    m, n = shape
    for place in ((0, 0), (m // 2, n // 3), (m - 1, n - 1), (2, n - 3), (m - 3, 2)):
        matrix = _rectangle(kind, shape)
        matrix[place] = number
        calls: list[tuple[Any, ...]] = [(np.linalg.qr, mode) for mode in ("reduced", "complete", "r", "raw")]
        if m == n:
            calls += [(function, uplo) for function in (np.linalg.eigh, np.linalg.eigvalsh) for uplo in "LU"]
            calls += [(np.linalg.svd, False, True, True)]
        for function, *args in calls:
            theirs = _told(function, matrix, *args)
            with forbid_gathers():
                ours = _told(function, nd.asarray(matrix), *args)
            if isinstance(theirs, tuple) and isinstance(theirs[0], type):
                assert ours == theirs
                continue
            for found, expected in zip(leaves(ours), leaves(theirs), strict=True):
                found = _gathered(found)
                assert found.dtype == expected.dtype
                if function is not np.linalg.qr:  # of numbers in the other triangle alone there are other phases
                    found, expected = np.abs(found), np.abs(expected)
                assert np.allclose(found, expected, 1e-4, 1e-5, equal_nan=True), (function, place)


@pytest.mark.parametrize(("least", "fallback"), [(0, "error"), (40, "warn")])  # the latter come to every rank
@pytest.mark.parametrize("kind", "fD")
@pytest.mark.parametrize("shape", [(4, 3), (50, 7), (7, 50), (60, 60), (300, 7), (3, 4, 4)])
def test_singular_vectors_of_infinity(
    shape: tuple[int, ...], kind: str, least: int, fallback: Literal["error", "warn"]
) -> None:
    """They are refused, where LAPACK may never return; singular values alone are NumPy's."""
    matrix = np.random.default_rng(5).standard_normal(shape).astype(kind)
    matrix[(0,) * (len(shape) - 2) + (2, 1)] = -np.inf
    calls: list[Callable[..., Any]] = [np.linalg.svd, lambda a: np.linalg.svd(a, full_matrices=False), np.linalg.pinv]
    calls += [lambda a: np.linalg.pinv(a, rcond=np.full(shape[:-2], 1e-9))]
    solve = lambda a: np.linalg.lstsq(a, np.ones(len(a)))  # noqa: E731
    with nd.config(MIN_SHARD_BYTES=least, FALLBACK=fallback), forbid_gathers():
        x = nd.asarray(matrix)
        for function in calls + [solve] * (len(shape) == 2):
            with pytest.raises(np.linalg.LinAlgError, match="^SVD did not converge( in Linear Least Squares)?$"):
                function(x)
        ours = _told_of_values(x)
    theirs = _told_of_values(matrix)
    assert isinstance(ours, str) == isinstance(theirs, str)
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        assert np.array_equal(_gathered(ours), theirs, equal_nan=True)


def _told_of_values(a: Any) -> Any:
    """The singular values, or the text of an error."""
    try:
        return np.linalg.svd(a, compute_uv=False)
    except np.linalg.LinAlgError as error:
        return str(error)


def _told(function: Callable[..., Any], *args: object) -> Any:
    """What a function gives without gathering; or the type and text of its error."""
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        try:
            return function(*args)
        except (ValueError, np.linalg.LinAlgError) as error:
            return type(error), str(error)


@pytest.mark.parametrize("kind", "fDi")
def test_condition_numbers_by_other_norms(kind: str) -> None:
    matrix = (_rectangle("D" if kind == "D" else "d", (60, 60)) * 9).astype(kind)
    deficient = np.diag(np.arange(60.0)).astype(kind)
    orders: list[Any] = [1, -1, np.inf, -np.inf, "fro", "nuc"]
    for order in orders:
        for a in (matrix, deficient) if order != "nuc" else (matrix,):
            with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
                ours = np.linalg.cond(nd.asarray(a), order)
            theirs = np.linalg.cond(a, order)
            assert ours.dtype == theirs.dtype
            assert np.isclose(ours, theirs, rtol=1e-3 if kind == "f" else 1e-9) or ours == theirs
    unknown: Any = "other"
    for wrong, order in ((matrix, unknown), (matrix[:50], 1), (deficient, "nuc")):
        theirs_made, ours_made = _told(np.linalg.cond, wrong, order), _told(np.linalg.cond, nd.asarray(wrong), order)
        assert ours_made == theirs_made
        # Before 2.5.5 NumPy does not find singular values of an inverse that there is not.
        assert isinstance(theirs_made, tuple) or (order == "nuc" and np.isinf(theirs_made))


def test_a_system_without_unknowns() -> None:
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
        ours = np.linalg.lstsq(nd.asarray(np.zeros((4, 0))), nd.asarray(np.ones((4, 2))))
    theirs = np.linalg.lstsq(np.zeros((4, 0)), np.ones((4, 2)))
    assert [np.shape(part) for part in ours] == [np.shape(part) for part in theirs] and ours[2] == theirs[2]


@pytest.mark.parametrize("numbers", [(np.nan,), (np.inf,), (-np.inf, np.nan), (np.inf, -np.inf)])
@pytest.mark.parametrize("shape", [(60, 60), (70, 50), (50, 70), (300, 7)])
@pytest.mark.parametrize("kind", "dF")
def test_right_hand_sides_that_are_not_finite(kind: str, shape: tuple[int, int], numbers: tuple[float, ...]) -> None:
    """A column does not touch others, unless LAPACK has scaled all of them by infinity."""
    for matrix in (_rectangle(kind, shape), np.zeros(shape, kind)):
        sides = _rectangle(kind, (shape[0], 4))
        for column, number in enumerate(numbers):
            sides[5 * column, 2 * column] = number
        theirs = np.linalg.lstsq(matrix, sides)
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            ours = np.linalg.lstsq(nd.asarray(matrix), nd.asarray(sides))
        for found, expected in zip(ours, theirs, strict=True):
            found = _gathered(found)
            assert found.dtype == expected.dtype and found.shape == expected.shape
            assert np.allclose(found, expected, 1e-3 if kind == "F" else 1e-9, 1e-5, equal_nan=True)


def test_systems_whose_singular_values_stay_on_the_ranks() -> None:
    """A copy that nobody has asked for yet may come to lie as a tall matrix does, and its singular values with it."""
    statements = [
        "check(np.linalg.lstsq(array(a(6, 3), 1), array(a(6))), 16384)",
        "check(np.linalg.pinv(array(a(6, 3), 1)), 16384)",
    ]
    assert replay(statements, MIN_SHARD_BYTES=0, AT_ONCE=1 << 20) == 0


@pytest.mark.parametrize("kind", "dD")
def test_the_smallest_numbers(kind: str) -> None:
    """The reciprocal of such a number overflows."""
    matrix = _rectangle(kind, (60, 60)) * 1e-310
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers(), np.errstate(all="raise", under="ignore"):
        ours, sizes = np.linalg.eigvalsh(nd.asarray(matrix)), np.linalg.svdvals(nd.asarray(matrix))
        sign = np.linalg.slogdet(nd.asarray(matrix)).sign
    assert abs(abs(sign) - 1) <= 1e-12
    for found, theirs in ((ours, np.linalg.eigvalsh(matrix)), (sizes, np.linalg.svdvals(matrix))):
        assert np.abs(_gathered(found) - theirs).max() <= 1e-323 * 60


def test_nobody_has_the_memory_of_the_whole() -> None:
    """NumPy's opinion of arguments is asked for with arrays that have none."""
    peaks = []

    def single(*operands: nd.DistArray) -> nd.DistArray:
        peaks.append(tracemalloc.get_traced_memory()[1])
        return operands[0]

    with nd.config(MIN_SHARD_BYTES=0):
        x = nd.asarray(np.zeros((500, 500)))
        tracemalloc.start()
        try:
            matrices.of_stacks(np.linalg.solve, np.linalg.solve, [x, x], [2, 2], single)
        finally:
            tracemalloc.stop()
    assert len(peaks) == 1 and peaks[0] <= x.nbytes / 10


@pytest.mark.slow
@pytest.mark.parametrize(("function", "most"), [(np.linalg.eigh, 8), (np.linalg.svd, 11)])
def test_memory(function: Callable[..., object], most: float) -> None:
    """In parts of the matrix that a rank has, with the part itself."""
    rng = np.random.default_rng(1)
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        x = nd.asarray(rng.standard_normal((700, 700)))
        function(nd.asarray(rng.standard_normal((30, 30))))  # what is imported
        tracemalloc.start()
        try:
            function(x)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak <= (most - 1) * x.nbytes / 3


def test_what_is_no_number_has_no_sign() -> None:
    """NumPy counts the negative elements of the triangle's diagonal."""
    matrix = _rectangle("d", (60, 60)) + 100 * np.eye(60)
    matrix[59, 59] = np.nan
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), np.errstate(invalid="ignore"):
        sign, logarithm = np.linalg.slogdet(nd.asarray(matrix))
        theirs = np.linalg.slogdet(matrix)
    assert sign == theirs.sign and np.isnan(logarithm) and np.isnan(theirs.logabsdet)


def test_systems_of_the_smallest_numbers() -> None:
    matrix = (_rectangle("d", (60, 60)) + 100 * np.eye(60)) * 1e-311
    right = 1e-311 * np.arange(60.0)
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), np.errstate(all="raise", under="ignore"):
        ours = np.linalg.lstsq(nd.asarray(matrix), nd.asarray(right))[0]
    assert np.abs(_gathered(ours) - np.linalg.solve(matrix * 2.0**1000, right * 2.0**1000)).max() <= 1e-8


@pytest.mark.parametrize("shape", [(70, 50), (300, 7)])
def test_rank_of_a_system_in_single_precision(shape: tuple[int, int]) -> None:
    """NumPy computes in double precision, whose rounding bounds the rank: what was rounded to single has a full one."""
    rng, (m, n) = np.random.default_rng(2), shape
    matrix = (rng.standard_normal((m, n // 2)) @ rng.standard_normal((n // 2, n))).astype("f")
    right = rng.standard_normal((m, 3)).astype("f")
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        for columns in (right, right[:, :0]):
            ours, theirs = np.linalg.lstsq(nd.asarray(matrix), nd.asarray(columns)), np.linalg.lstsq(matrix, columns)
            assert ours[2] == theirs[2] == n
            assert _gathered(ours[1]).shape == theirs[1].shape
            _close(ours[3], theirs[3])


def _warnings(function: Callable[..., Any], *args: object) -> set[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = function(*args)
        for part in made if isinstance(made, tuple) else (made,):
            _gathered(part)
    return {str(warning.message) for warning in caught}


@pytest.mark.spmd(ranks=(1, 3))
@pytest.mark.parametrize("name", ["svd", "svdvals", "qr", "eigh", "eigvalsh", "inv", "norm", "matrix_rank"])
@pytest.mark.parametrize("shape", [(60, 60), (300, 7)])
@pytest.mark.parametrize("kind", "fF")
def test_what_single_precision_cannot_hold(kind: str, shape: tuple[int, int], name: str) -> None:
    """NumPy computes in double precision, and converts what it finds: every rank tells that it overflows."""
    function = (lambda x: np.linalg.norm(x, 2)) if name == "norm" else getattr(np.linalg, name)
    if shape[0] != shape[1] and name in ("eigh", "eigvalsh", "inv"):
        return
    for size, under in ((5e37, "ignore"), (1e-36, "warn")):
        matrix = (_rectangle(kind, shape) * np.float32(size)).astype(kind)
        with np.errstate(under=under, invalid="ignore"):
            theirs = _warnings(function, matrix)
            with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
                assert _warnings(function, nd.asarray(matrix, split=0)) == theirs
            assert _warnings(function, nd.asarray(matrix, split=0)) == theirs  # a small matrix


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_small_matrices_that_are_not_finite_are_lapacks(number: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "SMALL", 256)
    for n, place in ((1, 0), (5, 2), (9, 8)):
        matrix = _rectangle("d", (n, n))
        matrix[n - 1, min(place, n - 1)] = number
        for function in (np.linalg.eigh, np.linalg.eigvalsh):
            expected = outcome(function, (matrix,))
            with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
                found = outcome(function, (nd.asarray(matrix),))
            assert found[0] == expected[0]
            if found[0] == "error":
                assert str(found[1]) == str(expected[1])
                continue
            for ours, theirs in zip(leaves(found[1]), leaves(expected[1]), strict=True):
                assert np.array_equal(_gathered(ours), theirs, equal_nan=True)


@pytest.mark.parametrize("shape", [(300, 7), (70, 50), (50, 70)])
@pytest.mark.parametrize("size", [1.7e308, 1e-309])
def test_systems_of_the_largest_and_the_smallest_numbers(size: float, shape: tuple[int, int]) -> None:
    """Norms, or the solution, overflow; residuals do not."""
    matrix = _rectangle("d", shape)
    matrix *= size / np.abs(matrix).max()
    right = _rectangle("d", (shape[0], 2))
    theirs = np.linalg.lstsq(matrix, right)
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        ours = np.linalg.lstsq(nd.asarray(matrix, split=0), nd.asarray(right))
        values = np.linalg.svdvals(nd.asarray(matrix, split=0))
        found = np.linalg.svd(nd.asarray(matrix, split=0), full_matrices=False).S
    assert ours[2] == theirs[2]
    np.testing.assert_allclose(_gathered(ours[1]), theirs[1], rtol=1e-6)
    for mine, other in ((ours[0], theirs[0]), (ours[3], theirs[3]), (values, theirs[3]), (found, theirs[3])):
        np.testing.assert_allclose(_gathered(mine), other, rtol=1e-5)


def test_phases_of_imaginary_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """LAPACK's follow from the signs of zeros."""
    monkeypatch.setattr(spectra, "SMALL", 256)
    matrix = 1j * _rectangle("d", (9, 9))
    matrix += matrix.T
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        ours = np.linalg.svd(nd.asarray(matrix))
    for mine, other in zip(ours, np.linalg.svd(matrix), strict=True):
        _close(mine, other)
