"""What is compiled after the script's end: all that was asked for, for a time, and not beyond a scheduler's job."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from numpy_dist.backends import jobs
from numpy_dist.backends import store as stores
from numpy_dist.backends.compiled import keys
from numpy_dist.backends.compiled.compiler import Compiler
from numpy_dist.backends.compiled.worker import NICENESS, Queue
from tests.backends.compiled.kernels import add_one

LIMIT = 1 << 24
ENDLESS = "import time\ntime.sleep(1000)\n"  # runs when it is compiled
SOON = 45.0  # a busy machine takes its time; a child that has time would take longer

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="looks at processes in /proc")

# Asks for kernels, tells its child's number, and ends (or waits to be killed).
ASKS = """
import json, sys, time
from numpy_dist.backends.compiled.compiler import Compiler
directory, after, sources, then = sys.argv[1:]
compiler = Compiler(directory, 1 << 24, float(after))
for source in json.loads(sources):
    compiler.request(source, 1.0)
print(compiler._child.pid, flush=True)
if then == "wait":
    time.sleep(100)
"""


def wait(condition: Callable[[], Any], seconds: float = 90.0) -> Any:
    """Wait until a condition holds; fails where it does not come to hold."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value


def until(path: Path) -> str:
    """What waits for a file when it is compiled."""
    return f"import os, time\nwhile not os.path.exists({os.fspath(path)!r}):\n    time.sleep(0.01)\n"


def alive(pid: int) -> bool:
    return jobs.started(pid) not in ("?", "ended")


def kernels(directory: Path) -> int:
    return len(list(directory.glob("*" + stores.KERNEL)))


def held(directory: Path) -> list[str]:
    """The locks that a process which lives has."""
    store = stores.Store(str(directory), LIMIT)
    return [path.stem for path in directory.glob("*" + stores.LOCK) if store.locked(path.stem)]


def command(directory: Path, after: float, *sources: str, then: str = "end") -> list[str]:
    return [sys.executable, "-c", ASKS, str(directory), str(after), json.dumps(sources), then]


def asks(directory: Path, after: float, *sources: str) -> int:
    """The child of a process that has asked for kernels and ended."""
    environment = {name: value for name, value in os.environ.items() if name not in jobs.VARIABLES}
    done = subprocess.run(
        command(directory, after, *sources), env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    return int(done.stdout)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ended with the test."""
    made: list[subprocess.Popen[str]] = []
    yield made
    for process in made:
        process.kill()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def start(started: list[subprocess.Popen[str]], words: list[str], **variables: str) -> int:
    """Start a process; returns the number of its child, which it tells."""
    environment = {name: value for name, value in os.environ.items() if name not in jobs.VARIABLES} | variables
    started.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
    output = started[-1].stdout
    assert output is not None
    return int(output.readline())


@pytest.mark.slow
def test_what_was_asked_for_is_compiled_to_its_end(tmp_path: Path) -> None:
    pid = asks(tmp_path, 60.0, *(add_one(tag=str(number)) for number in range(5)))
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getsid(pid) == pid  # no terminal and no launcher takes it along
    wait(lambda: not alive(pid) or os.getpriority(os.PRIO_PROCESS, pid) == min(19, nice + NICENESS))
    wait(lambda: not alive(pid))
    assert kernels(tmp_path) == 5 and held(tmp_path) == []


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    begin = time.monotonic()
    pid = asks(tmp_path, 1.0, ENDLESS)
    wait(lambda: not alive(pid))
    assert time.monotonic() - begin >= 1.0 and kernels(tmp_path) == 0 and held(tmp_path) == []


def test_a_killed_parent_is_outlived_for_as_long(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    pid = start(started, command(tmp_path, 3.0, ENDLESS, then="wait"))
    killed = time.monotonic()
    started[0].kill()
    assert alive(pid)
    wait(lambda: not alive(pid))
    assert time.monotonic() - killed >= 2.5 and held(tmp_path) == []


def test_without_time_it_ends_with_its_parent(tmp_path: Path) -> None:
    pid = asks(tmp_path, 0.0, ENDLESS)
    wait(lambda: not alive(pid), SOON)


@pytest.mark.slow
def test_a_folder_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    pid = asks(tmp_path / "cache", 60.0, until(tmp_path / "removed") + add_one())
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "removed").touch()
    wait(lambda: not alive(pid))
    assert not (tmp_path / "cache").exists()


def test_a_folder_of_this_process_alone_is_not_outlived(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    pid = asks(tmp_path / "file", 60.0, ENDLESS)
    wait(lambda: not alive(pid), SOON)


def test_a_closed_compiler_has_no_child_that_goes_on(tmp_path: Path) -> None:
    made = Compiler(str(tmp_path), LIMIT, 60.0)
    made.request(ENDLESS)
    assert made._child is not None
    pid = made._child.pid
    made.close()
    assert not alive(pid) and held(tmp_path) == []


JOB = {"SLURM_JOB_ID": "4711"}


def test_within_a_job_it_ends_with_the_job(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    """A job's script is a shell, that lives after the program's end."""
    script = '"$@"; read line'
    environment = {name: value for name, value in os.environ.items() if name not in jobs.VARIABLES} | JOB
    shell = subprocess.Popen(
        ["sh", "-c", script, "sh", *command(tmp_path, 60.0, ENDLESS)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    started.append(shell)
    assert shell.stdin is not None and shell.stdout is not None
    pid = int(shell.stdout.readline())
    assert os.getsid(pid) == shell.pid  # where the scheduler finds it
    time.sleep(2.0)
    assert alive(pid)
    shell.stdin.close()
    shell.wait(60)
    wait(lambda: not alive(pid), SOON)
    assert held(tmp_path) == []


def test_where_the_program_is_the_job_it_ends_with_the_program(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    pid = start(started, command(tmp_path, 60.0, ENDLESS), **JOB)
    started[0].wait(60)
    wait(lambda: not alive(pid), SOON)


ROOT = "from numpy_dist.backends import jobs; print(*jobs.root_of_job('PBS_JOBID=7') or [0])"


def test_the_root_of_a_job_is_its_farthest_process(started: list[subprocess.Popen[str]]) -> None:
    inner = f'sh -c \'"$@"; true\' sh "{sys.executable}" -c "$CODE"; true'
    shell = subprocess.run(
        ["sh", "-c", f"echo $$; {inner}"],
        env=os.environ | {"PBS_JOBID": "7", "CODE": ROOT},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    own, found = shell.stdout.splitlines()
    assert found.split()[0] == own
    alone = subprocess.run(
        [sys.executable, "-c", ROOT], env=os.environ | {"PBS_JOBID": "7"}, capture_output=True, text=True, timeout=60
    )
    assert alone.stdout == "0\n", alone.stderr


def test_jobs_are_known_by_their_variables() -> None:
    assert jobs.in_job({}) is None and jobs.in_job({"SLURM_JOB_ID": ""}) is None
    assert jobs.in_job({"PBS_JOBID": "12.host"}) == "PBS_JOBID=12.host"
    assert len(jobs.NAME) <= 15


def test_what_gains_most_comes_first() -> None:
    queue = Queue()
    for key, gain in (("a", 1.0), ("b", 3.0), ("c", 3.0), ("d", 2.0)):
        queue.put(key, gain, key.upper())
    queue.put("a", 5.0)  # gains more than was thought
    queue.put("z", 9.0)  # was never asked for, or is compiled already
    assert [queue.take() for _ in range(4)] == [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")]


@pytest.mark.slow
def test_the_compiler_tells_its_child_what_gains_most(tmp_path: Path) -> None:
    made = Compiler(str(tmp_path), LIMIT)
    made.request(until(tmp_path / "asked") + add_one(tag="first"))
    texts = {gain: add_one(tag=str(gain)) for gain in (1.0, 2.0, 3.0)}
    for gain, text in texts.items():
        made.request(text, gain)
    made.request(texts[1.0], 4.0)
    (tmp_path / "asked").touch()
    files = {gain: tmp_path / (keys.kernel_key(text) + stores.KERNEL) for gain, text in texts.items()}
    wait(lambda: all(file.exists() for file in files.values()))  # asking for one would let it come first
    written = {gain: file.stat().st_mtime_ns for gain, file in files.items()}
    made.close()
    assert sorted(written, key=lambda gain: written[gain]) == [1.0, 3.0, 2.0]


def test_an_empty_cache_has_a_child_made_ready(tmp_path: Path) -> None:
    cold = Compiler(str(tmp_path), LIMIT)
    cold.prepare()
    assert cold._child is not None
    other = Compiler(str(tmp_path), LIMIT)
    other.prepare()
    assert other._child is None or other._leads()  # one child of a machine is enough
    cold.close()
    other.close()
    stores.Store(str(tmp_path), LIMIT).write("a" * 64, b"a kernel")
    warm = Compiler(str(tmp_path), LIMIT)
    warm.prepare()
    assert warm._child is None


ARRAYS = """
import sys
import numpy as np
import numpy_dist
from numpy_dist import engine

small = numpy_dist.asarray(np.ones(10))
compiler = engine.runtime().backend.compiler
print(compiler._child is not None)
large = numpy_dist.asarray(np.ones(100_000))
print(compiler._child is not None)
"""


def test_the_first_sharded_array_starts_the_child(tmp_path: Path) -> None:
    environment = os.environ | {"NUMPY_DIST_CACHE_DIR": str(tmp_path), "NUMPY_DIST_COMPILE_AFTER": "0"}
    done = subprocess.run(
        [sys.executable, "-c", ARRAYS], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "True"]


STENCIL = """
import numpy as np
import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.compiled import backend

backend.LEFT = 0.0  # which loops take a twentieth of the time, the machine's load decides
x = numpy_dist.asarray(np.linspace(0.0, 1.0, 250_000).reshape(500, 500))
for _ in range(10):
    y = 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
    x[1:-1, 1:-1] = np.sin(y)
total = float(x.sum())
counts = engine.runtime().backend.counts
print(counts["numba"], counts["numpy"], repr(total))
"""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_second_run_of_a_short_script_is_compiled_from_its_first_statement_on(tmp_path: Path, ranks: int) -> None:
    script = tmp_path / "stencil.py"
    script.write_text(STENCIL)
    cache = tmp_path / "cache"
    environment = os.environ | {"NUMPY_DIST_CACHE_DIR": str(cache), "NUMPY_DIST_NUM_THREADS": "2"}
    words = [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks), str(script)]
    said = []
    for _ in range(2):
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
        wait(lambda: not [name for name in held(cache) if not name.startswith("leader")])
    assert int(said[0][1]) > 0
    # What took less than a thousandth of a second is not asked for: the sum, and on 2 ranks ten small loops at the cut.
    assert int(said[1][0]) >= 10 and int(said[1][1]) <= {1: 1, 2: 11}[ranks]
    assert said[0][2] == said[1][2]
