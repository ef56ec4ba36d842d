"""What users write, with annotations: it passes type checkers without errors, and it runs (test_types.py does both)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import numpy
from numpy.typing import NDArray

import numpy_dist
import numpy_dist as np
from numpy_dist import DistArray
from numpy_dist.fft import rfft
from numpy_dist.linalg import norm

Either = numpy.ndarray | DistArray


# ---- functions with annotations


def smooth(u: DistArray, steps: int = 1) -> DistArray:
    """Mean of each element and its neighbours, in place."""
    for _ in range(steps):
        u[1:-1] = (u[:-2] + u[1:-1] + u[2:]) / 3
    return u


def standardized(x: Either) -> Either:
    """Values with mean 0 and standard deviation 1."""
    centred: Either = x - x.mean()
    centred = centred / x.std()
    return centred


def energy(x: DistArray) -> float:
    """Sum of squares."""
    return float((x**2).sum())


def softmax(x: DistArray, axis: int = -1) -> DistArray:
    """Shares of exponentials along an axis."""
    shares: DistArray = np.exp(x - x.max(axis=axis, keepdims=True))
    shares /= shares.sum(axis=axis, keepdims=True)
    return shares


def apply(function: Callable[[DistArray], DistArray], x: DistArray) -> DistArray:
    """The function's result."""
    return function(x)


# ---- what a namespace offers


def creation() -> list[DistArray]:
    """Arrays of each kind."""
    grid_x, grid_y = np.meshgrid(np.linspace(0, 1, 5), np.arange(4.0), indexing="ij")
    points, step = np.linspace(0, 1, 11, retstep=True)
    assert float(step) == 0.1
    rows, columns = np.triu_indices(3)
    return [
        np.zeros((3, 4)),
        np.zeros(5, dtype="f4", split=0),
        np.ones((2, 2), dtype=numpy.int32, order="F"),
        np.full((3,), 2.5),
        np.empty_like(np.eye(3)),
        np.asarray([[1, 2], [3, 4]], dtype=float),
        np.array(numpy.arange(6).reshape(2, 3)),
        np.fromfunction(lambda i, j: i + j, (3, 3), dtype=int),
        np.identity(3),
        np.tril(np.ones((3, 3)), k=-1),
        np.from_local(numpy.ones(3)),
        np.hanning(8),
        points,
        grid_x + grid_y,
        rows * columns,
    ]


def indexing(x: DistArray) -> None:
    """Slices, masks and positions, to read and to write."""
    half: DistArray = x[::2]
    column: DistArray = x[:, 0]
    corner = float(x[0, 0])
    wide: DistArray = column[:, None]
    chosen: DistArray = x[x > 0.5]
    picked: DistArray = x[numpy.array([0, 1])]
    listed: DistArray = x[[0, 2]]
    last: DistArray = x[..., -1]
    x[x < 0] = 0
    x[0] = half[0]
    x[:, 1] = last
    x[[0, 1]] = 7.0
    for row in x:
        corner += float(row.sum())
    assert len(x) == x.shape[0] and 7.0 in x
    assert wide.ndim == 2 and chosen.ndim == 1 and picked.shape == listed.shape


def arithmetic(x: DistArray, y: NDArray[numpy.float64]) -> DistArray:
    """Operators with scalars, ndarrays and distributed arrays."""
    z = 2 * x + y - x / 3
    z = x @ x.T @ z
    z += 1
    z -= y
    z *= numpy.float64(2)
    z **= 2
    z = abs(-z) ** 0.5 % 7 // 1
    whole, rest = divmod(z, 2)
    same: DistArray = (whole * 2 + rest == z) & ~(z != z)
    counted = z.astype(int)
    counted <<= 1
    counted ^= 3
    assert bool(same.all())
    return np.where(same, z, -1.0) + counted


def reductions(x: DistArray) -> dict[str, float]:
    """Numbers, and arrays along axes."""
    by_row: DistArray = x.sum(axis=1)
    centred = x - np.mean(x, axis=0, keepdims=True)
    low, high = x.min(), np.max(x, initial=0.0)
    cumulated: DistArray = np.cumsum(by_row)
    cumulated.sort()
    count = int(np.count_nonzero(x > low))
    assert np.allclose(centred.mean(axis=0), 0) and x.argmax() >= 0 and x.any()
    return {
        "low": float(low),
        "high": float(high),
        "median": float(np.median(x)),
        "spread": float(np.std(x, ddof=1)),
        "quantile": float(np.quantile(x, 0.9)),
        "norm": float(norm(x)),
        "last": float(cumulated[-1]),
        "count": count,
    }


def reductions_along_axes(x: DistArray) -> DistArray:
    """Arrays along axes and with `keepdims`, numbers otherwise."""
    assert_type(x.sum(axis=0), DistArray)
    assert_type(x.mean(0), DistArray)
    assert_type(x.argmax(axis=1), DistArray)
    assert_type(x.std(axis=(0, 1), ddof=1, keepdims=True), DistArray)
    assert_type(x.any(keepdims=True), DistArray)
    assert_type(np.sum(x, axis=-1), DistArray)
    assert_type(np.max(x, 0), DistArray)
    assert_type(np.nanmean(x, axis=0, dtype=float), DistArray)
    assert_type(np.median(x, axis=1, keepdims=True), DistArray)
    assert_type(np.var(x, keepdims=True), DistArray)
    assert_type(np.count_nonzero(x, axis=0), DistArray)
    assert_type(np.argmin(x, axis=0, out=np.zeros(x.shape[1], dtype=int)), DistArray)
    total: float = x.sum()
    most: float = np.max(x)
    place: int = x.argmax()
    count: int = np.count_nonzero(x > 0)
    true: bool = bool(np.all(x == x)) and bool(x.any())
    of_ndarray: float = np.mean(numpy.ones(3))
    either: Either = numpy.ones((2, 2))
    columns = np.sum(either, axis=0)
    axis: int | None = None if x.ndim > 1 else 0
    unknown = x.sum(axis=axis)
    assert place >= 0 and count >= 0 and true and float(unknown) == total and len(columns) == 2
    (share,) = {float(value) for value in x.sum(axis=0) / x.sum(axis=0)}
    return (x - x.mean(axis=0)) / x.std(axis=0, keepdims=True) * share + total / most + of_ndarray


def functions(x: DistArray) -> DistArray:
    """Functions of arrays give arrays."""
    y: DistArray = np.sin(x) + np.cos(x, where=x > 0, out=np.zeros_like(x))
    y = np.add(x, y, out=y)
    y = np.clip(y, 0, 1)
    y = np.concatenate([y, x], axis=0)
    y = np.stack([y, y])[0]
    y = np.maximum(y, 0.1)
    y = np.sort(y, axis=0)[::-1]
    y = np.transpose(y.reshape(-1, 2)).swapaxes(0, 1)
    y = np.roll(y, 1, axis=0)
    y = np.tile(y, (1, 2)).ravel()
    first, second = np.split(y, 2)
    parts, whole = np.modf(first)
    total: DistArray = np.add.accumulate(second)
    biggest = np.maximum.reduce(total)
    values, edges = np.histogram(y, bins=4)
    (places,) = np.nonzero(values)
    where: DistArray = np.searchsorted(edges, y)
    np.copyto(y, 0)
    np.add.at(y, places, 1.0)
    assert np.shape(y) == y.shape and np.ndim(y) == 1 and float(biggest) >= 0
    return np.interp(parts + whole, edges, edges) + where[: first.size]


def algebra(a: DistArray, b: DistArray) -> DistArray:
    """Systems and factors."""
    symmetric = a @ a.T + np.eye(len(a)) * 10
    x: DistArray = np.linalg.solve(symmetric, b)
    q, r = np.linalg.qr(symmetric)
    triangle: DistArray = np.linalg.qr(symmetric, mode="r")
    values, vectors = np.linalg.eigh(symmetric)
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    inverse = np.linalg.inv(symmetric)
    product: DistArray = np.matmul(q, r)
    assert float(np.linalg.norm(np.abs(triangle) - np.abs(r))) < 1e-6
    assert float(np.linalg.det(inverse)) > 0 and np.trace(vectors) is not None
    contracted: DistArray = np.einsum("ij,j->i", a, b) + np.dot(a, b)
    first: DistArray = product[0] + (u * s @ vh)[0]
    return x + first + values + contracted


def spectra(x: DistArray) -> DistArray:
    """Transforms and frequencies."""
    spectrum: DistArray = np.fft.fft(x)
    half = rfft(x, norm="ortho")
    shifted = np.fft.fftshift(np.fft.fftfreq(len(x), d=0.5))
    power: DistArray = np.abs(spectrum) ** 2 + spectrum.real * 0 + spectrum.imag * 0
    assert half.dtype.kind == "c"
    return power[: len(x)] + shifted + np.fft.ifft(spectrum).real


def samples() -> DistArray:
    """Random numbers, one and many."""
    generator = np.random.default_rng(7)
    one: float = generator.random()
    many: DistArray = generator.standard_normal((10, 4))
    draws = generator.integers(0, 10, size=10)
    generator.shuffle(draws)
    order: DistArray = generator.permutation(10)
    np.random.seed(3)
    legacy: DistArray = np.random.rand(10) + np.random.normal(0.0, 1.0, size=10)
    many[:, 0] += draws + order + legacy + one
    return many + generator.uniform(-1, 1, size=many.shape) * generator.choice([1.0, -1.0], size=4)


# ---- what is particular to distributed arrays


def particular(x: DistArray) -> int:
    """Parts, layouts, settings and what is told about a program."""
    part: numpy.ndarray = x.local
    everything: numpy.ndarray = x.gather()
    on_root = x.gather(root=0)
    other = x.redistribute(split=1)
    assert everything.sum() == other.sum() and (on_root is None or on_root.shape == x.shape)
    layout, ranks = x.layout, x.comm.size
    with numpy_dist.config(FALLBACK="silent", MIN_SHARD_BYTES="1MiB", CHECK=True):
        y = np.sqrt(abs(x))
        words = str(np.explain_program()) + str(np.explain(np.sort, y))
    numpy_dist.config.MEMORY_BUDGET = "1GiB"
    budget: int = numpy_dist.config.MEMORY_BUDGET
    waited: DistArray = np.wait(y)
    np.wait()
    doubled = np.map_blocks(lambda block: 2 * block, waited)
    assert doubled.T.base is not None and isinstance(words, str) and (layout is None or ranks > 0)
    return part.size + budget + x.nbytes + int(x.flags.c_contiguous)


def files(x: DistArray, folder: Path) -> Any:
    """Files and checkpoints."""
    np.save(folder / "x.npy", x)
    loaded: DistArray = np.load(folder / "x.npy")
    stored = np.open(folder / "x.npy")
    np.savez(folder / "several.npz", x=x, y=loaded)
    np.savetxt(folder / "x.txt", x)
    text: DistArray = np.loadtxt(folder / "x.txt")
    state: dict[str, Any] = np.checkpoint.restore(folder / "run") or {"step": 0, "x": x}
    np.checkpoint.save(folder / "run", state, step=1)
    return stored[:1], text.mean(), np.checkpoint.latest(folder / "run")


def report(error: type[Exception] = np.GatherError) -> str:
    """Errors are classes, and constants are numbers."""
    try:
        raise error("too large") from None
    except (np.FallbackError, np.GatherError, np.linalg.LinAlgError) as caught:
        return f"{caught}: {np.pi:.2f} {np.inf} {np.float32(1)} {np.dtype(float)} {np.__version__}"


def main() -> None:
    """Everything above."""
    x = np.arange(12.0).reshape(4, 3)
    square = np.random.default_rng(0).random((4, 4))
    smooth(np.linspace(0, 1, 20), steps=2)
    assert isinstance(standardized(x), DistArray) and isinstance(standardized(x.gather()), numpy.ndarray)
    indexing(x.copy())
    energy(x), apply(softmax, x), creation()
    arithmetic(square, numpy.ones((4, 4))), reductions(x), reductions_along_axes(x + 1)
    functions(np.arange(8.0).reshape(4, 2))
    algebra(square, square[0]), spectra(x[:, 0]), samples(), particular(x), report()
    with tempfile.TemporaryDirectory() as folder:
        files(x, Path(folder))


if __name__ == "__main__":
    main()
