"""A sample of `numpy_dist.conformance.faults`, and that it finds what ends badly; all of it with ``-m long``."""

from __future__ import annotations

from pathlib import Path

import pytest

from numpy_dist.comm import detect
from numpy_dist.conformance import faults
from numpy_dist.conformance.jobs import HEADER, JobEnd
from tests.failures.jobs import SECONDS

EXAMPLES = faults.examples_folder()
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="not a checkout: there are no examples")


def assert_well(rows: list[faults.FaultRow]) -> None:
    assert rows and all(row.faults for row in rows)
    assert [problem for row in rows for problem in row.problems] == []


def test_a_sample_on_simulated_ranks() -> None:
    assert_well(list(faults.simulated_rows(EXAMPLES, (3, 2), 4, ("stencil.py", "pi.py"))))
    assert_well(list(faults.simulated_rows(EXAMPLES, (4,), 6, ("images.py",))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "example", "victim", "position", "kind"),
    [
        ("mpiexec", "stencil.py", 1, 7, "exception"),
        ("run", "pi.py", 0, 4, "failed allocation"),
        ("mpiexec", "images.py", 1, 12, "os._exit"),
    ],
)
def test_a_sample_of_jobs(launcher: str, example: str, victim: int, position: int, kind: str) -> None:
    if detect.find_mpiexec() is None:
        pytest.skip("there is no mpiexec")
    job = faults._start(launcher, EXAMPLES / example, 2, victim, position, kind)
    assert faults._judged_job(job, kind, SECONDS) is None
    assert f"rank {1 - victim}: waited for rank {victim} in" in job.text


@pytest.mark.long
def test_everything(tmp_path: Path) -> None:
    assert faults.main(["--output", str(tmp_path / "faults.md")]) == 0


# -- it finds what ends badly ----------------------------------------------------------------------------------------

GOES_ON = """
from numpy_dist.comm.detect import get_communicator
comm = get_communicator()
try:
    comm.exchange(*[[(1 - comm.rank, __import__("numpy").zeros(3))]] * 2)
except ValueError:
    pass
comm.barrier()
"""
ANOTHER = """
from numpy_dist.comm.detect import get_communicator
from numpy_dist.errors import RankError
comm = get_communicator()
try:
    comm.barrier()
except RankError as error:
    raise KeyError("something else") from error
"""


@pytest.mark.parametrize(("script", "finding"), [(GOES_ON, "instead of the planted"), (ANOTHER, "something else")])
def test_a_program_that_ends_badly_is_found(script: str, finding: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(script)
    row = faults._simulated_row(path, 2, 1, "exception", 1)
    assert row.calls >= 1 and row.problems and all(finding in problem for problem in row.problems)


def test_a_job_that_ends_badly_is_found() -> None:
    good = JobEnd(1, "", f"[rank 1] {HEADER}\nValueError: {faults._PLANTED}\n", 2.0, [], False)
    assert faults._judged_job(good, "exception") is None
    bad = {
        "hangs": good._replace(hung=True),
        "exit code": good._replace(code=0),
        "12 s": good._replace(seconds=12.0),
        "2 tracebacks": good._replace(errors=good.errors * 2),
        "0 tracebacks": good._replace(errors=""),
        "left behind": good._replace(left=["process 5"]),
        "does not name": good._replace(errors=HEADER),
    }
    for finding, job in bad.items():
        assert finding in (faults._judged_job(job, "exception") or ""), finding


def test_the_table_tells_of_both() -> None:
    row = faults.FaultRow("simulated", "pi.py", 2, "exit", calls=3)
    row.add("rank 0, call 0", None, 0.5, "said")
    row.add("rank 0, call 1", "deadlock", 1.5, "more")
    text = faults.table([row], 1.0, 1)
    assert "2 faults, 1 ended well" in text
    assert "| simulated | pi.py | 2 | exit | 3 | 2 | 1 | 1.5 | said |" in text
    assert "- simulated, pi.py, 2 ranks: rank 0, call 1: deadlock" in text
