"""`scipy.fft` on distributed arrays, by SciPy's own backend mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.fft

from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.authoring import axis_local
from numpy_dist.dispatch.core import operands
from numpy_dist.dispatch.core.plugins import permission_of
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

# What NumPy has under the same name, with the parameters that both know.
_NUMPYS = frozenset(
    "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift".split()
)
# Transforms along one axis that only SciPy has, and those along several that are made of them.
_ALONG_AXIS = frozenset("dct idct dst idst".split())
# By which of NumPy's the transforms of Hermitian arrays along several axes are computed.
_OF_HERMITIAN: dict[str, Function] = {
    "hfft2": np.fft.irfft2,
    "hfftn": np.fft.irfftn,
    "ihfft2": np.fft.rfft2,
    "ihfftn": np.fft.rfftn,
}
_OTHER_NORM = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_ALONG_AXES = {"dctn": "dct", "idctn": "idct", "dstn": "dst", "idstn": "idst"}


class FFTBackend:
    """What ``scipy.fft`` asks before it computes itself."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Function, args: Arguments, kwargs: Keywords) -> object:
        if permission_of("scipy", config.PLUGINS) != "all" or not operands.any_sharded(args, kwargs):
            return NotImplemented
        if kwargs.get("plan") is not None:
            return NotImplemented
        name = method.__name__
        options = {key: value for key, value in kwargs.items() if key not in ("overwrite_x", "workers", "plan")}
        if name.endswith("n") and options.get("axes") is None and np.iterable(options.get("s")):
            options["axes"] = range(-len(options["s"]), 0)  # which NumPy would warn of
        if name in _OF_HERMITIAN and len(args) <= 1 and options.get("norm") in _OTHER_NORM:
            transform, norm = _OF_HERMITIAN[name], _OTHER_NORM[options.pop("norm", None)]
            if name.startswith("i"):
                return np.conjugate(transform(*args, **options, norm=norm))
            return transform(np.conjugate(args[0]), **options, norm=norm)
        if name in _NUMPYS and len(args) <= 4:
            return getattr(np.fft, name)(*args, **options)
        if name in _ALONG_AXIS and len(args) <= 1:
            axis = options.get("axis", -1)
            return axis_local(getattr(scipy.fft, name), axis)(*args, **{**options, "axis": axis})
        if name in _ALONG_AXES and len(args) <= 1 and options.get("s") is None:
            return _along_axes(_ALONG_AXES[name], args[0], options)
        return NotImplemented


def _along_axes(name: str, x: DistArray, options: Keywords) -> DistArray:
    axes = options.pop("axes", None)
    options.pop("s", None)
    chosen = range(x.ndim) if axes is None else np.lib.array_utils.normalize_axis_tuple(axes, x.ndim)
    for axis in chosen:
        x = axis_local(getattr(scipy.fft, name), axis)(x, axis=axis, **options)
    return x


def register() -> None:
    """Tell SciPy of the backend: it is asked before SciPy's own."""
    scipy.fft.register_backend(FFTBackend)
