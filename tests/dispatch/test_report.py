"""The report of what ran natively and what was gathered."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.dispatch.core import policy, report
from numpy_dist.frames import UserLine
from numpy_dist.spmd_testing import spmd
from tests.failures import jobs

pytestmark = pytest.mark.usefixtures("tiny_shards")

PROGRAM = """
import os
os.environ["NUMPY_DIST_REPORT"], os.environ["NUMPY_DIST_FALLBACK"] = "1", "silent"
import numpy as np, numpy_dist as nd
x = nd.asarray(np.arange(40_000.0).reshape(200, 200))
for _ in range(3):
    y = np.sqrt(x) + x
    total = float(y.sum())
@nd.dispatchable
def gathered(x):
    return 1
gathered(x)
gathered(x[0])
np.cumsum(x, axis=0)
"""


@nd.dispatchable
def size(x):
    """A function that nobody has overridden."""
    return x.size


@pytest.fixture
def counting(monkeypatch):
    """Counting is on for the test."""
    policy.forget()
    monkeypatch.setattr(report, "active", True)
    rt = engine.runtime()
    report._count_statements(rt)
    yield
    del rt.program.append
    policy.forget()


@spmd(1, 2)
def test_gathers_are_always_counted():
    policy.forget()
    x = nd.arange(6.0)
    with nd.config(FALLBACK="silent"):
        for _ in range(3):
            size(x)
        size(x[:2])
    found = nd.report()
    assert [(line.function, line.how, line.calls, line.bytes) for line in found] == [
        ("tests.dispatch.test_report.size", "gathered", 3, 144),
        ("tests.dispatch.test_report.size", "gathered", 1, 16),
    ]
    assert str(found).startswith("numpy_dist: 4 calls gathered 160 bytes; what ran natively is counted with")
    assert found[0].site.filename == __file__ and found[0].reason


@spmd(2, 3)
def test_replications_are_always_counted():
    policy.forget()
    x, points = nd.arange(60.0), nd.arange(20.0)
    with nd.config(FALLBACK="error"):
        np.searchsorted(x, points)
        np.interp(x, points, points)
        np.convolve(x, points)
        np.isin(x, points)
    found = {line.function: (line.how, line.calls, line.bytes) for line in nd.report()}
    assert found == {
        "numpy.searchsorted": ("replicated", 1, 160),
        "numpy.interp": ("replicated", 2, 320),
        "numpy.convolve": ("replicated", 1, 160),
        "numpy.isin": ("replicated", 1, 160),
    }
    assert str(nd.report()).startswith("numpy_dist: 0 calls gathered 0 bytes, 5 calls replicated 800 bytes; ")
    assert all(line.site.filename == __file__ and line.reason for line in nd.report())


@spmd(2, 3)
def test_large_replications_are_gathers(monkeypatch):
    monkeypatch.setattr(policy, "_NATIVE_BYTES", 100)
    policy.forget()
    x, points = nd.arange(60.0), nd.arange(20.0)
    with nd.config(FALLBACK="error"):
        with pytest.raises(nd.FallbackError, match="numpy.convolve at .* gathers 160 bytes .* every rank"):
            np.convolve(x, points)
        found = np.searchsorted(x, points)  # there is another way
    assert nd.report() == [] and found.gather().tolist() == list(range(20))
    with pytest.warns(nd.FallbackWarning, match="numpy.convolve"):
        np.convolve(x, points)
    np.searchsorted(x, points)
    assert {(line.function, line.how) for line in nd.report()} == {
        ("numpy.convolve", "gathered"),
        ("numpy.searchsorted", "replicated"),
    }


@spmd(2, 3)
def test_matrices_that_come_to_every_rank_are_counted():
    matrix = np.eye(40) * 3
    with nd.config(MIN_SHARD_BYTES=1 << 10):  # 12800 bytes: more, but fewer than 64 times as many
        x = nd.asarray(matrix)
        policy.forget()
        inverse = np.linalg.inv(x)
        assert [(line.function, line.how, line.bytes) for line in nd.report()] == [
            ("numpy.linalg.inv", "replicated", 12800)
        ]
        policy.forget()
        with nd.config(FALLBACK="error"):
            together = np.linalg.inv(x)
            with pytest.raises(nd.FallbackError, match="gathers 12.5 KiB"):
                np.linalg.eig(x)
        assert nd.report() == []
        assert np.allclose(inverse.gather(), np.eye(40) / 3) and np.allclose(together.gather(), np.eye(40) / 3)


def test_what_ran_natively_by_line(counting):
    x = nd.arange(6.0)
    for _ in range(3):
        y = x + 1
        np.cumsum(y)
    y.sum()
    with nd.config(FALLBACK="silent"):
        size(x)
    found = nd.report()
    assert found[0].function == "tests.dispatch.test_report.size"
    told = {(line.function, line.how): (line.calls, line.site.line) for line in found}
    here = told["add", "elementwise"][1]
    assert told["add", "elementwise"] == (3, here)
    assert told["numpy.cumsum", "parallel"] == (3, here + 1)
    assert told["add", "reduction"] == (1, here + 2)


def test_lines_are_values():
    site = UserLine("a.py", 3)
    line = report.Line("sort", "gathered", 2, 100, site)
    assert line == report.Line("sort", "gathered", 2, 100, UserLine("a.py", 3)) and len({line, line}) == 1
    assert line != report.Line("sort", "gathered", 3, 100, site)
    with pytest.raises(dataclasses.FrozenInstanceError):
        line.calls = 3


def test_nothing_is_counted_unless_asked():
    policy.forget()
    x = nd.arange(6.0)
    np.cumsum(x + 1)
    assert nd.report() == [] and "append" not in vars(engine.runtime().program)


def test_at_exit():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100)
    lines = done.stderr.splitlines()
    assert done.returncode == 0 and lines[0].startswith("numpy_dist: 2 calls gathered 314.1 KiB, ")
    assert lines[1].split() == ["function", "how", "calls", "bytes", "line"]
    assert lines[2].split() == ["gathered", "gathered", "1", "312.5", "KiB", "<string>:12"]
    assert ["sqrt", "elementwise", "3", "<string>:7"] in [line.split() for line in lines]


@pytest.mark.slow
def test_at_exit_of_two_real_ranks(tmp_path):
    job = jobs.run("mpiexec", PROGRAM, tmp_path)
    assert job.code == 0 and job.text.count("calls gathered") == 1
