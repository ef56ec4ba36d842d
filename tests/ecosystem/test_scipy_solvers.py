"""Iterative solvers of `scipy.sparse.linalg`: values, counts, callbacks, warnings and errors are SciPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as solvers

import numpy_dist as nd
from numpy_dist.spmd_testing import forbid_gathers

pytestmark = pytest.mark.spmd
PLUGINS = "scipy"

N = 14
SQUARE = ("cg", "cgs", "bicg", "bicgstab", "gmres", "tfqmr", "minres")


def _matrix(kind: str, m: int = N, n: int = N) -> np.ndarray:
    """Positive definite where it is square, or diagonally dominant."""
    rng = np.random.default_rng((m, n))
    made = rng.standard_normal((m, n)) + (1j * rng.standard_normal((m, n)) if kind in "FD" else 0)
    made = made @ made.conj().T / n + np.eye(n) if m == n else made
    return (4 * made).astype(kind)


def _operator(a: Any) -> solvers.LinearOperator:
    return solvers.LinearOperator(a.shape, lambda v: a @ v, rmatvec=lambda v: np.conj(a.T) @ v, dtype=a.dtype)


def _told(function: Callable[..., Any], *operands: Any, **options: Any) -> tuple[Any, list[Any], list[str]]:
    """What it returns, or its error, what it tells its callback, and its warnings."""
    steps: list[Any] = []
    if "callback" in options:
        options["callback"] = lambda x: steps.append(np.linalg.norm(x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = function(*operands, **options)
        except ValueError as error:
            made = str(error)
    return made, [float(step) for step in steps], [f"{w.category.__name__}: {w.message}" for w in caught]


def _compare(name: str, wrap: Callable[[Any], Any], *operands: np.ndarray, **options: Any) -> None:
    """A solver of distributed arrays is compared with SciPy's."""
    function = getattr(solvers, name)
    theirs = _told(function, wrap(operands[0]), *operands[1:], **options)
    given = [nd.asarray(x) for x in operands]
    with forbid_gathers():
        ours = _told(function, wrap(given[0]), *given[1:], **options)
    assert ours[2] == theirs[2]
    np.testing.assert_allclose(ours[1], theirs[1], 1e-4)
    if isinstance(theirs[0], str):
        assert ours[0] == theirs[0]
        return
    assert isinstance(ours[0][0], nd.DistArray) and len(ours[0]) == len(theirs[0])
    for found, expected in zip(ours[0], theirs[0], strict=True):
        if isinstance(expected, np.ndarray):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found.gather(), expected, 1e-3, 1e-3)
        else:
            np.testing.assert_allclose(found, expected, 1e-3, 1e-8)


@pytest.mark.parametrize("wrap", [lambda a: a, _operator], ids=["matrix", "operator"])
@pytest.mark.parametrize("name", SQUARE)
def test_options(name: str, wrap: Callable[[Any], Any]) -> None:
    matrix, b = _matrix("d"), np.arange(1.0, N + 1)
    tolerances: list[dict[str, Any]] = [{}, {"rtol": 1e-9}, {"maxiter": 2}, {"x0": np.ones(N)}]
    if name != "minres":
        tolerances += [{"atol": 3.0}, {"atol": -1.0}, {"x0": "Mb"}, {"maxiter": 3, "callback": True}]
    for options in tolerances:
        if name == "gmres" and "callback" in options:
            options = {**options, "callback_type": "x"}
        _compare(name, wrap, matrix, b, **options)
    _compare(name, wrap, matrix, 0 * b)


@pytest.mark.parametrize("kind", "fFDi")
@pytest.mark.parametrize("name", SQUARE[:-1])
def test_dtypes(name: str, kind: str) -> None:
    matrix = _matrix(kind) + (8 * np.eye(N, dtype=kind) if kind == "i" else 0)
    b = np.arange(1, N + 1).astype(kind)
    _compare(name, lambda a: a, np.tril(matrix) + np.tril(matrix, -1).T if kind == "i" else matrix, b, maxiter=6)


@pytest.mark.parametrize("name", SQUARE)
def test_arguments_that_do_not_fit(name: str) -> None:
    matrix, b = _matrix("d"), np.ones(N)
    for operands, options in (
        ((matrix, b[:-1]), {}),
        ((matrix[:-1], b), {}),
        ((matrix, b), {"x0": np.ones(3)}),
        ((matrix, b[:, None]), {}),
        ((matrix, b), {"M": np.eye(3)}),
    ):
        _compare(name, lambda a: a, *operands, **options)


@pytest.mark.parametrize("kind", ["x", "pr_norm", "legacy", None, "other"])
def test_callbacks_of_gmres(kind: str | None) -> None:
    matrix, b = _matrix("d"), np.arange(1.0, N + 1)
    for options in ({"restart": 3, "maxiter": 4}, {"restart": 100}, {}):
        _compare("gmres", lambda a: a, matrix, b, callback=True, callback_type=kind, **options)


@pytest.mark.parametrize("wrap", [lambda a: a, _operator], ids=["matrix", "operator"])
@pytest.mark.parametrize("shape", [(30, 9), (9, 30), (N, N)])
@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
def test_least_squares(name: str, shape: tuple[int, int], wrap: Callable[[Any], Any]) -> None:
    matrix, b = _matrix("d", *shape), np.arange(1.0, shape[0] + 1)
    few = {"iter_lim" if name == "lsqr" else "maxiter": 5}  # before rounding errors are all that is left
    for options in ({}, {"damp": 0.5}, {"conlim": 3.0}, {"x0": np.ones(shape[1])}):
        _compare(name, wrap, matrix, b, **few, **options)


@pytest.mark.parametrize("name", ["bicg", "lsqr", "lsmr"])
@pytest.mark.parametrize("kind", "FD")
def test_only_vectors_are_conjugated(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix is not copied each time its adjoint is applied."""
    matrix, b = _matrix(kind), (np.arange(1.0, N + 1) * (1 + 2j)).astype(kind)
    expected = getattr(solvers, name)(matrix, b)[0]
    conjugated: list[int] = []

    def conj(x: Any, *args: Any, **kwargs: Any) -> Any:
        conjugated.append(np.ndim(x))
        return np.conjugate(x, *args, **kwargs)

    monkeypatch.setattr(np, "conj", conj)
    with forbid_gathers():
        found = getattr(solvers, name)(nd.asarray(matrix), nd.asarray(b))[0]
    np.testing.assert_allclose(found.gather(), expected, 1e-3, 1e-3)
    assert conjugated and max(conjugated) == 1
