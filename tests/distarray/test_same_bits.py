"""What is computed at once has NumPy's results, and the engine's bits (`distarray.same_bits`)."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.conformance import known_differences
from numpy_dist.conformance.adapter import Adapter, use
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking.compare import leaves
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.conformance.checking.subject import build, target
from numpy_dist.conformance.dist_arrays import DistArrays
from numpy_dist.conformance.suite import cases_by_function, groups
from numpy_dist.distarray import same_bits
from numpy_dist.distarray.at_hand import AtHand
from numpy_dist.engine.data import windows
from numpy_dist.settings import config
from tests.distarray.at_hand_arrays import LIMIT, AtHandArrays

pytestmark = pytest.mark.slow
FUNCTIONS = sorted({*same_bits.VIEWS, *same_bits.TOLD, *same_bits.NEW, *same_bits.SHORT}, key=lambda f: f.__name__)


@pytest.mark.parametrize("name", groups())
def test_arrays_at_hand_have_numpys_results(name: str) -> None:
    adapter = AtHandArrays()
    with use(adapter):
        for case in groups()[name]:
            known = adapter.differences()
            found = [text for text in check(case) if not known_differences.matching(case, text, known)]
            assert not found, "\n".join(found)


def _bits(case: Case, adapter: Adapter, at_once: int) -> tuple[list[Any], int]:
    """The type, dtype and bytes of each array or number in a result, or the error; how many arrays are at hand."""
    with use(adapter), adapter.settings(), config(AT_ONCE=at_once), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = build(case, "0").ours
        try:
            found = list(leaves(target(case)(*args, **kwargs)))
        except Exception as error:  # which is compared
            return [type(error).__name__], 0
        near = sum(type(x) is AtHand for x in found)
        plain = [x.gather() if engine.is_handle(x) else x for x in found]
    return [_told(x, p) for x, p in zip(found, plain, strict=True)], near


def _told(x: Any, plain: Any) -> tuple[Any, ...]:
    array = np.asarray(plain)
    if array.dtype.char in "gG":  # whose bytes beyond the value's are anything
        return engine.is_handle(x), array.shape, array.dtype, str([(v.real, v.imag) for v in array.ravel()])
    return engine.is_handle(x), array.shape, array.dtype, array.tobytes()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_bits_are_the_engines(function: Any) -> None:
    near, arrays = 0, False
    for case in cases_by_function().get(function, ()):
        if case.values and not case.materialises:
            at_once, count = _bits(case, AtHandArrays(recorded=0), LIMIT)
            recorded, _ = _bits(case, DistArrays(), 0)
            assert at_once == recorded, str(case)
            near += count
            arrays |= any(isinstance(one, tuple) and one[0] for one in recorded)
    assert near or not arrays or function in same_bits.SHORT, "none is at hand"


MADE_OF_MANY = {
    "cumsum": np.cumsum,
    "prod": np.prod,
    "prod along columns": lambda x: np.prod(x, axis=0),
    "trace": np.trace,
    "weighed counts": lambda x: np.bincount((np.abs(x.ravel()) % 50).astype(int), weights=x.ravel()),
    "convolve": lambda x: np.convolve(x.ravel(), x.ravel()[:50]),
    "quantile": lambda x: np.quantile(x, 0.3, axis=0),
    "det": lambda x: np.linalg.det(np.atleast_2d(x)[:60, :60]),
    "amax along columns": lambda x: np.amax(x, axis=0),
    "cumprod along rows": lambda x: np.cumprod(x, axis=0),
    "argsort": np.argsort,
    "median": np.median,
    "unique": np.unique,
    "interp": lambda x: np.interp(x.ravel(), np.linspace(-1e5, 1e5, 50), np.linspace(0, 3, 50)),
    "sum": np.sum,
    "sum along columns": lambda x: np.sum(x, axis=0),
    "sum along rows": lambda x: x.sum(axis=-1, keepdims=True),
    "max along columns": lambda x: np.max(x, axis=0),
    "min along rows": lambda x: x.min(axis=-1),
    "mean along rows": lambda x: np.mean(x, axis=-1),
    "var along columns": lambda x: np.var(x, axis=0),
    "std": np.std,
    "norm": lambda x: np.linalg.norm(x.ravel()),
    "trapezoid": np.trapezoid,
    "mask": lambda x: x[np.abs(x) > 0.1],
    "add.reduce": np.add.reduce,
    "nansum": np.nansum,
    "nanmean": np.nanmean,
    "nanstd": np.nanstd,
    "nanvar along rows": lambda x: np.nanvar(x, axis=-1),
    "nanmax": np.nanmax,
    "nanprod": np.nanprod,
    "nancumsum": np.nancumsum,
    "nanmedian": lambda x: np.nanmedian(x, axis=-1),
    "nanquantile": lambda x: np.nanquantile(x, 0.3),
    "average": np.average,
    "weighed average": lambda x: np.average(x, weights=np.abs(x)),
    "cov": np.cov,
    "cov of two": lambda x: np.cov(x.ravel(), x.ravel()[::-1]),
    "corrcoef": lambda x: np.corrcoef(x.ravel(), x.ravel()[::-1]),
    "polyval": lambda x: np.polyval([1.5, 0.2, 3], x),
    "polyval of it": lambda x: np.polyval(x.ravel()[:5], x),
    "polymul": lambda x: np.polymul(x.ravel()[:50], x.ravel()[:70]),
    "tensordot": lambda x: np.tensordot(x.ravel(), x.ravel(), 1),
    "kron": lambda x: np.kron(x.ravel()[:9], x.ravel()[:20]),
    "tile": lambda x: np.tile(x, 2),
    "repeat": lambda x: np.repeat(x, 3),
    "pad": lambda x: np.pad(x, 2, mode="reflect") if min(x.shape) > 2 else x,
    "vander": lambda x: np.vander(x.ravel()[:40], 5),
    "fft": np.fft.fft,
    "fft2": lambda x: np.fft.fft2(np.atleast_2d(x)),
    "rfft": lambda x: np.fft.rfft(x.real),
    "rfft along columns": lambda x: np.fft.rfft(x.real, axis=0),
    "svd": lambda x: np.linalg.svd(np.atleast_2d(x)[:60, :50]),
    "eig": lambda x: np.linalg.eig(np.atleast_2d(x)[:3, :3]),
    "trapezoid along rows": lambda x: np.trapezoid(x, axis=-1),
    "gradient": lambda x: np.gradient(x.ravel()),
    "unwrap": lambda x: np.unwrap(x.real, axis=-1),
    "partition": lambda x: np.partition(x.ravel(), 3),
    "argpartition": lambda x: np.argpartition(x.ravel(), 3),
    "norm along rows": lambda x: np.linalg.norm(x, axis=-1),
    "norm of a matrix": lambda x: np.linalg.norm(x),
    "norm 1": lambda x: np.linalg.norm(x.ravel(), 1),
    "norm 3": lambda x: np.linalg.norm(x.ravel(), 3),
    "norm inf": lambda x: np.linalg.norm(x.ravel(), np.inf),
    "vector_norm": np.linalg.vector_norm,
    "accumulated": np.add.accumulate,
    "accumulated maximum": np.maximum.accumulate,
    "accumulated minimum": np.minimum.accumulate,
    "multiply.reduce": np.multiply.reduce,
    "dot": lambda x: np.dot(x.ravel()[:70], x.ravel()[-70:]) if x.size > 70 else x,
    "dot of two numbers": lambda x: [np.dot(x.ravel()[k : k + 1], x.ravel()[-1:]) for k in range(6)],
    "dot of nothing": lambda x: np.dot(x.ravel()[:0], x.ravel()[:0]),
    "vdot": lambda x: np.vdot(x.ravel()[:70], x.ravel()[-70:]),
    "vdot of strided ones": lambda x: np.vdot(x.ravel()[:300:3], x.ravel()[:300:3][::-1]),
    "vecdot": lambda x: np.vecdot(x.ravel()[:70], x.ravel()[-70:]),
    "inner": lambda x: np.inner(x.ravel()[:70], x.ravel()[-70:]),
    "matvec": lambda x: np.matvec(np.atleast_2d(x), np.atleast_2d(x)[0]),
    "matmul of stacks": lambda x: x.ravel()[:96].reshape(2, 6, 8) @ x.ravel()[:96].reshape(2, 8, 6),
    "matmul of a stack": lambda x: x.ravel()[:96].reshape(2, 6, 8) @ x.ravel()[:96].reshape(8, 12),
    "modf": lambda x: np.modf(x.real),
    "frexp": lambda x: np.frexp(x.real),
    "outer of a ufunc": lambda x: np.multiply.outer(x.ravel()[:40], x.ravel()[:50]),
    "reduceat": lambda x: np.add.reduceat(x.ravel(), [0, 3, 1]),
    "reduceat of products": lambda x: np.multiply.reduceat(x.ravel(), [0, 3, 1]),
    "flat": lambda x: [x.flat[0], x.flat[-1], x.flat[1]],
    "item": lambda x: [np.asarray(x.item(0)), np.asarray(x[-1].item(-1)) if x.ndim > 1 else x[-1]],
    "norm inf along rows": lambda x: np.linalg.norm(x, np.inf, axis=-1),
    "max of at least": lambda x: [np.max(x, initial=0), x.min(initial=-3), x[:2].max(initial=9)],
    "multi_dot": lambda x: np.linalg.multi_dot([x.ravel()[:6], x.ravel()[:36].reshape(6, 6), x.ravel()[-6:]]),
    "contains": lambda x: [np.asarray(0 in x), np.asarray(3.5 in x)],
    "einsum i,i": lambda x: np.einsum("i,i", x.ravel(), x.ravel()[::-1]),
    "einsum i,i->i": lambda x: np.einsum("i,i->i", x.ravel(), x.ravel()),
    "einsum ij,ij": lambda x: np.einsum("ij,ij->", np.atleast_2d(x), np.atleast_2d(x)),
    "einsum ij,ij->i": lambda x: np.einsum("ij,ij->i", np.atleast_2d(x), np.atleast_2d(x)),
    "einsum ij,ij->j": lambda x: np.einsum("ij,ij->j", np.atleast_2d(x), np.atleast_2d(x)),
    "einsum ij,j->i": lambda x: np.einsum("ij,j->i", np.atleast_2d(x), np.atleast_2d(x)[0]),
    "einsum ij,i->j": lambda x: np.einsum("ij,i->j", np.atleast_2d(x), np.atleast_2d(x)[:, 0]),
    "einsum i,ij": lambda x: np.einsum("i,ij", np.atleast_2d(x)[:, 0], np.atleast_2d(x)),
    "einsum i,j->ij": lambda x: np.einsum("i,j->ij", x.ravel()[:30], x.ravel()[:40]),
    "einsum i,j->ji": lambda x: np.einsum("i,j->ji", x.ravel()[:30], x.ravel()[:40]),
    "einsum ij,jk->ik": lambda x: np.einsum("ij,jk->ik", np.atleast_2d(x), np.atleast_2d(x).T),
    "einsum ij,kj": lambda x: np.einsum("ij,kj", np.atleast_2d(x), np.atleast_2d(x)),
    "rows": lambda x: x[[-1, 0, -1]],
    "elements": lambda x: x[..., [-1, 0, -1]],
    "real": np.real,
    "imag": np.imag,
}
SHAPES = [(7,), (100,), (2049,), (9000,), (3, 5), (64, 64), (65, 30), (200, 70), (3, 2500), (129, 2), (10, 1)]
VIEWS = {"whole": lambda x: x, "transposed": lambda x: x.T, "strided": lambda x: x[::2], "reversed": lambda x: x[::-1]}


@pytest.mark.parametrize("kind", "dflDF?")
@pytest.mark.parametrize("name", MADE_OF_MANY)
def test_the_bits_of_larger_arrays_are_the_engines(name: str, kind: str) -> None:
    """Zeros of both signs and equal values among them, of lengths on both sides of the summation tree's."""
    rng = np.random.default_rng(len(name))
    for shape in SHAPES:
        values = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)
        values[rng.random(shape) < 0.05], values[rng.random(shape) < 0.02] = 0, -0.0
        if kind in "DF":
            values = values + 1j * rng.permutation(values.ravel()).reshape(shape)
        values = values.astype(kind) if kind in "dfDF" else (values % 100).astype(kind)
        for view in VIEWS:
            found = []
            for limit in (LIMIT, 0):
                with config(MIN_SHARD_BYTES=0, AT_ONCE=limit), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    x = VIEWS[view](windows.near(values.copy()) if limit else engine.from_global(values))
                    try:
                        made = MADE_OF_MANY[name](x)
                    except (TypeError, ValueError) as error:
                        found.append(type(error))
                        continue
                    found.append([_told(m, m.gather() if engine.is_handle(m) else m) for m in leaves(made)])
            assert found[0] == found[1], (shape, view)


def _clipped(x: Any, out: Any) -> Any:
    return np.clip(x, -1, 1, out=out)


INTO: dict[str, Any] = {
    "sum": lambda x, y: np.sum(x, axis=0, out=y[0]),
    "sum along rows": lambda x, y: np.sum(x, axis=1, out=y[0, : len(x)]),
    "max": lambda x, y: np.max(x, axis=0, out=y[0]),
    "mean": lambda x, y: np.mean(x, axis=0, out=y[0]),
    "sum of another dtype": lambda x, y: np.sum(x.real, axis=0, out=y[0]),
    "clip": _clipped,
    "clip in place": lambda x, y: _clipped(x, x),
    "clip of what overlaps": lambda x, y: _clipped(x[1:], x[:-1]),
    "take": lambda x, y: np.take(x, [3, 1, 1], axis=1, out=y[:, :3].copy()),
    "cumsum": lambda x, y: np.cumsum(x, axis=1, out=y),
    "cumsum in place": lambda x, y: np.cumsum(x[1], out=x[1]),
    "cumprod": lambda x, y: np.cumprod(x, axis=0, out=y),
    "round": lambda x, y: np.round(x, 1, out=y),
    "median": lambda x, y: np.median(x, axis=0, out=y[0]),
    "dot": lambda x, y: np.dot(x, y[0, : x.shape[1]], out=x[:, 0].copy()),
    "matmul": lambda x, y: np.matmul(x, x.T, out=y[: len(x), : len(x)].copy()),
    "matmul into a part": lambda x, y: np.matmul(x, x.T, out=y[: len(x), : len(x)]),
    "add": lambda x, y: np.add(x, 2.5, out=y),
    "masked": lambda x, y: np.multiply(x, x, out=y, where=x > 0.1),
    "masked by a row": lambda x, y: np.subtract(x, x[0], out=y, where=x[1] > 0.1),
    "masked division": lambda x, y: np.divide(1, x, out=y, where=x != 0),
    "masked logarithm": lambda x, y: np.log(x, out=y, where=x > 0),
    "masked exponential": lambda x, y: np.exp(x, out=y, where=x < 3),
    "masked root": lambda x, y: np.sqrt(x[::-1], out=y, where=x[::-1] > 0),
    "masked sine": lambda x, y: np.sin(x[:, ::2], out=y[:, ::2], where=x[:, ::2] > 0),
    "masked in place": lambda x, y: np.negative(x[1:], out=x[:-1], where=y[1:] > 0),
    "at": lambda x, y: np.add.at(x[2], [3, 1, 3, 3], y[1, :4]),
    "at one place": lambda x, y: np.multiply.at(x, (1, 2), 1.5),
    "at by itself": lambda x, y: np.subtract.at(x[0], slice(None), x[0]),
    "maximum at": lambda x, y: np.maximum.at(x, ([0, 1], [1, 1]), y[0, 0]),
    "partition": lambda x, y: x[3].partition(4),
    "partition along columns": lambda x, y: x.partition(2, axis=0),
    "flat": lambda x, y: x.flat.__setitem__(7, 2.5),
    "wrong shape": lambda x, y: np.sum(x, axis=0, out=y[0, :-1]),
    "wrong dtype": lambda x, y: np.dot(x, x[0], out=np.zeros(len(x), int, like=x)),
}


INTO_BY_ENGINE = {
    *((name, kind) for name in ("wrong shape", "wrong dtype") for kind in "dflD"),
    *(("flat", kind) for kind in "flD"),
    *(
        (name, "D")
        for name in ("masked", "masked by a row", "masked division", "masked logarithm", "masked exponential")
    ),
    ("mean", "l"),
}
"""What NumPy refuses, or sets by an iterator, masks for complex numbers, and results of another dtype."""


@pytest.mark.parametrize("kind", "dflD")
@pytest.mark.parametrize("name", INTO)
def test_outputs_have_the_engines_bits(name: str, kind: str) -> None:
    rng = np.random.default_rng(len(name))
    pair = rng.standard_normal((2, 9, 300)) * 5
    pair[0, rng.random((9, 300)) < 0.05] = 0
    values = (pair + 1j * pair[::-1] if kind == "D" else pair).astype(kind)
    found: list[Any] = []
    for limit in (LIMIT, 0):
        with config(MIN_SHARD_BYTES=0, AT_ONCE=limit), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x, y = (windows.near(v.copy()) if limit else engine.from_global(v) for v in values)
            made: Any
            try:
                made = INTO[name](x, y)
            except (TypeError, ValueError) as error:
                made = type(error), str(error)
            assert windows.is_at_hand(x) == (limit > 0 and (name, kind) not in INTO_BY_ENGINE)
            engine.flush()
            plain = [m.gather() if engine.is_handle(m) else m for m in (made, x, y)]
            told = sorted(str(w.message) for w in caught if w.filename == __file__)
            found.append([p.tobytes() if isinstance(p, np.ndarray) else p for p in plain] + told)
            assert len(told) == len(caught)
    assert found[0] == found[1]


def _into(operation: Any, x: Any, y: Any, out: Any) -> Any:
    operation(x, y, out=out)
    return out


COMPLEX: dict[str, Any] = {
    "descending on the left": lambda x, y: x[::-1] * y,
    "descending on the right": lambda x, y: x * y[::-1],
    "descending and real": lambda x, y: x[::-1] * y.real,
    "strided": lambda x, y: x[::2] * y[1::2],
    "quotient": lambda x, y: x[::-1] / y,
    "power": lambda x, y: x[::-1] ** 2,
    "square": lambda x, y: np.square(x[::-1]),
    "square of one": lambda x, y: np.square(x[3:4].reshape(())),
    "magnitude": lambda x, y: abs(x[::-1]),
    "absolute": lambda x, y: np.abs(x[::-1]),
    "number": lambda x, y: x[::-1] * (0.1 + 3j),
    "NumPy's number": lambda x, y: np.complex64(0.1 + 3j) * x[::-1],
    "real number": lambda x, y: x[::-1] * 0.1,
    "reciprocal": lambda x, y: np.reciprocal(x[::-1]),
    "conjugate": lambda x, y: x[::-1].conj() * y,
    "out": lambda x, y: _into(np.multiply, x, y, x[:]),
    "strided out": lambda x, y: _into(np.multiply, x[::2], y[::2], x[1::2]),
    "descending out": lambda x, y: _into(np.multiply, x, x, y[::-1]),
    "out that overlaps": lambda x, y: _into(np.multiply, x[:-1], y[1:], x[1:]),
    "sum of strided ones": lambda x, y: _into(np.add, x[::2], y[::2], x[1::2]),
}
IN_PLACE = {
    "whole": lambda x, y: (x, y),
    "strided": lambda x, y: (x[::2], y[::2]),
    "descending": lambda x, y: (x, y[::-1]),
    "into descending": lambda x, y: (x[::-1], y),
    "overlapping": lambda x, y: (x[1:], x[:-1]),
    "interleaved": lambda x, y: (x[1::2], x[::2]),
    "real": lambda x, y: (x, y.real),
    "parts": lambda x, y: (x.real, x.imag),
    "number": lambda x, y: (x, 0.1 + 3j),
}
ENGINES = ("square of one", "strided out", "descending out", "into descending", "strided", "interleaved")
"""What is written with other strides, and what is a number."""


@pytest.mark.parametrize("kind", "FD")
@pytest.mark.parametrize("name", [*COMPLEX, *IN_PLACE])
def test_complex_numbers_have_the_engines_bits(name: str, kind: str) -> None:
    rng = np.random.default_rng(len(name))
    pair = rng.standard_normal((2, 300, 2)).view(complex)[..., 0].astype(kind)
    calls: list[Any] = [COMPLEX[name]] if name in COMPLEX else [operator.imul, operator.iadd, operator.itruediv]
    for call in calls:
        found = []
        for limit in (LIMIT, 0):
            with config(MIN_SHARD_BYTES=0, AT_ONCE=limit):
                x, y = (windows.near(v.copy()) if limit else engine.from_global(v) for v in pair)
                made = call(x, y) if name in COMPLEX else call(*IN_PLACE[name](x, y))
                assert name in ENGINES or (type(made) is AtHand) == bool(limit)
                found.append([v.gather().tobytes() if engine.is_handle(v) else v.tobytes() for v in (made, x, y)])
        assert found[0] == found[1], call
