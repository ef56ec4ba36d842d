"""The aids for tests, and the runs of SPMD files that tests/conftest.py starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.comm import detect
from numpy_dist.comm.detect import get_communicator
from numpy_dist.errors import RankError
from numpy_dist.spmd_testing import forbid_gathers, inject, run_simulated, spmd

SEEN: list[tuple[int, int]] = []


def test_spmd_runs_a_test_on_each_number_of_ranks() -> None:
    SEEN.clear()

    @spmd(1, 3)
    def example(offset: int) -> None:
        """Its documentation."""
        comm = get_communicator()
        SEEN.append((comm.size + offset, comm.rank))

    example(10)
    assert SEEN == [(11, 0), (13, 0), (13, 1), (13, 2)]
    assert example.__doc__ == "Its documentation."


def test_forbid_gathers_is_of_one_rank_and_ends_with_its_block() -> None:
    def function() -> list[bool]:
        comm = get_communicator()
        with forbid_gathers() as same:
            assert same is comm
            comm.barrier()
            inside = comm.refuse_gathers
        return [inside, comm.refuse_gathers]

    before = get_communicator().refuse_gathers
    assert run_simulated(2, function) == [[True, False]] * 2
    with pytest.raises(ValueError, match="planted"), forbid_gathers():
        raise ValueError("planted")
    assert get_communicator().refuse_gathers is before


def example() -> int:
    """Some of each operation."""
    comm = get_communicator()
    total = sum(comm.allgather(comm.rank))
    comm.barrier()
    return comm.bcast(total, root=comm.size - 1) + len(comm.allgather("x" * 1000))


@pytest.mark.parametrize("kind", [ValueError, SystemExit, MemoryError])
def test_a_failure_at_every_communication(kind: type[BaseException]) -> None:
    def fail() -> None:
        raise kind("planted")

    def function(position: int) -> list[str]:
        with inject(position if get_communicator().rank == 1 else -1, fail) as called:
            assert example() == 3 + 3
        return called

    operations = run_simulated(3, function, -1)[0]
    # The first collective also compares the ranks' versions and settings.
    assert operations[:2] == ["_allgather_fixed", "_allgather_fixed"]
    assert operations[2:] == ["_allgather_fixed"] * 3 + ["_allgather_parts"]
    for position in range(len(operations)):
        with pytest.raises(kind, match="planted"):
            run_simulated(3, function, position)


def test_the_others_see_a_rank_error() -> None:
    seen: dict[int, int | None] = {}

    def leave() -> None:
        raise SystemExit(3)

    def function() -> None:
        comm = get_communicator()
        try:
            with inject(2 if comm.rank == 0 else -1, leave):
                example()
        except RankError as error:
            seen[comm.rank] = error.rank

    with pytest.raises(SystemExit):
        run_simulated(3, function)
    assert seen == {1: 0, 2: 0}


# -- the runs under MPI ----------------------------------------------------------------------------------------------

PLANTED = """
import pytest, time
from hypothesis import given, settings, strategies as st
from numpy_dist.comm.detect import get_communicator
pytestmark = pytest.mark.spmd

def test_passes(tmp_path):
    comm = get_communicator()
    assert comm.allgather(comm.rank) == list(range(comm.size))
    assert len(set(comm.allgather(tmp_path))) == 1

def test_one_rank_fails():
    comm = get_communicator()
    assert comm.rank != 1, "planted"
    comm.barrier()

def test_after_it():
    get_communicator().barrier()

def test_every_rank_fails():
    assert get_communicator().size == 1, "everywhere"

def test_skips():
    pytest.skip("reason")

@pytest.fixture
def broken():
    assert get_communicator().rank != 1, "in the fixture"

def test_fixture(broken):
    get_communicator().barrier()

@pytest.mark.xfail(strict=True)
def test_expected():
    if get_communicator().rank == 0:
        raise ValueError
    get_communicator().barrier()
    raise ValueError

@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_examples(number):
    comm = get_communicator()
    assert comm.allgather(number) == [number] * comm.size

@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_examples_that_fail(number):
    comm = get_communicator()
    assert comm.rank != 1 or number < 10, "for large numbers"
    comm.barrier()

def test_last():
    get_communicator().barrier()
"""

HANGS = """
import pytest, time
from numpy_dist import spmd_testing
from numpy_dist.comm.detect import get_communicator
pytestmark = pytest.mark.spmd
spmd_testing._SECONDS_FOR_OTHERS = 4.0  # on a busy machine

def test_hangs():
    if get_communicator().rank == 1:
        time.sleep(60)
    get_communicator().barrier()
"""


def pytest_on(folder: Path, content: str, *options: str) -> subprocess.CompletedProcess[str]:
    if detect.find_mpiexec() is None:
        pytest.skip("there is no mpiexec")
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_planted.py").write_text(content)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
        *options,
        str(folder),
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_outcomes_are_agreed(tmp_path: Path) -> None:
    result = pytest_on(tmp_path, PLANTED, "--ranks", "1,3")
    assert result.returncode == 1
    text = result.stdout
    assert "3 ranks: 1 error, 3 failed, 4 passed, 1 skipped, 1 xfailed" in text
    assert "1 failed, 8 passed, 1 skipped, 1 xfailed" in text, "the job is one test of the outer run"
    for name in ("test_one_rank_fails", "test_every_rank_fails", "test_fixture", "test_examples_that_fail"):
        assert name in text
    for name in ("test_after_it", "test_last", "test_examples -", "test_expected"):
        assert name not in text
    assert "[rank 1]" in text and "AssertionError: planted" in text
    assert "[rank 0, 2]\nRankError: rank 1 has ended (AssertionError: planted" in text
    assert "number=10" in text, "the example shrinks on all ranks together"


@pytest.mark.slow
def test_a_selection_is_passed_on(tmp_path: Path) -> None:
    result = pytest_on(tmp_path, PLANTED, "--ranks", "2", "-k", "passes or skips or mpiexec")
    assert result.returncode == 0, result.stdout
    assert "2 ranks: 1 passed, 1 skipped" in result.stdout
    result = pytest_on(tmp_path, PLANTED, "--ranks", "1", "-k", "passes")
    assert result.returncode == 0 and "ranks:" not in result.stdout


@pytest.mark.slow
def test_a_hanging_test_ends_with_all_stacks(tmp_path: Path) -> None:
    result = pytest_on(
        tmp_path, HANGS, "--ranks", "2", "--spmd-timeout", "2", "-k", "mpiexec or hangs", "--deselect", "x"
    )
    assert result.returncode == 1
    for rank, line in enumerate(["get_communicator().barrier()", "time.sleep(60)"]):
        assert f"[rank {rank}] test_planted.py::test_hangs: the time limit of 2 s is over" in result.stdout
        assert f"[rank {rank}]     {line}" in result.stdout


@pytest.mark.slow
def test_a_crash_is_a_failure(tmp_path: Path) -> None:
    content = HANGS.replace("time.sleep(60)", "__import__('os')._exit(0 if comm_size() == 1 else 9)")
    content += "\ndef comm_size():\n    return get_communicator().size\n"
    result = pytest_on(tmp_path, content, "--ranks", "2")
    assert result.returncode == 1
    assert "2 ranks: no report; exit code" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "1"])
def test_workers_begin_with_the_jobs(workers: str, tmp_path: Path) -> None:
    """One of them runs jobs, which take longest, while the others run what is left."""
    pytest.importorskip("xdist")
    result = pytest_on(tmp_path, PLANTED, "--ranks", "1,2", "-k", "passes or mpiexec", "-n", workers, "-vv")
    assert result.returncode == 0 and "2 ranks: 1 passed" in result.stdout, result.stdout
    passed = "\n".join(line for line in result.stdout.splitlines() if "PASSED" in line)
    run = re.findall("test_passes|mpiexec -n 2", passed)
    assert run == (["test_passes", "mpiexec -n 2"] if workers == "0" else ["mpiexec -n 2", "test_passes"])


PAGE = Path(__file__).parents[1] / "docs/testing-your-code.md"
WITHOUT = 'raise ModuleNotFoundError("No module named {0!r}", name={0!r})\n'


@pytest.mark.slow
def test_the_example_of_the_page_needs_no_hypothesis(tmp_path: Path) -> None:
    if detect.find_mpiexec() is None:
        pytest.skip("there is no mpiexec")
    for content in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / content.splitlines()[0].removeprefix("# ")).write_text(content)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "hypothesis.py").write_text(WITHOUT.format("hypothesis"))
    # Its own plug-in would be loaded, on the ranks, too.
    environment = os.environ | {"PYTHONPATH": str(hidden), "PYTEST_ADDOPTS": "-p no:hypothesispytest"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "2 ranks: 3 passed" in done.stdout and "4 passed" in done.stdout
