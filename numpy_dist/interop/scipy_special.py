"""Functions of `scipy.special` that are no ufuncs (ufuncs are native anyhow)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.special

from numpy_dist.argument_types import Axes
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray


def register() -> None:
    """Register them."""

    @implements(scipy.special.softmax)
    def softmax(x: DistArray, axis: Axes = None) -> object:
        shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return shifted / np.sum(shifted, axis=axis, keepdims=True)

    @implements(scipy.special.log_softmax)
    def log_softmax(x: DistArray, axis: Axes = None) -> object:
        shifted = x - np.max(x, axis=axis, keepdims=True)
        return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))

    @implements(scipy.special.logsumexp)
    def logsumexp(
        a: DistArray, axis: Axes = None, b: object = None, keepdims: bool = False, return_sign: bool = False
    ) -> object:
        if return_sign or b is not None or a.dtype.kind not in "iuf":
            decline("weights, signs and complex numbers")
        most = np.max(a, axis=axis, keepdims=True)
        most = np.where(np.isfinite(most), most, 0)
        found = np.log(np.sum(np.exp(a - most), axis=axis, keepdims=True)) + most
        return found if keepdims else found.reshape(()) [()] if axis is None else np.squeeze(found, axis)
