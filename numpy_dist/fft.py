"""``numpy_dist.fft``: `numpy.fft`, whose functions dispatch, with frequencies that are distributed arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy import fft as _numpys

from numpy_dist import distarray as distarray  # arrays that are made here are DistArrays
from numpy_dist.dispatch.functions.fourier import fftfreq, rfftfreq

if TYPE_CHECKING:  # where editors find docstrings; the types are in fft.pyi
    from numpy.fft import *  # noqa: F403

__all__ = [*_numpys.__all__]  # noqa: PLE0604 - NumPy's

OWN = (fftfreq, rfftfreq)


def __getattr__(name: str) -> Any:
    return getattr(_numpys, name)


def __dir__() -> list[str]:
    return dir(_numpys)
