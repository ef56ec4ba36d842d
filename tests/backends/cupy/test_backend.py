"""The CuPy backend on a stand-in for CuPy; on CuPy itself, whether the names exist; and on devices (marked `gpu`)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.base import make_backend
from numpy_dist.backends.cuda.source import DeviceKernel
from numpy_dist.backends.transport import Facts
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

from ..cuda import programs
from ..cuda.on_host import COMPILER, launcher
from . import stand_in

NAMES = ("launcher", "library", "memory", "links", "backend")
MODULES = ("cupy", "cupyx", *(f"numpy_dist.backends.cupy.{name}" for name in NAMES))


@pytest.fixture
def launched(monkeypatch) -> list[Any]:
    """CuPy's place is taken; the list's first item, if there is one, starts kernels."""
    starts: list[Any] = []

    def launch(*arguments: Any) -> None:
        starts[0](*arguments)

    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = stand_in.make(launch)
    module.__spec__ = importlib.util.spec_from_loader("cupy", None)
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", module.cuda.nccl)
    monkeypatch.setitem(sys.modules, "cupyx", module.cupyx)
    yield starts
    for stream in (stand_in.STREAM, *(other.own for other in stand_in.OtherStream.known.values())):
        stream._waiting.clear()
    stand_in.OtherStream.known.clear()
    stand_in.Nccl.mail.clear()
    for name in MODULES[2:]:
        sys.modules.pop(name, None)


def on_device(ranks: int, function: Any, *args: Any) -> list[Any]:
    with config(BACKEND="cupy", MIN_SHARD_BYTES=0, FALLBACK="error"), np.errstate(all="ignore"):
        return run_simulated(ranks, function, *args)


def work() -> tuple[list[Any], dict[str, int]]:
    results = programs.work(numpy_dist.asarray)
    engine.flush()
    found = [r.gather() if isinstance(r, numpy_dist.DistArray) else r for r in results]
    backend: Any = engine.runtime().backend
    return found, backend.counts


def build(launched: list[Any], folder: Path, kernels: dict[str, DeviceKernel] | None = None) -> None:
    """Let kernels be started: these, which are built at once, and others when they are seen first."""
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    starts: dict[str, Any] = {}

    def add(made: dict[str, DeviceKernel]) -> None:
        inner = folder / str(len(starts))
        inner.mkdir()
        start = launcher(inner, made)
        starts.update({name: partial(start, kernel) for name, kernel in made.items()})

    def launch(text: str, name: str, words: np.ndarray, grid: tuple[int, int]) -> None:
        if name not in starts:
            add({name: DeviceKernel(text, name, {}, len(words))})
        starts[name](words, grid)

    if kernels:
        add(kernels)
    launched.append(launch)


@pytest.mark.parametrize("ranks", [1, 3])
def test_programs_are_numpys(ranks, launched, tmp_path, monkeypatch):
    build(launched, tmp_path, programs.collect(ranks, monkeypatch)[0])
    wanted = programs.work(np.array)
    for results, counts in on_device(ranks, work):
        assert counts["cuda"] > counts["host"]
        for position, (got, expected) in enumerate(zip(results, wanted, strict=True)):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12, err_msg=f"result {position}")


@pytest.mark.parametrize("name", ["host", "mpi-gpu", "nccl", "ipc"])
def test_transports(name, launched, tmp_path, monkeypatch):
    """What CuPy is asked for by each transport, with dtypes of which CuPy has no kernels, too."""
    build(launched, tmp_path)
    links = importlib.import_module("numpy_dist.backends.cupy.links")
    names = frozenset("012")
    monkeypatch.setattr(
        links.CupyLinks, "facts", lambda self, comm: Facts("here", str(comm.rank), names, True, links.nccl_version())
    )
    base = np.arange(60.0).reshape(20, 3)
    records = np.array([(k, k / 3, b"xyz") for k in range(41)], [("a", "i1"), ("b", "f8"), ("c", "S3")])

    def on_rank() -> tuple[str, bool, bool, bool]:
        x, r = numpy_dist.asarray(base, split=0), numpy_dist.asarray(records)
        turned = numpy_dist.asarray(base.astype("M8[s]"))[::-1].copy()
        transport = engine.runtime().transport
        back = np.concatenate([x, x[3:]]).gather()
        same = np.array_equal(back, np.concatenate([base, base[3:]]))
        texts = np.array_equal(r[::-2].copy().gather(), records[::-2])
        return transport.name, same, texts, np.array_equal(turned.gather(), base.astype("M8[s]")[::-1])

    with config(TRANSPORT=name):
        assert on_device(3, on_rank) == [(name, True, True, True)] * 3


def test_cupys_functions_are_found_by_numpys(launched, tmp_path):
    """NumPy hands its functions over to the library of the arrays; here the stand-in, which is asked as CuPy is."""
    build(launched, tmp_path)
    grid = np.random.default_rng(2).standard_normal((9, 12))

    def on_rank() -> bool:
        x, y = numpy_dist.asarray(grid), numpy_dist.asarray(grid.T.copy())
        made = [np.sort(x, axis=0, kind="stable"), np.fft.fft(x, axis=1), x @ y]
        wanted = [np.sort(grid, axis=0), np.fft.fft(grid, axis=1), grid @ grid.T]
        return all(np.allclose(a.gather(), b) for a, b in zip(made, wanted, strict=True))

    assert on_device(1, on_rank) == [True]


def test_what_a_rank_says_of_itself(launched):
    links = importlib.import_module("numpy_dist.backends.cupy.links")

    class Process:
        name, takes_device_memory = "mpi", False

    stand_in.Device.used.clear()
    facts = links.CupyLinks(None).facts(Process())
    assert facts.device == "0000:00:00.0" and facts.reaches == {"0000:00:00.0", "0000:01:00.0"}
    assert (facts.mpi, facts.nccl) == (False, 22703) and facts.host
    Process.name = "simulated"
    assert links.CupyLinks(None).facts(Process())[2:] == (frozenset(), False, 0)


def test_what_has_no_kernel_runs_on_the_host(launched, tmp_path):
    build(launched, tmp_path)
    base, exponents = np.arange(-9, 20), np.arange(29) % 4

    def on_rank() -> tuple[bool, dict[str, int]]:
        powers = numpy_dist.asarray(base) ** numpy_dist.asarray(exponents)
        backend: Any = engine.runtime().backend
        return np.array_equal(powers.gather(), base**exponents), backend.reasons

    assert on_device(2, on_rank) == [(True, {"power of i8, i8": 1})] * 2


def test_copies_that_ranks_without_a_device_have_too_are_computed_as_they_do(launched, tmp_path):
    build(launched, tmp_path)

    def on_rank() -> tuple[list[float], np.ndarray, dict[str, int]]:
        x = numpy_dist.asarray(np.arange(600.0).reshape(100, 6) / 600)
        total = x.sum(axis=0)  # which every rank has
        found = [float(np.exp(total * 1e-2)[k]) for k in range(6)]
        return found, np.sort(x + total, axis=0).gather(), getattr(engine.runtime().backend, "reasons", {})

    with config(BACKEND="cupy,numba", MIN_SHARD_BYTES=1000, FALLBACK="error"):
        (first, values, reasons), (second, others, _) = run_simulated(2, on_rank)
    assert first == second and np.array_equal(values, others)
    assert list(reasons) == ["ranks without a device have copies of what it computes"]


def test_devices_are_dealt_out(launched):
    backend = importlib.import_module("numpy_dist.backends.cupy.backend")
    assert [backend.device_of(rank, 3) for rank in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    stand_in.Device.used.clear()
    on_device(4, lambda: engine.runtime().backend.name)
    assert sorted(stand_in.Device.used) == [0, 0, 1, 1]


def test_out_of_memory_tells_sizes_and_the_pool(launched, monkeypatch):
    def on_rank() -> str:
        x = numpy_dist.asarray(np.arange(100.0))
        with monkeypatch.context() as patched, pytest.raises(MemoryError) as raised:
            patched.setattr(stand_in.LIMIT, "bytes", 100)
            numpy_dist.asarray(np.arange(100.0)).gather()
        assert np.array_equal(x.gather(), np.arange(100.0))
        return " ".join(raised.value.__notes__)

    (told,) = on_device(1, on_rank)
    for part in ("800 bytes were wanted on <CUDA Device 0>", "pool holds 4096", "limit of 100", "shape (100,)"):
        assert part in told


def test_strided_arrays_of_any_dtype_are_uploaded(launched, tmp_path):
    """CuPy 14 makes arrays of numbers only, but takes memory as what it is told."""
    build(launched, tmp_path)
    values = np.arange(5).astype("M8[s]")

    def on_rank() -> bool:
        memory: Any = engine.runtime().backend.memory
        target = memory.empty((10,), values.dtype)
        memory.upload(target[::2], values)
        return np.array_equal(memory.download(target[::2]), values)

    assert on_device(1, on_rank) == [True]


RECORDS = np.zeros(41, [("number", "i4"), ("weight", "f8"), ("name", "U3"), ("day", "M8[D]")])
RECORDS["number"], RECORDS["weight"] = np.arange(41) % 7, np.random.default_rng(5).standard_normal(41)


def with_fields(array: Any) -> list[Any]:
    """What is done with fields of packed records, most of whose elements lie at odd addresses."""
    x = array(RECORDS)
    weight = x["weight"]
    made = [np.sort(weight), np.cumsum(weight), weight[weight > 0], weight[x["number"]], np.nonzero(weight > 0)[0]]
    made += [weight * 2 + x["number"], weight.sum(), np.maximum(weight, 0).max(), weight[::-2].copy()]
    weight *= 3
    weight[x["number"]] = np.arange(41.0)
    weight[weight > 30] = -1
    x["number"][...] = weight.astype("f4")
    x["day"][5:] = np.datetime64("2026-11-27")
    return [*made, weight, x["number"], x["day"], x["name"][::-1].copy(), x[::-3].copy()]


@pytest.mark.parametrize("ranks", [1, 3])
def test_fields_of_packed_records(ranks, launched, tmp_path):
    """A device reads numbers at multiples of their size only: else the process loses it."""
    build(launched, tmp_path)

    def on_rank() -> list[Any]:
        return [x.gather() if isinstance(x, numpy_dist.DistArray) else x for x in with_fields(numpy_dist.asarray)]

    wanted = with_fields(np.array)
    for found in on_device(ranks, on_rank):
        for position, (got, expected) in enumerate(zip(found, wanted, strict=True)):
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12, err_msg=f"result {position}")
            else:
                np.testing.assert_array_equal(got, expected, err_msg=f"result {position}")


def test_the_library_is_asked(launched, tmp_path):
    """Each of its operations at several ranks, and random numbers by the kernel."""
    build(launched, tmp_path)
    rng = np.random.default_rng(3)
    stack, line, places = rng.standard_normal((6, 3, 3)), rng.standard_normal(50), rng.integers(0, 50, 40)

    def work(array: Any, random: Any) -> list[Any]:
        x, a, i = array(line), array(stack), array(places)
        y = x.copy()
        y[i] = np.arange(40.0)
        numbers = [random.default_rng(5).random(60), random.Generator(np.random.Philox(5)).uniform(2, 3, (6, 10))]
        ordered = [np.sort(x), np.argsort(x), np.cumsum(x), x[x > 0], np.nonzero(x > 0)[0], x[i], y, np.median(x)]
        return [*ordered, np.linalg.inv(a), np.linalg.svd(a, compute_uv=False), a @ a, *numbers]

    def on_rank() -> list[Any]:
        made = work(numpy_dist.asarray, numpy_dist.random)
        return [x.gather() if isinstance(x, numpy_dist.DistArray) else x for x in made]

    wanted = work(np.array, np.random)
    for ranks in (1, 3):
        for found in on_device(ranks, on_rank):
            for got, expected in zip(found, wanted, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(found[-2], wanted[-2])


def test_the_users_shard_keeps_its_memory(launched):
    """What was handed out, and views of it, keep a block from being used again."""

    def on_rank() -> bool:
        x = numpy_dist.asarray(np.arange(50.0))
        view = x.local[1:]
        del x
        engine.flush()
        numpy_dist.asarray(np.zeros(50)).gather()
        return isinstance(view, stand_in.ndarray) and np.array_equal(view.get(), np.arange(1.0, 50))

    assert on_device(1, on_rank) == [True]


def test_a_missing_device_is_refused(launched):
    def complains() -> bool:
        raise RuntimeError("cudaErrorInsufficientDriver")  # as CuPy 13 does

    for answer in (lambda: False, complains):
        sys.modules["cupy"].is_available = answer
        with pytest.raises(ValueError, match="no CUDA device"):
            make_backend("cupy")


# The first parameters of CuPy's functions, which get their arguments by place.
_CALLED = {
    "cholesky": ["a"],
    "eigh": ["a", "UPLO"],
    "eigvalsh": ["a", "UPLO"],
    "inv": ["a"],
    "qr": ["a", "mode"],
    "slogdet": ["a"],
    "solve": ["a", "b"],
    "svd": ["a", "full_matrices", "compute_uv"],
}
_CALLED_OF_ALL = {
    "all": ["a"],
    "argsort": ["a", "axis"],
    "asarray": ["a"],
    "broadcast_to": ["array", "shape"],
    "concatenate": ["tup"],
    "count_nonzero": ["a"],
    "cumprod": ["a", "axis", "dtype"],
    "cumsum": ["a", "axis", "dtype"],
    "max": ["a"],
    "min": ["a"],
    "nonzero": ["a"],
    "ones": ["shape", "dtype"],
    "searchsorted": ["a", "v", "side"],
    "sort": ["a", "axis"],
    "take": ["a", "indices", "axis"],
    "unravel_index": ["indices", "dims"],
    "where": ["condition", "x", "y"],
    "zeros": ["shape", "dtype"],
}


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_names():
    """CuPy has what the backend uses; it can be imported without a device."""
    cupy = importlib.import_module("cupy")
    for name in ("ndarray", "empty", "is_available", "get_default_memory_pool", "cuda.Module", "cuda.alloc",
                 "cuda.compiler.compile_using_nvrtc", "cuda.Module.load", "cuda.Module.get_function", "cuda.Function",
                 "cuda.Device", "cuda.get_current_stream", "cuda.alloc_pinned_memory", "cuda.runtime.memGetInfo",
                 "cuda.runtime.getDeviceCount", "cuda.Stream",
                 "cuda.Event", "cuda.UnownedMemory", "cuda.MemoryPointer", "cuda.runtime.malloc",
                 "cuda.runtime.memcpyAsync", "cuda.runtime.memcpyDefault", "cuda.runtime.ipcGetMemHandle",
                 "cuda.runtime.ipcOpenMemHandle", "cuda.runtime.getDeviceProperties", "cuda.Stream.wait_event",
                 "cuda.runtime.deviceGetPCIBusId", "cuda.runtime.deviceCanAccessPeer",
                 *vars(stand_in.fake_functions(stand_in.Place())), "linalg", "fft"):  # fmt: skip
        if name == "raising":
            continue
        found = cupy
        for part in name.split("."):
            found = getattr(found, part)
    for name, names in _CALLED.items():
        assert list(inspect.signature(getattr(cupy.linalg, name)).parameters)[: len(names)] == names
    for name, names in _CALLED_OF_ALL.items():
        assert list(inspect.signature(getattr(cupy, name)).parameters)[: len(names)] == names
    for name in vars(stand_in.fake_functions(stand_in.Place()).fft):
        assert list(inspect.signature(getattr(cupy.fft, name)).parameters)[:4] == ["a", "n", "axis", "norm"]
    with importlib.import_module("cupyx").errstate(linalg="raise"):
        pass
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    assert {"get", "set", "data", "reshape", "transpose"} <= set(dir(cupy.ndarray))
    backend = importlib.import_module("numpy_dist.backends.cupy.backend")
    if not backend._has_device():
        with pytest.raises(ValueError, match="no CUDA device"):
            make_backend("cupy")


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [1, 3])
def test_programs_on_a_device(ranks):
    wanted = programs.work(np.array)
    for results, counts in on_device(ranks, work):
        assert counts["cuda"] > counts["host"]
        for position, (got, expected) in enumerate(zip(results, wanted, strict=True)):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12, err_msg=f"result {position}")
