"""The cache's files: whole or not there, locked by one process, bounded."""

import errno
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from numpy_dist.backends import store as stores
from numpy_dist.backends.compiled import keys
from numpy_dist.backends.store import Store

KEY, OTHER = "a" * 64, "b" * 64
before_processor = keys._processor()


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "kernels"), 1 << 20)


def path(store, key, suffix=stores.KERNEL):
    return os.path.join(store.directory, key + suffix)


def dead_process():
    done = subprocess.Popen([sys.executable, "-S", "-c", ""])
    owner = stores.describe_owner(done.pid)
    done.wait(60)
    return owner


def test_what_is_written_is_read(store):
    assert (store.read(KEY), store.read_failure(KEY)) == (None, None)
    store.write(KEY, b"\x00code")
    store.write_failure(OTHER, "no such type: ä")
    assert store.read(KEY) == b"\x00code"
    assert store.read_failure(OTHER) == "no such type: ä"
    assert not [name for name in os.listdir(store.directory) if name.endswith(stores.TEMPORARY)]
    assert store.refusal() is None


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d + b"x", lambda d: b"", lambda d: d[:-1] + b"!"])
def test_a_file_that_is_not_whole_is_removed(store, damage):
    store.write(KEY, b"some code")
    with open(path(store, KEY), "rb") as file:
        data = file.read()
    with open(path(store, KEY), "wb") as file:
        file.write(damage(data))
    assert store.read(KEY) is None
    assert not os.path.exists(path(store, KEY))
    assert "damaged" in store.refusal() and store.refusal() is None
    store.write(KEY, b"anew")
    assert store.read(KEY) == b"anew"


def test_a_whole_file_under_another_name_is_refused(store):
    store.write(KEY, b"a kernel that does something else")
    store.write_failure(OTHER, "reason")
    os.link(path(store, KEY), path(store, OTHER))
    os.replace(path(store, OTHER, stores.FAILURE), path(store, "c" * 64))
    assert store.read(OTHER) is None and store.read("c" * 64) is None
    assert "another name" in store.refusal()
    assert store.read(KEY) is not None


def test_keys_depend_on_the_source_and_on_what_it_imports(monkeypatch):
    first = keys.kernel_key("def kernel(): pass")
    assert len(first) == 64 and first == keys.kernel_key("def kernel(): pass")
    assert keys.kernel_key("def kernel(): return") != first
    texts = {}

    def digest(names):
        return "+".join(sorted(names)).encode() + texts.get("version", b"")

    source = "from numpy_dist.backends.compiled.intrinsics import pause"
    with_import = keys.kernel_key(source)
    monkeypatch.setattr(keys, "_imports_digest", digest)
    assert keys.kernel_key(source) != with_import
    before = keys.kernel_key(source)
    texts["version"] = b"2"
    assert keys.kernel_key(source) != before
    monkeypatch.setattr(keys, "environment_digest", lambda: b"another processor")
    assert keys.kernel_key("def kernel(): pass") != first


@pytest.mark.parametrize("what", ["Python", "NumPy", "machine", "words", "processor"])
def test_keys_depend_on_what_a_shared_home_is_used_from(monkeypatch, what):
    digest = keys.environment_digest.__wrapped__
    before = digest()
    assert digest() == before
    if what == "Python":
        monkeypatch.setattr(keys.sys, "version", "3.99")
    elif what == "NumPy":
        monkeypatch.setattr(keys.np, "__version__", "99.0")
    elif what == "machine":
        monkeypatch.setattr(keys.os, "uname", lambda: SimpleNamespace(machine="riscv64"))
        monkeypatch.setattr(keys, "_processor", lambda: before_processor)
    elif what == "words":
        monkeypatch.setattr(keys.struct, "calcsize", lambda form: 4)
    else:
        monkeypatch.setattr(keys, "_processor", lambda: (*before_processor, "avx1024"))
    assert digest() != before


CPU = """processor\t: 0
vendor_id\t: GenuineX
cpu family\t: 6
model\t\t: 85
stepping\t: 7
cpu MHz\t\t: {mhz}
flags\t\t: {flags}

"""


def test_processors_differ_by_their_features_not_by_their_speed(tmp_path):
    def described(flags, mhz=2000, others=""):
        (tmp_path / "cpuinfo").write_text(CPU.format(flags=flags, mhz=mhz) + others)
        return keys._described(str(tmp_path / "cpuinfo"))

    plain = described("fpu sse2 avx2")
    assert plain is not None and plain == described("fpu sse2 avx2", 3000, CPU.format(flags="none", mhz=1))
    assert described("fpu sse2 avx2 avx512f") != plain
    assert described("fpu " + 1000 * "flag123 " + "last")[-1].endswith("last")
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd\n\n")
    assert keys._described(str(tmp_path / "cpuinfo")) is None
    assert keys._described(str(tmp_path / "nothing")) is None


def test_what_linux_does_not_describe_llvm_knows(tmp_path):
    import llvmlite.binding as llvm

    assert llvm.get_host_cpu_name() in keys._processor(str(tmp_path / "nothing"))


def test_the_digest_of_imports_is_that_of_the_files(monkeypatch, tmp_path):
    for name, text in (("one", "from numpy_dist.backends.compiled.two import x"), ("two", "x = 1"), ("three", "")):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(keys, "_FOLDER", str(tmp_path))
    digest = keys._imports_digest.__wrapped__
    before = digest(frozenset({"one"}))
    (tmp_path / "three.py").write_text("changed")
    assert digest(frozenset({"one"})) == before
    (tmp_path / "two.py").write_text("x = 2")
    assert digest(frozenset({"one"})) != before


def test_one_process_has_a_lock(store):
    here, there = stores.describe_owner(os.getpid()), stores.describe_owner(os.getppid())
    assert store.lock(KEY, here) and store.locked(KEY)
    assert not store.lock(KEY, there)
    store.unlock(KEY, there)  # not its own
    assert store.locked(KEY)
    store.unlock(KEY, here)
    assert not store.locked(KEY) and store.lock(KEY, there)


def test_the_lock_of_a_process_that_has_ended_is_void(store):
    assert store.lock(KEY, dead_process())
    assert not store.locked(KEY)
    assert store.lock(KEY, stores.describe_owner(os.getpid()))
    assert sorted(os.listdir(store.directory)) == [KEY + stores.LOCK]


def test_the_lock_of_a_process_that_nobody_waited_for_is_void(store):
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    owner = stores.describe_owner(process.pid)
    assert store.lock(KEY, owner) and store.locked(KEY)
    process.stdin.close()
    end = time.monotonic() + 30
    while store.locked(KEY) and not owner.endswith("?"):
        assert time.monotonic() < end
        time.sleep(0.01)
    process.wait(30)


def test_the_lock_of_a_process_number_used_again_is_void(store):
    host, pid, started = stores.describe_owner(os.getpid()).split()
    if started == "?":
        pytest.skip("this system does not tell when a process started")
    store.lock(KEY, f"{host} {pid} {int(started) - 1}")
    assert not store.locked(KEY)


def test_another_machines_lock_holds_for_as_long_as_it_is_refreshed(store):
    owner = "elsewhere 1 1"
    store.lock(KEY, owner)
    assert store.locked(KEY)
    os.utime(path(store, KEY, stores.LOCK), (0, time.time() - 2 * stores._LOCK_SECONDS))
    assert not store.locked(KEY)
    store.refresh(KEY, owner)
    assert store.locked(KEY)


def test_breaking_a_lock_puts_back_one_that_was_taken_meanwhile(store, monkeypatch):
    """Two processes see a void lock; the slower one finds the new lock of the faster one."""
    void, fresh = dead_process(), stores.describe_owner(os.getpid())
    store.lock(KEY, fresh)
    states = [(void, 0.0)]
    monkeypatch.setattr(store, "_lock_state", lambda key: states[0])
    store._break(KEY)
    monkeypatch.undo()
    assert store._lock_state(KEY)[0] == fresh
    assert os.listdir(store.directory) == [KEY + stores.LOCK]


MANY = """
import os, sys, time
from numpy_dist.backends.store import Store, describe_owner
store = Store(sys.argv[1], 1 << 20)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.001)
print(sum(store.lock(f"{number:064d}", describe_owner(os.getpid())) for number in range(200)), flush=True)
sys.stdin.read()
"""


def test_of_many_processes_one_gets_each_lock(store, tmp_path):
    os.makedirs(store.directory)
    go = tmp_path / "go"
    command = [sys.executable, "-c", MANY, store.directory, str(go)]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
    time.sleep(1)
    go.touch()
    assert sum(int(process.stdout.readline()) for process in running) == 200
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_the_bound_drops_what_was_not_used_for_longest(store):
    for number in range(6):
        store.write(f"{number:064d}", bytes(1000))
        os.utime(path(store, f"{number:064d}"), (0, 1000 * (number if number else 9)))  # the first one was used last
    store.lock(f"{1:064d}", stores.describe_owner(os.getpid()))
    store.limit = 3 * 1100
    store.shrink()
    left = {int(name.split(".")[0]) for name in os.listdir(store.directory) if name.endswith(stores.KERNEL)}
    assert left == {0, 1, 5}  # 1 is locked
    assert store.usage().bytes <= store.limit


def test_a_kernel_just_written_is_kept(store):
    store.limit = 0
    store.write(KEY, bytes(1000))
    assert store.read(KEY) is not None
    store.shrink(keep_seconds=0)
    assert store.read(KEY) is None


def test_reading_an_old_kernel_counts_as_use(store):
    store.write(KEY, b"code")
    os.utime(path(store, KEY), (0, 1000))
    store.read(KEY)
    assert time.time() - os.stat(path(store, KEY)).st_mtime < 100


def test_leavings_are_removed(store):
    store.write(KEY, b"code")
    old, young, foreign = stores._temporary_name(), stores._temporary_name(), ("foreign.txt", "x.tmp", "poetry.lock")
    for name in (old, OTHER + stores.LOCK, young, *foreign):
        with open(os.path.join(store.directory, name), "w") as file:
            file.write(dead_process() if name.endswith(stores.LOCK) else "")
    for name in (old, OTHER + stores.LOCK, *foreign):
        os.utime(os.path.join(store.directory, name), (0, 1000))
    store.shrink()
    assert sorted(os.listdir(store.directory)) == sorted([KEY + stores.KERNEL, young, *foreign])


def test_clear_and_usage(store):
    assert store.usage() == stores.Usage(store.directory, 0, 0, 1 << 20)
    store.write(KEY, b"code")
    store.write_failure(OTHER, "no")
    assert store.usage().kernels == 1
    assert store.clear() == 2
    assert store.usage().bytes == 0


def test_a_directory_that_vanishes_is_made_again(store):
    store.prepare()
    os.rmdir(store.directory)
    assert store.lock(KEY, stores.describe_owner(os.getpid()))
    store.unlock(KEY, stores.describe_owner(os.getpid()))
    os.rmdir(store.directory)
    store.write(KEY, b"code")
    assert store.read(KEY) == b"code"


@pytest.mark.parametrize("kind", ["a file", "under a file", "no permission"])
def test_an_unusable_directory_is_replaced(tmp_path, kind):
    place = tmp_path / "kernels"
    if kind == "no permission":
        if os.geteuid() == 0:
            pytest.skip("root may write anywhere")
        place.mkdir(mode=0o500)
    else:
        place.write_text("")
    wanted = str(place / "deeper" if kind == "under a file" else place)
    store, problem = Store.open(wanted, 100)
    assert repr(wanted) in problem
    assert store.directory != wanted
    store.write(KEY, b"code")
    assert store.read(KEY) == b"code"
    temporary = store.directory
    del store
    assert not os.path.exists(temporary)


def test_kernels_of_a_read_only_directory_are_used(tmp_path, monkeypatch):
    site = Store(str(tmp_path), 1 << 20)
    site.write(KEY, b"code")
    monkeypatch.setattr(Store, "prepare", lambda self: os.mkdir("/proc/no"))
    store, problem = Store.open(str(tmp_path), 1 << 20)
    assert problem and store.read(KEY) == b"code"
    store.write(OTHER, b"more")
    assert site.read(OTHER) is None


@pytest.mark.parametrize(
    "said", [b"\xff\xfe\x00", b"here 99999999999999999999 1", bytes(1 << 20)], ids=["noise", "no process", "long"]
)
def test_a_lock_that_says_nothing_of_ours_is_void_in_time(store, said):
    store.prepare()
    with open(path(store, KEY, stores.LOCK), "wb") as file:
        file.write(said.replace(b"here", stores.this_machine().encode()))
    os.utime(path(store, KEY, stores.LOCK), (0, 1000))
    assert not store.locked(KEY)
    assert store.lock(KEY, stores.describe_owner(os.getpid()))
    assert os.listdir(store.directory) == [KEY + stores.LOCK]


def test_a_machine_of_the_same_name_is_another_one(store):
    """Its processes cannot be asked, so that the lock holds for its time; a number here may be anybody's."""
    there = f"{stores.this_machine()}0 {os.getpid()} 1"
    assert store.lock(KEY, there) and store.locked(KEY)
    os.utime(path(store, KEY, stores.LOCK), (0, 1000))
    assert not store.locked(KEY)
    assert stores.this_machine().startswith(stores.socket.gethostname())


@pytest.mark.parametrize("suffix", [stores.KERNEL, stores.LOCK])
def test_a_pipe_in_place_of_a_file_stops_nobody(store, suffix):
    store.prepare()
    os.mkfifo(path(store, KEY, suffix))
    if suffix == stores.KERNEL:
        assert store.read(KEY) is None and "no regular file" in store.refusal()
    else:
        assert not store.locked(KEY) and store.lock(KEY, "us")


def test_a_folder_in_place_of_a_kernel_is_an_error_where_the_kernel_is_written(store):
    os.makedirs(path(store, KEY))
    assert store.read(KEY) is None
    with pytest.raises(OSError, match="directory"):
        store.write(KEY, b"code")
    assert os.listdir(store.directory) == [KEY + stores.KERNEL]
    assert store.clear() == 0


@pytest.mark.parametrize("file", ["kernel", "failure"])
def test_a_link_is_not_followed(store, tmp_path, file):
    store.write(KEY, b"code") if file == "kernel" else store.write_failure(KEY, "no")
    suffix = stores.KERNEL if file == "kernel" else stores.FAILURE
    os.rename(path(store, KEY, suffix), tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path(store, KEY, suffix))
    assert (store.read(KEY), store.read_failure(KEY)) == (None, None)
    assert "is a link" in store.refusal()
    assert (tmp_path / "elsewhere").exists() and not os.path.lexists(path(store, KEY, suffix))


def test_a_huge_file_is_not_read(store):
    store.write(KEY, b"code")
    os.truncate(path(store, KEY), 1 << 40)
    assert store.read(KEY) is None and str(1 << 40) in store.refusal()


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_file_that_others_can_write_is_refused(store, mode):
    store.write(KEY, b"code")
    os.chmod(path(store, KEY), mode)
    assert store.read(KEY) is None and "others can write" in store.refusal()


def test_what_is_written_is_ours_alone_whatever_the_umask(store):
    before = os.umask(0)
    try:
        store.write(KEY, b"code")
        store.lock(KEY, "us")
    finally:
        os.umask(before)
    assert os.stat(store.directory).st_mode & 0o777 == 0o700
    assert {os.stat(entry).st_mode & 0o777 for entry in os.scandir(store.directory)} == {0o644}
    assert store.read(KEY) == b"code"


def test_a_file_that_cannot_be_written_whole_leaves_nothing(store):
    """A limit on the size of files stands for a disk that is full."""
    code = (
        "import os, resource, sys\n"
        "from numpy_dist.backends.store import Store\n"
        "store = Store(sys.argv[1], 1 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    store.write('a' * 64, bytes(5000))\n"
        "except OSError as problem:\n    print(problem.errno, os.listdir(sys.argv[1]), store.read('a' * 64))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, store.directory], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{errno.EFBIG} [] None\n", done.stderr
