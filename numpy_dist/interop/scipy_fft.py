"""`scipy.fft` on distributed arrays, by SciPy's own backend mechanism.

Lines along one axis after the other are transformed by NumPy's functions, and by SciPy's where NumPy has none. What is
right of arguments, dtypes and lengths SciPy says of a small array (`_example`).
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import scipy.fft

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.authoring import axis_local
from numpy_dist.dispatch.core import operands
from numpy_dist.dispatch.core.plugins import permission_of
from numpy_dist.dispatch.patterns.arguments import astype
from numpy_dist.interop.trigonometric_lines import transformed
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray


# By which function of one axis the last axis is transformed, and by which the others. Those of Hermitian arrays are
# those of real ones with the factor of the other direction, and conjugated.
_COMPLEX = {"fft": (np.fft.fft, np.fft.fft), "ifft": (np.fft.ifft, np.fft.ifft)}
_FROM_REAL = {"rfft": (np.fft.rfft, np.fft.fft), "ihfft": (np.fft.rfft, np.fft.fft)}
_TO_REAL = {"irfft": (np.fft.irfft, np.fft.ifft), "hfft": (np.fft.irfft, np.fft.ifft)}
_OF_FOURIER: dict[str, tuple[Function, Function]] = _COMPLEX | _FROM_REAL | _TO_REAL
_TRIGONOMETRIC = ("dct", "idct", "dst", "idst")
_OTHER_NORM = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


class FFTBackend:
    """What ``scipy.fft`` asks before it computes itself."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Function, args: Arguments, kwargs: Keywords) -> object:
        if permission_of("scipy", config.PLUGINS) != "all" or not operands.any_sharded(args, kwargs):
            return NotImplemented
        name = method.__name__.rstrip("2n")
        if name not in _OF_FOURIER and name not in _TRIGONOMETRIC:
            return NotImplemented
        bound = _signature(method).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        x = given.pop("x")
        example = _example(method, x, given)
        if "axis" in given:
            axes, lengths = [given["axis"] % x.ndim], [given["n"]]
        elif given["axes"] is not None and np.size(given["axes"]) == 0:
            axes, lengths = [], []
        else:
            axes, lengths = _axes_and_lengths(x.shape, given["axes"], given["s"])
        if not axes:
            return x
        if name in _TRIGONOMETRIC:
            options = {key: given[key] for key in ("type", "norm", "orthogonalize")}
            if example.dtype.kind == "c" and _ignores_weights():
                options["orthogonalize"] = None
            if x.ndim == 1 and engine.runtime().size > 1:
                return transformed(name, x, n=lengths[0], kind=example.dtype, **options)
            function = getattr(scipy.fft, name)
            for axis, n in zip(axes, lengths, strict=True):
                x = axis_local(function, axis)(x, axis=axis, n=n, **options)
        else:
            x = _transformed(name, x, axes, lengths, given["norm"])
        return x if x.dtype == example.dtype else astype(x, example.dtype)


@cache
def _ignores_weights() -> bool:
    """Whether SciPy's cosine and sine transforms of complex values do not look at `orthogonalize`."""
    pair = np.ones(2, complex)
    return bool(np.array_equal(scipy.fft.dct(pair, orthogonalize=True), scipy.fft.dct(pair)))


@cache
def _signature(method: Function) -> inspect.Signature:
    return inspect.signature(getattr(scipy.fft, method.__name__))


def _example(method: Function, x: DistArray, given: Keywords) -> np.ndarray:
    """What SciPy makes of an array with few elements along each axis, or its error."""

    def few(n: int | float | None) -> int | float | None:
        return n if type(n) is not int or n < 4 else 4 + n % 2

    small = dict(given)
    if "n" in small:
        small["n"] = few(small["n"])
    elif isinstance(small["s"], Iterable):
        given["s"] = list(small["s"])
        small["s"] = [few(n) for n in given["s"]]
    else:
        small["s"] = few(small["s"])
    try:
        made: np.ndarray = method(np.zeros([few(n) for n in x.shape], x.dtype), **small)
    except Exception:
        method(np.broadcast_to(np.zeros((), x.dtype), x.shape), **given)  # raises the same of the lengths as they are
        raise
    return made


def _axes_and_lengths(
    shape: tuple[int, ...], axes: int | tuple[int, ...] | None, s: int | list[int] | None
) -> tuple[list[int], list[int | None]]:
    """Which axes are transformed, and how long they are to be, by SciPy's rules; None where that is not said."""
    lengths = None if s is None else [operator.index(n) for n in (s if isinstance(s, Iterable) else [s])]
    if axes is None:
        chosen = list(range(len(shape)))[len(shape) - len(lengths) if lengths is not None else 0 :]
    else:
        chosen = [operator.index(axis) % len(shape) for axis in (axes if isinstance(axes, Iterable) else [axes])]
    if lengths is None:
        return chosen, [None] * len(chosen)
    return chosen, [shape[axis] if n == -1 else n for n, axis in zip(lengths, chosen, strict=True)]


def _transformed(
    name: str, x: DistArray | np.ndarray, axes: Sequence[int], lengths: Sequence[int | None], norm: str | None
) -> DistArray | np.ndarray:
    """One axis after the other, that of real values first or last (collective: see `numpy.fft`)."""
    last, others = _OF_FOURIER[name]
    of_hermitian = "hfft" in name
    if of_hermitian:
        norm = _OTHER_NORM[norm]
    for axis in axes:
        if not x.shape[axis]:  # of nothing NumPy makes what it finds in memory
            x = np.pad(x, [(0, int(its == axis)) for its in range(x.ndim)])
    *first, (axis, n) = zip(axes, lengths, strict=True)
    if name in _TO_REAL:
        n = 2 * (x.shape[axis] - 1) if n is None else n
        x, n = np.conjugate(x) if of_hermitian else x, n or 1  # SciPy makes one value of none
    else:
        x = last(x, n, axis, norm)
    for other, count in first[::-1]:
        x = others(x, count, other, norm)
    if name in _TO_REAL:
        x = last(x, n, axis, norm)
    return np.conjugate(x) if of_hermitian and name in _FROM_REAL else x


def register() -> None:
    """Tell SciPy of the backend: it is asked before SciPy's own."""
    scipy.fft.register_backend(FFTBackend)
