"""What the diagnoses judge, as plain data: `gathering` fills it in, tests make it up."""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy_dist.cli.library import Launcher, MPILibrary


@dataclass(frozen=True)
class PackageFacts:
    """A package: its version (None: not installed), and who wants which versions, as in ``(("scipy", ">=1.26"),)``."""

    name: str
    version: str | None
    wanted: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class VersionFacts:
    """The interpreter and the packages that numpy_dist cannot be without."""

    python: PackageFacts
    packages: tuple[PackageFacts, ...]


@dataclass(frozen=True)
class SettingFacts:
    """Environment variables of numpy_dist's.

    Attributes
    ----------
    set_aside : dict of str to str
        Those that no setting can have the value of, and why.
    misspelt : dict of str to str
        Those that no setting reads, and the one that is meant.
    given : dict of str to str
        All others.
    missing : str or None
        The module that the backend needs which is asked for, where it is not installed.
    """

    set_aside: dict[str, str]
    misspelt: dict[str, str]
    given: dict[str, str]
    missing: str | None = None


@dataclass(frozen=True)
class BlasFacts:
    """The BLAS library that NumPy was built with, its threads (None: it does not tell), and the cores to use."""

    name: str
    version: str
    threads: int | None
    cores: int
    variables: tuple[str, ...] = ()  # which of those that bound the threads are set


@dataclass(frozen=True)
class ThreadFacts:
    """The variables that say how many threads a program is to use, as they are set; and the cores to use."""

    variables: dict[str, str]
    cores: int


@dataclass(frozen=True)
class MPIFacts:
    """The MPI library or the reason why there is none, and the launchers at hand.

    Attributes
    ----------
    on_path : str or None
        The launcher that a shell would find.
    problem : str or None
        Why the launchers could not be asked.
    """

    library: MPILibrary | None
    library_problem: str | None = None
    launchers: tuple[Launcher, ...] = ()
    on_path: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class SharedMemoryFacts:
    """The file system in which processes share memory: bytes in all and free, and whether it can be written."""

    folder: str
    total: int
    free: int
    writable: bool
    cores: int


@dataclass(frozen=True)
class LimitFacts:
    """What the shell lets a process use; None where that is not limited.

    Attributes
    ----------
    open_files, hard_open_files : int or None
        The limit, and the one up to which the user may raise it.
    processes, processes_used : int or None, int
        Of this user: how many processes and threads there may be, and how many there are.
    locked, address_space : int or None
        Bytes.
    infiniband : bool
        Whether there is a network whose adapters want locked memory.
    memory : int
        Bytes of memory that there are.
    cores : int
        As many ranks as there may be.
    """

    open_files: int | None
    hard_open_files: int | None
    processes: int | None
    processes_used: int
    locked: int | None
    infiniband: bool
    address_space: int | None
    memory: int
    cores: int


@dataclass(frozen=True)
class MemoryFacts:
    """Bytes of memory of the machine, what control groups leave of it, and what of that can still be had."""

    machine: int
    allowed: int
    available: int


@dataclass(frozen=True)
class CoreFacts:
    """Cores of the machine, and those that this process may run on.

    Attributes
    ----------
    machine, allowed : int
        Cores.
    group : int or None
        Those of the control group, where there is one that tells.
    quota : float or None
        How many cores' time the control groups give.
    scheduler : str or None
        The variable by which a scheduler says that this is a job of its own.
    bound : str or None
        The processors to which `numpy-dist run --bind=auto` has bound this rank.
    """

    machine: int
    allowed: int
    group: int | None = None
    quota: float | None = None
    scheduler: str | None = None
    bound: str | None = None


@dataclass(frozen=True)
class GPUFacts:
    """CUDA devices, and what CuPy says about them.

    Attributes
    ----------
    driver_here : bool
        Whether the system has a driver for devices.
    cupy_here : bool
        Whether CuPy is installed.
    problem : str or None
        Why CuPy could not be asked, or why the driver gives it no device.
    cupy : str
        CuPy's version.
    runtime, driver : int
        CUDA's versions, 1000 times the major one and 10 times the minor one: that CuPy was built for, and the newest
        that the driver knows.
    devices : tuple of str
    apart : tuple of (int, int)
        Devices that cannot reach each other's memory.
    nccl : int
        NCCL's version; 0: there is none, or it is too old.
    """

    driver_here: bool
    cupy_here: bool
    problem: str | None = None
    cupy: str = ""
    runtime: int = 0
    driver: int = 0
    devices: tuple[str, ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    nccl: int = 0


@dataclass(frozen=True)
class CacheFacts:
    """The folder of compiled kernels.

    Attributes
    ----------
    folder : str
    problem : str or None
        Why it cannot be used.
    untrusted : bool
        Whether that is because others could write there.
    used, limit : int
        Bytes that the kernels take, and may take.
    free : int or None
        Bytes of its file system; None where it does not tell.
    """

    folder: str
    problem: str | None
    untrusted: bool
    used: int
    limit: int
    free: int | None


@dataclass(frozen=True)
class ClockFacts:
    """Readings of clocks, in seconds.

    Attributes
    ----------
    before, after : float
        The time of day before and after a file was written.
    written : float
        When the file's own time says that it was.
    folder : str
        Where the file lay.
    monotonic, wall : float
        How long a short sleep took by the monotonic clock, and by the time of day.
    """

    before: float
    written: float
    after: float
    folder: str
    monotonic: float
    wall: float


@dataclass(frozen=True)
class PingFacts:
    """Messages between two ranks: seconds for a short one, bytes per second of a long one; or why there are none.

    `load` is how many programs have wanted each core in the last minute.
    """

    latency: float = 0.0
    bandwidth: float = 0.0
    problem: str | None = None
    load: float = 0.0


@dataclass(frozen=True)
class StencilFacts:
    """A stencil beside a copy of the same array, both on all threads, in bytes per second; or why there are none.

    `load` is as in `PingFacts`.
    """

    stencil: float = 0.0
    copy: float = 0.0
    threads: int = 0
    backend: str = ""
    problem: str | None = None
    load: float = 0.0


@dataclass(frozen=True)
class ChildAnswer:
    """What a child process printed, and what went wrong, in words."""

    lines: list[str] = field(default_factory=list)
    problem: str | None = None
