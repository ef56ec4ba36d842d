"""Where results differ from NumPy's, each with its reason; tests assert that each is still there.

`everywhere` has those of all backends, ``of_NAME`` those of one backend, and of its arithmetic as a whole. Most are
NumPy's own: results that depend on how the arguments lie in memory. Ours are what NumPy gives for ascending contiguous
ones that do not overlap.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.argument_types import Arguments, Keywords
from numpy_dist.conformance.arguments import Array
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.known_differences.everywhere import DIFFERENCES as _EVERYWHERE
from numpy_dist.conformance.known_differences.everywhere import (
    GATHERED_VARIANTS,
    OF_SOME_ELEMENT,
    ROUNDING,
    SPURIOUS,
    STRIDE_DEPENDENT,
)
from numpy_dist.conformance.known_differences.kinds import Arithmetic, Difference, StrideDependent
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION
from numpy_dist.settings import config

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "OF_SOME_ELEMENT",
    "ROUNDING",
    "SPURIOUS",
    "STRIDE_DEPENDENT",
    "Arithmetic",
    "Difference",
    "StrideDependent",
    "add",
    "added",
    "all_differences",
    "arithmetic",
    "crashes_numpy",
    "depends_on_strides",
    "is_spurious",
    "is_undefined",
    "matching",
    "may_gather",
    "same_text",
]

# NumPy goes through indices along memory, and names the first that is out of bounds there.
_ANY_INDEX = (r"^index -?\d+ is out of bounds", "index")
_BYTES = (np.ndarray.byteswap, np.ndarray.tofile, np.fromfile, np.save, np.savez, np.savez_compressed)
_added: list[Difference] = []
_NUMPYS = Arithmetic()
_BY_FUNCTION = {entry.function: entry for entry in STRIDE_DEPENDENT}


def depends_on_strides(case: Case, arguments: tuple[Arguments, Keywords]) -> bool:
    """Whether NumPy's own result for these arguments is known to depend on how they lie in memory."""
    owner = getattr(case.function, "__self__", None)  # of a method of a ufunc
    entry = _BY_FUNCTION.get(owner if isinstance(owner, np.ufunc) else case.function)
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


def is_undefined(case: Case) -> bool:
    """Whether NumPy's own result is what happens to lie in the memory, or it writes behind its output."""
    arrays = [x for x in case.args if isinstance(x, Array)]
    empty = any(0 in x.shape for x in arrays)
    if case.function is np.einsum and isinstance(case.args[0], str) and len(arrays) == 1:
        labels = case.args[0].partition("->")[0]
        return empty and len(set(labels)) < len(labels)  # a diagonal of no elements has some
    if case.function in _BYTES and any(x.dtype in ("g", "G") for x in arrays):
        return True  # of the 16 bytes of extended precision six have no meaning
    if isinstance(case.function, np.ufunc) and not case.function.types and case.function.__name__.startswith("_"):
        return True  # private ufuncs of strings write as much as they are told, however short the output's strings are
    # Transforms of nothing to n values read the output that they are about to write.
    return case.function in (np.fft.irfft, np.fft.hfft) and empty


def same_text(case: Case, ours: str, theirs: str) -> bool:
    """Whether two error messages are the same, but for what depends on the order in which elements are looked at."""
    if ours == theirs:
        return True
    if case.variant and re.sub(*_ANY_INDEX, ours) == re.sub(*_ANY_INDEX, theirs):
        return True
    starts = (start for start in OF_SOME_ELEMENT if theirs.startswith(start))
    return any(ours.startswith(start) for start in starts)


def is_spurious(warning: str, results: Iterable[npt.ArrayLike | None]) -> bool:
    """Whether a warning of NumPy or of ours comes and goes: of a product whose values do not tell of it."""
    tells = SPURIOUS.get(warning)
    return tells is not None and not any(tells(x).any() for x in results if x is not None)


def may_gather(case: Case, error: BaseException) -> str | None:
    """Why this call may be gathered although the function is not: of derived cases, which nobody has looked at."""
    if not case.variant:
        return None
    return next((reason for reason in GATHERED_VARIANTS if reason in str(error)), None)


def of_backend(name: str) -> tuple[Difference, ...]:
    """The differences of one backend, which stand in the module ``of_NAME``, if there are any."""
    return getattr(_module_of(name), "DIFFERENCES", ())


@functools.cache
def _module_of(backend: str) -> ModuleType | None:
    module = f"{__name__}.of_{backend}"
    return None if importlib.util.find_spec(module) is None else importlib.import_module(module)


def _in_use() -> tuple[str, ...]:
    """The backends whose differences may show: where ranks have several, no device's library computes anything."""
    if config.BACKEND == "auto":
        return ("numba",)
    names = ("numba", "cupy") if config.BACKEND == "mixed" else tuple(dict.fromkeys(config.BACKEND.split(",")))
    return names if len(names) == 1 else tuple([name for name in names if name != "fake"])  # whose are its library's


def all_differences() -> tuple[Difference, ...]:
    """Those of all backends, and those of the ones that are in use."""
    return (*_EVERYWHERE, *(x for name in _in_use() for x in of_backend(name)), *_added)


def arithmetic() -> Arithmetic:
    """Of the backends that are in use."""
    found = (getattr(_module_of(name), "ARITHMETIC", None) for name in _in_use())
    return next((x for x in found if x is not None), _NUMPYS)


def add(differences: Iterable[Difference]) -> None:
    """Let the suite know more differences: of somebody else's overrides, backend or arrays."""
    _added.extend(differences)


def added() -> tuple[Difference, ...]:
    """Those that were added."""
    return tuple(_added)


def matching(case: Case, problem: str, among: Iterable[Difference] | None = None) -> set[Difference]:
    """The known differences that explain a problem of a case; `among` them, by default among ours."""
    return {
        known
        for known in (all_differences() if among is None else among)
        if known.here
        and known.function in (None, case.function)
        and known.text in problem
        and (case.variant or not known.variants)
    }
