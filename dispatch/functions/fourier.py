"""Discrete Fourier transforms: lines whole on one rank are transformed there, with NumPy's bits.

Several axes are transformed one after the other, as in NumPy, each by a redistribution in which it is not cut. A single
line that is longer than a rank wants to hold is done in four steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isqrt
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.array_creation_by_numpy import created
from numpy_dist.dispatch.patterns.arguments import as_handle, astype
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.stacks import along_axis
from numpy_dist.dispatch.patterns.threads import FEW, into_pieces
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.backends.library import Array
    from numpy_dist.distarray import DistArray

adopt(
    __name__,
    np.fft.fftshift,
    np.fft.ifftshift,
    np.fft.fft2,
    np.fft.fftn,
    np.fft.hfft,
    np.fft.ifft2,
    np.fft.ifftn,
    np.fft.ihfft,
    np.fft.irfft2,
    np.fft.irfftn,
    np.fft.rfft2,
    np.fft.rfftn,
)


@implements(np.fft.fft, kind="axis-local")
def fft(
    a: object, n: int | None = None, axis: int = -1, norm: str | None = None, out: DistArray | np.ndarray | None = None
) -> object:
    return _transform(np.fft.fft, a, n, axis, norm, out)


@implements(np.fft.ifft, kind="axis-local")
def ifft(
    a: object, n: int | None = None, axis: int = -1, norm: str | None = None, out: DistArray | np.ndarray | None = None
) -> object:
    return _transform(np.fft.ifft, a, n, axis, norm, out)


@implements(np.fft.rfft, kind="axis-local")
def rfft(
    a: object, n: int | None = None, axis: int = -1, norm: str | None = None, out: DistArray | np.ndarray | None = None
) -> object:
    return _transform(np.fft.rfft, a, n, axis, norm, out)


@implements(np.fft.irfft, kind="axis-local")
def irfft(
    a: object, n: int | None = None, axis: int = -1, norm: str | None = None, out: DistArray | np.ndarray | None = None
) -> object:
    return _transform(np.fft.irfft, a, n, axis, norm, out)


def _sample(
    function: Callable[..., np.ndarray], length: int, dtype: np.dtype, n: int | None, norm: str | None
) -> np.ndarray:
    """The transform of no lines: it has the result's dtype and length, and raises NumPy's errors."""
    return function(np.zeros((0, length), dtype), n, -1, norm)


_described = lru_cache(maxsize=256)(_sample)


def _transform(
    function: Callable[..., np.ndarray], a: Any, n: int | None, axis: int, norm: str | None, out: Any
) -> object:
    """Collective: lines that are cut are brought to one rank each."""
    a = as_handle(a)
    if not -a.ndim <= axis < a.ndim:
        engine.numpy_error(function, (a, n, axis))
    axis = normalize_axis_index(axis, a.ndim)
    described = type(n) in (int, NoneType) and type(norm) in (str, NoneType)  # of a type that hashes as it compares
    try:
        sample = (_described if described else _sample)(function, a.shape[axis], a.dtype, n, norm)
    except TypeError:  # NumPy may look at the output first
        engine.numpy_error(function, (a, n, axis, norm), {} if out is None else {"out": out})
    if out is not None:
        shape = (*a.shape[:axis], sample.shape[1], *a.shape[axis + 1 :])
        if tuple(out.shape) != shape or not np.can_cast(sample.dtype, out.dtype, "same_kind"):
            engine.numpy_error(function, (a, n, axis, norm), {"out": out})

    # NumPy computes in single precision only where its output is of single precision, too.
    kind = sample.dtype if out is None or out.dtype == sample.dtype else np.result_type(sample.dtype, np.float64)

    def in_threads(lines: np.ndarray) -> np.ndarray:
        if 0 < lines.size < 6 * FEW:  # too few: two threads take longer to start and to bring lines together
            return function(lines, n, -1, norm, scratch.empty((*lines.shape[:-1], sample.shape[1]), kind))
        order = sorted(range(lines.ndim), key=lambda each: -abs(lines.strides[each]))  # as they lie in memory
        block, place = lines.transpose(order), order.index(lines.ndim - 1)
        extents = [sample.shape[1] if each == place else extent for each, extent in enumerate(block.shape)]
        made = scratch.empty(tuple(extents), kind)
        into_pieces(lambda some, its: function(some, n, place, norm, its), block, place, made)
        return made.transpose(np.argsort(order))

    def lines_of(lines: object) -> Array:
        return compute("fft", in_threads, lines, name=function.__name__, args=(n, -1, norm))

    with engine.Scratch() as scratch:
        if a.ndim > 1:
            made = along_axis(lines_of, a, axis, name=function.__name__, library=True)
        elif engine.runtime().size == 1:
            made = along_axis(lines_of, a[None], 1, name=function.__name__, library=True)[0]
        else:
            made = _line(function, a, n, norm, kind)
    if out is None:
        return made
    np.copyto(out, made, casting="same_kind")
    return out


# -- one line --------------------------------------------------------------------------------------------------------


_MOST_FOR_CHIRPS = 1 << 31  # the squares of indices are 64-bit integers


def _line(
    function: Callable[..., np.ndarray], a: DistArray, n: int | None, norm: str | None, dtype: np.dtype
) -> DistArray | np.ndarray:
    """The transform of a single line that is cut; `dtype` is that of NumPy's result."""
    if function is np.fft.irfft:
        n = 2 * (a.size - 1) if n is None else n
        line = _hermitian(_of_length(a, n // 2 + 1), n)
    else:
        n = a.size if n is None else n
        line = _of_length(a, n)
    # NumPy's factor, which it computes in the precision of the data.
    inverse = function in (np.fft.ifft, np.fft.irfft)
    real = np.result_type(np.zeros(0, a.dtype).real.dtype, 1.0)
    factor = None
    if norm == "ortho":
        factor = np.reciprocal(np.sqrt(n, dtype=real))
    elif (norm == "forward") != inverse:
        factor = np.reciprocal(n, dtype=real)
    kind = np.result_type(dtype, np.complex64)
    made = _whole_line(astype(line, kind, copy=False), inverse)
    if function is np.fft.rfft:
        made = made[: n // 2 + 1].copy()
    made = np.real(made) if function is np.fft.irfft else made
    if factor is not None:
        made = np.multiply(made, factor.astype(made.real.dtype))
    return astype(made, dtype) if made.dtype != dtype else made.copy() if function is np.fft.irfft else made


def _of_length(a: DistArray, n: int) -> Any:
    """The line cut off, or with zeros behind it."""
    return a[:n] if n <= a.size else np.concatenate([a, np.zeros(n - a.size, a.dtype)])


def _hermitian(half: DistArray, n: int) -> Any:
    """The whole spectrum of real values from its first half."""
    middle = half[1 : (n + 1) // 2]
    parts: list[Any] = [np.real(half[:1]), middle, np.conjugate(middle[::-1])]
    if n % 2 == 0 and n > 1:
        parts.insert(2, np.real(half[n // 2 :]))
    return np.concatenate(parts)


def _whole_line(line: DistArray | np.ndarray, inverse: bool) -> Any:
    """The transform of a line without a factor (collective)."""
    n = line.size
    if n == 1:
        return engine.copy(line)
    rows = next(k for k in range(isqrt(n), 0, -1) if n % k == 0)
    if rows < engine.runtime().size and n < _MOST_FOR_CHIRPS:
        return _chirps(line, inverse)
    if rows == 1:
        decline("a single line whose length is a large prime number")
    return _four_steps(line, rows, inverse)


def roots_of_unity(parts: np.ndarray, n: int, inverse: bool, kind: np.dtype) -> np.ndarray:
    """Roots of unity for whole `parts` of `n`, nearly to the last digit: angles are brought into the first eighth."""
    real = np.result_type(np.zeros(0, kind).real.dtype, float)
    eighth, rest = np.divmod(8 * (parts % n), n)
    odd = eighth % 2 == 1
    angle = np.arctan(np.ones((), real)) * (np.where(odd, n - rest, rest).astype(real) / n)
    along, across = np.cos(angle), np.sin(angle)
    np.negative(across, out=across, where=odd)
    quarter = (eighth + 1) // 2 % 4
    roots = np.empty(parts.shape, np.result_type(real, np.complex64))
    roots.real = np.choose(quarter, [along, -across, -along, across])
    roots.imag = np.choose(quarter, [across, along, -across, -along])
    return (roots if inverse else roots.conj()).astype(kind, copy=False)


def _four_steps(line: DistArray | np.ndarray, rows: int, inverse: bool) -> DistArray | np.ndarray:
    """A long line as a matrix: its columns are transformed, multiplied by roots of unity, then its rows (collective).

    D. H. Bailey, "FFTs in external or hierarchical memory" (1990). Three redistributions, in which every rank has its
    share only; it rounds differently from the transform of the whole line.
    """
    n, kind = line.size, line.dtype
    columns = n // rows
    function: Function = np.fft.ifft if inverse else np.fft.fft
    norm = "forward" if inverse else "backward"  # without a factor
    matrix = function(np.reshape(line, (rows, columns)), None, 0, norm)

    def roots(box: Box) -> np.ndarray:
        (top, bottom), (left, right) = box
        return roots_of_unity(np.outer(np.arange(top, bottom), np.arange(left, right)), n, inverse, kind)

    matrix = matrix * engine.from_reader(roots, (rows, columns), kind, engine.layout_of(matrix))
    return np.reshape(np.transpose(function(matrix, None, 1, norm)), (n,))


def _chirps(line: DistArray | np.ndarray, inverse: bool) -> DistArray:
    """A line whose length has no factors that would give each rank a row: a convolution with a chirp (collective).

    L. I. Bluestein, "A linear filtering approach to the computation of the discrete Fourier transform" (1970): three
    transforms of a power of two that is at least twice as long.
    """
    n, kind = line.size, line.dtype
    long = 1 << (2 * n - 2).bit_length()

    def chirp(box: Box) -> np.ndarray:
        ((low, high),) = box
        index = np.arange(low, high)
        index = np.minimum(index, long - index)  # the same from either end
        return roots_of_unity(index * index, 2 * n, not inverse, kind)

    wave = engine.from_reader(chirp, (long,), kind, engine.default_layout((long,)))
    back = np.conjugate(wave[:n])
    padded = np.concatenate([line * back, np.zeros(long - n, kind)])
    rows = 1 << (long.bit_length() - 1) // 2
    product = _four_steps(padded, rows, False) * _four_steps(wave, rows, False)
    return _four_steps(product, rows, True)[:n] * (back / long)


fftfreq = created(np.fft.fftfreq)
rfftfreq = created(np.fft.rfftfreq)
