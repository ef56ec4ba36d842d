"""No case reads a meta array, or writes beside an allocation."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.long
@pytest.mark.parametrize("ranks", (1, 7))
def test_memory_is_ours(ranks: int) -> None:
    command = [sys.executable, "-m", "numpy_dist.conformance.guarded", "--ranks", str(ranks)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
