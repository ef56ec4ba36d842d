"""An access to an array without memory names the function, the line and the array; other signals go where they went."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the handler is for one kind of processor"
)

SCRIPT = """
import ctypes, os
import numpy as np
import numpy_dist as nd

x = nd.asarray(np.arange(100000.0).reshape(100, 1000)) + 1
x.gather()

def inner(whole):
    part = whole[3:, ::2]
    {touch}

inner(x)
"""


def run(touch: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-c", SCRIPT.format(touch=touch)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("options", [(), ("-X", "faulthandler")], ids=["alone", "faulthandler"])
@pytest.mark.parametrize("touch", ["np.sin(part._array)", "part._array[...] = 0", "part._array.tolist()"])
def test_what_is_told(touch, options):
    done = run(touch, *options)
    assert done.returncode == -signal.SIGSEGV
    assert "numpy_dist: internal error on rank 0 of 1" in done.stderr
    assert "<string>:11 in inner" in done.stderr
    assert "part: shape (97, 500), dtype float64, strides (8000, 16)" in done.stderr
    assert ("Fatal Python error" in done.stderr) == bool(options)


@pytest.mark.parametrize("touch", ["ctypes.string_at(0)", "os.kill(os.getpid(), 11)"])
def test_other_faults(touch):
    done = run(touch)
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")
    done = run(touch, "-X", "faulthandler")
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.startswith("Fatal Python error: Segmentation fault")
    assert "numpy_dist: internal error" not in done.stderr
