"""`numpy-dist run`: starts a script on several ranks, and ends with it.

`mpiexec` gets a session of its own, so that a Ctrl-C at the terminal reaches the ranks once, through the launcher.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType

from numpy_dist.cli import hosts, machine, processes, streams
from numpy_dist.cli.complaints import Complaints
from numpy_dist.cli.distant_ranks import DistantRanks, first_death
from numpy_dist.cli.library import Launcher, find_launchers, find_library, matching_launcher, outside_jobs
from numpy_dist.cli.merging import Merger, patience
from numpy_dist.cli.roll_call import AVAILABLE, Death, RollCall
from numpy_dist.comm.launchers import END_VARIABLE, NOW_VARIABLE
from numpy_dist.comm.supervision.signals import ONE_SIGTERM

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMPY_DIST_NUM_THREADS",
)
SHARED_MEMORY = "/dev/shm"
SHARED_MEMORY_PER_RANK = 12 << 20  # of which MPICH 5.0.2 is seen to need less; with 8 to 10 MiB it crashed
SILENCE = 60.0  # seconds without an answer after which another host is lost; the timeout, where it is shorter
LEAST_SILENCE = 5.0
GARBLED = 255  # Hydra's exit code where its helpers on several hosts disagree about the end of a job
GRACE = 5.0  # seconds for the ranks to end by themselves once a signal has been passed on
LOOK = 1.0  # seconds between two looks at what is running
LEFT_BEHIND = 1.0  # seconds after the last rank's end, until what it left running is ended as well


@dataclass(frozen=True)
class Job:
    """What `numpy-dist run` was asked for; `command` is the script or `-m module`, with its arguments.

    With `survives` the other ranks go on when one is killed (MPICH's launcher, on Linux). `hosts` are those that were
    named; where none were, the launcher finds them. With `bind` each rank is bound to its share of its machine's
    processors (`binder`). With `merge` equal lines of several ranks are shown once (`merging`).
    """

    ranks: int
    command: tuple[str, ...]
    backend: str | None = None
    timeout: float | None = None
    all_output: bool = False
    patch: bool = False
    debug: int | None = None
    survives: bool = False
    hosts: tuple[hosts.Place, ...] = ()
    weights: str | None = None
    bind: bool = False
    merge: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))


def _local_ranks(job: Job) -> int:
    """How many ranks a machine has at most."""
    nodes = job.environment.get("SLURM_JOB_NUM_NODES", "1")
    evenly = -(-job.ranks // max(1, int(nodes) if nodes.isdigit() else 1))
    return max((place.slots or 1 for place in job.hosts), default=evenly)


def job_environment(job: Job, cores: int) -> dict[str, str]:
    """The environment of every rank: settings, threads for its share of the cores, one order of sets."""
    environment = outside_jobs(job.environment)
    threads = str(max(1, cores // _local_ranks(job)))
    if not job.bind or job.ranks == 1:  # else each rank has as many as it has processors
        for name in THREAD_VARIABLES:
            environment.setdefault(name, threads)
    environment.setdefault("PYTHONHASHSEED", "0")
    if job.backend is not None:
        environment["NUMPY_DIST_BACKEND"] = job.backend
    if job.weights is not None:
        environment["NUMPY_DIST_WEIGHTS"] = job.weights
    if END_VARIABLE in environment:
        environment[NOW_VARIABLE] = repr(time.time())
    if job.timeout is not None:
        environment["NUMPY_DIST_TIMEOUT"] = f"{job.timeout:g}"
    return environment


def _runner(job: Job, streams: str | None = None) -> list[str]:
    options = ["--all-output"] if job.all_output else []
    options += ["--patch"] if job.patch else []
    options += [f"--debug={job.debug}"] if job.debug is not None else []
    options += [f"--entropy={secrets.token_hex(16)}"] if job.ranks > 1 else []
    options += ["--streams", streams] if streams else []
    # -P: the folder that the user stands in must not come before the standard library while the runner starts.
    return [*_binder(job), sys.executable, "-P", "-m", "numpy_dist.cli.runner", *options, "--", *job.command]


def _binder(job: Job) -> list[str]:
    """What stands before a rank's command where ranks are to be bound."""
    if not job.bind or job.ranks == 1:
        return []
    cores = machine.cores()
    limited = cores < len(os.sched_getaffinity(0))  # by a quota, which all ranks share
    most = max(1, cores // _local_ranks(job)) if limited else sys.maxsize
    limits = [f"--most={most}", f"--variables={','.join(THREAD_VARIABLES)}"]
    return [sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), "binder.py"), *limits, "--"]


def mpi_command(job: Job, launcher: Launcher, environment: dict[str, str], streams: str | None = None) -> list[str]:
    """The `mpiexec` command of the job; adds to `environment` what this family of launchers needs."""
    folder = os.path.dirname(launcher.path)
    environment["PATH"] = os.pathsep.join([folder, environment.get("PATH", os.defpath)])  # for Comm.Spawn
    options: list[str] = []
    if launcher.family == "openmpi":
        # Ranks have their threads from us; and more ranks than cores is slow but must work.
        options = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]
        if os.geteuid() == 0:
            options.append("--allow-run-as-root")
        changed = (name for name, value in environment.items() if job.environment.get(name) != value)
        options += [word for name in changed for word in ("-x", name)]
    elif launcher.family == "mpich":
        free = machine.free_bytes(SHARED_MEMORY)
        if free is not None and free < SHARED_MEMORY_PER_RANK * job.ranks:
            environment.setdefault("UCX_POSIX_DIR", tempfile.gettempdir())
        environment.setdefault("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1")  # the traceback says more
    if job.hosts:
        options += ["--host" if launcher.family == "openmpi" else "-hosts", hosts.written(job.hosts)]
    kept = job.survives and launcher.family == "mpich" and sys.platform.startswith("linux")
    keeper = [sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), "keeper.py")] if kept else []
    return [launcher.path, *options, "-n", str(job.ranks), *keeper, *_runner(job, streams)]


class Signals:
    """Passes signals on to a process: SIGINT, SIGTERM and SIGHUP, the first of which it remembers, and SIGUSR1.

    Ranks that handle SIGUSR1 and SIGTERM (`checkpoint.should_end`) get these two themselves, and have the time that
    they need: `mpiexec` would end them, as of a SIGTERM that comes later. SIGUSR1 waits for such ranks.

    Parameters
    ----------
    to_ranks : bool
        Whether the process is an `mpiexec`.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)

    def __init__(self, to_ranks: bool = True) -> None:
        self.first: int | None = None
        self.deadline = float("inf")
        self.process: subprocess.Popen[bytes] | None = None
        self._to_ranks = to_ranks
        self._waiting = False
        self._ending = float("inf")  # since when ranks are ending by themselves

    def __enter__(self) -> Signals:
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        for number in self.NUMBERS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays in force
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            # A job that SIGTERM has ended is told by an exit code, which one more must not take away.
            again = number == self.first == signal.SIGTERM
            signal.signal(number, signal.SIG_IGN if again else handler)

    def attach(self, process: subprocess.Popen[bytes]) -> None:
        """Pass signals on to `process` from now on, and one that has come already."""
        self.process = process
        if self.first is not None:
            processes.send([process.pid], self.first)

    def look(self) -> None:
        """Pass on the SIGUSR1 for which no rank was ready."""
        if self._waiting and self._to_ranks_that_end(signal.SIGUSR1):
            self._waiting = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR1:
            self._waiting = True
            self.look()
        elif number == signal.SIGTERM and self.first is None and self._is_ending(time.monotonic()):
            return
        elif self.first is None:
            self.first = number
            self.deadline = time.monotonic() + GRACE
            if self.process is not None:
                processes.send([self.process.pid], number)
        else:
            self.deadline = 0.0  # asked twice: no more patience

    def _is_ending(self, now: float) -> bool:
        """Whether ranks end by themselves, of a SIGTERM that was sent to them a moment ago, or is sent now."""
        if self._ending == float("inf") and self._to_ranks_that_end(signal.SIGTERM):
            self._ending = now
        return self._ending <= now < self._ending + ONE_SIGTERM

    def _to_ranks_that_end(self, number: int) -> bool:
        """Send a signal to those ranks that handle it; whether there are any."""
        if self.process is None:
            return False
        ranks = processes.ending_by_themselves(self.process.pid) if self._to_ranks else [self.process.pid]
        processes.send(ranks, number)
        return bool(ranks)


class Watch:
    """Waits for `mpiexec`; it is ended where it does not follow a signal or where only leftovers keep it."""

    def __init__(
        self, process: subprocess.Popen[bytes], signals: Signals, distant: DistantRanks | None = None
    ) -> None:
        self.process = process
        self._distant = distant
        self.signals = signals
        self._alone_since = float("inf")

    def wait(self) -> int:
        """The exit code of `mpiexec`."""
        look_again = time.monotonic() + LOOK
        while True:
            try:
                return self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                now = time.monotonic()
            if now > self.signals.deadline or (self._distant is not None and self._distant.silent):
                processes.send([self.process.pid], signal.SIGTERM)
                processes.end_all()
                return self.process.wait()
            if now > look_again:
                look_again = now + LOOK
                self._look(now)

    def _look(self, now: float) -> None:
        self.signals.look()
        alone = not processes.ranks_below(self.process.pid)
        self._alone_since = min(self._alone_since, now) if alone else float("inf")
        if now > self._alone_since + LEFT_BEHIND:
            # A background process that a rank started, and that holds its stdout, would keep mpiexec waiting.
            own = {self.process.pid, *processes.descendants(self.process.pid)}
            processes.send(set(processes.descendants(os.getpid())) - own, signal.SIGKILL)


def exit_code(code: int, received: int | None, death: int | None) -> int:
    """The launcher's exit code: mpiexec's, or 128 + the signal that ended it or a rank, as shells have it."""
    if received is not None:
        return 128 + received
    if death is not None:
        return 128 + death
    return 128 - code if code < 0 else code


def _explain_death(number: int, first: Death | None) -> None:
    """Say which rank was ended by a signal; one that may be another than the first is not named."""
    if number == signal.SIGINT:  # how Python ends after a KeyboardInterrupt, whose traceback was shown
        return
    if first is not None and first.failed:
        print(f"numpy-dist: rank {first.rank} failed (see above) before all ranks had started MPI", file=sys.stderr)
        return
    who = "a rank" if first is None else f"rank {first.rank} (process {first.pid})"
    if first is not None and first.host:
        _show_crash(first)
        what = "has crashed (see above)" if first.crash else "was lost: it was killed, or its host went down"
        print(f"numpy-dist: {who} on host {first.host} {what}", file=sys.stderr)
        return
    text = f"numpy-dist: {who} was ended by signal {number} ({signal.strsignal(number)})"
    if number == signal.SIGKILL:
        text += "; where nobody sent it, the system was out of memory"
    print(text, file=sys.stderr)


def _show_crash(death: Death) -> None:
    """Show where a rank on another host has crashed, as far as it has told."""
    for line in death.crash.splitlines():
        print(f"[rank {death.rank}] {line}", file=sys.stderr)


def _explain_silence(silent: dict[int, str]) -> None:
    """Say which hosts do not answer any more."""
    for host in dict.fromkeys(silent.values()):
        ranks = ", ".join(str(rank) for rank in sorted(silent) if silent[rank] == host)
        print(f"numpy-dist: host {host} does not answer any more; it ran rank {ranks}", file=sys.stderr)


def _open_standard_files() -> None:
    """Have files for stdin, stdout and stderr where they are closed: other files would get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number


def _mergers(job: Job) -> dict[int, Merger]:
    """By the number of a standard file of ranks, what merges lines that they write there."""
    if not job.merge:
        return {}
    seconds = patience(_local_ranks(job), machine.cores())
    targets = {1: sys.stdout.buffer, 2: sys.stderr.buffer} if job.all_output else {2: sys.stderr.buffer}
    return {number: Merger(job.ranks, seconds, target) for number, target in targets.items()}


def run(job: Job) -> int:
    """Run the job and return its exit code; with one rank this process becomes the script.

    Raises
    ------
    LauncherError
        Where several ranks are asked for and there is no MPI library, or no `mpiexec` that fits it.
    """
    if job.hosts:
        job = replace(job, hosts=tuple(hosts.divided(job.hosts, job.ranks)))
    environment = job_environment(job, machine.cores())
    others = [place.name for place in job.hosts if not hosts.is_here(place.name)]
    starts_here = not job.hosts or job.hosts[0].name not in others
    if job.ranks == 1 and starts_here:
        sys.stdout.flush()
        sys.stderr.flush()
        command = _runner(job)
        os.execve(command[0], command, environment)
    launcher = matching_launcher(find_library(), find_launchers())
    processes.adopt_orphans()
    _open_standard_files()
    # MPICH's mpiexec hands these down; rank 0, and not mpiexec, then reads our stdin, unless it is on another host.
    files = [os.dup(0), os.dup(1), os.dup(2)] if launcher.family == "mpich" else []
    mergers = _mergers(job)
    for number, merger in mergers.items():
        if files:
            os.dup2(merger.for_ranks.fileno(), files[number])
    elsewhere = sum(place.slots or 0 for place in job.hosts if place.name in others)
    distant = None
    if others:
        distant = DistantRanks(others, min(SILENCE, max(job.timeout or SILENCE, LEAST_SILENCE)))
        distant.describe(environment)
    roll = RollCall(job.ranks - elsewhere, distant) if files and AVAILABLE else None
    if roll is not None:
        files.append(roll.for_ranks.detach())
    command = mpi_command(job, launcher, environment, streams.describe_files(files) if files else None)
    merged = mergers[2].for_ranks if mergers else None
    with Signals() as signals:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL if files and starts_here else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if launcher.family == "mpich" else merged,
            pass_fds=files,
            start_new_session=True,
            preexec_fn=processes.end_with_parent,
        )
        for descriptor in files:
            os.close(descriptor)
        for merger in mergers.values():
            merger.start()
        listener = roll or distant
        if listener is not None:
            listener.start()
        assert process.stdout is not None
        output = streams.Filter(process.stdout, mergers[1].for_ranks if 1 in mergers else None)
        output.start()
        complaints = None
        if process.stderr is not None:
            complaints = Complaints(process.stderr, merged or sys.stderr.buffer)
            complaints.start()
        signals.attach(process)
        watch = Watch(process, signals, distant)
        try:
            code = watch.wait()
        finally:
            processes.end_all()
        output.join(GRACE)
        if complaints is not None:
            complaints.join(GRACE)
        for merger in mergers.values():
            merger.end(GRACE)
    ended, told = _outcome(job, code, signals.first, output.death(), roll, distant)
    if not told or environment.get("NUMPY_DIST_TRACEBACK") == "full":
        if complaints is not None:
            complaints.show(sys.stderr.buffer)
        for death in () if distant is None else distant.crashed():
            _show_crash(death)
    return ended


def _outcome(
    job: Job, code: int, received: int | None, death: int | None, here: RollCall | None, distant: DistantRanks | None
) -> tuple[int, bool]:
    """The launcher's exit code, and whether it is known, and has been told, what has ended the job.

    `code` is that of `mpiexec`, `received` the signal that the launcher got, and `death` the one that ended a rank, as
    far as `mpiexec` tells.
    """
    if received is not None:
        return exit_code(code, received, None), True
    # Of ranks whose places are kept mpiexec may tell nothing: it learns of their neighbours, which end by a code.
    silent = distant is not None or job.survives
    ask = death is not None or (silent and code != 0)
    first = first_death(here, distant) if ask else None
    if ask and distant is not None and distant.silent:
        _explain_silence(distant.silent)
        return 128 + signal.SIGKILL, True
    if death is None and code == GARBLED and first is not None:
        death = signal.SIGKILL
    if death is None and job.survives and first is not None:
        death = first.number
    if death is not None:
        # What mpiexec tells is mixed with the signal by which it has ended the other ranks.
        death = (first.number if first is not None else None) or death
        if death:
            _explain_death(death, first)
        if first is not None and first.failed:
            return 1, True
    return exit_code(code, None, death or None), bool(death)
