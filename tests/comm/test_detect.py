"""Which communicator a program gets, with faked launcher environments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.comm import detect, launchers
from numpy_dist.comm.simulated import run_simulated

CODE = """
import sys
from numpy_dist.comm.detect import get_communicator
from numpy_dist.errors import LauncherError
try:
    comm = get_communicator()
    print(comm.name, comm.size, sys.modules.get("mpi4py") is not None)
except LauncherError as error:
    print("LauncherError:", error)
"""


def clean_environment() -> dict[str, str]:
    """As outside of any job."""
    hidden = (*launchers._HIDDEN_PREFIXES, *launchers.LAUNCHER_VARIABLES, launchers._MARK)
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def outcome(prefix: str = "", **variables: str) -> str:
    environment = {**clean_environment(), **variables}
    result = subprocess.run(
        [sys.executable, "-c", prefix + CODE], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_one_rank_loads_no_mpi() -> None:
    assert outcome() == "single 1 False"
    assert outcome(PMI_SIZE="1") == "single 1 False"
    assert outcome(SLURM_NTASKS="8", SLURM_JOB_ID="1") == "single 1 False"
    assert outcome(OMPI_COMM_WORLD_SIZE="text") == "single 1 False"


@pytest.mark.parametrize("variable", [name for name in launchers.LAUNCHER_VARIABLES if name not in ("PMI_SIZE",)])
def test_launcher_and_library_that_do_not_fit(variable: str) -> None:
    text = outcome(**{variable: "4"})
    assert text.startswith("LauncherError: the launcher started 4 ranks")
    assert f"({variable}=4)" in text and "sees 1 rank" in text and f"unset {variable}" in text
    assert "mpich" in text.lower() or "open mpi" in text.lower(), "names the library"


def test_no_library() -> None:
    missing = "import sys; sys.modules['mpi4py'] = None\n"
    text = outcome(missing, OMPI_COMM_WORLD_SIZE="2")
    assert text.startswith("LauncherError: the launcher started 2 ranks (OMPI_COMM_WORLD_SIZE=2), but no MPI library")
    assert "numpy-dist[mpich]" in text
    assert outcome(missing, PMIX_RANK="0") == "single 1 False"
    assert outcome(missing) == "single 1 False"


def test_pmix_tells_a_rank_only() -> None:
    assert outcome(PMIX_RANK="0") == "single 1 True"


def test_mpich_is_not_started_where_it_would_abort() -> None:
    text = outcome(PMIX_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    assert text.startswith("LauncherError: the launcher started 2 ranks") and "sees 1 rank" in text


def test_a_program_that_has_started_mpi_itself_with_one_rank() -> None:
    assert outcome("from mpi4py import MPI\n") == "single 1 True"


def test_launched_ranks() -> None:
    assert launchers.launched_ranks({}) is None
    assert launchers.launched_ranks({"PMI_SIZE": "1", "MPI_LOCALNRANKS": "1"}) is None
    assert launchers.launched_ranks({"SLURM_STEP_NUM_TASKS": "12"}) == ("SLURM_STEP_NUM_TASKS", 12)
    assert launchers.launched_ranks({"PMI_SIZE": "3", "SLURM_STEP_NUM_TASKS": "12"}) == ("PMI_SIZE", 3)


def test_children_of_a_rank_are_known_by_the_mark() -> None:
    environment = {"PMI_SIZE": "3"}
    launchers.mark_process(environment)
    assert launchers.launched_ranks(environment) == ("PMI_SIZE", 3)
    environment[launchers._MARK] = str(os.getppid())
    assert launchers.launched_ranks(environment) is None
    # Processes of a launcher that a rank has called have another parent, and pipes that are open.
    environment[launchers._MARK] = "1"
    reading, writing = os.pipe()
    environment["PMI_FD"] = str(reading)
    assert launchers.launched_ranks(environment) == ("PMI_SIZE", 3)
    os.close(reading)
    os.close(writing)
    assert launchers.launched_ranks(environment) is None


def test_what_is_hidden_from_children() -> None:
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    environment = {
        "PMI_FD": str(reading),
        "PMI_SIZE": "2",
        "PMIX_RANK": "0",
        "MPI_LOCALNRANKS": "2",
        "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_MCA_btl": "self",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_JOB_ID": "7",
        "PATH": "/bin",
    }
    launchers.hide_from_children(environment)
    assert environment == {"OMPI_MCA_btl": "self", "SLURM_JOB_ID": "7", "PATH": "/bin"}
    assert not os.get_inheritable(reading)
    os.close(reading)
    os.close(writing)


def test_mpiexec_of_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("environment/bin", "other"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "mpiexec").touch(0o755)
    path = {"PATH": str(tmp_path / "other")}
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    assert detect.find_mpiexec(path) == str(tmp_path / "environment/bin/mpiexec")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert detect.find_mpiexec(path) == str(tmp_path / "other/mpiexec")
    assert detect.find_mpiexec({"PATH": ""}) is None


@pytest.mark.slow
@pytest.mark.parametrize("nranks", [2, 3, 4])
def test_operations_under_mpi(nranks: int) -> None:
    mpiexec = detect.find_mpiexec()
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    program = Path(__file__).with_name("test_communicator.py")
    result = subprocess.run(
        [mpiexec, "-n", str(nranks), sys.executable, str(program)],
        env={**clean_environment(), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("checks passed") == nranks


ON_RANK_ZERO = """
import sys
import numpy_dist
print(numpy_dist.on_rank_zero(), "mpi4py" in sys.modules)
"""


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "True False"),
        ({"PMI_SIZE": "3", "PMI_RANK": "0"}, "True False"),
        ({"PMI_SIZE": "3", "PMI_RANK": "2"}, "False False"),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, "False False"),
        ({"SLURM_PROCID": "1"}, "True False"),  # of a job's batch script, say
    ],
)
def test_rank_0_is_known_from_the_launcher(variables: dict[str, str], told: str) -> None:
    # `os._exit` is numpy_dist's own on a rank: nobody is to join MPI at the end.
    code = "import os; leave = os._exit\n" + ON_RANK_ZERO + "sys.stdout.flush(); leave(0)"
    environment = {**clean_environment(), **variables}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert result.stdout.strip() == told, result.stderr


def test_rank_0_is_known_from_the_communicator() -> None:
    assert run_simulated(3, detect.on_rank_zero) == [True, False, False]


def test_what_launchers_call_a_rank() -> None:
    assert launchers.launched_rank({"PMI_RANK": "3", "SLURM_PROCID": "5"}) == 3
    assert launchers.launched_rank({"FLUX_TASK_RANK": "1", "PMI_RANK": ""}) == 1
    assert launchers.launched_rank({"PMI_RANK": "text"}) is None


FORK = """
import os
import numpy as np
import numpy_dist

x = numpy_dist.asarray(np.arange(400_000.0))
float(x.sum())
child = os.fork()
found = float(np.median(x)), float(np.sort(x)[7])
np.save(f"{os.getpid()}.npy", x)
assert np.array_equal(np.load(f"{os.getpid()}.npy"), np.arange(400_000.0))
print(found)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_of_one_rank_is_a_rank_of_its_own(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORK]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "".join(done.stdout.split()) == 2 * "(199999.5,7.0)"  # their lines may mix


@pytest.mark.parametrize("ahead, end", [(0.5, 100.0), (300.0, 100.0), (3600.0, 3700.0), (-3600.0, -3500.0)])
def test_the_end_of_a_job_by_this_machines_clock(ahead: float, end: float) -> None:
    """A start may take some time; what is more, or less than nothing, is another clock."""
    environment = {launchers.END_VARIABLE: "100.0", launchers.NOW_VARIABLE: "50.0"}
    launchers.move_end(environment, 50.0 + ahead)
    assert environment == {launchers.END_VARIABLE: repr(end)}
