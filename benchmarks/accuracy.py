"""Errors of decompositions of single matrices beside those of NumPy (LAPACK), in the units of LAPACK's tests.

    numpy-dist run -n 4 benchmarks/accuracy.py

All ranks treat each matrix together, however small it is. Backward errors are divided by the norm of the matrix, its
order and the precision of its numbers, errors of orthogonality by the order and the precision: LAPACK's own tests pass
below 30. Norms are Frobenius's. A row has the largest error of ours and of NumPy's over all matrices, then the largest
ratio of ours to NumPy's of the same matrix, and the name of that one; errors of NumPy's below 0.001 count as that.
What single precision gives is judged in double.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import numpy_dist
from numpy_dist import engine

_SEEN = 0.001  # units below which a ratio of errors says nothing
KINDS = ("f", "d", "F", "D")


def orthogonal(size: int, generator: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.linalg.qr(generator.standard_normal((size, size)))[0]


def matrices(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Square matrices of this order, as LAPACK's tests and textbooks have them."""
    generator = np.random.default_rng(7)
    u, v = orthogonal(size, generator), orthogonal(size, generator)
    random = generator.standard_normal((size, size))
    yield "random", random
    grades = 10.0 ** np.linspace(0, -12, size)
    yield "graded rows", grades[:, None] * random
    yield "graded columns", random * grades
    yield "condition 1e10", (u * 10.0 ** np.linspace(0, -10, size)) @ v
    few = np.ones(size)
    few[size // 2 :] = 0.0
    yield "half the rank", (u * few) @ v
    yield "clustered values", (u * (1.0 + 1e-10 * np.arange(size))) @ v
    yield "repeated values", (u * np.repeat([1.0, 2.0, 3.0, 4.0], -(-size // 4))[:size]) @ v
    yield "one small value", (u * np.where(np.arange(size) == size - 1, 1e-14, 1.0)) @ v
    i = np.arange(size)
    yield "Hilbert", 1.0 / (1.0 + i[:, None] + i)
    yield "identity", np.eye(size)


def symmetric(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """The same with their transposes added, and those that have the values of the others as eigenvalues."""
    for name, matrix in matrices(size):
        yield name, matrix + matrix.T
    generator = np.random.default_rng(8)
    u = orthogonal(size, generator)
    for name, values in (
        ("repeated eigenvalues", np.repeat([-1.0, 1.0, 1.0, 2.0], -(-size // 4))[:size]),
        ("clustered eigenvalues", 1.0 + 1e-12 * np.arange(size)),
        ("graded eigenvalues", 10.0 ** np.linspace(0, -14, size)),
    ):
        matrix = (u * values) @ u.T
        yield name, (matrix + matrix.T) / 2


def definite(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Matrices that are positive definite in single precision, too."""
    generator = np.random.default_rng(9)
    u = orthogonal(size, generator)
    for name, values in (
        ("condition 10", np.linspace(1, 10, size)),
        ("condition 1e4", 10.0 ** np.linspace(0, -4, size)),
        ("repeated values", np.repeat([1.0, 2.0, 3.0, 4.0], -(-size // 4))[:size]),
    ):
        matrix = (u * values) @ u.T
        yield name, (matrix + matrix.T) / 2


def as_kind(matrix: np.ndarray, kind: str) -> np.ndarray:
    """A matrix in a type of numbers: complex ones are turned by phases, which leaves hermitian ones hermitian."""
    if kind in "FD":
        phases = np.exp(1j * np.linspace(0, 3, len(matrix)))
        matrix = phases[:, None] * matrix * np.conj(phases)
    return matrix.astype(kind)


def _norm(matrix: np.ndarray) -> float:
    return float(np.sqrt(np.sum(np.abs(matrix) ** 2)))


Errors = dict[str, float]
Solver = Callable[[np.ndarray], Errors]


class Judge:
    """What a result has for errors, in units."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix.astype(np.result_type(matrix.dtype, np.float64))
        self.unit = len(matrix) * float(np.finfo(matrix.dtype).eps)

    def backward(self, made: np.ndarray) -> float:
        return _norm(self.matrix - made) / (_norm(self.matrix) * self.unit)

    def orthogonality(self, q: np.ndarray) -> float:
        return _norm(np.conj(q).T @ q - np.eye(q.shape[1])) / self.unit


def _wide(x: object) -> np.ndarray:
    found = x.gather() if isinstance(x, numpy_dist.DistArray) else np.asarray(x)
    return found.astype(np.result_type(found.dtype, np.float64))


def qr(judge: Judge, a: np.ndarray) -> Errors:
    q, r = map(_wide, np.linalg.qr(a))
    return {"backward": judge.backward(q @ r), "orthogonality": judge.orthogonality(q)}


def cholesky(judge: Judge, a: np.ndarray) -> Errors:
    factor = _wide(np.linalg.cholesky(a))
    return {"backward": judge.backward(factor @ np.conj(factor).T)}


def solve(judge: Judge, a: np.ndarray) -> Errors:
    b = np.sum(judge.matrix, axis=1).astype(a.dtype)
    right = numpy_dist.asarray(b) if isinstance(a, numpy_dist.DistArray) else b
    x = _wide(np.linalg.solve(a, right))
    return {"backward": _norm(judge.matrix @ x - b) / (_norm(judge.matrix) * _norm(x) * judge.unit)}


def eigh(judge: Judge, a: np.ndarray) -> Errors:
    values, vectors = map(_wide, np.linalg.eigh(a))
    backward = judge.backward((vectors * values) @ np.conj(vectors).T)
    return {"backward": backward, "orthogonality": judge.orthogonality(vectors)}


def svd(judge: Judge, a: np.ndarray) -> Errors:
    u, s, vh = map(_wide, np.linalg.svd(a))
    sides = max(judge.orthogonality(u), judge.orthogonality(np.conj(vh).T))
    return {"backward": judge.backward((u * s) @ vh), "orthogonality": sides}


def lstsq(judge: Judge, a: np.ndarray) -> Errors:
    """The normal equations' residual, which is that of the closest right-hand side's."""
    tall = len(judge.matrix) // 4
    matrix = judge.matrix[:, :tall]
    b = np.cos(np.arange(len(matrix))).astype(a.dtype)
    right = numpy_dist.asarray(b) if isinstance(a, numpy_dist.DistArray) else b
    x = _wide(np.linalg.lstsq(a[:, :tall], right, rcond=None)[0])
    residual = matrix @ x - b
    scale = _norm(matrix) * (_norm(matrix) * _norm(x) + _norm(b)) * judge.unit
    return {"backward": _norm(np.conj(matrix).T @ residual) / scale}


CASES: dict[str, tuple[Callable[[Judge, np.ndarray], Errors], Callable[[int], Iterator[tuple[str, np.ndarray]]]]] = {
    "qr": (qr, matrices),
    "solve": (solve, matrices),
    "cholesky": (cholesky, definite),
    "eigh": (eigh, symmetric),
    "svd": (svd, matrices),
    "lstsq": (lstsq, matrices),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=400, help="order of the matrices")
    parser.add_argument("--only", nargs="+", choices=CASES, default=tuple(CASES))
    parser.add_argument("--all", action="store_true", help="print each matrix")
    options = parser.parse_args()
    numpy_dist.config.MIN_SHARD_BYTES = 0
    comm = engine.runtime().comm
    warnings.simplefilter("ignore")
    if comm.rank == 0:
        print(f"{comm.size} ranks, order {options.size}; largest errors in units, and the largest ratio")
        print(f"{'':10}{'':15}{'ours':>9}{'NumPy':>9}{'ratio':>9}  of")
    for name in options.only:
        function, makes = CASES[name]
        for kind in KINDS:
            worst: dict[str, list[tuple[float, float, float, str]]] = {}
            for title, plain in makes(options.size):
                matrix = as_kind(plain, kind)
                judge = Judge(matrix)
                theirs = function(judge, matrix)
                ours = function(judge, numpy_dist.asarray(matrix))
                for error, found in ours.items():
                    ratio = found / max(theirs[error], _SEEN)
                    worst.setdefault(error, []).append((found, theirs[error], ratio, title))
            if comm.rank == 0:
                for error, rows in worst.items():
                    largest = max(rows, key=lambda row: row[2])
                    figures = max(row[0] for row in rows), max(row[1] for row in rows), largest[2]
                    print(
                        f"{name:10}{np.dtype(kind).name:11}{error:15}" + "".join(f"{x:9.4f}" for x in figures),
                        "",
                        largest[3],
                    )
                    if options.all:
                        for row in rows:
                            print(f"{'':12}{row[3]:24}" + "".join(f"{x:9.4f}" for x in row[:3]))


if __name__ == "__main__":
    main()
