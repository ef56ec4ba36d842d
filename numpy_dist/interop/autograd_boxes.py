"""The plug-in ``autograd``: its derivatives of functions of distributed arrays."""

from __future__ import annotations

import importlib

import numpy as np

from numpy_dist import distarray


def register() -> None:
    """Let autograd trace distributed arrays as it does NumPy's."""
    boxes = importlib.import_module("autograd.numpy.numpy_boxes")
    spaces = importlib.import_module("autograd.numpy.numpy_vspaces")
    boxes.ArrayBox.register(distarray.DistArray)

    def space(x: distarray.DistArray) -> object:
        kind = spaces.ComplexArrayVSpace if x.dtype.kind == "c" else spaces.ArrayVSpace
        return kind(np.broadcast_to(np.zeros((), x.dtype), x.shape))  # it reads shape and dtype only

    spaces.VSpace.register(distarray.DistArray, space)
