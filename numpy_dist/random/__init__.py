"""Random numbers: NumPy's own, bit for bit, at every number of ranks, each rank making its share.

The names of ``numpy.random``. `default_rng` and `Generator` say what is split and what every rank makes in whole; the
functions of the module (`seed`, `rand`, `randn`, `randint`, ...) belong to one `RandomState` of numpy_dist, apart
from NumPy's global one. What is not listed here is ``numpy.random``'s own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import distarray as distarray  # arrays that are made here are DistArrays
from numpy_dist.random.generator import Generator, default_rng
from numpy_dist.random.legacy import RandomState, functions, get_bit_generator, seed, set_bit_generator

__all__ = ["Generator", "RandomState", "default_rng", "get_bit_generator", "seed", "set_bit_generator", *functions]


def __getattr__(name: str) -> Any:
    found = functions.get(name)
    return getattr(np.random, name) if found is None else found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(np.random)})
