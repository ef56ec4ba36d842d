"""Starting generated kernels by CuPy."""

from __future__ import annotations

import cupy
import numpy as np

from numpy_dist.backends.cuda.source import OPTIONS, THREADS, DeviceKernel


class KernelLauncher:
    """Starts kernels on the current stream; each is compiled at its first start (CuPy keeps compiled ones on disk)."""

    def __init__(self) -> None:
        self._functions: dict[str, cupy.RawKernel] = {}

    def __call__(self, kernel: DeviceKernel, words: np.ndarray, grid: tuple[int, int]) -> None:
        """Start a kernel with the words of its argument block."""
        function = self._functions.get(kernel.name)
        if function is None:
            module = cupy.RawModule(code=kernel.text, options=OPTIONS)
            function = self._functions[kernel.name] = module.get_function(kernel.name)
        block = words.view(np.dtype([("w", np.int64, len(words))]))  # one argument, passed by value
        function(grid, (THREADS,), (block,))
