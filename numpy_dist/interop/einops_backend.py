"""The plug-in ``einops``: its functions take distributed arrays as they take NumPy's."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray


def register() -> None:
    """Define the backend: einops finds it among the subclasses of its base class."""
    backends: Any = importlib.import_module("einops._backends")

    class DistBackend(backends.NumpyBackend):
        """NumPy's functions, which dispatch."""

        framework_name = "numpy_dist"

        def is_appropriate_type(self, tensor: object) -> bool:
            return engine.is_handle(tensor)

        def from_numpy(self, x: np.ndarray) -> engine.Handle:
            return engine.from_global(x)

        def to_numpy(self, x: DistArray) -> np.ndarray:
            return x.gather()

        def einsum(self, pattern: str, *x: DistArray | np.ndarray) -> object:
            return np.einsum(pattern, *x)

    _kept.append(DistBackend)


_kept: list[type] = []  # einops looks for subclasses, which nobody else refers to
