"""Differences that all backends have: most are NumPy's own, whose results depend on how the arguments lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import recfunctions

from numpy_dist.conformance.case import PRODUCTS, SUMS, Tolerance
from numpy_dist.conformance.known_differences.kinds import Difference, StrideDependent
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION
from numpy_dist.parallel.ordered import is_sound

if TYPE_CHECKING:
    import numpy.typing as npt

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
    *(StrideDependent(f, "efdFDgG", _VECTOR) for f in (np.emath.log, np.emath.log2, np.emath.log10, np.emath.power)),
)  # fmt: skip

# How far derived cases may be from NumPy, of functions whose written cases are exact.
ROUNDING: dict[object, Tolerance] = {
    np.cross: Tolerance(4, "NumPy multiplies scalars where ours are rows, which have vector loops"),
    np.unwrap: SUMS,
    np.polyval: Tolerance(4, _VECTOR),
    np.polynomial.polynomial.polyval2d: Tolerance(4, _VECTOR),
    np.linalg.tensorsolve: Tolerance(4, "the same factors, substituted by other routines of BLAS"),
    np.ndarray.prod: PRODUCTS,
    np.ndarray.cumprod: PRODUCTS,
    **dict.fromkeys((np.prod, np.cumprod, np.cumulative_prod, np.nanprod, np.nancumprod), PRODUCTS),
}

# Errors that name the first of several elements that they are about: which is the first depends on the order.
OF_SOME_ELEMENT = ("could not convert string to float: ", "invalid literal for int() with base 10: ")

# OpenBLAS here and there raises the processor's flag for values that it throws away (its issue 1924, NumPy's 24067),
# whatever lay in the memory: a product without a NaN had nothing invalid in it, and a finite one did not overflow.
# For each such warning what some value must be for it to mean something.
SPURIOUS: dict[str, Callable[[npt.ArrayLike], np.ndarray | np.bool]] = {}
for _name in ("det", "dot", "matmul", "matvec", "slogdet", "vecdot", "vecmat"):
    SPURIOUS[f"invalid value encountered in {_name}"] = np.isnan
    SPURIOUS[f"overflow encountered in {_name}"] = lambda x: ~np.isfinite(x)
    # A product that is multiplied and added by one instruction does not underflow by itself.
    SPURIOUS[f"underflow encountered in {_name}"] = lambda x: np.abs(x) < np.finfo(np.result_type(x, np.float16)).tiny

# What derived cases may be gathered for; these texts are the reasons, as the fallback's warning has them.
GATHERED_VARIANTS = (
    "fields of another size, or that are records",
)

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

_WRONG = "NumPy's vector loops for AVX-512 reduce wrongly (`parallel.ordered`); ours do not"
DIFFERENCES += tuple(
    Difference(method, " values of ", _WRONG, here=not is_sound(ufunc, np.dtype(float)))
    for ufunc in (np.power, np.arctan2)
    for method in (ufunc.reduce, ufunc.reduceat)
)
DIFFERENCES += tuple(
    Difference(
        method, "warnings are", _WRONG, variants=True, by_layout=True, here=not is_sound(np.power, np.dtype(float))
    )
    for method in (np.power.reduce, np.power.reduceat)
)

_NO_SCALAR = "NumPy does not tell classes that override ufuncs about `out=...`, which asks for an array, not a scalar"
if NUMPY_VERSION >= (2, 3):
    DIFFERENCES += tuple(
        Difference(function, "instead of an array of shape () and", _NO_SCALAR)
        for function in (np.multiply, np.add.reduce)
    )

_NO_HEED = "NumPy before 2.2 does not heed `return_scalar`"
_WIDTH = "NumPy before 2.2 names the width of the array, not of the texts that it meets"
_PICKLED = "an error about linear algebra travels to the other ranks, and NumPy before 2.2 warns where one is pickled"
if NUMPY_VERSION < (2, 2):
    DIFFERENCES += (
        Difference(None, "The numpy.linalg.linalg has been made private", _PICKLED),
        Difference(np.ndarray.__array_wrap__, "instead of an array of shape ()", _NO_HEED),
        Difference(np.percentile, "raises UFuncTypeError(<ufunc 'subtract'>", _WIDTH),
        Difference(np.quantile, "raises UFuncTypeError(<ufunc 'subtract'>", _WIDTH),
    )
_FILLED = "NumPy casts a fill value that no element needs"
_CHARACTERS = "NumPy takes a string for the list of its characters, and each for a field"
_GARBAGE = "NumPy leaves uninitialised memory behind the element that it refuses"
_SINGULAR = "the condition of a singular matrix is rounding errors divided by rounding errors"
_LAST = "of the values for one place NumPy assigns that which its iteration meets last, and it goes along memory"
_PARTIAL = "NumPy keeps the updates before the one that it refuses; ours are all made or none"
_OVERFLOWS = "a least common multiple that overflows depends on the order; ours is folded by ranks"
_HALF = "half precision is rounded once more where a segment goes on to the next rank"
_TIES = "NumPy leaves open which of equal elements comes first, and in which order the two parts of a partition are"
_FORGETS = "where it casts in pieces, NumPy forgets all steps but the last"
DIFFERENCES += (
    Difference(np.power.at, "of argument 0, afterwards, differ", _PARTIAL, variants=True),
    Difference(np.lcm.reduce, "of result differ", _OVERFLOWS, variants=True, by_layout=True),
    Difference(np.lcm.reduceat, "of result differ", _OVERFLOWS, variants=True, by_layout=True),
    Difference(np.lcm.accumulate, "of result differ", _OVERFLOWS, variants=True, by_layout=True),
    Difference(np.divide.reduce, "values of result differ", _HALF, variants=True, by_layout=True),
    Difference(np.divide.reduceat, "values of result differ", _HALF, variants=True, by_layout=True),
    Difference(np.ldexp.reduce, "of result differ", _FORGETS, variants=True, by_layout=True),
    Difference(np.ndarray.argsort, "values of result differ", _TIES, variants=True, by_layout=True),
    Difference(np.ndarray.partition, "values of argument 0, afterwards, differ", _TIES, variants=True, by_layout=True),
    Difference(np.put_along_axis, "values of argument 0, afterwards, differ", _LAST, variants=True),
    Difference(recfunctions.append_fields, "overflow encountered in cast", _FILLED, variants=True),
    Difference(recfunctions.merge_arrays, "could not assign tuple of length", _CHARACTERS, variants=True),
    Difference(np.ndarray.__ipow__, "of argument 0, afterwards, differ", _GARBAGE, variants=True),
    Difference(np.linalg.cond, "of result differ", _SINGULAR, variants=True, by_layout=True),
)
