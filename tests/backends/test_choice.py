"""Which backend BACKEND=auto means: the same on all ranks, whatever single ones have."""

from __future__ import annotations

from typing import Any

import pytest

from numpy_dist import engine
from numpy_dist.backends import base
from numpy_dist.backends.base import choose_backend
from numpy_dist.comm import devices
from numpy_dist.comm.detect import get_communicator
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated


@pytest.mark.parametrize(
    ("found", "compiles", "name"),
    [
        ([], True, "numba"),
        ([0, 0], True, "numba"),
        ([0, 0], False, "numpy"),
        ([1, 0, 4], True, "numba"),
        ([1, 1, 4], True, "cupy"),
        ([2], False, "cupy"),
    ],
)
def test_devices_are_taken_if_every_rank_has_one(found, compiles, name):
    assert choose_backend("auto", found, compiles) == name
    assert choose_backend("numpy", found, compiles) == "numpy"


def test_a_runtime_asks_for_what_was_chosen(monkeypatch):
    made: list[tuple[Any, ...]] = []

    class Module:
        @staticmethod
        def make(*arguments: int) -> Any:
            made.append(arguments)
            return original("numpy_dist.backends.interpreter").make(1)

    original = base.importlib.import_module
    monkeypatch.setattr(base.importlib, "import_module", lambda name: Module if "cupy" in name else original(name))
    monkeypatch.setattr(base.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(base, "has_numba", lambda: True)  # which would remember it
    monkeypatch.setattr(devices, "usable", lambda: 2)
    with config(BACKEND="auto"):
        run_simulated(3, lambda: engine.runtime().backend)
    assert sorted(made) == [(3, 0), (3, 1), (3, 2)]


def test_no_device_without_the_driver_or_without_cupy(monkeypatch):
    usable = devices.usable.__wrapped__
    monkeypatch.setattr(devices.os.path, "exists", lambda path: True)
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    assert usable() == 0
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(devices, "_driver_count", lambda: 3)
    assert usable() == 3
    monkeypatch.setattr(devices.os.path, "exists", lambda path: False)
    assert usable() == 0


class Driver:
    """As libcuda: the codes of cuInit and of cuDeviceGetCount."""

    def __init__(self, start: int, count: int) -> None:
        self.cuInit = lambda flags: start
        self.count = count

    def cuDeviceGetCount(self, pointer: Any) -> int:
        pointer._obj.value = self.count
        return 0


@pytest.mark.parametrize(("start", "count", "found"), [(0, 4, 4), (0, 0, 0), (100, 4, 0)])
def test_the_driver_is_asked(start, count, found, monkeypatch):
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: Driver(start, count))
    assert devices._driver_count() == found


@pytest.mark.parametrize(("answer", "takes"), [(1, True), (0, False), (None, False)])
def test_mpi_is_asked_whether_it_takes_their_memory(answer, takes, monkeypatch):
    library = type("Library", (), {} if answer is None else {"MPIX_Query_cuda_support": staticmethod(lambda: answer)})
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: library)
    assert devices.go_into_messages("libmpi.so") == takes


@pytest.mark.spmd
def test_every_rank_knows_of_all():
    comm = get_communicator()
    assert list(comm.devices) == comm.allgather(devices.usable())
