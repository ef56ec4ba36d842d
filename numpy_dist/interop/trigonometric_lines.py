"""Cosine and sine transforms of one line that ranks share, each by one Fourier transform of it.

Types 2 and 3 by a transform of as many values, rearranged ("A fast cosine transform in one and two dimensions",
J. Makhoul, IEEE Trans. Acoust., Speech, Signal Process. 1980), type 4 by one of half as many complex ones, or of twice
as many where their number is odd, type 1 by one of the line and its reflection. Sine transforms of types 2 to 4 are
cosine transforms of the line backwards, or with every other sign changed ("Symmetric convolution and the discrete sine
and cosine transforms", S. A. Martucci, IEEE Trans. Signal Process. 1994).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.functions.fourier import roots_of_unity
from numpy_dist.dispatch.patterns.arguments import astype
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray


_BACKWARDS = {1: 1, 2: 3, 3: 2, 4: 4}  # which type undoes which


def transformed(
    name: str, line: Any, type: int, n: int | None, norm: str | None, orthogonalize: bool | None, kind: np.dtype
) -> Any:
    """What `scipy.fft.dct`, `idct`, `dst` or `idst` makes of a line. Collective, as `numpy.fft.fft` of a line.

    Parameters
    ----------
    line : DistArray, (m,)
    type, n, norm, orthogonalize
        SciPy's, which SciPy has found to be right.
    kind : dtype
        Of the result.
    """
    n = line.size if n is None else n
    line = line[:n] if n <= line.size else np.concatenate([line, np.zeros(n - line.size, line.dtype)])
    inverse, cosine = name[0] == "i", name.endswith("dct")
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    type = _BACKWARDS[type] if inverse else type
    scale = np.longdouble(1)
    period = 2 * (n + (0 if type > 1 else -1 if cosine else 1))
    if norm == "ortho":
        scale = 1 / np.sqrt(np.longdouble(period))
    elif (norm == "forward") != inverse:
        scale = 1 / np.longdouble(period)
    factor = np.zeros(0, kind).real.dtype.type(scale)
    if kind.kind != "c":
        return _of_real(astype(line, kind), type, cosine, orthogonal, factor)
    made = np.zeros_like(line, kind)
    real = factor.dtype
    for part, into in ((np.real(line), np.real(made)), (np.imag(line), np.imag(made))):
        into[...] = _of_real(astype(part, real), type, cosine, orthogonal, factor)
    return made


def _of_real(x: Any, type: int, cosine: bool, orthogonal: bool, factor: np.floating) -> DistArray:
    """The transform of real values, times a factor; `x` is overwritten."""
    root = x.dtype.type(np.sqrt(np.longdouble(2)))
    ends = [0, -1] if type == 1 else [0 if cosine else -1]  # what an orthogonal transform weights otherwise
    orthogonal = orthogonal and type != 4 and (cosine or type != 1)
    if orthogonal and type != 2:
        for end in ends:
            x[end] *= root
    transform = {1: _first, 2: _second, 3: _third, 4: _fourth}[type]
    if not cosine and type == 1:
        made = _first_of_sines(x)
    elif cosine:
        made = transform(x)
    elif type == 2:
        made = transform(_alternating(x))[::-1]
    else:
        made = _alternating(transform(x[::-1]))
    made = np.multiply(made, factor)
    if orthogonal and type != 3:
        for end in ends:
            made[end] /= root
    return made


def _alternating(x: Any) -> DistArray:
    """Values of which every other one has the other sign."""
    x = engine.copy(x)
    np.negative(x[1::2], out=x[1::2])
    return x


def _first(x: DistArray) -> Any:
    return np.real(np.fft.rfft(np.concatenate([x, x[-2:0:-1]])))


def _first_of_sines(x: DistArray) -> Any:
    zero = np.zeros(1, x.dtype)
    found = np.fft.rfft(np.concatenate([zero, x, zero, np.negative(x[::-1])]))
    return np.negative(np.imag(found)[1:-1])


def _second(x: DistArray) -> object:
    spectrum = np.fft.fft(np.concatenate([x[::2], x[1::2][::-1]]))
    return 2 * np.real(spectrum * _roots(len(x), 1, 0, 4 * len(x), spectrum.dtype))


def _third(x: DistArray) -> object:
    n, kind = len(x), np.result_type(x.dtype, np.complex64)
    spectrum = np.zeros_like(x, kind)
    spectrum.real[...] = x
    np.negative(x[:0:-1], out=spectrum.imag[1:])
    found = np.fft.ifft(spectrum * np.conjugate(_roots(n, 1, 0, 4 * n, kind)), norm="forward").real
    made = np.zeros_like(x)
    middle = (n + 1) // 2
    made[::2] = found[:middle]
    made[1::2] = found[middle:][::-1]
    return made


def _fourth(x: DistArray) -> object:
    n, kind = len(x), np.result_type(x.dtype, np.complex64)
    if n % 2:
        found = np.fft.fft(x * _roots(n, 1, 0, 4 * n, kind), 2 * n)[:n]
        return 2 * np.real(found * _roots(n, 2, 1, 8 * n, kind))
    half = n // 2
    pairs = np.zeros(half, kind) + x[::2]
    pairs.imag[...] = x[::-2]
    found = np.fft.fft(pairs * _roots(half, 4, 1, 8 * n, kind)) * _roots(half, 1, 0, 2 * n, kind)
    made = np.zeros_like(x)
    made[::2] = found.real
    made[::-2] = np.negative(found.imag)
    return 2 * made


def _roots(count: int, step: int, first: int, n: int, kind: np.dtype) -> DistArray:
    """Roots of unity for `first`, ``first + step``, ... of `n` parts."""

    def read(box: Box) -> np.ndarray:
        ((low, high),) = box
        return roots_of_unity(first + step * np.arange(low, high), n, False, kind)

    return engine.from_reader(read, (count,), kind, engine.default_layout((count,)))
