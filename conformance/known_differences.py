"""Where results differ from NumPy's, each with its reason; tests assert that each is still there.

Most are NumPy's own: results that depend on how the arguments lie in memory. Ours are what NumPy gives for ascending
contiguous ones that do not overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_dist.conformance.case import Case
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION
from numpy_dist.parallel.ordered import is_sound


@dataclass(frozen=True)
class StrideDependent:
    """A ufunc of which NumPy's own results depend on strides and on memory that inputs and outputs share.

    Attributes
    ----------
    ufunc : numpy.ufunc
    dtypes : str
        Characters of the dtypes concerned.
    reason : str
    """

    ufunc: np.ufunc
    dtypes: str
    reason: str


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
_BY_UFUNC = {entry.ufunc: entry for entry in STRIDE_DEPENDENT}


def depends_on_strides(case: Case, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> bool:
    """Whether NumPy's own result for these arguments is known to depend on how they lie in memory."""
    ufunc = getattr(case.function, "__self__", case.function)  # of a method
    entry = _BY_UFUNC.get(ufunc) if isinstance(ufunc, np.ufunc) else None
    if entry is None:
        return False
    args, kwargs = arguments
    arrays = [x for x in (*args, *kwargs.values()) if isinstance(x, np.ndarray)]
    if not any(x.dtype.char in entry.dtypes for x in arrays):
        return False
    return case.apart is not None or any(not x.flags.c_contiguous for x in arrays)


def crashes_numpy(case: Case) -> bool:
    """Whether NumPy does not survive the case, so that it has no oracle.

    NumPy 2.1 does not where it compares strided integers with a Python int that their dtype cannot hold.
    """
    names = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
    names |= {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
    return NUMPY_VERSION == (2, 1) and case.function.__name__ in names and any(type(x) is int for x in case.args)


@dataclass(frozen=True)
class Difference:
    """A function whose results differ from NumPy's on purpose, or until it is native.

    Attributes
    ----------
    function : callable
    text : str
        A part of what the oracle says.
    reason : str
    """

    function: Any
    text: str
    reason: str


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

_NO_SCALAR = "NumPy does not tell classes that override ufuncs about `out=...`, which asks for an array, not a scalar"
if NUMPY_VERSION >= (2, 3):
    DIFFERENCES += tuple(
        Difference(function, "instead of an array of shape () and", _NO_SCALAR)
        for function in (np.multiply, np.add.reduce)
    )


def matching(case: Case, problem: str) -> set[Difference]:
    """The known differences that explain a problem of a case."""
    return {known for known in DIFFERENCES if known.function == case.function and known.text in problem}
