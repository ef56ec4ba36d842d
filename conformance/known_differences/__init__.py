"""Where results differ from NumPy's, each with its reason; tests assert that each is still there.

`everywhere` has those of all backends, ``of_NAME`` those of one backend. Most are NumPy's own: results that depend on
how the arguments lie in memory. Ours are what NumPy gives for ascending contiguous ones that do not overlap.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

from numpy_dist.conformance.case import Case
from numpy_dist.conformance.known_differences.everywhere import DIFFERENCES as _EVERYWHERE
from numpy_dist.conformance.known_differences.everywhere import STRIDE_DEPENDENT
from numpy_dist.conformance.known_differences.kinds import Difference, StrideDependent
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION
from numpy_dist.settings import config

__all__ = ["STRIDE_DEPENDENT", "Difference", "StrideDependent", "all_differences", "crashes_numpy", "matching"]

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


def of_backend(name: str) -> tuple[Difference, ...]:
    """The differences of one backend, which stand in the module ``of_NAME``, if there are any."""
    module = f"{__name__}.of_{name}"
    return () if importlib.util.find_spec(module) is None else importlib.import_module(module).DIFFERENCES


def all_differences() -> tuple[Difference, ...]:
    """Those of all backends, and those of the one that is in use."""
    backend = "numba" if config.BACKEND == "auto" else config.BACKEND
    return (*_EVERYWHERE, *of_backend(backend))


def matching(case: Case, problem: str) -> set[Difference]:
    """The known differences that explain a problem of a case."""
    return {known for known in all_differences() if known.function == case.function and known.text in problem}
