"""Ranks with a device and ranks without in one job: the same plans, messages and bits as with one backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.backends import base
from numpy_dist.backends.base import Loop, Step
from numpy_dist.backends.by_rank import Backends, backends_of
from numpy_dist.backends.fake import backend as fake
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.library import ModuleLibrary
from numpy_dist.cli.doctor import gathering
from numpy_dist.comm.base import Communicator
from numpy_dist.conformance import known_differences
from numpy_dist.engine.scheduling import program
from numpy_dist.layout.layout import Copies, Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.settings import Settings, config
from numpy_dist.spmd_testing import run_simulated
from tests.backends.test_library import ALONE, WORK
from tests.backends.test_transports import work
from tests.engine.test_walks import PREAMBLE, RANDOM
from tests.failures import jobs
from tests.functions.test_weights import CALLS, KEYS, MATRIX

MIXES = [("fake,numba", 2), ("fake,numba", 3), ("numba,fake", 2), ("numpy,numba,fake", 3)]


def run_on(backend: str, ranks: int, function: Callable[..., Any], *args: Any, **settings: object) -> list[Any]:
    with config(**{"BACKEND": backend, "MIN_SHARD_BYTES": 0, "FALLBACK": "error"} | settings):
        return run_simulated(ranks, function, *args)


# -- which backends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "devices", "names", "uneven", "on_hosts"),
    [
        ("auto", [1, 0, 1], ["numba"] * 3, False, True),
        ("auto", [1, 2, 1], ["cupy"] * 3, False, False),
        ("mixed", [1, 0, 2], ["cupy", "numba", "cupy"], True, False),
        ("mixed", [0, 0, 0], ["numba"] * 3, False, True),
        ("mixed", [1, 1, 1], ["cupy"] * 3, False, False),
        ("fake,numba", [], ["fake", "numba", "fake"], True, False),
        ("numpy,numba,fake,fake", [], ["numpy", "numba", "fake"], True, False),
        ("numpy,numpy,numpy,fake", [], ["numpy"] * 3, False, True),
        ("numba,numpy", [], ["numba", "numpy", "numba"], True, True),
        ("numba,others", [], ["numba", "others", "numba"], True, False),
    ],
)
def test_all_ranks_know_the_backends_of_all(setting, devices, names, uneven, on_hosts):
    found = backends_of(setting, 3, devices, compiles=True)
    assert [found.name(rank) for rank in range(3)] == names
    assert (found.uneven, found.on_hosts) == (uneven, on_hosts)


def test_whether_ranks_compile_makes_no_difference_to_what_they_share():
    for setting in ("mixed", "auto"):
        one, other = (backends_of(setting, 2, [1, 0], compiles) for compiles in (True, False))
        assert (one.uneven, one.on_hosts) == (other.uneven, other.on_hosts)


def test_devices_are_dealt_out_among_the_ranks_that_use_them():
    several = Backends(("cupy", "numba"), 8)
    assert [several.number_here(rank, ()) for rank in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [several.number_here(rank, (0, 0, 0, 0, 1, 1, 1, 1)) for rank in range(8)] == [0, 0, 1, 1] * 2


def test_mixed_ranks_take_their_own_devices(monkeypatch):
    made: list[tuple[int, int]] = []

    class Module:
        @staticmethod
        def make(ranks_here: int, number: int) -> Any:
            made.append((ranks_here, number))
            return fake.make(ranks_here)

    original = base.importlib.import_module
    monkeypatch.setattr(base.importlib, "import_module", lambda name: Module if "cupy" in name else original(name))
    monkeypatch.setattr(base.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(Communicator, "devices", property(lambda self: [2, 0, 2]))
    assert run_on("mixed", 3, lambda: engine.runtime().backend.name) == ["fake", "numba", "fake"]
    assert sorted(made) == [(3, 0), (3, 1)]


@pytest.mark.parametrize("text", ["fake,", ",", "fake,auto", "mixed,fake", "null,numba", "fake,torch", ""])
def test_lists_that_are_refused(text):
    with pytest.raises(ValueError, match="BACKEND=.* is one of auto, mixed, numpy.* for each rank between commas"):
        config(BACKEND=text)


def test_lists_are_parsed():
    assert Settings({"NUMPY_DIST_BACKEND": " Fake, numba "}).BACKEND == "fake,numba"
    assert Settings({"NUMPY_DIST_BACKEND": "Mixed"}).BACKEND == "mixed"


def test_the_doctor_looks_for_what_each_of_them_needs(monkeypatch):
    monkeypatch.setattr(gathering.util, "find_spec", lambda name: None if name == "cupy" else object())
    for text, missing in (("numba,numpy", None), ("numba,cupy", "cupy"), ("mixed", None)):
        monkeypatch.setitem(config._values, "BACKEND", text)
        assert gathering.settings().missing == missing


@pytest.mark.parametrize(
    ("text", "of_devices", "tells_events"),
    [("fake", True, True), ("fake,numba", False, True), ("mixed", True, False), ("numpy,cupy", True, False)],
)
def test_known_differences_are_those_that_may_show(text, of_devices, tells_events, monkeypatch):
    everywhere = set(known_differences.of_backend("fake")) | set(known_differences.of_backend("cupy"))
    monkeypatch.setitem(config._values, "BACKEND", text)
    assert bool(everywhere.intersection(known_differences.all_differences())) == of_devices
    assert known_differences.arithmetic().tells_events == tells_events


# -- values -----------------------------------------------------------------------------------------------------------


def same_bits(got: Any, wanted: Any) -> bool:
    got, wanted = np.asarray(got), np.asarray(wanted)
    return got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == wanted.tobytes()


def programs() -> dict[str, Any]:
    """Results, gathered, of programs that exchange halos, sort, look up, multiply, draw and reduce."""
    found = {f"program {k}": x.gather() for k, x in enumerate(work(nd.asarray))}
    x, keys = nd.asarray(MATRIX), nd.asarray(KEYS)
    made = {name: call(nd, x, keys) for name, call in CALLS.items()}
    made |= {"sum": x.sum(), "mean": x.mean(axis=1), "running sums": np.cumsum(x, axis=0), "norm": np.linalg.norm(x)}
    made |= {"gram": x.T @ x, "fit": np.linalg.lstsq(x, x[:, 0], rcond=None)[0], "steps": np.std(x, axis=0)}
    return found | {name: y.gather() if isinstance(y, nd.DistArray) else y for name, y in made.items()}


@pytest.mark.parametrize(("mix", "ranks"), MIXES)
def test_results_have_the_bits_of_one_backend(mix, ranks):
    kinds = run_on(mix, ranks, lambda: type(nd.ones(9).local).__name__)
    assert set(kinds) == {"FakeArray", "ndarray"}
    [wanted, *_] = run_on("numpy", ranks, programs)
    for found in run_on(mix, ranks, programs, CHECK="on"):
        assert found.keys() == wanted.keys()
        assert [name for name in found if not same_bits(found[name], wanted[name])] == []


@pytest.mark.parametrize("name", [*WORK, *ALONE])
def test_what_a_devices_library_computes_has_them_too(name):
    function, arrays = (WORK | ALONE)[name]

    def on_rank(split: int) -> Any:
        return function(*[nd.asarray(x, split=min(split, x.ndim - 1)) for x in arrays]).gather()

    for split in range(arrays[0].ndim):
        [wanted, _] = run_on("numpy", 2, on_rank, split)
        assert all(same_bits(found, wanted) for found in run_on("fake,numba", 2, on_rank, split))


class Careless(Interpreter):
    """A device whose functions round otherwise, and which is told where that would be seen."""

    def run(self, loop: Loop) -> None:
        super().run(loop)
        for step in loop.steps:
            if isinstance(step, Step) and not loop.alike and step.op.name in ("exp", "multiply"):
                for out in step.outputs:
                    if isinstance(out, np.ndarray) and out.dtype == float:
                        np.nextafter(out, np.inf, out=out)


def copies() -> tuple[list[float], np.ndarray]:
    x = nd.asarray(MATRIX)
    total = x.sum(axis=0)  # which every rank has
    assert engine.is_sharded(total) and total.layout.is_replicated
    weights = np.exp(total * 1e-3) * 1.1
    return [float(weights[0]), float(np.exp(weights.sum() * 0.01))], np.exp(x).gather()


def test_copies_on_several_ranks_are_alike_where_devices_round_otherwise(monkeypatch):
    few = {"MIN_SHARD_BYTES": 1000}
    [(steers, wanted), _] = run_on("numpy", 2, copies, **few)
    monkeypatch.setattr(fake, "Interpreter", Careless)
    first, second = run_on("fake,numba", 2, copies, **few)
    assert first[0] == second[0] == steers
    assert same_bits(first[1], second[1])
    differs = first[1] != wanted
    assert differs[:12].all() and not differs[12:].any()  # the device was careless with what it alone has


def test_copies_along_a_direction_of_a_mesh_are_alike(monkeypatch):
    layout = Layout(MATRIX.shape, Mesh((2, 2)), (Cut(0, (0, 12, 23)), Copies()))

    def on_rank() -> np.ndarray:
        made = np.exp(engine.from_global(MATRIX, layout)) * 1.1
        assert engine.layout_of(made) == layout
        return engine.shard(made)

    monkeypatch.setattr(fake, "Interpreter", Careless)
    parts = run_on("fake,numba", 4, on_rank)
    assert same_bits(parts[0], parts[1]) and same_bits(parts[2], parts[3])


# -- what ranks decide by ---------------------------------------------------------------------------------------------


def counted() -> dict[str, Any]:
    """What this rank has sent and executed for some programs."""
    rt = engine.runtime()
    programs()
    grid = nd.asarray(np.arange(800.0).reshape(80, 10), split=0)
    for _ in range(40):
        grid = grid * 0.5 + np.roll(grid, 1, axis=0)
    grid.gather()
    sent = rt.comm.counters
    return {"messages": sent.messages, "bytes": sent.bytes, "collectives": sent.collectives, **asdict(rt.counters)}


@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_and_loops_are_those_of_one_backend(ranks):
    wanted = run_on("numpy", ranks, counted)
    assert run_on("fake,numba", ranks, counted) == wanted
    assert run_on("numba,fake", ranks, counted) == wanted


def test_periods_of_a_program_end_alike(monkeypatch):
    monkeypatch.setattr(program, "LARGE_ON_DEVICE", 1 << 12)
    monkeypatch.setattr(program, "LARGE", 1 << 30)

    def on_rank() -> list[int]:
        rt, x, pending = engine.runtime(), nd.asarray(np.ones(4000)), []
        for _ in range(12):
            x = x + 1
            pending.append(len(rt.program.pending))
        assert x.gather()[0] == 13
        return pending

    on_host, on_device = (run_on(backend, 2, on_rank)[0] for backend in ("numpy", "fake"))
    assert on_host != on_device
    assert run_on("fake,numba", 2, on_rank) == [on_device] * 2


def test_gathers_take_the_same_way_on_all_ranks(monkeypatch):
    monkeypatch.setattr(Communicator, "nodes", (0, 0, 1, 1))
    values = np.arange(40_000.0)
    for found in run_on("fake,numba,numba,fake", 4, lambda: nd.asarray(values).gather()):
        assert same_bits(found, values)


def test_events_are_told_on_all_ranks():
    def on_rank() -> str:
        x = nd.asarray(np.array([1.0, 2, 3, 0, 4, 5]))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError) as raised:
            (1 / x).gather()
        return str(raised.value)

    assert len(set(run_on("fake,numba", 2, on_rank))) == 1


def test_messages_are_staged_on_hosts():
    def on_rank() -> tuple[str, str]:
        transport = engine.runtime().transport
        return transport.name, transport.reason

    for mix in ("fake,numba", "numba,fake"):
        assert {name for name, _ in run_on(mix, 2, on_rank)} == {"host"}
        assert all("others have none" in reason for _, reason in run_on(mix, 2, on_rank, TRANSPORT="host"))
    with pytest.raises(ValueError, match="TRANSPORT='ipc': some ranks have a device and others have none"):
        run_on("fake,numba", 2, on_rank, TRANSPORT="ipc")


def test_arrays_of_a_device_come_in_beside_ndarrays():
    def on_rank() -> Any:
        values: Any = np.arange(11.0)
        memory = engine.runtime().backend.memory
        if not memory.on_host:
            values, host = memory.empty((11,), values.dtype), values
            memory.upload(values, host)
        with config(CHECK="on"):
            return nd.asarray(values).gather().tolist()

    assert run_on("fake,numba", 2, on_rank) == [list(range(11))] * 2


def test_weights_are_measured_and_arrays_rebalanced(monkeypatch):
    """Products are measured as the program computes them: by NumPy on all ranks."""
    monkeypatch.delattr(ModuleLibrary, "matmul")

    def on_rank() -> tuple[Any, ...]:
        x = nd.asarray(MATRIX)
        moved = nd.rebalance(x, (3, 1))
        y = nd.zeros(60)
        return (
            moved.local.shape[0],
            same_bits(moved.gather(), MATRIX),
            y.layout.dims[0].points,
            float((moved + 1).sum()),
        )

    first, second = run_on("fake,numba", 2, on_rank, WEIGHTS="measured")
    assert first[0] + second[0] == 23 and first[0] == 17
    assert first[1:] == second[1:] and first[1]


# -- jobs of several processes ----------------------------------------------------------------------------------------


START = """
import numpy_dist as nd

nd.config.BACKEND = "fake,numba"
"""

OWN = """
assert engine.runtime().backend.name == ("fake", "numba")[rank % 2]
assert isinstance(nd.ones(9).local, np.ndarray) == bool(rank % 2)
"""

HALOS_AND_SORTS = """
x = np.random.default_rng(0).random((41, 7))
ours, theirs = nd.asarray(x), x.copy()
for a in (ours, theirs):
    for _ in range(9):
        a[1:-1] = 0.25 * (a[2:] + a[:-2]) + 0.5 * a[1:-1]
assert ours.gather().tobytes() == theirs.tobytes()
assert (np.sort(ours, axis=0).gather() == np.sort(theirs, axis=0)).all()
assert (ours[ours > 0.5].gather() == theirs[theirs > 0.5]).all()
assert (nd.rebalance(ours, (3, *[1] * (size - 1))).gather() == theirs).all()
assert len(set(ours.comm.allgather(float(ours.sum())))) == 1
"""


WALKS = RANDOM.replace("block.flags.writeable", "len(block) >= 0")  # arrays of a device have no flags


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("script", [HALOS_AND_SORTS, WALKS], ids=["halos and sorts", "walks"])
def test_processes(tmp_path, ranks, script):
    job = jobs.run("mpiexec", START + PREAMBLE + OWN + script + "\nprint('same')", tmp_path, ranks)
    assert job.code == 0 and job.output.count("same") == ranks, job.text
