"""The report of an error that ends a job begins and ends in the user's code: numpy_dist's own lines are left out."""

from __future__ import annotations

import subprocess
import sys
import traceback

import numpy as np
import pytest

import numpy_dist
from numpy_dist.comm.supervision.tracebacks import shorten
from numpy_dist.frames import hide_internal
from numpy_dist.settings import config
from tests.cli.test_jobs import Run, environment, mpi, run  # noqa: F401 - fixtures

SCRIPT = """
import numpy_dist as np

def inner(part):
    return 1 / len(part[:0])

def outer(x):
    return np.map_blocks(inner, x).sum()

outer(np.asarray(range(100_000), split=0))
"""


def reported(error: BaseException) -> list[tuple[str, str]]:
    """The lines of a traceback: which package, and which function."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [(frame.f_globals["__name__"].partition(".")[0], frame.f_code.co_name) for frame in frames]


def failing() -> BaseException:
    """An error that this package has met as it called a function of the user's, and one that came of it."""

    def inner(part: np.ndarray) -> object:
        raise ValueError("inner")

    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.arange(12.0)
        try:
            try:
                numpy_dist.map_blocks(inner, x).sum()
            except ValueError as error:
                raise KeyError("outer") from error
        except KeyError as error:
            return error
    raise AssertionError


def test_own_lines_are_taken_out_of_all_errors_of_a_chain() -> None:
    error = failing()
    assert error.__cause__ is not None
    before = reported(error.__cause__)
    assert ("numpy_dist", "map_blocks") in before
    hidden = hide_internal(error)
    after = reported(error.__cause__)
    assert [function for _, function in after] == ["failing", "inner"]
    assert hidden == len(before) - 2
    assert [function for _, function in reported(error)] == ["failing"]


def test_a_traceback_of_own_lines_only_stays() -> None:
    error = failing().__cause__
    assert error is not None and error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    lines = [line for line in reported(error) if line[1] != "inner"]
    assert lines and all(package == "numpy_dist" for package, _ in lines)
    hide_internal(error)
    assert [function for _, function in reported(error)] == ["inner"]
    error = TypeError()
    assert hide_internal(error) == 0 and error.__traceback__ is None


def test_an_error_that_was_met_inside_is_not_shown() -> None:
    with config(MIN_SHARD_BYTES=0), pytest.raises(np.exceptions.AxisError) as caught:
        numpy_dist.arange(12.0).sum(axis=5)
    assert caught.value.__context__ is not None  # NumPy was asked for its own words
    hide_internal(caught.value)
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("Traceback") == 1 and "numpy_dist/" not in text


def test_errors_that_the_program_has_met_are_shown() -> None:
    try:
        try:
            {}["key"]
        except KeyError:
            with config(MIN_SHARD_BYTES=0):
                numpy_dist.arange(12.0).sum(axis=5)
    except np.exceptions.AxisError as error:
        hide_internal(error)
        text = "".join(traceback.format_exception(error))
    assert "KeyError" in text and "numpy_dist/" not in text


def test_an_error_that_came_of_itself_ends_the_search() -> None:
    first, second = ValueError(), KeyError()
    first.__context__, second.__context__ = second, first
    assert hide_internal(first) == 0


def test_the_setting_shows_them() -> None:
    with config(TRACEBACK="full"):
        error = failing().__cause__
        assert error is not None
        before = reported(error)
        assert shorten(error) == "" and reported(error) == before
    with config(TRACEBACK="short"):
        assert f"({len(before) - 2} lines inside numpy_dist are left out;" in shorten(error)


def test_errors_met_inside_that_came_of_each_other_end_the_search() -> None:
    met = []
    for _ in range(2):
        with config(MIN_SHARD_BYTES=0), pytest.raises(np.exceptions.AxisError) as caught:
            numpy_dist.arange(12.0).sum(axis=5)
        met.append(caught.value.__context__)
    first, second = met
    assert first is not None and second is not None
    first.__context__, second.__context__ = second, first
    shown = ValueError()
    shown.__context__ = first
    hide_internal(shown)
    assert shown.__context__ is first


PROMPT = """
import numpy_dist as np
x = np.ones((600, 500))
x.sum(axis=5)
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["-c", PROMPT], ["-i"], ["-m", "IPython", "--simple-prompt", "--colors=NoColor"]])
def test_python_and_ipython_without_a_launcher(words: list[str], environment: dict[str, str]) -> None:  # noqa: F811
    given = {"input": PROMPT, "env": environment, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run([sys.executable, *words], **given)
    assert (done.stdout + done.stderr).count("Traceback") == 1 and "in _axes" not in done.stdout + done.stderr
    assert "AxisError: axis 5 is out of bounds for array of dimension 2" in done.stdout + done.stderr
    assert "lines inside numpy_dist are left out; NUMPY_DIST_TRACEBACK=full shows them" in done.stdout + done.stderr
    environment["NUMPY_DIST_TRACEBACK"] = "full"
    done = subprocess.run([sys.executable, *words], **given)
    assert "in _axes" in done.stdout + done.stderr and "left out" not in done.stdout + done.stderr


def test_a_setting_that_cannot_be(environment: dict[str, str]) -> None:  # noqa: F811
    environment["NUMPY_DIST_BACKEND"] = "nonsense"
    words = [sys.executable, "-c", "import numpy_dist as np\nnp.ones(3)"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stderr.count("Traceback") == 1
    assert "SettingError: environment variable NUMPY_DIST_BACKEND" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_script_fails(mpi: None, run: Run, environment: dict[str, str], ranks: int) -> None:  # noqa: F811
    done = run(f"-n {ranks}", SCRIPT)
    lines = [line.removeprefix("[rank 0] ") for line in done.stderr.splitlines()]
    assert [line.strip().removeprefix('File "script.py", ') for line in lines if "File" in line] == [
        "line 10, in <module>",
        "line 8, in outer",
        "line 5, in inner",
    ]
    assert any("lines inside numpy_dist are left out; NUMPY_DIST_TRACEBACK=full shows them" in line for line in lines)
    environment["NUMPY_DIST_TRACEBACK"] = "full"
    done = run(f"-n {ranks}", SCRIPT)
    assert done.returncode == 1 and "in map_blocks" in done.stderr and "left out" not in done.stderr


@pytest.mark.slow
def test_a_hook_of_the_users_gets_all_of_it(mpi: None, run: Run) -> None:  # noqa: F811
    hook = (
        "import sys, traceback\n"
        "def hook(kind, value, trace):\n"
        "    print('mine', 'map_blocks' in str(traceback.extract_tb(trace).format()), file=sys.stderr)\n"
        "sys.excepthook = hook\n"
    )
    done = run("-n 2", hook + SCRIPT)
    assert done.returncode == 1 and "mine True" in done.stderr and "left out" not in done.stderr
