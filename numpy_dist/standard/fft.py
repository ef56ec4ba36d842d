"""The standard's extension for Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import creation
from numpy_dist.standard.zero_axes import arrays_for_scalars

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

_TRANSFORMS = "fft fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftn".split()
__all__ = [*_TRANSFORMS, "fftfreq", "rfftfreq"]

for _name in _TRANSFORMS:
    globals()[_name] = arrays_for_scalars(getattr(np.fft, _name))
del _name


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: Literal["cpu"] | None = None
) -> DistArray:
    """The frequencies of a transform of length `n`."""
    return creation.asarray(np.fft.fftfreq(n, d), dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: Literal["cpu"] | None = None
) -> DistArray:
    """The frequencies of a transform of `n` real numbers."""
    return creation.asarray(np.fft.rfftfreq(n, d), dtype, device=device)
