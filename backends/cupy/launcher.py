"""Starting generated kernels by CuPy.

CuPy's `RawModule` would have single-precision numbers near zero flushed to zero (``-ftz=true``, behind whatever options
it is given), which NumPy's are not. So its compiler is called with our options alone, and what it makes is kept in the
folder of compiled kernels.
"""

from __future__ import annotations

import hashlib
import warnings

import cupy
import numpy as np

from numpy_dist.backends.cuda.source import OPTIONS, THREADS, DeviceKernel
from numpy_dist.backends.store import Store, describe_problem
from numpy_dist.frames import stack_level
from numpy_dist.settings import config


class KernelLauncher:
    """Starts kernels on the current stream; each is loaded, or compiled, at its first start."""

    def __init__(self) -> None:
        self._functions: dict[str, tuple[cupy.cuda.Function, np.dtype]] = {}
        self._store: Store | None = None

    def __call__(self, kernel: DeviceKernel, words: np.ndarray, grid: tuple[int, int]) -> None:
        """Start a kernel with the words of its argument block."""
        found = self._functions.get(kernel.name)
        if found is None:
            module = cupy.cuda.Module()
            module.load(self._code(kernel))
            block = np.dtype([("w", np.int64, len(words))])  # one argument, passed by value
            found = self._functions[kernel.name] = module.get_function(kernel.name), block
        function, block = found
        function((*grid, 1), (THREADS, 1, 1), (np.ndarray(1, block, words),))

    def _code(self, kernel: DeviceKernel) -> bytes:
        """The kernel's code for the current device."""
        store = self._opened()
        capability = cupy.cuda.Device().compute_capability
        depends = "\n".join(("cuda", cupy.__version__, capability, *OPTIONS, kernel.text))
        key = hashlib.sha256(depends.encode()).hexdigest()
        code = store.read(key)
        if code is None:
            code, _ = cupy.cuda.compiler.compile_using_nvrtc(kernel.text, OPTIONS, None, f"{kernel.name}.cu")
            try:
                store.write(key, code)
            except OSError as problem:
                told = describe_problem(store.directory, problem)
                warnings.warn(told, RuntimeWarning, stacklevel=stack_level(ours=True))
        if said := store.refusal():
            warnings.warn(said, RuntimeWarning, stacklevel=stack_level(ours=True))
        return code

    def _opened(self) -> Store:
        """The folder of compiled kernels (``CACHE_DIR``)."""
        if self._store is None:
            self._store, said = Store.open(config.CACHE_DIR, config.CACHE_SIZE)
            if said is not None:
                warnings.warn(said, RuntimeWarning, stacklevel=stack_level(ours=True))
        return self._store
