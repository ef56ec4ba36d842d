"""Kernels that are written as files of this folder, which are not imported: they would import Numba."""

from __future__ import annotations

import os
from functools import lru_cache

_FOLDER = os.path.dirname(os.path.abspath(__file__))


@lru_cache
def kernel_file(name: str) -> str:
    """The text of a kernel: what the compiler gets and makes the key of."""
    with open(os.path.join(_FOLDER, f"{name}.py"), encoding="utf-8") as file:
        return file.read()
