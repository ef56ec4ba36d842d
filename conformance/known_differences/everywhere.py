"""Differences that all backends have: most are NumPy's own, whose results depend on how the arguments lie in memory."""

from __future__ import annotations

import numpy as np

from numpy_dist.conformance.known_differences.kinds import Difference, StrideDependent
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION
from numpy_dist.parallel.ordered import is_sound

_VECTOR = (
    "NumPy's vector loops serve ascending strides, and inputs and outputs that are apart in memory; its scalar loops "
    "for the others round differently"
)
_STRIDED_BOOL = "NumPy 2.4 writes wrong values into strided bool arrays"

STRIDE_DEPENDENT: tuple[StrideDependent, ...] = (
    *(
        StrideDependent(ufunc, "efdFDgG", _VECTOR)
        for ufunc in (
            np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.sinh, np.cosh,
            np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.cbrt, np.arctan2,
            np.absolute, np.multiply, np.square, np.divide, np.power, np.float_power, np.reciprocal, np.fmax, np.fmin,
        )
    ),
    *(StrideDependent(ufunc, "efd", _STRIDED_BOOL) for ufunc in (np.isnan, np.isinf, np.isfinite, np.signbit)),
)  # fmt: skip

_ELEMENTS = "NumPy iterates over the argument to find out who overrides it, and sees the elements only"

DIFFERENCES: tuple[Difference, ...] = (
    Difference(np.poly, "there is no FallbackWarning", _ELEMENTS),
    Difference(np.poly, "a result is an ndarray", _ELEMENTS),
    Difference(np.roots, "a result is an ndarray", _ELEMENTS),
    Difference(
        np.ndarray.__getitem__,
        "a result is an ndarray",
        "an ndarray converts its indices, and asks nobody about the rest",
    ),
    Difference(
        np.frombuffer,
        "flag WRITEABLE of result",
        "NumPy's result is a view of the buffer's memory; ours is a copy of which each rank has its part",
    ),
)

# Only on processors with AVX-512.
DIFFERENCES += tuple(
    Difference(method, "of result differ", "NumPy's vector loops reduce wrongly (`parallel.ordered`); ours do not")
    for ufunc in (np.power, np.arctan2)
    if not is_sound(ufunc, np.dtype(float))
    for method in (ufunc.reduce, ufunc.reduceat)
)

_CAST = "a Python number that overflows in the array's dtype does so in the loop, not in a cast before it"
DIFFERENCES += tuple(
    Difference(function, "overflow encountered in", _CAST)
    for function in (np.ndarray.__add__, np.ndarray.__iadd__, np.ndarray.__lt__)
)

_NO_SCALAR = "NumPy does not tell classes that override ufuncs about `out=...`, which asks for an array, not a scalar"
if NUMPY_VERSION >= (2, 3):
    DIFFERENCES += tuple(
        Difference(function, "instead of an array of shape () and", _NO_SCALAR)
        for function in (np.multiply, np.add.reduce)
    )
