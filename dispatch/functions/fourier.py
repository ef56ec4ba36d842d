"""Discrete Fourier transforms: lines whole on one rank are transformed there, with NumPy's bits.

Several axes are transformed one after the other, as in NumPy, each by a redistribution in which it is not cut. A single
line that is longer than a rank wants to hold is done in four steps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.common import as_handle
from numpy_dist.dispatch.functions.numpy_source import numpy_source
from numpy_dist.dispatch.functions.shards import along_axis
from numpy_dist.layout.regions import Box

for _function in (
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
):
    implements(_function, kind="composed")(numpy_source(_function))


@implements(np.fft.fft, kind="axis-local")
def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return _transform(np.fft.fft, a, n, axis, norm, out)


@implements(np.fft.ifft, kind="axis-local")
def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return _transform(np.fft.ifft, a, n, axis, norm, out)


@implements(np.fft.rfft, kind="axis-local")
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return _transform(np.fft.rfft, a, n, axis, norm, out)


@implements(np.fft.irfft, kind="axis-local")
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return _transform(np.fft.irfft, a, n, axis, norm, out)


def _transform(function: Callable[..., Any], a: Any, n: Any, axis: Any, norm: Any, out: Any) -> Any:
    """Collective: lines that are cut are brought to one rank each."""
    a = as_handle(a)
    if n is None and not -a.ndim <= axis < a.ndim:
        engine.numpy_error(function, (a, n, axis))
    axis = normalize_axis_index(axis, a.ndim)
    sample = function(np.zeros((0, a.shape[axis]), a.dtype), n, -1, norm)  # NumPy's errors and dtype
    if out is not None:
        shape = (*a.shape[:axis], sample.shape[1], *a.shape[axis + 1 :])
        if tuple(out.shape) != shape or not np.can_cast(sample.dtype, out.dtype, "same_kind"):
            engine.numpy_error(function, (a, n, axis, norm), {"out": out})
    if a.ndim > 1:
        made = along_axis(lambda lines: function(lines, n, -1, norm), a, axis, name=function.__name__)
    elif engine.runtime().size == 1:
        made = along_axis(lambda lines: function(lines, n, -1, norm), a[None], 1, name=function.__name__)[0]
    else:
        made = _line(function, a, n, norm, sample.dtype)
    if out is None:
        return made
    np.copyto(out, made, casting="same_kind")
    return out


# -- one line --------------------------------------------------------------------------------------------------------


def _line(function: Callable[..., Any], a: Any, n: Any, norm: Any, dtype: np.dtype) -> Any:
    """The transform of a single line that is cut."""
    kind = np.result_type(dtype, np.complex64)
    if function is np.fft.irfft:
        n = 2 * (a.size - 1) if n is None else n
        half = _of_length(a, n // 2 + 1)
        return np.real(_four_steps(np.fft.ifft, _hermitian(half, n), norm, kind)).copy()
    n = a.size if n is None else n
    line = _of_length(a, n)
    if function is np.fft.rfft:
        return _four_steps(np.fft.fft, line, norm, kind)[: n // 2 + 1].copy()
    return _four_steps(function, line, norm, kind)


def _of_length(a: Any, n: int) -> Any:
    """The line cut off, or with zeros behind it."""
    return a[:n] if n <= a.size else np.concatenate([a, np.zeros(n - a.size, a.dtype)])


def _hermitian(half: Any, n: int) -> Any:
    """The whole spectrum of real values from its first half."""
    middle = half[1 : (n + 1) // 2]
    parts = [np.real(half[:1]), middle, np.conjugate(middle[::-1])]
    if n % 2 == 0 and n > 1:
        parts.insert(2, np.real(half[n // 2 :]))
    return np.concatenate(parts)


def _four_steps(function: Callable[..., Any], line: Any, norm: Any, kind: np.dtype) -> Any:
    """A long line as a matrix: its columns are transformed, multiplied by roots of unity, then its rows (collective).

    D. H. Bailey, "FFTs in external or hierarchical memory" (1990). Three redistributions, in which every rank has its
    share only; it rounds differently from the transform of the whole line.
    """
    n = line.size
    rows = next(k for k in range(isqrt(n), 0, -1) if n % k == 0)
    if rows == 1:
        decline("a single line whose length is no product")
    if kind.itemsize > 16:
        decline("a single line in extended precision")
    columns = n // rows
    matrix = function(np.reshape(np.astype(line, kind, copy=False), (rows, columns)), None, 0, norm)
    sign = -2j if function is np.fft.fft else 2j

    def roots(box: Box) -> np.ndarray:
        (top, bottom), (left, right) = box
        turns = np.outer(np.arange(top, bottom), np.arange(left, right)) % n
        return np.exp((sign * np.pi / n) * turns).astype(kind, copy=False)

    matrix = matrix * engine.from_reader(roots, (rows, columns), kind, engine.layout_of(matrix))
    return np.reshape(np.transpose(function(matrix, None, 1, norm)), (n,))
