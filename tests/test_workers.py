"""The whole suite: on several workers, of which none starts more, and without what is slow (tests/conftest.py)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from numpy_dist.cli import machine
from numpy_dist.conformance import jobs

needs_workers = pytest.mark.skipif(
    importlib.util.find_spec("xdist") is None or machine.cores() < 2, reason="needs pytest-xdist and two cores"
)

# A process that a worker's worker has started ends at once: this test must not fail by filling the machine.
FUSE = """
import os
os.environ["DEPTH"] = str(int(os.environ.get("DEPTH", "0")) + 1)
if os.environ["DEPTH"] > "2":
    os._exit(3)

"""
PLANTED = """
import os, subprocess, sys
import pytest

@pytest.mark.parametrize("number", range(4))
def test_where(number, pytestconfig):
    assert not pytestconfig.pluginmanager.hasplugin("dsession")
    with open(f"where{number}", "w") as file:
        file.write(os.environ.get("PYTEST_XDIST_WORKER") or "alone")

def test_a_run_within():
    if "WITHIN" not in os.environ:
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        os.environ.pop("DEPTH")
        done = subprocess.run(words, env=os.environ | {"WITHIN": "1"}, capture_output=True, text=True)
        assert "5 passed" in done.stdout and "bringing up" not in done.stdout, done.stdout + done.stderr
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite with our conftest.py and a few tests."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    (tmp_path / "tests").mkdir()
    ours = Path(__file__).with_name("conftest.py").read_text()
    (tmp_path / "tests/conftest.py").write_text(ours.replace("\nimport os\n", FUSE, 1))
    (tmp_path / "tests/test_planted.py").write_text(PLANTED)
    return tmp_path


def run(folder: Path, *options: str) -> tuple[jobs.JobEnd, set[str]]:
    """The job, and the workers that ran its tests."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    job = jobs.run(words, folder, {"PYTEST_XDIST_WORKER": ""})
    return job, {path.read_text() for path in folder.glob("where*")}


@pytest.mark.slow
@needs_workers
def test_the_whole_suite_runs_on_workers_that_start_none(folder: Path) -> None:
    job, where = run(folder)
    assert job.code == 0 and "5 passed" in job.output and "bringing up nodes" in job.output, job
    assert where <= {f"gw{k}" for k in range(4)}, job


@needs_workers
@pytest.mark.parametrize("options", [("-n", "0"), ("-k", "where"), ("tests/test_planted.py",), ("-p", "no:xdist")])
def test_other_runs_are_of_one_process(folder: Path, options: tuple[str, ...]) -> None:
    job, where = run(folder, *options, "--deselect", "tests/test_planted.py::test_a_run_within")
    assert job.code == 0 and "4 passed" in job.output and where == {"alone"}, job


def test_the_whole_suite_leaves_out_what_is_slow(folder: Path) -> None:
    path = folder / "tests/test_planted.py"
    path.write_text(PLANTED.split("def test_a_run_within")[0] + "@pytest.mark.slow\ndef test_slow():\n    pass\n")
    for options, outcome in (((), "4 passed, 1 deselected"), (("-m", "slow"), "1 passed, 4 deselected")):
        job, _ = run(folder, "-p", "no:xdist", *options)
        assert job.code == 0 and outcome in job.output, job


def test_names_with_addresses_are_refused(folder: Path) -> None:
    path = folder / "tests/test_planted.py"
    path.write_text(path.read_text().replace("range(4)", "[object()], ids=str"))
    job, _ = run(folder, "-n", "0") if importlib.util.find_spec("xdist") else run(folder)
    assert job.code == pytest.ExitCode.USAGE_ERROR and "an address in the names of tests" in job.text, job
