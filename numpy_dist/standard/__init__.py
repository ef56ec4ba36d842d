"""The namespace of the array API standard (2025.12) for distributed arrays: what ``x.__array_namespace__()`` returns.

It differs from `numpy_dist` in what the standard asks for: reductions return arrays of no axes in place of scalars, and
some functions have other parameters. Names that the standard does not have are NumPy's own.
"""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np

from numpy_dist import creation
from numpy_dist.standard import fft as fft
from numpy_dist.standard import functions as _functions
from numpy_dist.standard import linalg as linalg
from numpy_dist.standard.zero_axes import arrays_for_scalars

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

_CREATION = "arange empty empty_like eye full full_like linspace ones ones_like zeros zeros_like"
_SAME = (
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or "
    "bitwise_right_shift bitwise_xor ceil conj copysign cos cosh divide equal exp expm1 floor floor_divide greater "
    "greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and "
    "logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real "
    "reciprocal remainder sign signbit sin sinh sqrt square subtract tan tanh trunc "
    "matmul matrix_transpose tensordot vecdot astype isdtype "
    "broadcast_arrays broadcast_shapes broadcast_to concat flip meshgrid moveaxis permute_dims repeat reshape roll "
    "squeeze stack tile tril triu unstack "
    "argmax argmin count_nonzero nonzero searchsorted where isin unique_all unique_counts unique_inverse unique_values "
    "cumulative_prod cumulative_sum max mean min prod std sum var all any diff"
)
_CONSTANTS = (
    "bool complex128 complex64 e float32 float64 inf int16 int32 int64 int8 nan newaxis pi uint16 uint32 uint64 uint8"
)
_OWN = (
    "argsort asarray can_cast clip expand_dims finfo from_dlpack iinfo result_type round sort take take_along_axis"
)
_NAMES = " ".join([_CREATION, _SAME, _CONSTANTS, _OWN, "fft linalg __array_namespace_info__"])

__all__ = sorted(_NAMES.split())

for _name in _CREATION.split():
    globals()[_name] = getattr(creation, _name)
for _name in _SAME.split():
    globals()[_name] = arrays_for_scalars(getattr(np, _name))
for _name in _CONSTANTS.split():
    globals()[_name] = getattr(np, _name)
for _name in _OWN.split():
    globals()[_name] = getattr(_functions, _name)
del _name

__array_namespace_info__ = _functions.Info


def namespace(api_version: str | None = None) -> ModuleType:
    """What ``x.__array_namespace__(api_version=...)`` returns."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"api_version={api_version!r} is not there; the versions are {', '.join(VERSIONS)}")
    return sys.modules[__name__]


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(np, name)


def __dir__() -> list[str]:
    return list(__all__)
