"""The thread pool does every unit once, whatever the threads do, and never outlives or holds up the process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from numpy_dist.backends.compiled import threads, threads_count
from numpy_dist.backends.compiled.compiler import Compiler
from numpy_dist.backends.compiled.threads import MOST_RANGES, ThreadPool
from numpy_dist.backends.compiled.threads_count import cpu_quota, thread_count

# Units are counted without atomics: two threads that do the same unit lose counts, or count twice.
COUNT = """
from numpy_dist.backends.compiled.intrinsics import load_atomic, store_atomic
def kernel(block, first, last):
    for unit in range(first, last):
        store_atomic(block + 8 * unit, load_atomic(block + 8 * unit) + 1)
    return 0
"""

# The block: a word for each unit that is not 0 where the kernel must stop, then the counts. The first word is how many.
STOP = """
from numpy_dist.backends.compiled.intrinsics import load_atomic, store_atomic
def kernel(block, first, last):
    counts = block + 8 + 8 * load_atomic(block)
    for unit in range(first, last):
        if load_atomic(block + 8 + 8 * unit) != 0:
            return unit + 1
        store_atomic(counts + 8 * unit, load_atomic(counts + 8 * unit) + 1)
    return 0
"""

# Each range waits, for seconds at most, for as many threads as the second word says; the third counts those in vain.
MEET = """
from numpy_dist.backends.compiled.intrinsics import fetch_add, load_atomic, pause
def kernel(block, first, last):
    fetch_add(block, last - first)
    turns = 0
    while load_atomic(block) < load_atomic(block + 8):
        turns += 1
        if turns > 300_000_000:
            fetch_add(block + 16, 1)
            break
        pause()
    return 0
"""

# As MEET, and each range notes where its thread's stack is.
STACKS = """
from numpy_dist.backends.compiled.intrinsics import fetch_add, load_atomic, pause, scratch, store_atomic
def kernel(block, first, last):
    store_atomic(block + 8 + 8 * first, scratch(8))
    fetch_add(block, 1)
    turns = 0
    while load_atomic(block) < 2 and turns < 300_000_000:
        turns += 1
        pause()
    return 0
"""

SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
from numpy_dist.backends.compiled.compiler import Compiler
from numpy_dist.backends.compiled.threads import ThreadPool
compiler = Compiler(sys.argv[1], 1 << 30)
kernel = compiler.compile(sys.argv[2])
compiler.compile(sys.argv[3])
counts = np.zeros(64, "i8")
pool = ThreadPool(3, compiler)
def launch(times=1):
    for _ in range(times):
        assert pool.run(kernel, counts.ctypes.data, 64, 4) == []
launch()
assert pool.threads == 3, pool.threads
"""


PARKED = 512  # as in launch.py: where the number of parked workers stands


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return str(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def compiler(directory):
    compiler = Compiler(directory, 1 << 30)
    compiler.compile(threads.launch_source())
    yield compiler
    compiler.close()


@pytest.fixture(params=[1, 2, 4], ids="{}-threads".format)
def pool(request, compiler):
    pool = ThreadPool(request.param, compiler)
    yield pool
    pool.close()
    assert pool.threads == 1


def _python(directory: str, code: str, timeout: float = 300) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", SCRIPT + textwrap.dedent(code), directory, COUNT, threads.launch_source()]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.mark.slow
def test_each_unit_is_done_once_in_every_launch(pool, compiler):
    kernel = compiler.compile(COUNT)
    random = np.random.default_rng(pool.count)
    counts, expected = np.zeros(300, "i8"), np.zeros(300, "i8")
    launches = 100_000 if pool.count <= 2 else 20_000
    for turn, units in enumerate(random.integers(0, 40, launches).tolist()):
        if turn % 1000 == 0:  # workers park
            time.sleep(0.0005)
            units = 300
        assert pool.run(kernel, counts.ctypes.data, units, turn % 7 + 1) == []
        expected[units - 1] += units > 0
    np.testing.assert_array_equal(counts, np.cumsum(expected[::-1])[::-1])
    assert pool.threads == pool.count


def test_who_watches_is_told_what_workers_did(compiler):
    kernel = compiler.compile(MEET)
    pool = ThreadPool(2, compiler)
    told: list[tuple[int, ...]] = []
    seen = sys.platform.startswith("linux")  # elsewhere Python's clock is another one

    def launch() -> tuple[int, int]:
        words = np.array([0, 2, 0])
        begin = time.perf_counter_ns()
        assert pool.run(kernel, words.ctypes.data, 2, 1) == [] and words[2] == 0  # both threads took a range
        return begin, time.perf_counter_ns()

    pool.watch(lambda *what: told.append(what))  # before there are workers
    for turn in range(3):
        begin, end = launch()
        for number, first, last, busy, ranges in told[turn:]:
            assert (number, ranges) == (0, 1) and begin <= first <= last <= end and busy == last - first
        assert len(told) == (turn + 1 if seen else 0)
    pool.watch(None)
    launch()
    assert len(told) == (3 if seen else 0)
    pool.close()


def test_threads_see_what_was_written_before_and_leave_what_they_write(pool, compiler):
    kernel = compiler.compile(COUNT)
    values = np.zeros(40, "i8")
    for turn in range(3000):
        values[:] = np.arange(turn, turn + 40)
        pool.run(kernel, values.ctypes.data, 40, 1)
        assert values.tolist() == list(range(turn + 1, turn + 41))


@pytest.mark.parametrize("grain", [1, 3, 10, 200])
def test_ranges_that_stopped_are_the_same_for_any_number_of_threads(pool, compiler, grain):
    kernel = compiler.compile(STOP)
    units = 100
    random = np.random.default_rng(grain)
    for share in (0.0, 0.02, 0.5, 1.0):
        block = np.zeros(1 + 2 * units, "i8")
        block[0] = units
        marks, counts = block[1 : units + 1], block[units + 1 :]
        marks[:] = random.random(units) < share
        expected = []
        for first in range(0, units, grain):
            last = min(first + grain, units)
            if marks[first:last].any():
                expected.append((first + int(marks[first:last].argmax()), last))
        assert pool.run(kernel, block.ctypes.data, units, grain) == expected
        for first, last in expected:
            assert not counts[first:last].any()
            counts[first:last] = 1
        assert (counts == 1).all()


def test_a_launch_has_a_bounded_number_of_ranges(pool, compiler):
    units = 3 * MOST_RANGES + 1
    block = np.zeros(1 + 2 * units, "i8")
    block[0] = units
    block[1 : units + 1] = 1
    stops = pool.run(compiler.compile(STOP), block.ctypes.data, units, 1)
    assert stops == [(first, min(first + 4, units)) for first in range(0, units, 4)]


@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("count", [2, 5])
def test_all_threads_take_part_from_wherever_they_are(compiler, count, pin):
    kernel = compiler.compile(MEET)
    before = os.sched_getaffinity(0)
    pool = ThreadPool(count, compiler, pin=pin)
    for pause in (0.0, 0.0, 0.02, 0.0, 0.02):
        time.sleep(pause)
        block = np.array([0, count, 0], "i8")
        pool.run(kernel, block.ctypes.data, count, 1)
        assert block.tolist() == [count, count, 0]
    assert pool._shared is not None
    bound = [tuple(os.sched_getaffinity(thread.native_id)) for thread in pool._shared.threads]
    single = [cpus for cpus in bound if len(cpus) == 1]
    assert len(single) == len(set(single)) == (min(count - 1, len(before) - 1) if pin and len(before) > 1 else 0)
    assert os.sched_getaffinity(0) == before
    pool.close()


def test_the_launching_thread_takes_ranges_from_the_front(compiler):
    """A loop that is run again finds its data in the caches of the same cores."""
    pool = ThreadPool(2, compiler)
    kernel = compiler.compile(STACKS)
    found = []
    for _ in range(50):
        block = np.zeros(3, "i8")
        pool.run(kernel, block.ctypes.data, 2, 1)
        found.append(tuple((block[1:] >> 16).tolist()))  # stacks are larger than what changes between calls
    assert len({front for front, _ in found}) == len({end for _, end in found}) == 1
    assert found[0][0] != found[0][1]
    pool.close()


def test_little_work_is_divided_soon_after_other_work_only(compiler, monkeypatch):
    now = 1.0
    monkeypatch.setattr(threads.time, "perf_counter", lambda: now)
    pool, alone = ThreadPool(2, compiler), ThreadPool(1, compiler)
    assert not pool.awake()
    now += threads.AWAKE_SECONDS / 2
    assert not alone.awake() and not alone.awake()
    assert pool.awake() and pool.awake()
    now += threads.AWAKE_SECONDS * 2
    assert not pool.awake() and pool.awake()
    pool.close()


def test_no_worker_is_lost_at_the_edge_of_parking(compiler, monkeypatch):
    """With workers that give up spinning at once, every launch comes about when some of them park."""
    monkeypatch.setattr(threads, "SPIN_SECONDS", 0.0)
    pool = ThreadPool(3, compiler)
    kernel = compiler.compile(COUNT)
    counts = np.zeros(20_000, "i8")
    pool.run(kernel, counts.ctypes.data, 2, 1)
    assert pool._shared is not None
    parked = ctypes.c_int64.from_address(pool._shared.state + PARKED)
    for units in range(0, 20_000, 2):
        pool.run(kernel, counts.ctypes.data, units, units // 20 + 1)
        assert parked.value >= 0
    counts[:2] -= 1
    np.testing.assert_array_equal(counts, 9999 - np.arange(20_000) // 2)
    end = time.monotonic() + 60
    while parked.value < 2:  # a busy machine lets workers spin late
        assert time.monotonic() < end
        time.sleep(0.001)
    block = np.array([0, 3, 0], "i8")
    pool.run(compiler.compile(MEET), block.ctypes.data, 3, 1)
    assert block.tolist() == [3, 3, 0]
    pool.close()


def test_workers_sleep_when_there_is_nothing_to_do(compiler):
    pool = ThreadPool(4, compiler)
    counts = np.zeros(64, "i8")
    for _ in range(10):
        pool.run(compiler.compile(COUNT), counts.ctypes.data, 64, 1)
    time.sleep(0.05)
    begin = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - begin < 0.1
    pool.close()


def test_kernels_run_alone_until_the_worker_is_compiled(compiler):
    class Slow:
        ready = False
        asked = 0

        def accompany(self, source):
            assert source == threads.launch_source()

        def request(self, source):
            assert source == threads.launch_source()
            self.asked += 1

        def address(self, source):
            return compiler.compile(source) if self.ready else None

    slow = Slow()
    pool = ThreadPool(2, slow)
    kernel = compiler.compile(COUNT)
    counts = np.zeros(8, "i8")
    for turn in range(1, 5):
        assert pool.run(kernel, counts.ctypes.data, 8, 2) == []
        assert pool.threads == 1 and counts.tolist() == [turn] * 8
    slow.ready = True
    assert pool.run(kernel, counts.ctypes.data, 8, 2) == []
    assert pool.threads == 2 and counts.tolist() == [5] * 8 and slow.asked == 1
    pool.close()
    assert pool.run(kernel, counts.ctypes.data, 8, 2) == [] and counts.tolist() == [6] * 8


@pytest.mark.parametrize("started", [0, 1])
def test_threads_that_cannot_be_started_are_not_waited_for(compiler, monkeypatch, started):
    start = threading.Thread.start
    calls = []

    def failing(thread):
        calls.append(thread)
        if len(calls) > started:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", failing)
    pool = ThreadPool(4, compiler)
    kernel = compiler.compile(COUNT)
    counts = np.zeros(64, "i8")
    for _ in range(1000):
        pool.run(kernel, counts.ctypes.data, 64, 1)
    assert (counts == 1000).all() and pool.threads == 1 + started
    pool.close()


def test_a_pool_that_nobody_has_any_more_ends_its_threads(compiler):
    pool = ThreadPool(3, compiler)
    counts = np.zeros(64, "i8")
    pool.run(compiler.compile(COUNT), counts.ctypes.data, 64, 1)
    assert pool._shared is not None
    workers = pool._shared.threads
    assert [worker.is_alive() for worker in workers] == [True, True]
    del pool
    for worker in workers:
        worker.join(60)
    assert [worker.is_alive() for worker in workers] == [False, False]


def test_several_threads_may_launch(compiler):
    pool = ThreadPool(2, compiler)
    kernel = compiler.compile(COUNT)
    blocks = [np.zeros(50, "i8") for _ in range(3)]

    def launch(counts):
        for _ in range(5000):
            pool.run(kernel, counts.ctypes.data, 50, 5)

    launchers = [threading.Thread(target=launch, args=(counts,)) for counts in blocks]
    for launcher in launchers:
        launcher.start()
    for launcher in launchers:
        launcher.join(300)
    assert [counts.tolist() for counts in blocks] == [[5000] * 50] * 3
    pool.close()


@pytest.mark.parametrize("nested", [False, True], ids=["interrupt", "launch"])
def test_signals_while_launching(compiler, nested):
    """A handler raises KeyboardInterrupt, or launches something itself."""
    pool = ThreadPool(2, compiler)
    kernel = compiler.compile(COUNT)
    counts, inner = np.zeros(50, "i8"), np.zeros(50, "i8")
    handled = interrupted = 0
    while pool.threads == 1:  # workers that start take longer than the time between two signals
        pool.run(kernel, counts.ctypes.data, 50, 5)

    def handler(number, frame):
        nonlocal handled
        if frame.f_code.co_filename != threads.__file__:
            return
        handled += 1
        if not nested:
            raise KeyboardInterrupt
        pool.run(kernel, inner.ctypes.data, 50, 5)

    previous = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
        while handled < 500:
            try:
                pool.run(kernel, counts.ctypes.data, 50, 5)
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert interrupted == (0 if nested else handled)
    # A launch was made whole or not at all, and the workers still work.
    assert counts.min() == counts.max() > 0
    assert inner.tolist() == [handled if nested else 0] * 50
    block = np.array([0, 2, 0], "i8")
    pool.run(compiler.compile(MEET), block.ctypes.data, 2, 1)
    assert block.tolist() == [2, 2, 0]
    pool.close()


def test_a_forked_child_computes_alone(compiler, directory):
    code = """
    for pause in (0.0, 0.01):  # workers spin, workers sleep
        for _ in range(8):
            launch(10)
            time.sleep(pause)
            child = os.fork()
            if not child:
                before = counts.copy()
                launch(10)
                sys.exit(0 if (counts == before + 10).all() and pool.threads == 1 else 3)
            launch(10)
            assert os.waitpid(child, 0)[1] == 0
    assert pool.threads == 3 and (counts == 321).all()
    """
    done = _python(directory, code)
    assert done.returncode == 0, done.stderr


def test_a_child_forked_in_the_midst_of_a_launch(compiler, directory):
    code = """
    def background():
        mine = np.zeros(64, "i8")
        while True:
            pool.run(kernel, mine.ctypes.data, 64, 1)
    threading.Thread(target=background, daemon=True).start()
    sys.setswitchinterval(1e-5)
    for _ in range(30):
        child = os.fork()
        if not child:
            launch(100)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """
    done = _python(directory, code)
    assert done.returncode == 0, done.stderr


ENDS = {
    "spinning": "launch(100)",
    "parked": "launch(100); time.sleep(0.01)",
    "at the edge of parking": "launch(100); time.sleep(90e-6 + 2e-6 * (os.getpid() % 10))",
    "closed": "launch(100); pool.close()",
    "closed twice": "pool.close(); pool.close()",
    "collected": "del launch, pool",
    "in a cycle": "pool.itself = pool",
    "kept by a module": "launch(100); sys.kept = pool",
    "launching at exit": "import atexit; atexit.register(launch, 100)",
    "another thread launching": (
        "mine = np.zeros(64, 'i8')\n"
        "def forever():\n"
        "    while True: pool.run(kernel, mine.ctypes.data, 64, 1)\n"
        "threading.Thread(target=forever, daemon=True).start(); time.sleep(0.01)"
    ),
    "exit": "launch(100); sys.exit(0)",
    "at once": "launch(100); os._exit(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends(compiler, directory, end):
    for _ in range(3):
        done = _python(directory, ENDS[end])
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_interrupt_ends_the_process(compiler, directory):
    code = """
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        launch()
    """
    done = _python(directory, code)
    assert done.returncode == -signal.SIGINT and "\nKeyboardInterrupt\n" in done.stderr


def test_the_number_of_threads_is_what_the_user_chose(monkeypatch):
    monkeypatch.setattr(threads_count, "cpus", lambda: list(range(8)))
    monkeypatch.setattr(threads_count, "own_quota", lambda: None)
    assert thread_count(3, 4, {"OMP_NUM_THREADS": "5"}) == 3
    assert thread_count(0, 4, {"OMP_NUM_THREADS": "5"}) == 5
    assert thread_count(0, 4, {"OMP_NUM_THREADS": " 6,2 "}) == 6
    for nothing in ("", "0", "-1", "many"):
        assert thread_count(0, 1, {"OMP_NUM_THREADS": nothing}) == 8
    assert [thread_count(0, sharing, {}) for sharing in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]


@pytest.mark.parametrize("quota, expected", [(None, 8), (0.5, 1), (2.5, 2), (100.0, 8)])
def test_the_number_of_threads_keeps_within_the_quota(monkeypatch, quota, expected):
    monkeypatch.setattr(threads_count, "cpus", lambda: list(range(8)))
    monkeypatch.setattr(threads_count, "own_quota", lambda: quota)
    assert thread_count(0, 1, {}) == expected
    assert thread_count(6, 1, {}) == 6


@pytest.mark.parametrize(
    "membership, files, expected",
    [
        ("0::/a/b\n", {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "max 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "100000 100000\n"}, 1.0),
        ("0::/seen/elsewhere\n", {"cpu.max": "400000 100000\n"}, 4.0),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("", {}, None),
        (
            "4:memory:/x\n3:cpu,cpuacct:/a\n",
            {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "20000"},
            2.5,
        ),
        ("1:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, None),
        ("1:cpu:/a\n", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3.0),
        ("1:cpu:/a\n", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "0"}, None),
    ],
)
def test_quotas_of_control_groups(tmp_path, membership, files, expected):
    root = tmp_path / "cgroup"
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "self").write_text(membership)
    assert cpu_quota(root, tmp_path / "self") == expected
