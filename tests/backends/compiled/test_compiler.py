"""The compiler: one compilation for all, no waiting without end, and no process that stays behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from numpy_dist.backends import store as stores
from numpy_dist.backends.compiled import child as children
from numpy_dist.backends.compiled import compiler as compilers
from numpy_dist.backends.compiled import keys
from numpy_dist.backends.compiled.compiler import CompileError, Compiler
from tests.backends.compiled.kernels import add_one, adds_one, source

LIMIT = 1 << 24
linux = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="looks at processes in /proc")

pytestmark = pytest.mark.slow


@pytest.fixture
def compiler(tmp_path):
    made = Compiler(str(tmp_path), LIMIT)
    yield made
    made.close()


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A directory where the kernel of `add_one` is."""
    directory = str(tmp_path_factory.mktemp("warm"))
    made = Compiler(directory, LIMIT)
    made.compile(add_one())
    made.close()
    return directory


def wait(condition, seconds=60.0):
    """Wait until a condition holds; fails where it does not come to hold."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return value


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_request_then_address(compiler):
    text = add_one()
    assert compiler.address(text) is None  # nobody asked for it
    compiler.request(text)
    assert adds_one(wait(lambda: compiler.address(text)))
    assert compiler.failed(text) is None


def test_compile_waits(compiler):
    assert adds_one(compiler.compile(add_one()))


def test_a_failure_is_told_and_kept(compiler, tmp_path):
    text = source("return w.nothing")
    compiler.request(text)
    wait(lambda: compiler.address(text) is None and compiler.failed(text))
    with pytest.raises(CompileError, match="nothing"):
        compiler.compile(text)
    other = Compiler(str(tmp_path), LIMIT)
    with pytest.raises(CompileError, match="nothing"):
        other.compile(text)
    assert other._child is None
    assert adds_one(compiler.compile(add_one()))


def test_a_failure_without_the_kernels_fault_is_not_kept(compiler, tmp_path):
    text = "raise MemoryError('all is taken')\n"
    with pytest.raises(CompileError, match="all is taken"):
        compiler.compile(text)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(stores.FAILURE)]


WARM = """
import sys
from numpy_dist.backends.compiled.compiler import Compiler
from numpy_dist.settings import config
compiler = Compiler(sys.argv[1], config.CACHE_SIZE)
source = sys.stdin.read()
compiler.request(source)
print(compiler.address(source) is not None, compiler._child is None, "numba" in sys.modules)
"""


def test_a_second_process_starts_no_child_and_imports_no_numba(warm):
    done = subprocess.run(
        [sys.executable, "-c", WARM, warm], input=add_one(), capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "True True False\n", done.stderr


def test_a_companion_is_compiled_first_and_waited_for(compiler, tmp_path):
    other = add_one(tag="companion")
    compiler.accompany(other)
    assert adds_one(compiler.compile(add_one()))
    assert adds_one(compiler._addresses[other])
    assert len(list(tmp_path.glob("*.kernel"))) == 2


def test_a_companion_that_fails_stops_nobody(compiler):
    compiler.accompany(source("return w.nothing"))
    assert adds_one(compiler.compile(add_one()))


def test_a_companion_is_asked_for_with_what_has_to_be_compiled_only(warm):
    compiler = Compiler(warm, LIMIT)
    compiler.accompany(add_one(tag="companion"))
    compiler.request(add_one())
    assert compiler._child is None and compiler._wanted == {}


THREADS = """
import sys
import numpy as np
from numpy_dist.backends.compiled.compiler import Compiler
from numpy_dist.backends.compiled.threads import ThreadPool
compiler = Compiler(sys.argv[1], 1 << 24)
pool = ThreadPool(2, compiler)
kernel = compiler.compile(sys.stdin.read())
x = np.zeros(1)
words = np.array([x.ctypes.data, x.ctypes.data, 1])
pool._run_alone = None
pool.run(kernel, words.ctypes.data, 2, 1)
print(pool.threads, compiler._child is not None, *sorted({"numba", "llvmlite"} & {*sys.modules}))
compiler.close()
"""


def test_a_second_run_on_threads_compiles_nothing(tmp_path):
    """The first run ends as soon as it has its kernel: what the threads run is in the cache all the same."""
    said = []
    for _ in range(2):
        command = [sys.executable, "-c", THREADS, str(tmp_path)]
        text = source("return 0")
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=True)
        said.append(done.stdout)
    assert said == ["2 True\n", "2 False\n"]


RANK = """
import json, sys
from numpy_dist.backends.compiled import compiler as compilers
from numpy_dist.backends.compiled.compiler import Compiler
compilers._LEADER_SECONDS = 60.0  # a child of a busy machine takes a kernel up late
compiler = Compiler(sys.argv[1], 1 << 24)
sources = json.load(sys.stdin)
for source in sources:
    compiler.request(source)
for source in sources:
    compiler.compile(source)
print(compiler._child is not None, compiler.warning())
compiler.close()
"""


def test_processes_compile_each_kernel_once(tmp_path):
    """The workers' compilations are counted by a hook on the file that they write."""
    texts = [add_one(tag=str(number)) for number in range(3)]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for rank in ranks:
        rank.stdin.write(json.dumps(texts))
        rank.stdin.close()
        rank.stdin = None
    seen = {}
    while any(rank.poll() is None for rank in ranks):
        for name in os.listdir(tmp_path):
            if name.endswith(stores.KERNEL):
                seen.setdefault(name, set()).add(os.stat(tmp_path / name).st_ino)
        time.sleep(0.001)
    out = [rank.communicate(timeout=300)[0].split() for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks)
    assert [warning for _, warning in out] == ["None"] * 4
    assert sum(started == "True" for started, _ in out) == 1  # the others leave it to the first one for a while
    assert len(seen) == 3 and all(len(inodes) == 1 for inodes in seen.values())  # none was written twice
    assert {name.split(".")[-1] for name in os.listdir(tmp_path)} == {"kernel"}  # no locks are left


def test_another_rank_leaves_it_to_the_one_that_leads(tmp_path, monkeypatch):
    monkeypatch.setattr(compilers, "_LEADER_SECONDS", 60.0)
    store, leader = stores.Store(str(tmp_path), LIMIT), "leader-" + stores.this_machine()
    store.lock(leader, stores.describe_owner(os.getppid()))
    follower = Compiler(str(tmp_path), LIMIT)
    follower.request(add_one())
    for _ in range(5):
        time.sleep(compilers._LOOK_SECONDS)
        assert follower.address(add_one()) is None
    assert follower._child is None
    store.unlock(leader, stores.describe_owner(os.getppid()))
    first = Compiler(str(tmp_path), LIMIT)
    first.request(add_one())
    assert first._child is not None and not store.lock(leader, "another")
    assert adds_one(follower.compile(add_one()))
    assert follower._child is None
    first.close()
    assert store.lock(leader, "another")


def test_a_leader_that_does_nothing_is_not_waited_for(compiler, tmp_path):
    leader = "leader-" + stores.this_machine()
    compiler._open().lock(leader, stores.describe_owner(os.getppid()))
    assert adds_one(compiler.compile(add_one()))


def test_threads_share_a_compiler(compiler):
    texts = [add_one(tag=str(number)) for number in range(3)]
    found = []

    def rank():
        for text in texts:
            compiler.request(text)
        found.append(tuple(compiler.compile(text) for text in texts))

    threads = [threading.Thread(target=rank) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 6 and len(set(found)) == 1 and len(set(found[0])) == 3
    assert adds_one(found[0][2])


def test_a_corrupt_kernel_is_compiled_anew(compiler, tmp_path):
    key = keys.kernel_key(add_one())
    (tmp_path / (key + stores.KERNEL)).write_bytes(b"\x7fELF nonsense")
    assert adds_one(compiler.compile(add_one()))
    assert "damaged" in compiler.warning() and compiler.warning() is None
    other = add_one(tag="2")
    (tmp_path / (keys.kernel_key(other) + stores.KERNEL)).write_bytes(b"more nonsense")
    assert adds_one(compiler.compile(other)) and compiler.warning() is None  # said once


def test_a_sealed_file_that_is_no_kernel_is_not_loaded(compiler, tmp_path):
    compiler._open().write(keys.kernel_key(add_one()), b'{"symbol": "x", "externals": [], "image": {}}\ncode')
    with pytest.raises(CompileError, match="no kernel"):
        compiler.compile(add_one())


def test_a_folder_that_others_can_write_gives_one_warning_and_nothing_of_it_is_loaded(tmp_path, warm):
    for name in os.listdir(warm):
        (tmp_path / name).write_bytes(open(os.path.join(warm, name), "rb").read())  # noqa: SIM115
    tmp_path.chmod(0o777)
    made = Compiler(str(tmp_path), LIMIT)
    assert made.address(add_one()) is None
    made.request(add_one())
    assert made.address(add_one()) is None and made._child is not None
    assert adds_one(made.compile(add_one()))
    assert "others can write" in made.warning() and made.warning() is None
    made.close()


def test_a_folder_that_comes_to_be_writable_by_others_is_left(compiler, tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "_directory", str(tmp_path / "cache"))
    compiler.compile(add_one())
    (tmp_path / "cache").chmod(0o777)
    assert adds_one(compiler.compile(add_one(tag="2")))
    assert "others can write" in compiler.warning() and compiler.warning() is None


NOWHERE = """
import sys, tempfile
from numpy_dist.backends.compiled.compiler import CompileError, Compiler
tempfile.tempdir = sys.argv[2]
compiler = Compiler(sys.argv[1], 1 << 24)
source = sys.stdin.read()
compiler.request(source)
print(compiler.address(source) is not None, compiler.failed(source) is not None, compiler._child is None)
print(compiler.warning())
print(compiler.warning())
"""


@pytest.mark.parametrize("there", [False, True])
def test_where_nothing_can_be_written_what_is_there_is_used(warm, tmp_path, there, monkeypatch):
    """A file in the way stands for a file system that is read-only: root may write anywhere."""
    (tmp_path / "file").write_text("")
    code = NOWHERE
    if there:
        code = "from numpy_dist.backends.store import Store\n" + NOWHERE.replace(
            "compiler = ",
            "def prepare(store):\n    raise OSError(30, 'read-only')\nStore.prepare = prepare\ncompiler = ",
        )
    command = [sys.executable, "-c", code, warm if there else str(tmp_path / "file" / "cache"), str(tmp_path / "file")]
    done = subprocess.run(command, input=add_one(), capture_output=True, text=True, timeout=300)
    found, warning, again = done.stdout.splitlines()
    assert found.split() == (["True", "False", "True"] if there else ["False", "True", "True"]), done.stderr
    assert "CACHE_DIR" in warning and "temporary folder" in warning and again == "None"


FULL = """
import resource, sys
from numpy_dist.backends.compiled.compiler import CompileError, Compiler
compiler = Compiler(sys.argv[1], 1 << 24)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
try:
    compiler.compile(sys.stdin.read())
except CompileError as problem:
    print(problem)
print(compiler.warning())
print(compiler.warning())
"""


def test_a_full_disk_ends_in_the_interpreter_with_one_warning(tmp_path):
    """A limit on the size of files stands for it; locks are smaller."""
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    done = subprocess.run(command, input=add_one(), capture_output=True, text=True, timeout=300)
    problem, warning, again = done.stdout.splitlines()
    assert "cannot be compiled here" in problem and "CACHE_DIR" in warning and again == "None", done.stderr
    assert not [name for name in os.listdir(tmp_path) if not name.endswith(stores.LOCK)]


@pytest.mark.parametrize("said", ["nonsense", "7", "[]", "{}", '{"key": 7, "status": "done"}', "\\xff"])
def test_a_child_that_answers_nonsense_has_died(compiler, monkeypatch, tmp_path, said):
    worker = tmp_path / "talks.py"
    worker.write_text(f"import os, time\nos.write(1, {said!r}.encode() + b'\\n')\ntime.sleep(1000)")
    monkeypatch.setattr(children, "_WORKER", str(worker))
    monkeypatch.setattr(children.Child.close, "__defaults__", (0.1,))
    with pytest.raises(CompileError, match="what is no answer"):
        compiler.compile(add_one())


def test_an_unusable_directory_gives_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    made = Compiler(str(tmp_path / "file"), LIMIT)
    assert adds_one(made.compile(add_one()))
    assert "CACHE_DIR" in made.warning()
    assert made.warning() is None
    private = made._store.directory
    made.close()
    del made
    assert not os.path.exists(private)


def test_a_directory_that_breaks_meanwhile(compiler, tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "_directory", str(tmp_path / "cache"))
    compiler.compile(add_one())
    os.rename(tmp_path / "cache", tmp_path / "away")
    (tmp_path / "cache").write_text("in the way")
    assert adds_one(compiler.compile(add_one(tag="2")))
    assert "CACHE_DIR" in compiler.warning()


def test_a_killed_child_is_replaced(compiler):
    compiler.compile(add_one())
    texts = [add_one(tag=str(number)) for number in range(3)]
    for text in texts:
        compiler.request(text)
    os.kill(compiler._child.pid, signal.SIGKILL)
    assert all(adds_one(compiler.compile(text)) for text in texts)


def test_a_child_that_has_compiled_much_is_replaced(compiler, monkeypatch):
    monkeypatch.setattr(compilers, "_MOST_KERNELS", 2)
    seen = set()
    for number in range(40):
        if len(seen) == 2:
            break
        text = add_one(tag=f"one of many {number}")
        compiler.request(text)
        seen.add(compiler._child.pid)
        assert adds_one(compiler.compile(text))
    assert len(seen) == 2  # at the third kernel, unless answers come so late that there is always another one asked for


FATAL = "import os\nos.kill(os.getpid(), 9)\n"


def test_a_kernel_that_kills_the_child_twice_has_failed_and_the_others_have_not(compiler):
    compiler.request(FATAL)
    compiler.request(add_one())
    with pytest.raises(CompileError, match="signal 9"):
        compiler.compile(FATAL)
    assert adds_one(compiler.compile(add_one()))
    compiler.request(FATAL)
    assert compiler.address(FATAL) is None and compiler.failed(FATAL)


def test_a_child_that_cannot_run_is_not_started_for_ever(compiler, monkeypatch, tmp_path):
    (tmp_path / "broken.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(children, "_WORKER", str(tmp_path / "broken.py"))
    texts = [add_one(tag=str(number)) for number in range(20)]
    for text in texts:
        compiler.request(text)
    for text in texts:
        with pytest.raises(CompileError, match="exit code 3"):
            compiler.compile(text)
    assert compiler._deaths == compilers._DEATHS
    compiler.request(add_one())
    assert compiler.failed(add_one()) and compiler._child is None


def test_a_child_that_cannot_be_started(compiler, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(CompileError, match="/nowhere/python"):
        compiler.compile(add_one())


def test_a_child_that_hangs_is_ended(compiler, monkeypatch, tmp_path):
    (tmp_path / "hangs.py").write_text("import time\ntime.sleep(1000)")
    monkeypatch.setattr(children, "_WORKER", str(tmp_path / "hangs.py"))
    monkeypatch.setattr(compilers, "_STUCK_SECONDS", 0.3)
    with pytest.raises(CompileError, match="0.3 seconds"):
        compiler.compile(add_one())


def test_a_foreign_lock_does_not_hold_for_ever(compiler, monkeypatch):
    owner = stores.describe_owner(os.getppid())
    compiler._open().lock(keys.kernel_key(add_one()), owner)
    compiler.request(add_one())
    assert compiler._child is None
    monkeypatch.setattr(compilers, "_STUCK_SECONDS", 1.0)
    compiler._since[add_one()] -= 2.0
    monkeypatch.setattr(compilers, "_STUCK_SECONDS", 1.9)
    wait(lambda: compiler.address(add_one()) or compiler._child)
    monkeypatch.setattr(compilers, "_STUCK_SECONDS", 120.0)
    assert adds_one(compiler.compile(add_one()))


def test_many_large_requests_do_not_block(compiler, monkeypatch, tmp_path):
    (tmp_path / "deaf.py").write_text("import sys, time\ntime.sleep(1000)")
    monkeypatch.setattr(children, "_WORKER", str(tmp_path / "deaf.py"))
    start = time.monotonic()
    for number in range(20):
        compiler.request(add_one(tag=str(number) + 20_000 * "x"))
    assert time.monotonic() - start < 100  # one that waits for the child to read waits for ten times as long
    monkeypatch.setattr(children.Child.close, "__defaults__", (0.1,))


def test_looking_is_cheap(compiler, warm):
    compiler._directory = warm
    text = add_one()
    compiler.compile(text)
    seconds = []
    for _ in range(10):
        start = time.thread_time()  # without what others do on a busy machine
        for _ in range(1000):
            compiler.address(text)
        seconds.append((time.thread_time() - start) / 1000)
    assert min(seconds) < 20e-6


@linux
def test_the_child_gets_nothing_of_the_launcher(compiler, monkeypatch):
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    for name in ("PMI_FD", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "PMIX_RANK", "NUMBA_DISABLE_JIT"):
        monkeypatch.setenv(name, str(writing))
    assert adds_one(compiler.compile(add_one()))
    pid = compiler._child.pid
    with open(f"/proc/{pid}/environ", "rb") as file:
        names = {word.partition(b"=")[0].decode() for word in file.read().split(b"\0") if word}
    assert names <= {*children._VARIABLES, *children._ONE_THREAD}
    files = {os.path.realpath(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")}
    assert not any(str(os.fstat(writing).st_ino) in name for name in files)
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)  # else ranks would starve it
    with open(f"/proc/{pid}/maps") as file:
        assert "mpi" not in file.read().lower()
    os.close(reading)
    os.close(writing)


@linux
def test_close_ends_the_child(tmp_path):
    made = Compiler(str(tmp_path), LIMIT)
    made.request(add_one())
    pid = made._child.pid
    made.close()
    assert not alive(pid)
    assert made.address(add_one()) is None and made.failed(add_one())
    assert not [name for name in os.listdir(tmp_path) if name.endswith(stores.LOCK)]


PARENT = """
import json, os, sys, time
from numpy_dist.backends.compiled.compiler import Compiler
compiler = Compiler(sys.argv[1], 1 << 24)
for number in range(50):
    compiler.request(json.loads(sys.argv[2]) + str(number))
if sys.argv[3] == "fork" and os.fork() == 0:
    time.sleep(200)  # holds the pipe to the child
    os._exit(0)
print(compiler._child.pid, flush=True)
time.sleep(100)
"""


@linux
@pytest.mark.parametrize("how", ["alone", "fork"])
def test_a_killed_parent_leaves_no_child(tmp_path, how):
    command = [sys.executable, "-c", PARENT, str(tmp_path), json.dumps(add_one()), how]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        pid = int(parent.stdout.readline())
        wait(lambda: any(name.endswith(stores.KERNEL) for name in os.listdir(tmp_path)))  # in the middle of the work
        assert alive(pid)
        parent.kill()
        wait(lambda: not alive(pid))
    finally:
        os.killpg(parent.pid, signal.SIGKILL) if how == "fork" else parent.kill()
        parent.wait(60)
        parent.stdout.close()
    store = stores.Store(str(tmp_path), LIMIT)
    assert not any(store.locked(name.split(".")[0]) for name in os.listdir(tmp_path) if name.endswith(stores.LOCK))


@linux
def test_a_child_that_ended_while_idle_is_started_again(compiler):
    compiler.compile(add_one())
    os.kill(compiler._child.pid, signal.SIGTERM)
    pid = compiler._child.pid
    wait(lambda: not alive(pid))
    assert adds_one(compiler.compile(add_one(tag="2")))


@linux
def test_a_forked_process_leaves_the_child_alone(compiler):
    compiler.compile(add_one())
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            compiler.request(add_one(tag="2"))
            good = adds_one(compiler.compile(add_one(tag="2")))
            compiler.close()
            os.write(writing, b"y" if good else b"n")
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"y"
    os.waitpid(process, 0)
    os.close(reading)
    assert compiler._child.alive()
    assert adds_one(compiler.compile(add_one(tag="3")))
