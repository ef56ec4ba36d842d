"""The facts that `numpy-dist doctor` judges, as this machine has them: all that looks at it is here."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import resource
import shutil
import sys
import tempfile
import time
from difflib import get_close_matches
from importlib import metadata, util
from pathlib import Path
from typing import Any

import numpy as np

from numpy_dist.backends import trust
from numpy_dist.backends.base import has_numba
from numpy_dist.backends.compiled.threads_count import cpu_quota
from numpy_dist.backends.store import Store
from numpy_dist.cli import binder, launcher, machine, report
from numpy_dist.cli.doctor.children import ask
from numpy_dist.cli.doctor.facts import (
    BlasFacts,
    CacheFacts,
    ChildAnswer,
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
from numpy_dist.cli.entry import SET_ASIDE
from numpy_dist.cli.library import Launcher, MPILibrary
from numpy_dist.engine.memory.limits import Limits
from numpy_dist.settings import NAMES, PREFIX, config

# Seconds until a child is given up. A healthy one takes a third of it; with one that hangs the whole takes below 20.
MPI_PATIENCE, GPU_PATIENCE, PING_PATIENCE, STENCIL_PATIENCE = 6.0, 10.0, 10.0, 10.0

# How BLAS libraries call what tells the number of their threads; wheels add a prefix and a suffix to OpenBLAS' names.
_BLAS_FILE = re.compile(r"/[^\n]*(?:openblas|libmkl_rt|libblis)[^/\n]*$", re.MULTILINE)
_BLAS_THREADS = (
    "scipy_openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "openblas_get_num_threads",
    "MKL_Get_Max_Threads",
    "bli_thread_get_num_threads",
)
_DEVICE_FILES = (report.GPU_DEVICE, "/dev/dxg")  # the second one is that of Windows' Linux
_SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "JOB_ID")
_SLEEP = 0.05
_NEAR = 0.75  # of how alike names are; those of other variables than settings are less
_SILENT = "it ended without an answer"


def _said(answer: ChildAnswer) -> dict[str, Any] | None:
    """The object of a child that did as it was asked; None where it failed."""
    lines = [line for line in answer.lines if line.startswith("{")]  # a report may come before or behind
    return json.loads(lines[-1]) if lines and answer.problem is None else None


# -- the installation -------------------------------------------------------------------------------------------------


def _wanted(package: str) -> dict[str, str]:
    """What a package requires without any extra: names and versions."""
    found = {}
    for requirement in metadata.requires(package) or ():
        text, _, marker = requirement.partition(";")
        name = re.match(r"[\w.-]+", text)
        if name and not marker.strip():
            found[name[0]] = re.sub(r"^\[.*?\]", "", text[name.end() :].strip()).strip(" ()")
    return found


def versions() -> VersionFacts:
    """The interpreter, the packages that numpy_dist requires, and what these require of NumPy."""
    own = _wanted("numpy-dist")
    wanted = {name: [("numpy_dist", specifier)] for name, specifier in own.items()}
    for name in own:
        numpy = _wanted(name).get("numpy") if report.version(name) else None
        if numpy:
            wanted["numpy"].append((name, numpy))
    python = metadata.metadata("numpy-dist")["Requires-Python"] or ""
    return VersionFacts(
        PackageFacts("Python", platform.python_version(), (("numpy_dist", python),)),
        tuple(PackageFacts(name, report.version(name), tuple(by)) for name, by in wanted.items()),
    )


def _blas_threads(maps: Path = Path("/proc/self/maps")) -> int | None:
    """The threads of the BLAS library that NumPy has loaded, as the library tells them."""
    try:
        files = set(_BLAS_FILE.findall(maps.read_text()))
    except OSError:  # no Linux
        return None
    for file in sorted(files, key=lambda file: "numpy" not in file):
        loaded = ctypes.CDLL(file)
        for name in _BLAS_THREADS:
            if hasattr(loaded, name):
                return int(getattr(loaded, name)())
    return None


def blas() -> BlasFacts:
    """NumPy's BLAS library."""
    built = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})  # type: ignore[union-attr]
    variables = tuple(name for name in launcher.THREAD_VARIABLES[:3] if os.environ.get(name))
    name, version = str(built.get("name", "")), str(built.get("version", ""))
    return BlasFacts(name, version, _blas_threads(), machine.cores(), variables)


def settings() -> SettingFacts:
    """The variables that begin with ``NUMPY_DIST_``."""
    given = {name: text for name, text in os.environ.items() if name.startswith(PREFIX) and text.strip()}
    misspelt = {}
    for variable in given:
        name = variable.removeprefix(PREFIX)
        near = [] if name in NAMES else get_close_matches(name.upper(), NAMES, 1, _NEAR)
        if near:
            misspelt[variable] = PREFIX + near[0]
    needed = [report.BACKENDS.get(name, ("", None))[1] for name in config.BACKEND.split(",")]
    missing = next((name for name in needed if name is not None and util.find_spec(name) is None), None)
    others = {name: text for name, text in given.items() if name not in misspelt}
    return SettingFacts(dict(SET_ASIDE), misspelt, others, missing)


def threads() -> ThreadFacts:
    """The variables that the launcher would set, where the user has set them."""
    return ThreadFacts(
        {name: os.environ[name] for name in launcher.THREAD_VARIABLES if os.environ.get(name)}, machine.cores()
    )


def mpi() -> MPIFacts:
    """The MPI library and the launchers, which a child process finds."""
    answer = ask(["-m", "numpy_dist.cli.doctor.mpi_survey"], MPI_PATIENCE)
    found = [json.loads(line) for line in answer.lines if line.startswith(("{", "["))]
    first: dict[str, Any] = found[0] if found else {"problem": answer.problem}
    loaded = None
    if "library" in first:
        loaded = MPILibrary(**first["library"] | {"files": tuple(first["library"]["files"])})
    launchers = tuple(Launcher(**entry) for entry in found[1]) if len(found) > 1 else ()
    on_path = shutil.which("mpiexec") or shutil.which("mpirun")
    return MPIFacts(loaded, first.get("problem"), launchers, on_path, answer.problem)


def gpu() -> GPUFacts:
    """CUDA devices, as CuPy sees them in a child process; without CuPy, whether there is a driver."""
    driver, cupy = any(map(os.path.exists, _DEVICE_FILES)), util.find_spec("cupy") is not None
    if not (driver and cupy):
        return GPUFacts(driver, cupy)
    return ask_cupy()


def ask_cupy() -> GPUFacts:
    """What CuPy says, where there are a driver and CuPy."""
    answer = ask(["-m", "numpy_dist.backends.cupy.survey"], GPU_PATIENCE)
    said = _said(answer)
    if said is None:
        return GPUFacts(True, True, answer.problem or _SILENT)
    said |= {"devices": tuple(said["devices"]), "apart": tuple(map(tuple, said["apart"]))}
    return GPUFacts(True, True, **said)


# -- what the process may use -----------------------------------------------------------------------------------------


def shared_memory(folder: str = launcher.SHARED_MEMORY) -> SharedMemoryFacts | None:
    """The file system of shared memory; None on systems that have it nowhere in the file system."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        state = os.statvfs(folder)
    except FileNotFoundError:
        return SharedMemoryFacts(folder, 0, 0, False, machine.cores())
    writable = os.access(folder, os.W_OK) and not state.f_flag & os.ST_RDONLY
    total, free = state.f_blocks * state.f_frsize, state.f_bavail * state.f_frsize
    return SharedMemoryFacts(folder, total, free, writable, machine.cores())


def _threads_of_user(processes: Path = Path("/proc")) -> int:
    """How many threads this user's processes have, which is what the system counts."""
    count = 0
    for folder in processes.glob("[0-9]*"):
        try:
            if folder.stat().st_uid == os.getuid():
                count += len(os.listdir(folder / "task"))
        except OSError:  # it has ended meanwhile
            continue
    return count


def _soft(which: int) -> int | None:
    limit = resource.getrlimit(which)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def limits() -> LimitFacts:
    """The limits that this process hands down to those it starts."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = None if os.geteuid() == 0 else _soft(resource.RLIMIT_NPROC)  # does not hold for root
    return LimitFacts(
        open_files=_soft(resource.RLIMIT_NOFILE),
        hard_open_files=None if hard == resource.RLIM_INFINITY else hard,
        processes=processes,
        processes_used=0 if processes is None else _threads_of_user(),
        locked=_soft(resource.RLIMIT_MEMLOCK),
        infiniband=os.path.isdir("/dev/infiniband"),
        address_space=_soft(resource.RLIMIT_AS),
        memory=Limits().room().total,
        cores=machine.cores(),
    )


def memory(
    meminfo: Path = Path("/proc/meminfo"),
    root: Path = Path("/sys/fs/cgroup"),
    membership: Path = Path("/proc/self/cgroup"),
) -> MemoryFacts:
    """Memory of the machine, and what the control groups leave of it."""
    room = Limits(meminfo, root, membership).room()
    alone = Limits(meminfo, root, Path(os.devnull)).room()  # as if in no group
    return MemoryFacts(alone.total, room.total, room.available)


def _numbers(text: str) -> int:
    """How many numbers a list such as ``0-3,8`` has."""
    bounds = [part.split("-") for part in text.strip().split(",") if part]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in bounds)


def _cores_of_group(root: Path, membership: Path) -> int | None:
    """The cores of the control group; None where there is none that tells."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpuset" not in controllers.split(","):
            continue
        top, name = (root / controllers, "cpuset.cpus") if controllers else (root, "cpuset.cpus.effective")
        for file in (top / path.strip("/") / name, top / name):
            if file.is_file() and (count := _numbers(file.read_text())):
                return count
    return None


def cores(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> CoreFacts:
    """Cores of the machine, and what affinity and control groups leave of them."""
    count = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else count
    scheduler = next((name for name in _SCHEDULERS if os.environ.get(name)), None)
    group, limit = _cores_of_group(root, membership), cpu_quota(root, membership)
    return CoreFacts(count, allowed, group, limit, scheduler, os.environ.get(binder.BOUND))


# -- files and clocks -------------------------------------------------------------------------------------------------


def cache() -> CacheFacts:
    """The folder of compiled kernels; it is made, and written to."""
    store = Store(config.CACHE_DIR, config.CACHE_SIZE)
    problem: OSError | None = None
    try:
        store.prepare()
    except OSError as caught:
        problem = caught
    said = None if problem is None else str(problem)
    untrusted = isinstance(problem, trust.Untrusted)
    free = machine.free_bytes(store.directory)
    return CacheFacts(store.directory, said, untrusted, store.usage().bytes, store.limit, free)


def clock() -> ClockFacts:
    """Readings of the clocks, and the time of a new file: in the folder of kernels, or where temporary files are."""
    begin, wall = time.monotonic(), time.time()
    time.sleep(_SLEEP)
    elapsed, passed = time.monotonic() - begin, time.time() - wall
    folder = config.CACHE_DIR if os.access(config.CACHE_DIR, os.W_OK) else tempfile.gettempdir()
    before = time.time()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"now")
        file.flush()
        os.fsync(file.fileno())  # a file server's time, not what this machine thinks it will be
        written = os.fstat(file.fileno()).st_mtime
    return ClockFacts(before, written, time.time(), folder, elapsed, passed)


# -- how fast it is ---------------------------------------------------------------------------------------------------


def ping() -> PingFacts:
    """Messages between two ranks that `numpy-dist run` has started."""
    module = "numpy_dist.cli.doctor.ping"
    answer = ask(["-m", "numpy_dist", "run", "-n", "2", "--", "-m", module], PING_PATIENCE)
    said = _said(answer)
    return PingFacts(problem=answer.problem or _SILENT, load=_load()) if said is None else PingFacts(**said)


def stencil() -> StencilFacts:
    """A stencil in the host's memory beside a copy, by one rank on all its threads."""
    backend = "numba" if has_numba() else "numpy"  # a device has memory of its own
    settings = {"NUMPY_DIST_BACKEND": backend, "NUMPY_DIST_COMPILE": "first", "NUMPY_DIST_COMPILE_AFTER": "0"}
    answer = ask(["-m", "numpy_dist.cli.doctor.stencil"], STENCIL_PATIENCE, **settings)
    said = _said(answer)
    return StencilFacts(problem=answer.problem or _SILENT, load=_load()) if said is None else StencilFacts(**said)


def _load() -> float:
    """How many programs have wanted each core in the last minute."""
    return os.getloadavg()[0] / machine.cores()
