"""Functions of `scipy.sparse.linalg` that need a matrix for its products: results are SciPy's, on every rank alike."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as solvers

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.spmd_testing import forbid_gathers

pytestmark = pytest.mark.spmd
PLUGINS = "scipy"

N = 40


def _general(kind: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    made = rng.standard_normal((N, N)) + (1j * rng.standard_normal((N, N)) if kind in "FD" else 0)
    return (made + np.diag(np.arange(N) ** 1.5)).astype(kind)


def _definite(kind: str) -> np.ndarray:
    general = _general(kind)
    return (general @ general.conj().T / N + np.eye(N)).astype(kind)


def _values(made: Any) -> Any:
    """What does not depend on how SciPy begins: sorted eigenvalues, or singular values."""
    found = made[1] if isinstance(made, tuple) and len(made) == 3 else made[0] if isinstance(made, tuple) else made
    return np.sort_complex(found.gather() if isinstance(found, nd.DistArray) else found)


EIGENVALUES: list[tuple[str, dict[str, Any]]] = [
    ("eigsh", {"k": 3}),
    ("eigsh", {"k": 2, "which": "SA", "return_eigenvectors": False}),
    ("eigsh", {"k": 3, "sigma": 0.9}),
    ("eigsh", {"k": 3, "M": True}),
    ("eigsh", {"k": 3, "M": True, "sigma": 0.9}),
    ("eigs", {"k": 3}),
    ("eigs", {"k": 3, "sigma": 4.1 + 0.2j}),
    ("svds", {"k": 3}),
    ("svds", {"k": 3, "solver": "lobpcg", "maxiter": 200}),
]


@pytest.mark.parametrize("kind", "dF")
@pytest.mark.parametrize(("name", "options"), EIGENVALUES)
def test_values(name: str, options: dict[str, Any], kind: str) -> None:
    matrix = _definite(kind) if name == "eigsh" else _general(kind)[:, : N if name == "eigs" else N - 5]
    other = _definite(kind) + np.eye(N, dtype=kind)
    function = getattr(solvers, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of LOBPCG, whose accuracy depends on how it begins
        theirs = function(matrix, **options | ({"M": other} if "M" in options else {}))
        x = nd.asarray(matrix)
        given = options | ({"M": nd.asarray(other)} if "M" in options else {})
        with forbid_gathers():
            ours = function(x, **given)
    np.testing.assert_allclose(_values(ours), _values(theirs), 1e-3)
    if name != "svds" and isinstance(ours, tuple) and "M" not in options:
        values, vectors = ours[0].gather(), ours[1].gather()
        assert vectors.dtype == theirs[1].dtype and isinstance(ours[1], nd.DistArray)
        assert np.abs(matrix @ vectors - vectors * values).max() <= 1e-3 * np.abs(matrix).max()
    elif name == "svds":
        left, sizes, right = (x.gather() for x in ours)
        np.testing.assert_allclose(matrix @ right.conj().T, left * sizes, 1e-3, 1e-3 * sizes.max())


def test_a_norm() -> None:
    matrix = _general("D")
    with forbid_gathers():
        found = solvers.onenormest(nd.asarray(matrix))
    assert 0.3 * np.linalg.norm(matrix, 1) <= found <= np.linalg.norm(matrix, 1) * (1 + 1e-9)


@pytest.mark.parametrize("distributed", [False, True])
def test_blocks_of_vectors(distributed: bool) -> None:
    matrix, start = _definite("d"), np.random.default_rng(0).standard_normal((N, 2))
    values, vectors = solvers.lobpcg(nd.asarray(matrix), nd.asarray(start) if distributed else start, maxiter=200)
    assert isinstance(values, nd.DistArray) and isinstance(vectors, nd.DistArray)
    np.testing.assert_allclose(np.sort(values.gather()), np.linalg.eigvalsh(matrix)[-2:], 1e-5)


def test_an_operator_on_distributed_vectors() -> None:
    matrix = _definite("d")
    x = nd.asarray(matrix)
    operator = solvers.LinearOperator(x.shape, lambda v: x @ v, dtype=x.dtype)
    found = solvers.eigsh(operator, 2, v0=nd.asarray(np.ones(N)), return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(found.gather()), np.linalg.eigvalsh(matrix)[-2:], 1e-6)


def test_errors_are_those_of_scipy() -> None:
    matrix = _definite("d")
    for a, options in ((matrix, {"k": 0}), (matrix[:3], {}), (matrix, {"k": 3, "which": "XX"})):
        told = []
        for x in (a, nd.asarray(a)):
            with pytest.raises(ValueError) as error:
                solvers.eigsh(x, **options)
            told.append(str(error.value))
        assert told[1] == told[0]
    with pytest.raises(solvers.ArpackNoConvergence):
        solvers.eigsh(nd.asarray(matrix), k=3, tol=1e-30, maxiter=1)


def test_an_error_of_a_product_ends_the_search() -> None:
    x = nd.asarray(_definite("d"))
    calls: list[int] = []

    def product(v: Any) -> Any:
        calls.append(0)
        if len(calls) == 5:
            raise KeyError("mine")
        return x @ v

    operator = solvers.LinearOperator(x.shape, product, dtype=x.dtype)
    with pytest.raises(KeyError, match="mine"):
        solvers.eigsh(operator, 2, v0=nd.asarray(np.ones(N)))
    assert len(calls) == 5
    assert float(np.sum(x - x)) == 0  # all ranks go on


def test_generators_go_on_alike() -> None:
    x, generator = nd.asarray(_definite("d")), np.random.default_rng(5)
    np.random.seed(7)
    solvers.eigsh(x, 2, v0=np.ones(N))
    named = "rng" if "rng" in inspect.signature(solvers.svds).parameters else "random_state"
    solvers.svds(x, 2, **{named: generator})
    solvers.onenormest(x)
    drawn = (generator.integers(1 << 40), np.random.randint(1 << 30))
    assert len(set(engine.runtime().comm.allgather(drawn))) == 1
    assert drawn[0] != np.random.default_rng(5).integers(1 << 40)


def test_all_eigenvalues_are_left_to_scipy() -> None:
    matrix = _definite("d")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with nd.config(FALLBACK="silent"):
            found = solvers.eigsh(nd.asarray(matrix), N, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(found.gather()), np.linalg.eigvalsh(matrix), 1e-9)
