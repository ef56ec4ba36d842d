"""Arguments of conformance cases: descriptions of arrays, from which NumPy's array and ours are built alike.

An array is a *base* that is laid out over the ranks, and a *view* of it. Both sides take the same view of equal bases,
so that strides, flags and aliasing can be compared, too.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

WORDS = ("ash", "Birch", "cedar", "elm 7", "  fir", "GUM", "hazel nut", "", "ivy ", "42")


@dataclass(frozen=True)
class Array:
    """An array argument.

    Parameters
    ----------
    shape : tuple of int
    dtype : str or, with names of fields, numpy.dtype
    values : str or tuple
        One of `VALUES`, or a tuple of one item: literal values in nested tuples.
    view : str
        One of `VIEWS`: how it lies in its base.
    distributed : bool
        Whether it is a distributed array, or an ndarray on our side as well.
    """

    shape: tuple[int, ...]
    dtype: str | np.dtype = "f8"
    values: str | tuple[Any, ...] = "mixed"
    view: str = "whole"
    distributed: bool = True

    def __str__(self) -> str:
        what = self.values if isinstance(self.values, str) else f"of {self.values[0]!r}"
        notes = [self.dtype, *([what] if what != "mixed" else []), *([self.view] if self.view != "whole" else [])]
        return f"{'a' if self.distributed else 'ndarray'}({', '.join(map(str, (*self.shape, *notes)))})"

    def make(self, salt: str) -> np.ndarray:
        """The values, C-contiguous; the same for the same description and `salt`."""
        dtype = np.dtype(self.dtype)
        if not isinstance(self.values, str):
            literal = self.values[0]
            return np.array(list(literal) if dtype.names else literal, dtype).reshape(self.shape)
        rng = np.random.default_rng(zlib.crc32(f"{salt}/{self}".encode()))
        return np.ascontiguousarray(VALUES[self.values](rng, self.shape, dtype)).reshape(self.shape)


def a(*shape: int, dtype: npt.DTypeLike = "f8", values: str = "mixed", view: str = "whole") -> Array:
    """A distributed array of these extents."""
    if not isinstance(dtype, str):
        kind = np.dtype(dtype)
        dtype = kind.str if kind.names is None else kind
    return Array(shape, dtype, values, view)


def of(values: object, dtype: npt.DTypeLike | None = None, view: str = "whole") -> Array:
    """A distributed array of literal values."""
    made = np.array(values, dtype)
    if not isinstance(dtype, np.dtype):
        dtype = made.dtype.str if dtype is None else str(dtype)
    return Array(made.shape, dtype, (_frozen(made.tolist()),), view)


def plain(*shape: int, dtype: str = "f8", values: str = "mixed", view: str = "whole") -> Array:
    """An ndarray on both sides."""
    return Array(shape, dtype, values, view, distributed=False)


def plain_of(values: object, dtype: npt.DTypeLike | None = None) -> Array:
    """An ndarray of literal values on both sides."""
    return replace(of(values, dtype), distributed=False)


@dataclass(frozen=True)
class TemporaryFile:
    """The path of a file that does not exist yet, the same on all ranks; what was written there is compared."""

    suffix: str = ""


def _frozen(value: object) -> object:
    return tuple(_frozen(x) for x in value) if isinstance(value, list) else value


# -- values ----------------------------------------------------------------------------------------------------------


def _mixed(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> npt.ArrayLike:
    kind = dtype.kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
    if kind == "f":
        return (rng.standard_normal(shape) * 3).astype(dtype)
    if kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if kind in "mM":
        return rng.integers(0, 500, shape).astype(dtype)
    if kind in "SUT":
        return rng.choice(WORDS, shape).astype(dtype)
    if kind == "O":
        return rng.integers(-9, 10, shape).astype(object)
    made = np.zeros(shape, dtype)
    for name in dtype.names or ():
        made[name] = _mixed(rng, made[name].shape, made[name].dtype)
    return made


def _whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> npt.ArrayLike:
    return rng.integers(-8 if dtype.kind in "ifc" else 0, 9, shape).astype(dtype)


def _special(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> npt.ArrayLike:
    kind = dtype.kind
    if kind in "fc":
        info = np.finfo(dtype)
        choices: list[float | np.floating] = [
            np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, info.max, info.tiny
        ]  # fmt: skip
        made = np.array(rng.choice(np.array(choices, dtype), shape))
        if kind == "c":
            made.imag = rng.choice(np.array(choices, made.real.dtype), shape)
        return made
    if kind in "iu":
        limits = np.iinfo(dtype)
        return rng.choice(np.array([limits.min, limits.max, 0, 1, 2, limits.max // 2], dtype), shape)
    if kind in "mM":
        return rng.choice(np.array(["NaT", 0, 1, 86400], dtype), shape)
    return _mixed(rng, shape, dtype)


def _nans(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> npt.ArrayLike:
    made = _mixed(rng, shape, dtype)
    return np.where(rng.random(shape) < 0.3, np.array(np.nan, dtype), made)


def _definite(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> npt.ArrayLike:
    made = rng.standard_normal(shape)
    return (made @ np.swapaxes(made, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


VALUES: dict[str, Callable[[np.random.Generator, tuple[int, ...], np.dtype], npt.ArrayLike]] = {
    "mixed": _mixed,
    # Whole numbers, whose sums and products are exact in every order.
    "whole": _whole,
    "special": _special,
    "nans": _nans,
    "definite": _definite,
    "unit": lambda rng, shape, dtype: (rng.random(shape) * 1.8 - 0.9).astype(dtype),
    "positive": lambda rng, shape, dtype: (rng.random(shape) * 4 + 0.5).astype(dtype),
    "large": lambda rng, shape, dtype: (rng.random(shape) * 4 + 1.5).astype(dtype),
    "sorted": lambda rng, shape, dtype: np.sort(rng.random(shape or 1) * 9, axis=-1).reshape(shape).astype(dtype),
    "distinct": lambda rng, shape, dtype: rng.permutation(int(np.prod(shape))).reshape(shape).astype(dtype),
    "bits": lambda rng, shape, dtype: rng.integers(0, 256, shape).astype(dtype),
    "ones": lambda rng, shape, dtype: np.ones(shape, dtype),
    "zeros": lambda rng, shape, dtype: np.zeros(shape, dtype),
    "mostly": lambda rng, shape, dtype: rng.random(shape) < 0.9,
}


# -- views -----------------------------------------------------------------------------------------------------------


def _flipped(v: np.ndarray) -> np.ndarray:
    return v[::-1].copy() if v.ndim else v


def _strided(v: np.ndarray) -> np.ndarray:
    if not v.ndim:
        return v
    wide = np.zeros((2 * v.shape[0] + 1, *v.shape[1:]), v.dtype)
    wide[1::2] = v
    return wide


def _padded(v: np.ndarray) -> np.ndarray:
    wide = np.zeros(tuple(n + 3 for n in v.shape), v.dtype)
    wide[(slice(1, -2),) * v.ndim] = v
    return wide


# For each kind of view: the base of given values, and the view that has these values.
VIEWS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[Any], Any]]] = {
    "whole": (lambda v: v, lambda b: b),
    "flipped": (_flipped, lambda b: b[::-1] if b.ndim else b),
    "backwards": (
        lambda v: np.ascontiguousarray(v[..., ::-1]) if v.ndim else v,
        lambda b: b[..., ::-1] if b.ndim else b,
    ),
    "strided": (_strided, lambda b: b[1::2] if b.ndim else b),
    "fortran": (lambda v: v.T.copy(), lambda b: b.T),
    "window": (_padded, lambda b: b[(slice(1, -2),) * b.ndim] if b.ndim else b),
    "pinned": (lambda v: np.stack([v[...], v, v]), lambda b: b[1, ...]),
    "column": (lambda v: np.stack([v, v], axis=-1), lambda b: b[..., 1]),
}


def pick(generator: random.Random, weights: dict[str, int]) -> str:
    """One of the keys, drawn with these weights."""
    return generator.choices(list(weights), list(weights.values()))[0]
