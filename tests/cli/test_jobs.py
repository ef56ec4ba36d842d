"""`numpy-dist run` and `numpy-dist info`, as their user sees them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from numpy_dist.cli import library, processes
from numpy_dist.errors import LauncherError
from tests.comm.test_exits import TOLD

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "numpy_dist"]
PATIENCE = 120.0  # seconds for a whole job, on a busy machine
SOON = 90.0  # a busy machine takes its time; ranks that nobody ends would take longer

# What the scripts of these tests begin with.
PREAMBLE = """
import os, signal, subprocess, sys, time, warnings
from numpy_dist.comm.detect import get_communicator
comm = get_communicator()
def others_wait():
    comm.barrier()
"""


@pytest.fixture(scope="session")
def mpi() -> None:
    """For tests that need several ranks."""
    try:
        library.matching_launcher(library.find_library(), library.find_launchers())
    except LauncherError as problem:
        pytest.skip(str(problem))


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment() -> dict[str, str]:
    """As outside of any job, and without this test run's own thread settings."""
    ours = ("NUMPY_DIST_", "PYTHONHASHSEED", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM")
    # How long ranks wait depends on the machine; many look at all that is written.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"NUMPY_DIST_ADVICE": "off"}


@pytest.fixture
def run(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Runs a script, given as text, with `numpy-dist run`; `text` is its standard input."""

    def run(options: str, script: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        (tmp_path / "script.py").write_text(script)
        command = [*COMMAND, "run", *options.split(), "script.py", *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as process:
            try:
                output, errors = process.communicate(text, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                pytest.fail(where_it_hangs(process))
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    return run


def where_it_hangs(process: subprocess.Popen[str]) -> str:
    """End a job, and tell what its processes are doing: the ranks print their stacks when they are aborted."""
    found = processes.descendants(process.pid)
    processes.send(found, signal.SIGABRT)
    time.sleep(1)
    processes.send(found, signal.SIGKILL)
    process.send_signal(signal.SIGABRT)
    output, errors = process.communicate()
    return f"the job hangs; below the launcher were {found}\n{output}\n{errors}"


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Callable[[str, str], subprocess.Popen[str]]:
    """Starts a script as `run` does, and returns once it has printed "ready"."""

    def start(options: str, script: str) -> subprocess.Popen[str]:
        (tmp_path / "script.py").write_text(script)
        command = [*COMMAND, "run", *options.split(), "script.py"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    return start


def gone(pids: list[int], patience: float = 30.0) -> bool:
    """Whether the processes have ended, or do within `patience` seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        alive = processes.descendants(1).keys() | processes.descendants(os.getpid()).keys()
        if not alive & set(pids):
            return True
        time.sleep(0.05)
    return False


SHOW_SELF = """
import atexit, json, os, pickle, sys
class Here: pass
atexit.register(lambda: pickle.dumps(Here()))
print(json.dumps([__name__, os.path.basename(__file__), sys.argv, sys.path[0], os.environ["PYTHONHASHSEED"]]))
sys.exit(input())
"""


def test_one_rank_runs_as_python_itself_would(run: Run, tmp_path: Path) -> None:
    done = run("", SHOW_SELF, "-n", "--x=1", text="so it ends\n")
    folder = str(tmp_path.resolve())
    assert json.loads(done.stdout) == ["__main__", "script.py", ["script.py", "-n", "--x=1"], folder, "0"]
    assert done.stderr == "so it ends\n"
    assert done.returncode == 1


def test_one_rank_needs_no_mpi(run: Run, environment: dict[str, str]) -> None:
    environment["MPI4PY_LIBMPI"] = "there-is-none.so"
    done = run("-n 1", "import sys; print('mpi4py.MPI' in sys.modules); sys.exit(7)")
    assert (done.stdout, done.returncode) == ("False\n", 7)


def test_tracebacks_begin_in_the_script(run: Run) -> None:
    done = run("", "def f():\n    1 / 0\nf()\n")
    lines = done.stderr.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", '  File "script.py", line 3, in <module>']
    assert lines[-1] == "ZeroDivisionError: division by zero"
    done = run("", "def f(:\n")
    assert "Traceback" not in done.stderr and "SyntaxError" in done.stderr and done.returncode == 1


def test_a_module_runs_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("import sys; print(__name__, __package__, sys.argv[1:])")
    (tmp_path / "package" / "__init__.py").touch()
    done = run("-m package -n 3", "")
    assert done.stdout == "__main__ package ['-n', '3', 'script.py']\n"


HELPER = """
import sys
import numpy as np

VERSION = sys.modules["numpy"].__version__

def make():
    return np.zeros(3)
"""
PATCHED = """
import sys
import numpy as np
import numpy.random as npr
from numpy.fft import fftfreq
from numpy import zeros, linalg
import helper

def inside():
    from numpy import ones
    import numpy
    return ones(3) + numpy.arange(3)

assert type(__builtins__).__name__ == "module" and __name__ == "__main__"
made = [np.zeros(9), zeros(9), inside(), npr.default_rng(1).random(9), fftfreq(9), np.linspace(0, 1, 9)]
made.append(helper.make())
print([type(x).__name__ for x in made], np.__version__ == helper.VERSION, linalg.norm(np.arange(3.0)) == 5 ** 0.5)
x = np.arange(10**6, dtype=float)
print((x[1:] - x[:-1]).sum(), x.layout.mesh.size, sys.argv)
"""


@pytest.mark.parametrize("how", ["script", "module", "folder"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_patched_scripts(mpi: None, environment: dict[str, str], tmp_path: Path, ranks: int, how: str) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    if how == "folder":
        (tmp_path / "app").mkdir()
        (tmp_path / "helper.py").rename(tmp_path / "app/helper.py")
    (tmp_path / {"folder": "app/__main__.py"}.get(how, "script.py")).write_text(PATCHED)
    program = {"script": ["script.py"], "module": ["-m", "script"], "folder": ["app"]}[how]
    command = [*COMMAND, "run", "-n", str(ranks), "--patch", *program, "word"]
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": PATIENCE}
    done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"{['DistArray'] * 7} True True"
    assert second.startswith(f"999999.0 {ranks} ") and second.endswith("'word']")
    without = subprocess.run([word for word in command if word != "--patch"], **options)
    assert without.returncode and "has no attribute 'layout'" in without.stderr


def test_a_folder_runs_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text("import beside; print(beside.x)")
    (tmp_path / "folder" / "beside.py").write_text("x = 5")
    assert run("folder", "").stdout == "5\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("", "no such script"),
        ("-n 0", "at least one"),
        ("-n two", "-n/--ranks: two is not a number of ranks"),
        ("--timeout soon", "--timeout: soon is not a number of seconds"),
        ("--backend cuda", "is not allowed"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(tmp_path: Path, options: str, complaint: str) -> None:
    command = [*COMMAND, "run", *options.split(), "missing.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and complaint in done.stderr


def test_no_script_is_refused() -> None:
    done = subprocess.run([*COMMAND, "run", "-n", "2"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "no script given" in done.stderr


TALK = (
    PREAMBLE
    + """
print("out", comm.rank, comm.size, os.environ["OMP_NUM_THREADS"])
print("err", comm.rank, file=sys.stderr)
warnings.warn("careful")
"""
)


def test_output_is_shown_once_and_errors_with_their_rank(mpi: None, run: Run) -> None:
    done = run("-n 2", TALK)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert done.returncode == 0, done.stderr
    assert done.stdout in (f"out 0 2 {max(1, cores // 2)}\n", "out 0 2 1\n")  # 1: a quota of the container
    errors = done.stderr.splitlines()
    assert {"[rank 0] err 0", "[rank 1] err 1"} <= set(errors)
    assert [line.split(" ")[1] for line in errors if "careful" in line and "UserWarning" in line] == ["0]"]


def test_all_output(mpi: None, run: Run) -> None:
    done = run("-n 2 --all-output", TALK)
    assert {line[:14] for line in done.stdout.splitlines()} == {"[rank 0] out 0", "[rank 1] out 1"}
    assert done.stderr.count("UserWarning: careful") == 2


def test_rank_0_reads_stdin(mpi: None, run: Run) -> None:
    script = PREAMBLE + "print(input() if comm.rank == 0 else None)"
    assert run("-n 2", script, text="hello\n").stdout == "hello\n"


DRAW = """
import random, numpy, numpy_dist
drawn = random.random(), *numpy.random.rand(2).tolist(), numpy.random.bytes(4).hex()
whole = numpy_dist.asarray(numpy.random.rand(100_000)) * numpy.random.rand()
print(*drawn, whole.gather()[[0, -1]])
"""


def test_global_random_generators_are_alike_on_all_ranks(mpi: None, run: Run) -> None:
    jobs = [run("-n 3 --all-output", DRAW) for _ in range(2)]
    assert [done.returncode for done in jobs] == [0, 0], jobs
    lines = [sorted(done.stdout.splitlines()) for done in jobs]
    assert [len(of_ranks) for of_ranks in lines] == [3, 3]
    drawn = [{line.partition("] ")[2] for line in of_ranks} for of_ranks in lines]
    assert len(drawn[0]) == len(drawn[1]) == 1
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        ("raise ValueError('on purpose')", 1, "ValueError: on purpose"),
        ("sys.exit(3)", 3, "SystemExit: 3"),
        ("raise SystemExit(4)", 4, "SystemExit: 4"),
        ("sys.exit('message')", 1, "message"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("1 +", 1, "SyntaxError: invalid syntax"),
    ],
)
@pytest.mark.parametrize("before", ["", PREAMBLE], ids=["before communicating", "after"])
def test_one_rank_fails(mpi: None, run: Run, end: str, code: int, says: str, before: str) -> None:
    # Compiled at run time, so that the SyntaxError is one rank's too.
    body = f"import sys\nfrom mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1:\n    exec({end!r})\n"
    if before:
        body = before + f"\nif comm.rank == 1:\n    exec({end!r})\n"
    begin = time.monotonic()
    done = run("-n 2", body + PREAMBLE + "others_wait()\n")
    assert time.monotonic() - begin < SOON
    assert done.returncode == code
    assert done.stderr.count("Traceback") <= 1
    lines = done.stderr.splitlines()
    assert lines.count(f"[rank 1] {says}") == 1, done.stderr
    assert all(line.startswith("[rank 1]") for line in lines if line.strip())
    assert "numpy_dist" not in done.stderr  # no frames of the runner


def test_a_rank_fails_before_the_others_have_started_mpi(mpi: None, run: Run) -> None:
    """It can only be killed, and that is not to be told as if the system had done so."""
    script = """
import os, time
import numpy_dist
if os.environ["PMI_RANK"] == "1":
    raise ValueError("an early one")
while True: time.sleep(0.1)
"""
    done = run("-n 3", script)
    assert done.returncode == 1, done
    assert "[rank 1] Traceback" in done.stderr and "ValueError: an early one" in done.stderr, done.stderr
    assert "numpy-dist: rank 1 failed (see above) before all ranks had started MPI\n" in done.stderr
    assert "signal 9" not in done.stderr


def test_all_ranks_fail_alike(mpi: None, run: Run) -> None:
    done = run("-n 2", PREAMBLE + "raise ValueError('on purpose')")
    assert done.returncode == 1
    assert done.stderr.count("on purpose") == 2  # the source line and the message, once
    done = run("-n 2", PREAMBLE + "sys.exit(3)")
    assert (done.returncode, done.stderr) == (3, "")


def test_a_killed_rank_is_named(mpi: None, run: Run) -> None:
    kill = "\nif comm.rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\nothers_wait()"
    done = run("-n 2", PREAMBLE + kill)
    assert done.returncode == 128 + signal.SIGKILL
    assert "numpy-dist: rank 1 (process" in done.stderr
    assert "BAD TERMINATION" not in done.stdout + done.stderr


def test_a_rank_that_waits_for_long_says_where(mpi: None, run: Run) -> None:
    done = run("-n 2 --timeout 0.5", PREAMBLE + TOLD + "if comm.rank == 0:\n    wait_until_told()\nothers_wait()")
    assert done.returncode == 0
    assert "[rank 1] has waited" in done.stderr and "others_wait()" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_job(mpi: None, start: Callable[[str, str], subprocess.Popen[str]], number: int) -> None:
    script = PREAMBLE + "comm.barrier(); print('ready')\nif comm.rank == 0:\n    time.sleep(100)\nothers_wait()"
    process = start("-n 2", script)
    below = list(processes.descendants(process.pid))
    process.send_signal(number)
    _, errors = process.communicate(timeout=SOON)
    assert process.returncode == 128 + number
    assert errors.count("Traceback") <= 1, errors
    assert gone(below)


# The ranks have met the interrupt, and rank 1 takes longer to report its error than an interrupt waits for others.
SLOW_REPORT = (
    PREAMBLE
    + """
import traceback
from numpy_dist.comm.supervision import exits, signals
exits._LEAVE_SECONDS = 20.0
def slowly(*arguments, format_exception=traceback.format_exception):
    traceback.format_exception = format_exception
    end = time.monotonic() + signals.PATIENCE + 0.5
    while time.monotonic() < end:
        time.sleep(0.01)
    return format_exception(*arguments)
if comm.rank == 1:
    traceback.format_exception = slowly
comm.barrier()
print("ready")
if comm.rank == 0:
    time.sleep(100)
others_wait()
"""
)


def test_an_interrupt_does_not_meet_the_report_of_an_error(
    mpi: None, start: Callable[[str, str], subprocess.Popen[str]]
) -> None:
    process = start("-n 2", SLOW_REPORT)
    time.sleep(0.5)  # until rank 1 waits, too
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SOON)
    assert process.returncode == 130
    assert errors.count("Traceback") == 1 and "sys.excepthook" not in errors, errors


STUBBORN = (
    PREAMBLE
    + """
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
comm.barrier()
print("ready")
time.sleep(100)
"""
)


def test_a_job_that_ignores_signals_is_killed(mpi: None, start: Callable[[str, str], subprocess.Popen[str]]) -> None:
    process = start("-n 2", STUBBORN)
    below = list(processes.descendants(process.pid))
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)  # asked twice
    process.communicate(timeout=SOON)
    assert process.returncode == 130
    assert gone(below)


def test_a_killed_launcher_leaves_no_rank(mpi: None, start: Callable[[str, str], subprocess.Popen[str]]) -> None:
    process = start("-n 2", STUBBORN)
    below = list(processes.descendants(process.pid))
    assert len(below) >= 3
    process.kill()
    process.communicate(timeout=SOON)
    assert gone(below)


def test_background_processes_end_with_the_job(mpi: None, run: Run) -> None:
    child = "import time; time.sleep(100)"
    script = PREAMBLE + f"print(subprocess.Popen([sys.executable, '-c', {child!r}]).pid)"
    begin = time.monotonic()
    done = run("-n 2", script)
    assert done.returncode == 0 and time.monotonic() - begin < SOON
    assert gone([int(done.stdout)])


def test_info() -> None:
    done = subprocess.run([*COMMAND, "info"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    names = {line.split("  ")[0] for line in done.stdout.splitlines()}
    assert {"cores", "memory", "ranks", "MPI library", "mpiexec", "backends", "packages", "missing"} <= names
    done = subprocess.run([*COMMAND, "info", "--json"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    facts = json.loads(done.stdout)
    assert facts["cores"] >= 1 and facts["backends"]["numpy"] == "ready"
    assert facts["mpi"]["library"] or facts["mpi"]["problem"]
    assert any(line.startswith("scipy (numpy_dist") and line.endswith(": off") for line in facts["plugins"])


def test_version() -> None:
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.startswith("numpy-dist ")
