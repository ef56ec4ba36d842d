"""Strides of operands on which NumPy's bits depend, and copies that have the engine's."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from numpy_dist.argument_types import Function
from numpy_dist.ir.ops import COMPLEX_EXACT, STRIDE_SENSITIVE

Operand = TypeVar("Operand", np.ndarray, complex)
"""Elements, or a number."""

_ndarray = np.ndarray


def _ascending(array: Operand) -> Operand:
    """Elements for operations whose bits depend on strides: a copy where some are negative."""
    return array.copy("K") if type(array) is _ndarray and min(array.strides, default=0) < 0 else array


def _ascending_complex(array: Operand) -> Operand:
    """Elements for operations whose bits depend on strides where they are complex."""
    return _ascending(array) if type(array) is _ndarray and array.dtype.kind == "c" else array


def _aligned(array: Operand) -> Operand:
    """Elements of which NumPy's ``negative`` does not take strided ones for contiguous ones."""
    return array.copy("K") if type(array) is _ndarray and not array.flags.c_contiguous else array


def prepared_for(ufunc: np.ufunc) -> Function | None:
    """What is made of elements before NumPy's ufunc has the engine's bits; None where that is nothing."""
    name = ufunc.__name__
    if name in STRIDE_SENSITIVE:
        return _ascending
    if name in COMPLEX_EXACT:
        return _aligned if ufunc is np.negative else None
    return _ascending_complex if "F->" in "".join(ufunc.types) else None


def depends_on_target(always: bool, target: np.ndarray) -> bool:
    """Whether bits depend on the strides of what is written to, where they do so `always` and where it is complex."""
    if always and _ascending(target) is not target:
        return True
    return target.dtype.kind == "c" and not target.flags.c_contiguous


def beside(x: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Complex operands where NumPy takes no other way because what is written to lies among them."""
    if x.dtype.kind == "c" and x is not target and np.may_share_memory(x, target):
        return x.copy("K")
    return x
