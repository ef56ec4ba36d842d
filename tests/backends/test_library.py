"""What a device's own library computes: shards stay on the device where whole lines, or whole matrices, lie there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.library import ModuleLibrary
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

RNG = np.random.default_rng(5)
GRID, LINE = RNG.standard_normal((17, 24)), RNG.standard_normal(301)
WAVES = (GRID + 1j * GRID[::-1]).astype("c8")
STACK = RNG.standard_normal((14, 5, 5)) + 3 * np.eye(5)
INTEGERS = RNG.integers(-100, 100, 301).astype("i4")
HOLES = np.where(np.abs(GRID) < 0.4, np.copysign(np.nan, GRID), np.round(GRID))  # NaN of both signs


def _masked_assignment(x: Any, values: Any) -> Any:
    x = x.copy()
    x[x > 1] = values[: int(np.count_nonzero(x > 1))]
    return x


def _row_assignment(x: Any, places: Any) -> Any:
    x = x.copy()
    x[places] = places[:, None] * np.ones(24)
    return x


def _element_assignment(x: Any, places: Any, values: Any) -> Any:
    x = x.copy()
    x[places] = values
    return x


# A count, and a triangle.
FEW_BYTES = {"values for a mask": 8, "singular values of one": 17 * 17 * 8}
WORK: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "sort rows": (lambda x: np.sort(x, axis=1), (GRID,)),
    "sort columns": (lambda x: np.sort(x, axis=0, kind="stable"), (GRID,)),
    "sort in another memory order": (lambda x: np.sort(x.T, axis=1), (GRID,)),
    "fft": (np.fft.fft, (GRID,)),
    "fft of other lengths": (lambda x: np.fft.rfft(x, 30, axis=0, norm="ortho"), (GRID,)),
    "inverse": (lambda x: np.fft.ifft(x, axis=0), (WAVES,)),
    "argsort rows": (lambda x: np.argsort(x, axis=1), (GRID,)),
    "argsort columns, stable": (lambda x: np.argsort(x, axis=0, kind="stable"), (np.round(GRID).astype("i2"),)),
    "sort with NaN": (lambda x: np.sort(x, axis=1), (HOLES,)),
    "argsort with NaN": (lambda x: np.argsort(x, axis=1, kind="stable"), (HOLES,)),
    "running sums along whole lines": (lambda x: np.cumsum(x, axis=1), (GRID,)),
    "running products of integers": (lambda x: np.cumprod(x, axis=1), (np.round(GRID).astype("i2"),)),
    "masked": (lambda x: x[x > 0.5], (GRID,)),
    "masked rows": (lambda x, y: x[y > 0], (GRID, GRID[:, 0].copy())),
    "nonzero": (lambda x: np.nonzero(x > 1)[1] + 0, (GRID,)),
    "values for a mask": (_masked_assignment, (GRID, LINE)),
    "inverses": (np.linalg.inv, (STACK,)),
    "solutions": (np.linalg.solve, (STACK, STACK[:, :, :2].copy())),
    "solutions with one right side": (np.linalg.solve, (STACK, LINE[:5].copy())),
    "cholesky": (np.linalg.cholesky, (STACK @ STACK.transpose(0, 2, 1),)),
    "singular values": (lambda x: np.linalg.svd(x, compute_uv=False), (STACK[:, :3].copy(),)),
    "triangles": (lambda x: np.abs(np.linalg.qr(x)[1]), (STACK,)),
    "eigenvalues": (np.linalg.eigvalsh, (STACK.astype("c8") @ STACK.transpose(0, 2, 1),)),
    "eigenvalues with vectors": (lambda x: np.linalg.eigh(x).eigenvalues, (STACK @ STACK.transpose(0, 2, 1),)),
    "logarithms of determinants": (lambda x: np.linalg.slogdet(x)[1], (STACK,)),
    "products of stacks": (np.matmul, (STACK, STACK.transpose(0, 2, 1).copy())),
}
ALONE = {
    "argsort of one axis": (np.argsort, (LINE,)),
    "argsort of one axis with NaN": (lambda x: np.argsort(x, kind="stable"), (HOLES.ravel(),)),
    "running sums of one axis": (np.cumsum, (LINE,)),
    "running sums across": (lambda x: np.cumsum(x, axis=0), (GRID,)),
    "sort of integers": (np.sort, (INTEGERS,)),
    "argsort of integers": (lambda x: np.argsort(x, kind="stable"), (INTEGERS,)),
    "sort with NaN of one axis": (np.sort, (HOLES.ravel(),)),
    "rows by their numbers": (lambda x, i: x[i], (GRID, INTEGERS % 17)),
    "elements by their numbers": (lambda x, i: x[i], (LINE, INTEGERS)),
    "taken along an axis": (lambda x, i: np.take(x, i, axis=1), (GRID, INTEGERS % 24)),
    "values for rows": (_row_assignment, (GRID, INTEGERS % 17)),
    "values for elements": (_element_assignment, (LINE, INTEGERS, WAVES.real.ravel()[:301].astype("f4"))),
    "sort of one axis": (np.sort, (LINE,)),
    "fft of one axis": (np.fft.fft, (LINE,)),
    "product": (np.matmul, (GRID, GRID.T.copy())),
    "product of complex": (lambda x, y: x @ y, (WAVES, WAVES.T.copy())),
}
ON_ONE = {
    "one inverse": (np.linalg.inv, (STACK[0].copy(),)),
    "one solution": (np.linalg.solve, (STACK[0].copy(), LINE[:5].copy())),
    "singular values of one": (lambda x: np.linalg.svd(x, compute_uv=False), (GRID,)),
}


def on_device(ranks: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    with config(BACKEND="fake", MIN_SHARD_BYTES=0, FALLBACK="error"):
        return run_simulated(ranks, function, *args)


def computed(function: Callable[..., Any], arrays: tuple[np.ndarray, ...], split: int | None) -> tuple[Any, int]:
    """The result, and the bytes that went to the host for it."""
    given = [numpy_dist.asarray(x, split=None if split is None else min(split, x.ndim - 1)) for x in arrays]
    engine.flush()
    memory: Any = engine.runtime().backend.memory
    before = memory.downloaded
    made = function(*given)
    engine.force(made)
    moved = memory.downloaded - before
    return made.gather(), moved


@pytest.mark.parametrize("name", [*WORK, *ALONE, *ON_ONE])
def test_shards_stay_on_the_device(name):
    function, arrays = (WORK | ALONE | ON_ONE)[name]
    wanted = function(*arrays)
    ((found, moved),) = on_device(1, computed, function, arrays, None)
    assert moved <= FEW_BYTES.get(name, 0)
    assert found.dtype == wanted.dtype and found.strides == wanted.strides
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if wanted.dtype == "c8" else 1e-12, atol=1e-5)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", [*WORK, *ALONE])
def test_results_are_numpys_on_several_ranks(name, ranks):
    function, arrays = (WORK | ALONE)[name]
    wanted = function(*arrays)
    for split in range(arrays[0].ndim):
        for found, _ in on_device(ranks, computed, function, arrays, split):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-5 if wanted.dtype == "c8" else 1e-12, atol=1e-5)


@pytest.mark.parametrize("name", ["sort rows", "fft"])
def test_whole_lines_stay_there_on_several_ranks(name):
    function, arrays = WORK[name]
    assert [moved for _, moved in on_device(3, computed, function, arrays, 0)] == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["M8[s]", "S3"])
def test_what_the_library_does_not_know_is_computed_on_the_host(dtype):
    values = np.arange(60).astype(dtype).reshape(6, 10)[:, ::-1].copy()
    ((found, moved),) = on_device(1, computed, lambda x: np.sort(x, axis=1), (values,), None)
    assert moved == values.nbytes and np.array_equal(found, np.sort(values, axis=1))


def test_sorting_by_another_rule_is_numpys(monkeypatch):
    """A library that sorts in one way only is asked for values only."""
    asked: list[dict] = []
    monkeypatch.setattr(ModuleLibrary, "sort", lambda self, x, axis: asked.append({}))
    values = np.array([(2, 1.0), (1, 3.0), (2, 0.5)] * 4, [("a", "i4"), ("b", "f8")]).reshape(4, 3)
    ((found, _),) = on_device(1, computed, lambda x: np.sort(x, axis=1, order="b"), (values,), None)
    assert np.array_equal(found, np.sort(values, axis=1, order="b")) and not asked


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("generator", ["PCG64", "PCG64DXSM", "Philox", "MT19937"])
@pytest.mark.parametrize("shape", [(301,), (40, 7), (2, 2, 50)])
def test_random_numbers_are_numpys_and_made_there(shape, generator, ranks):
    """Also what comes after them. Of MT19937 devices know nothing."""

    def on_rank() -> tuple[list[np.ndarray], int]:
        rng = numpy_dist.random.Generator(getattr(np.random, generator)(5))
        memory: Any = engine.runtime().backend.memory
        before = memory.uploaded
        made = [rng.random(shape), rng.uniform(-2, 5.5, shape)]
        engine.flush()
        moved = memory.uploaded - before
        made += [rng.standard_normal(shape), rng.random(shape, np.float32), rng.random(shape)]
        return [x.gather() for x in made], moved

    rng = np.random.Generator(getattr(np.random, generator)(5))
    wanted = [rng.random(shape), rng.uniform(-2, 5.5, shape), rng.standard_normal(shape)]
    wanted += [rng.random(shape, np.float32), rng.random(shape)]
    for found, moved in on_device(ranks, on_rank):
        assert (moved > 0) == (generator == "MT19937")
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u8", "?"])
def test_little_comes_to_the_host_for_medians(dtype, ranks):
    """Also with many equal elements, and NaN."""
    values = np.random.default_rng(8).standard_normal(200_000).astype(dtype)
    if values.dtype.kind == "f":
        values = np.round(values, 2)
        values[::1000] = -np.nan
    function = np.nanmedian if values.dtype.kind == "f" else np.median
    for found, moved in on_device(ranks, median, function, values):
        assert found == function(values) and moved < values.nbytes / ranks


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("count", [400, 401])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4", "?"])
def test_three_elements_of_each_row_come_to_the_host_for_its_median(dtype, count, ranks):
    values = np.round(np.random.default_rng(12).standard_normal((9, count)), 1).astype(dtype)
    if values.dtype.kind in "fc":
        values[3, 7] = -np.nan

    def along(array: Any, axis: int) -> Any:
        return np.median(array, axis=axis)

    for axis, split in ((1, 0), (0, 1)):
        wanted = along(values, axis)
        for found, moved in on_device(ranks, lambda a=axis, s=split: computed(lambda x: along(x, a), (values,), s)):
            np.testing.assert_array_equal(found, wanted, strict=True)
            assert moved <= 3 * wanted.size * values.itemsize


def median(function: Callable[..., Any], values: np.ndarray) -> tuple[Any, int]:
    x = numpy_dist.asarray(values)
    engine.flush()
    memory: Any = engine.runtime().backend.memory
    before = memory.downloaded
    return function(x), memory.downloaded - before


MOVING = ["sort with NaN of one axis", "argsort of integers", "rows by their numbers", "values for elements", "product"]


@pytest.mark.parametrize("transport", ["host", "mpi-gpu", "nccl", "ipc"])
@pytest.mark.parametrize("name", MOVING)
def test_what_ranks_exchange_goes_by_any_transport(name, transport):
    function, arrays = (WORK | ALONE)[name]
    wanted = function(*arrays)
    with config(TRANSPORT=transport):
        for found, _ in on_device(4, computed, function, arrays, 0):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_only_samples_come_to_the_host_where_devices_send_to_each_other():
    values = np.random.default_rng(9).standard_normal(100_000)
    places = np.random.default_rng(10).integers(0, 100_000, 100_000)
    with config(TRANSPORT="nccl"):
        for function, arrays in ((np.argsort, (values,)), (np.take, (values, places))):
            for found, moved in on_device(3, computed, function, arrays, 0):
                assert np.array_equal(found, function(*arrays)) and moved < 8_000


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_of_values_for_one_element_the_last_stays(ranks):
    """The scatter of devices leaves any."""
    places = np.random.default_rng(11).integers(0, 5, 400)

    def on_rank() -> np.ndarray:
        x = numpy_dist.asarray(np.zeros(40))
        x[numpy_dist.asarray(places)] = numpy_dist.asarray(np.arange(400.0))
        return x.gather()

    wanted = np.zeros(40)
    wanted[places] = np.arange(400.0)
    for found in on_device(ranks, on_rank):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "f2", "i2", "u8", "?"])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum])
def test_scans_are_numpys_where_numbers_leave_their_range(ufunc, dtype, ranks):
    """Regrouped, sums of parts would overflow where NumPy's do not."""
    values = np.array([1e308, -1e308, 1.5e308, 1.5e308, -1.7e308, 0, 1, np.nan, 2] * 3).astype(dtype)
    with np.errstate(all="ignore"):
        wanted = ufunc.accumulate(values)
        for found, _ in on_device(ranks, computed, ufunc.accumulate, (values,), 0):
            np.testing.assert_array_equal(found, wanted, strict=True)


BAD = {
    "singular": np.zeros((6, 3, 3)),
    "not definite": -np.broadcast_to(np.eye(3), (6, 3, 3)),
    "not finite": np.where(np.eye(3) == 1, np.nan, np.ones((6, 3, 3))),
}


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "eigh", "eigvalsh", "slogdet", "svd", "qr"])
@pytest.mark.parametrize("matrices", BAD)
def test_decompositions_fail_as_numpys(matrices, name, ranks):
    function: Any = getattr(np.linalg, name)
    stack = BAD[matrices].copy()
    arrays = (stack, stack) if name == "solve" else (stack,)

    def outcome(*given: Any) -> Any:
        with np.errstate(all="ignore"):
            try:
                made = function(*given)
            except np.linalg.LinAlgError as error:
                return str(error)
        parts = made if isinstance(made, tuple) else (made,)
        return [x.gather() if isinstance(x, numpy_dist.DistArray) else x for x in parts]

    wanted = outcome(*arrays)
    for found in on_device(ranks, lambda: outcome(*map(numpy_dist.asarray, arrays))):
        if isinstance(wanted, str):
            assert found == wanted
        else:
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-12, atol=1e-12)
