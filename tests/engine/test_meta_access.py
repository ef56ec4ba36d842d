"""An access to an array without memory names the function, the line and the array; other signals go where they went."""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import subprocess
import sys

import numpy as np
import pytest

from numpy_dist.engine.data import meta_access

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


def test_who_prints_one_goes_on():
    touch = """
    for show in (repr, str, print, np.array2string, lambda a: f"{a!r:>9}", lambda a: repr([a[0, :1], a[3, 4, ...]])):
        try:
            print("shown:", show(part._array))
        except RuntimeError as error:
            print(type(error).__name__, error)
    print(float((part + 1).sum()), np.arange(2))
    part._array.tolist()
"""
    done = run(touch.strip(), "-u")  # the last access ends the process before anything is flushed
    told = "WithoutElements the array stands for a sharded one, and has no elements; x.gather() gives an ordinary array"
    expected = np.arange(100000.0).reshape(100, 1000)[3:, ::2] + 2
    assert done.stdout.splitlines() == [told] * 6 + [f"{expected.sum()} [0 1]"]
    assert done.returncode == -signal.SIGSEGV and "numpy_dist: internal error on rank 0 of 1" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--showlocals", "--tb=long", "--full-trace")], ids=["as usual", "all of it"])
def test_a_failing_test_shows_the_locals_of_our_functions(options, tmp_path):
    tmp_path.joinpath("test_shape.py").write_text(
        "import numpy as np\nimport numpy_dist as nd\n"
        "def test_shape():\n    (nd.asarray(np.arange(100000.0)) + 1).reshape(7, 8)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_shape.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 1 and "1 failed" in done.stdout
    assert "cannot reshape array of size 100000 into shape (7,8)" in done.stdout
    assert "WithoutElements(" in done.stdout and "raised in repr()" in done.stdout


@pytest.mark.parametrize("touch", ["ctypes.string_at(0)", "os.kill(os.getpid(), 11)"])
def test_other_faults(touch):
    done = run(touch)
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")
    done = run(touch, "-X", "faulthandler")
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.startswith("Fatal Python error: Segmentation fault")
    assert "numpy_dist: internal error" not in done.stderr


def test_systems_where_nobody_may_execute_what_he_has_written(monkeypatch):
    kept, memory = list(meta_access._kept), ctypes.create_string_buffer(3 * mmap.PAGESIZE)
    within_a_page = -(-ctypes.addressof(memory) // mmap.PAGESIZE) * mmap.PAGESIZE + 8  # which `mprotect` refuses
    for page in (None, within_a_page):
        monkeypatch.setattr(meta_access, "_page", lambda library, page=page: page)
        assert not meta_access._install_handler() and meta_access._kept == kept
