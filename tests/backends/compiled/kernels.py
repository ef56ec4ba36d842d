"""Kernels as source text, and how to call them."""

import ctypes
import os

import numpy as np

from numpy_dist.backends.compiled import loader, worker

PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

HEAD = """\
import numba
from numpy_dist.backends.compiled.intrinsics import *


def kernel(block, first, last):
    w = numba.carray(pointer_int64(block), (16,))
"""


def source(*lines, tag=""):
    """A kernel's source; `tag` makes it another one."""
    return HEAD + "".join(f"    {line}\n" for line in lines) + f"# {tag}\n"


def add_one(tag=""):
    """Adds one to ``w[2]`` float64 at ``w[0]``, into ``w[1]``."""
    return source(
        "a = numba.carray(pointer_float64(w[0]), (w[2],))",
        "b = numba.carray(pointer_float64(w[1]), (w[2],))",
        "for j in range(w[2]):",
        "    b[j] = a[j] + 1.0",
        "return 42",
        tag=tag,
    )


def word(value):
    """An argument as a word: arrays by their address, floats by their bits."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    if isinstance(value, float):
        return int(np.float64(value).view(np.int64))
    return int(value)


def call(address, *words, first=0, last=1):
    """Call the kernel at an address on a block of words."""
    block = np.array([word(value) for value in words] or [0], np.int64)
    return PROTOTYPE(address)(block.ctypes.data, first, last)


def compiled(text):
    """The address of a kernel, compiled in this process."""
    return loader.load(worker.compile_kernel(text, "kernel_" + os.urandom(8).hex()))


def adds_one(address):
    """Whether this is the kernel of `add_one`."""
    x, y = np.arange(1000.0), np.zeros(1000)
    return call(address, x, y, 1000) == 42 and np.array_equal(y, x + 1)
