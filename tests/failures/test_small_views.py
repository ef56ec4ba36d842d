"""Views of one element and of none go through every function; what reads an array without memory ends a process here.

(`small_views` calls them.)
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.settings import config

DEFAULT = config.MIN_SHARD_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "limit", "cases"),
    [
        (1, 0, 1),
        pytest.param(3, DEFAULT, 1, marks=pytest.mark.long),
        pytest.param(1, DEFAULT, 4, marks=pytest.mark.long),
        pytest.param(3, 0, 4, marks=pytest.mark.long),
    ],
)
def test_small_views(ranks, limit, cases):
    command = [sys.executable, "-m", "tests.failures.small_views", str(ranks), str(limit), str(cases)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=root)
    last = done.stdout.splitlines()[-1:]
    assert done.returncode in (0, 1), f"ended by {done.returncode} in {last}\n{done.stderr[-2000:]}"
    assert done.returncode == 0, done.stdout[done.stdout.rindex("calls, ") - 3000 :]
