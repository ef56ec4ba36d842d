"""The plug-in ``scipy``: filters, transforms, linear algebra and solvers of SciPy on distributed arrays."""

from __future__ import annotations

from numpy_dist.interop import scipy_fft, scipy_linalg, scipy_ndimage, scipy_signal, scipy_solvers, scipy_special


def register() -> None:
    """Register everything."""
    for module in (scipy_fft, scipy_linalg, scipy_ndimage, scipy_signal, scipy_solvers, scipy_special):
        module.register()
