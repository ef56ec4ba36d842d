"""Memory: what control groups leave counts, and what is kept for reuse goes back when memory gets short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.memory import HOST
from numpy_dist.engine.memory import budget as memory
from numpy_dist.engine.memory import pool
from numpy_dist.engine.memory.limits import AvailableMemory, Limits
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.errors import GatherError
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

MIB = 1 << 20
NONE_V1 = 9223372036854771712


class System:
    """The files of a machine with 64 GiB, of which 40 are available."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "cgroup"
        (folder / "meminfo").write_text(f"MemTotal: {64 << 20} kB\nMemFree: 1 kB\nMemAvailable: {40 << 20} kB\n")
        self.member("0::/")

    def member(self, text: str) -> None:
        (self.folder / "membership").write_text(text + "\n")

    def group(self, path: str, **files: object) -> None:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / f"memory.{name}").write_text(f"{content}\n")

    def room(self) -> tuple[float, float]:
        room = Limits(self.folder / "meminfo", self.root, self.folder / "membership").room()
        return room.total / 2**30, room.available / 2**30


@pytest.fixture
def system(tmp_path):
    return System(tmp_path)


def gib(n: float) -> int:
    return int(n * 2**30)


def test_without_limits_the_machine_counts(system):
    assert system.room() == (64, 40)
    system.member("0::/job")
    system.group("job", max="max", current=gib(3))
    assert system.room() == (64, 40)


def test_a_group_leaves_its_limit_less_its_usage(system):
    system.member("0::/job")
    system.group("job", max=gib(8), current=gib(3), stat=f"anon {gib(1)}\ninactive_file {gib(2)}\nactive_file 7")
    assert system.room() == (8, 7)


def test_the_groups_around_it_count(system):
    system.member("0::/slurm/job/step")
    system.group("slurm/job/step", max="max", current=0)
    system.group("slurm/job", max=gib(16), current=gib(4))
    system.group("slurm", max=gib(32), current=gib(31))
    assert system.room() == (16, 1)


def test_a_group_that_is_not_to_be_seen_is_that_of_the_container(system):
    system.member("0::/docker/0123/above")
    system.group(".", max=gib(2), current=gib(0.5))
    assert system.room() == (2, 1.5)


@pytest.mark.parametrize("controllers", ["memory", "cpu,memory"])
def test_groups_of_version_1(system, controllers):
    system.member(f"9:cpuset:/elsewhere\n4:{controllers}:/job")
    stat = f"inactive_file 5\ntotal_inactive_file {gib(1)}"
    system.group(f"{controllers}/job", limit_in_bytes=gib(4), usage_in_bytes=gib(2), stat=stat)
    system.group(controllers, limit_in_bytes=NONE_V1, usage_in_bytes=gib(60))
    assert system.room() == (4, 3)


def test_limits_that_are_used_up_or_above_the_machine(system):
    system.member("0::/job")
    system.group("job", max=gib(4), current=gib(5))
    assert system.room() == (4, 0)
    system.group("job", max=gib(100), current=gib(5))
    assert system.room() == (64, 40)


def test_where_nothing_is_to_be_read_physical_memory_counts(tmp_path):
    room = Limits(tmp_path / "a", tmp_path / "b", tmp_path / "c").room()
    assert room.total == room.available >= MIB


def test_the_budget_is_half_of_a_ranks_share(monkeypatch, system):
    system.member("0::/job")
    system.group("job", max=gib(8), current=gib(0))
    files = system.folder / "meminfo", system.root, system.folder / "membership"
    monkeypatch.setattr(memory, "Limits", lambda: Limits(*files))
    backend = SimpleNamespace(memory=HOST)
    rank = SimpleNamespace(size=1, comm=SimpleNamespace(node_size=4), budgets={}, backend=backend)
    assert memory.budget(rank) == gib(1)


@pytest.mark.parametrize("settings", [(0, 1000), (1000, 0), (1000, 1 << 40)])
def test_the_budget_is_that_of_the_rank_which_has_least(settings):
    """Each rank may have its own setting; all of them refuse a gather, or none."""

    def on_each_rank():
        rank = numpy_dist.zeros(1).comm.rank
        with config(MIN_SHARD_BYTES=0, FALLBACK="silent", MEMORY_BUDGET=settings[rank]):
            x, few = numpy_dist.asarray(np.arange(1000.0)), numpy_dist.asarray(np.arange(10.0))
            with pytest.raises(GatherError, match="budget is 1000 bytes"):
                x.gather()
            assert few.gather().sum() == 45
        with config(MIN_SHARD_BYTES=0, MEMORY_BUDGET=1 << 30):
            assert x.gather()[-1] == 999

    run_simulated(2, on_each_rank)


# The pool


def test_what_cannot_be_allocated_is_tried_again_without_the_pool(monkeypatch):
    kept = Pool(room=lambda: AvailableMemory(gib(64), gib(64)))
    kept.give(kept.take(5 * MIB))
    calls, make = [], pool.make_block

    def scarce(nbytes):
        calls.append(kept.free)
        if kept.free:
            raise MemoryError
        return make(nbytes)

    monkeypatch.setattr(pool, "make_block", scarce)
    block = kept.take(3 * MIB)
    assert block.size == 3 * MIB and calls[0] > 5 * MIB and calls[1:] == [0]
    assert (kept.held, kept.free, kept.peak) == (3 * MIB, 0, 5 * MIB)


def test_what_cannot_be_allocated_at_all_leaves_the_counts_alone():
    kept = Pool()
    with pytest.raises(MemoryError):
        kept.take(1 << 60)
    assert (kept.held, kept.peak) == (0, 0)
    kept.give(kept.take(100))
    with pytest.raises(MemoryError):
        kept.take(1 << 60)
    assert (kept.held, kept.peak, kept.free) == (0, 100, 0)


class Machine:
    """A machine of 32 GiB: tells how much is available, and how often it was asked."""

    def __init__(self, available: float) -> None:
        self.available, self.asked = available, 0

    def __call__(self) -> AvailableMemory:
        self.asked += 1
        return AvailableMemory(gib(32), gib(self.available))


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_nothing_is_kept_when_memory_is_short(clock):
    machine = Machine(20)
    kept = Pool(room=machine)
    kept.give(kept.take(2 * MIB))
    kept.give(kept.take(100))
    assert kept.free > 2 * MIB
    machine.available = 1.9  # less than a sixteenth
    held = kept.take(3 * MIB)
    assert kept.free > 0 and machine.asked == 1  # asked a moment ago
    clock.seconds += 1
    kept.give(held)
    assert kept.free == 0 and machine.asked == 2
    kept.give(kept.take(3 * MIB))
    assert kept.free == 0 and machine.asked == 2
    machine.available = 20
    clock.seconds += 1
    kept.give(kept.take(3 * MIB))
    assert kept.free > 3 * MIB


def test_much_is_not_taken_on_top_of_what_is_kept(clock):
    machine = Machine(2.5)
    kept = Pool(room=machine)
    kept.give(kept.take(2 * MIB))
    assert kept.free > 0
    block = kept.take(gib(0.75))
    assert kept.free == 0 and block.size == gib(0.75)


def test_small_blocks_ask_nobody(clock):
    machine = Machine(0)
    kept = Pool(room=machine)
    for _ in range(3):
        kept.give(kept.take(1000))
        clock.seconds += 1
    assert machine.asked == 0 and kept.free > 0


LIMITED = """
import resource, sys
import numpy as np
import numpy_dist
from numpy_dist import engine
x = numpy_dist.asarray(np.ones(24 << 20))  # 192 MiB
y = x + 1
engine.flush()
del y
engine.flush()
rt = engine.runtime()
assert rt.pool.free > 180 << 20, rt.pool.free
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
z = np.concatenate([x, x[: 1 << 20]])  # 200 MiB: no block of this size is kept
engine.flush()
assert float(z[-1]) == 1.0 and float(z[0]) == 1.0
print(rt.pool.free < 100 << 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space, and looks into /proc")
def test_a_program_at_the_end_of_its_memory_goes_on():
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        env={"PATH": "/usr/bin:/bin", "NUMPY_DIST_BACKEND": "numpy", "NUMPY_DIST_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_gathers_and_exchanges_are_tried_again(monkeypatch, ranks):
    """Where only what is kept for reuse is in the way of a buffer, or, in one process, of the copy."""
    refused: dict[int, int] = {}
    scarce: set[int] = set()  # ranks that have no memory beside what is kept

    def short_of_memory(make):
        def made(*args, **kwargs):
            runtime = engine.runtime()
            if runtime.rank in scarce and runtime.pool.free:
                refused[runtime.rank] = runtime.pool.free
                raise MemoryError
            return make(*args, **kwargs)

        return made

    def on_each_rank() -> bool:
        runtime = engine.runtime()
        x = numpy_dist.asarray(np.arange(4000.0))
        y = x + 1
        engine.flush()
        del y
        engine.flush()
        scarce.add(runtime.rank)
        values = x[1::2].gather()
        scarce.remove(runtime.rank)
        return runtime.pool.free == 0 and bool((values == np.arange(4000.0)[1::2]).all())

    with config(MIN_SHARD_BYTES=0, BACKEND="numpy"), monkeypatch.context() as patched:
        patched.setattr(HOST, "allocate", short_of_memory(HOST.allocate))
        if ranks == 1:
            patched.setattr(np, "array", short_of_memory(np.array))
        assert run_simulated(ranks, on_each_rank) == [True] * ranks
    assert len(refused) == ranks


def test_what_is_kept_goes_back_before_a_gather():
    def on_each_rank() -> tuple[bool, bool]:
        kept = engine.runtime().pool
        x = numpy_dist.asarray(np.arange(4000.0))
        y = x + 1
        engine.flush()
        del y
        engine.flush()
        kept._room, kept._next_look, before = Machine(1.0), 0.0, kept.free
        x.gather()
        return before > 0, kept.free == 0

    with config(MIN_SHARD_BYTES=0, BACKEND="numpy"):
        assert run_simulated(2, on_each_rank) == [(True, True)] * 2
