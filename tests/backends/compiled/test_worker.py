"""Compiling and loading: what comes out needs no Numba, and what cannot be run is refused."""

import json
import subprocess
import sys

import pytest

from numpy_dist.backends.compiled import loader, worker
from tests.backends.compiled.kernels import add_one, adds_one, compiled, source

REFUSED = {
    "SyntaxError": source("return )"),
    "KeyError: 'kernel'": "import numba\n",
    "TypingError": source("return w.no_such_attribute"),
    "can raise an exception": source("if first == 7:", "    raise ValueError('seven')", "return 0"),
    "NRT_|can raise": (
        "import numpy as np\ndef kernel(block, first, last):\n    a = np.empty(last)\n    a[:] = first\n"
        "    return int(a.sum())\n"
    ),
    "ModuleNotFoundError": "import numpy_dist.backends.compiled.nothing\n",
    "ZeroDivisionError": "1 / 0\n",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_run_is_refused(reason):
    with pytest.raises(worker.SourceError, match=reason):
        worker.compile_kernel(REFUSED[reason], "kernel_refused")


def test_functions_of_the_c_library_may_be_called():
    text = source("a = numba.carray(pointer_float64(w[0]), (1,))", "a[0] = a[0] % 3.0", "return 0")
    content = worker.compile_kernel(text, "kernel_fmod")
    assert json.loads(content.partition(b"\n")[0])["externals"] == ["fmod"]


def test_a_kernel_is_one_function_and_needs_nothing_else():
    content = worker.compile_kernel(add_one(), "kernel_alone")
    head = json.loads(content.partition(b"\n")[0])
    assert head["symbol"] == "kernel_alone" and head["externals"] == [] and not head.get("image", {}).get("calls")


def test_two_kernels_from_the_same_text_do_not_meet():
    one, two = compiled(add_one()), compiled(add_one())
    assert one != two and adds_one(one) and adds_one(two)


def test_loading_imports_neither_numba_nor_llvm(tmp_path):
    (tmp_path / "kernel").write_bytes(worker.compile_kernel(add_one(), "kernel_plain"))
    code = (
        "import sys; from numpy_dist.backends.compiled import loader\n"
        "address = loader.load(open(sys.argv[1], 'rb').read())\n"
        "import numpy as np, ctypes\n"
        "x, y = np.arange(1000.0), np.zeros(1000)\n"
        "block = np.array([x.ctypes.data, y.ctypes.data, 1000])\n"
        "function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(address)\n"
        "print(function(block.ctypes.data, 0, 1), bool((y == x + 1).all()), {'numba', 'llvmlite'} & {*sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "kernel"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "42 True set()\n", done.stderr


def test_an_object_with_unknown_functions_is_not_loaded():
    with pytest.raises(loader.LoadError, match="numba_gil_ensure"):
        loader.load(loader.pack("kernel_x", ["memcpy", "numba_gil_ensure"], b""))


def test_an_object_without_the_kernel_is_not_loaded():
    code = worker.object_file(add_one(), "kernel_here")
    with pytest.raises(loader.LoadError, match="kernel_there"):
        loader.load(loader.pack("kernel_there", [], code))
