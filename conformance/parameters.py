"""Which parameters of NumPy's functions no case passes: those are not known to work."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from inspect import Parameter
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Function
from numpy_dist.conformance import coverage
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.suite import cases_by_function, label
from numpy_dist.dispatch.core.signatures import METHOD_KEYWORDS, NUMPY_VERSION, call_keywords

if TYPE_CHECKING:
    import numpy.typing as npt

# What is no part of NumPy's interface, with the reason.
NOT_FOR_USERS = {"numpy.einsum_path: einsum_call": "np.einsum passes it"}
_GONE = (
    "array2string: style", "corrcoef: bias", "corrcoef: ddof", "in1d: assume_unique", "in1d: invert", "in1d: kind",
    "nanpercentile: interpolation", "nanquantile: interpolation", "percentile: interpolation",
    "quantile: interpolation", "reshape: newshape", "save: fix_imports",
)  # fmt: skip
if NUMPY_VERSION < (2, 4):
    NOT_FOR_USERS |= {f"numpy.{name}": "deprecated, and gone from newer versions" for name in _GONE}


def never_passed() -> Iterator[str]:
    """Each parameter that no case gives a value other than its default, as ``numpy.sort: kind``."""
    cases = cases_by_function()
    for function in coverage.functions():
        yield from missing(label(function), parameters(function), cases.get(function, ()))
    for target in coverage.ufunc_targets():
        if _means_something(target):
            yield from missing(label(target), ufunc_parameters(target), cases.get(target, ()))


def parameters(function: Function) -> Mapping[str, Parameter]:
    """Those of a function; of one written in C before NumPy 2.4 none, since they do not tell theirs."""
    try:
        return inspect.signature(_fromstring if function is np.fromstring else function).parameters
    except ValueError:
        return {}


def _fromstring(string: str, dtype: npt.DTypeLike = float, count: int = -1, *, sep: str, like: object = None) -> None:
    """What NumPy's documentation says of the one function that never tells."""


def ufunc_parameters(target: Function) -> Mapping[str, Parameter]:
    """The keywords of a ufunc or of one of its methods."""
    own = call_keywords(target) | {"subok": True} if isinstance(target, np.ufunc) else METHOD_KEYWORDS[target.__name__]
    return {name: Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in own.items()}


def _means_something(target: Any) -> bool:
    """Whether NumPy has anything but an error for it: methods are of ufuncs of two inputs and one output."""
    ufunc = getattr(target, "__self__", target)
    if not ufunc.types:  # those of strings have no loops for other calls than NumPy's own
        return False
    return ufunc is target or (ufunc.signature is None and (ufunc.nin, ufunc.nout) == (2, 1))


def missing(name: str, wanted: Mapping[str, Parameter], cases: Iterable[Case]) -> Iterator[str]:
    """The parameters of one function to which none of some cases gives a value."""
    passed = set().union(*(_passed(case, wanted) for case in cases))
    for parameter, told in wanted.items():
        entry = f"{name}: {parameter}"
        if parameter not in passed and not _is_required(told) and entry not in NOT_FOR_USERS:
            yield entry


def _is_required(parameter: Parameter) -> bool:
    """Whether nothing can be called without it."""
    return parameter.default is Parameter.empty and parameter.kind is not Parameter.VAR_KEYWORD


def _passed(case: Case, wanted: Mapping[str, Parameter]) -> Iterator[str]:
    """The parameters to which a case gives values; of what is called instead of the function, by name only."""
    given = dict(case.kwargs)
    if case.via is None:
        positional = [p for p in wanted.values() if p.kind is not Parameter.KEYWORD_ONLY]
        for number, value in enumerate(case.args):
            if number < len(positional) and positional[number].kind is not Parameter.VAR_POSITIONAL:
                given[positional[number].name] = value
            else:
                given |= {p.name: value for p in positional if p.kind is Parameter.VAR_POSITIONAL}
                break
    for name, value in given.items():
        if name in wanted and not _is_default(value, wanted[name].default):
            yield name
        elif name not in wanted:
            yield from (p.name for p in wanted.values() if p.kind is Parameter.VAR_KEYWORD)


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))
