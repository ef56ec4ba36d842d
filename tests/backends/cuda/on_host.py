"""CUDA sources without a device: kernels built by a C++ compiler and run, block by block, on the host."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numpy_dist.backends.base import Loop
from numpy_dist.backends.cuda.header import HEADER
from numpy_dist.backends.cuda.runner import Launch, run
from numpy_dist.backends.cuda.source import DeviceKernel
from numpy_dist.backends.memory import HOST

COMPILER = shutil.which("g++") or shutil.which("clang++")

_RUN = """
extern "C" void run_{name}(const nd_i8* words, nd_i8 x, nd_i8 y) {{
  {name}_args a;
  for (int k = 0; k < {length}; ++k) a.w[k] = words[k];
  nd_grid_x = x; nd_grid_y = y;
  for (nd_block_y = 0; nd_block_y < y; ++nd_block_y)
    for (nd_block_x = 0; nd_block_x < x; ++nd_block_x) {name}(a);
}}
"""


def build(folder: Path, text: str) -> ctypes.CDLL:
    """Compile C++ without contraction, as `-fmad=false` does for devices."""
    assert COMPILER is not None
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(text)
    options = ["-O0", "-std=c++17", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-w"]
    subprocess.run([COMPILER, *options, str(source), "-o", str(library)], check=True, timeout=240)
    return ctypes.CDLL(str(library))


def kernels_of(loops: Sequence[Loop]) -> dict[str, DeviceKernel]:
    """All kernels that the loops need, by name; nothing is computed."""
    found: dict[str, DeviceKernel] = {}
    for loop in loops:
        run(loop, HOST, np.ndarray, lambda kernel, words, grid: found.setdefault(kernel.name, kernel))
    return found


def launcher(folder: Path, kernels: dict[str, DeviceKernel]) -> Launch:
    """What starts these kernels on the host."""
    bodies = [k.text[len(HEADER) :] + _RUN.format(name=k.name, length=k.length) for k in kernels.values()]
    return _starting(build(folder, HEADER + "".join(bodies)))


def build_whole(folder: Path, kernels: Sequence[DeviceKernel]) -> Launch:
    """As `launcher`, of kernels that have more before them than the header: each is a library of its own."""
    starts: dict[str, Launch] = {}
    for kernel in kernels:
        inner = folder / kernel.name
        inner.mkdir()
        starts[kernel.name] = _starting(build(inner, kernel.text + _RUN.format(name=kernel.name, length=kernel.length)))
    return lambda kernel, words, grid: starts[kernel.name](kernel, words, grid)


def _starting(library: ctypes.CDLL) -> Launch:
    def launch(kernel: DeviceKernel, words: np.ndarray, grid: tuple[int, int]) -> None:
        call = getattr(library, f"run_{kernel.name}")
        call(ctypes.c_void_p(words.ctypes.data), ctypes.c_longlong(grid[0]), ctypes.c_longlong(grid[1]))
        assert not ctypes.c_longlong.in_dll(library, "nd_misaligned").value, "a device would raise: misaligned address"

    return launch
