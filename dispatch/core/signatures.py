"""Signatures are compared once for each implementation, and never bound for each call."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from inspect import Parameter
from typing import Any

import numpy as np

from numpy_dist.dispatch.core.keys import Key, name_of

NoValue = np._NoValue

# Newer versions of NumPy may have parameters that nobody here has seen; calls that use them go to the fallback.
NEWEST_TESTED = (2, 5)
NUMPY_VERSION = tuple(int(part) for part in np.__version__.split(".")[:2])

_CALL: dict[str, object] = {
    "out": None,
    "where": True,
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "signature": None,
}
_GENERALISED: dict[str, object] = {**_CALL, "axes": NoValue, "axis": NoValue, "keepdims": False}
del _GENERALISED["where"]

# What the methods of ufuncs receive: positional inputs, then keywords with their defaults (`subok` is removed before).
METHOD_KEYWORDS: dict[str, dict[str, object]] = {
    "reduce": {"axis": 0, "dtype": None, "out": None, "keepdims": False, "initial": NoValue, "where": True},
    "accumulate": {"axis": 0, "dtype": None, "out": None},
    "reduceat": {"axis": 0, "dtype": None, "out": None},
    "outer": _CALL,
    "at": {},
}
METHOD_INPUTS = {"reduce": (1, 1), "accumulate": (1, 1), "reduceat": (2, 2), "outer": (2, 2), "at": (2, 3)}

# Before NumPy 2.4 functions written in C do not tell their signatures: the positions of `out` in them.
_OUT_POSITIONS: dict[Callable[..., object], int] = {
    np.busday_count: 5,
    np.busday_offset: 6,
    np.concatenate: 2,
    np.dot: 2,
    np.is_busday: 4,
}


# With ``python -OO`` NumPy's functions in C do not tell which parameters are positional only: their docstrings did.
DOCSTRINGS_STRIPPED = sys.flags.optimize > 1


class SignatureError(TypeError):
    """The signatures of an implementation and of what it implements differ."""


def check(function: Callable[..., object], key: Key, varies: Iterable[str] = ()) -> frozenset[str]:
    """Compare an implementation's signature with that of what it implements.

    Parameters
    ----------
    function : callable
    key : key of the registry
    varies : iterable of str
        Parameters that not every supported version of NumPy has, or has in the same way; they are not compared.

    Returns
    -------
    frozenset of str
        Parameters of this NumPy that the implementation does not have: calls that use them must go elsewhere.

    Raises
    ------
    SignatureError
        If the signatures differ; the message shows both.
    """
    if isinstance(key, tuple) or isinstance(key, np.ufunc) or key is np.ufunc:
        _check_ufunc(function, key)
        return frozenset()
    try:
        theirs = list(inspect.signature(key).parameters.values())
    except ValueError:  # a function written in C that does not tell
        return frozenset()
    ours = list(inspect.signature(function).parameters.values())
    if DOCSTRINGS_STRIPPED:
        theirs = [p.replace(kind=_kind_of(p.name, ours, p.kind)) for p in theirs]
    known = {p.name for p in ours}
    ignored = {"like"} | set(varies)
    if NUMPY_VERSION > NEWEST_TESTED and name_of(key).startswith("numpy."):
        ignored |= {p.name for p in theirs if p.name not in known and p.default is not Parameter.empty}
    if not _same([p for p in theirs if p.name not in ignored], [p for p in ours if p.name not in ignored]):
        raise SignatureError(
            f"{function.__module__}.{function.__qualname__} cannot implement {name_of(key)}: their signatures differ\n"
            f"    {_library(key)}: {inspect.signature(key)}\n"
            f"    implementation: {inspect.signature(function)}"
        )
    return frozenset(p.name for p in theirs if p.name not in known and p.name != "like")


def _kind_of(name: str, parameters: Iterable[Parameter], otherwise: object) -> Any:
    """The kind of the parameter of this name, if there is one."""
    return next((p.kind for p in parameters if p.name == name), otherwise)


def _library(key: Key) -> str:
    """What a function belongs to, for the message."""
    package = name_of(key).partition(".")[0]
    return f"NumPy {np.__version__}" if package == "numpy" else package if "." in name_of(key) else "function"


def shared_positions(function: Callable[..., object], key: Key) -> int:
    """How many arguments an implementation takes by position just as the function of NumPy does."""
    theirs, ours = (inspect.signature(f).parameters.values() for f in (key, function))
    for count, (a, b) in enumerate(zip(theirs, ours, strict=False)):
        if a.kind is b.kind is Parameter.VAR_POSITIONAL:
            return sys.maxsize
        if a.name != b.name or a.kind is not b.kind or a.kind is Parameter.KEYWORD_ONLY:
            return count
    return min(len(theirs), len(ours))


def _same(theirs: list[Parameter], ours: list[Parameter]) -> bool:
    return len(theirs) == len(ours) and all(
        a.name == b.name and a.kind == b.kind and _same_default(a.default, b.default)
        for a, b in zip(theirs, ours, strict=True)
    )


def _same_default(theirs: object, ours: object) -> bool:
    if theirs is ours:
        return True
    # Sentinels print as "<no value>"; there is one object of the kind, which an implementation can hand on to NumPy.
    return type(theirs) is type(ours) and theirs is not NoValue and bool(theirs == ours)


def takes_ufunc(function: Callable[..., object], key: Key) -> bool:
    """Whether an implementation of a ufunc or its method wants the ufunc itself, as its first parameter `ufunc`."""
    ufunc = key[0] if isinstance(key, tuple) else key
    if not isinstance(ufunc, np.ufunc) and ufunc is not np.ufunc:
        return False
    return next(iter(inspect.signature(function).parameters), None) == "ufunc"


def _check_ufunc(function: Callable[..., object], key: Key) -> None:
    """Inputs come by position, everything else by keyword; `out` is a tuple, as the protocol has it."""
    ufunc, method = key if isinstance(key, tuple) else (key, "__call__")
    parameters = list(inspect.signature(function).parameters.values())[1 if takes_ufunc(function, key) else 0 :]
    keywords = call_keywords(ufunc) if method == "__call__" else METHOD_KEYWORDS[method]
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    by_name = {p.name: p for p in parameters if p.name in keywords}
    fits = all(
        p.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        and _same_default(keywords[p.name], p.default)
        for p in by_name.values()
    )
    inputs = [p for p in parameters if p.name not in by_name and p.kind is not Parameter.VAR_KEYWORD]
    complete = takes_any or by_name.keys() == keywords.keys()
    if not (fits and complete and _inputs_fit(inputs, *_input_counts(ufunc, method))):
        raise SignatureError(
            f"{function.__module__}.{function.__qualname__} cannot implement {name_of(key)}: their signatures differ\n"
            f"    NumPy {np.__version__}: {_describe(ufunc, method, keywords)}\n"
            f"    implementation: {inspect.signature(function)}"
        )


def call_keywords(ufunc: object) -> dict[str, object]:
    """The keywords of calls of a ufunc, and their defaults."""
    generalised = isinstance(ufunc, np.ufunc) and ufunc.signature is not None
    return _GENERALISED if generalised else _CALL


def _input_counts(ufunc: object, method: str) -> tuple[int, int]:
    """The smallest and the largest number of inputs."""
    if method != "__call__":
        return METHOD_INPUTS[method]
    return (ufunc.nin, ufunc.nin) if isinstance(ufunc, np.ufunc) else (1, 1 << 30)


def _inputs_fit(inputs: list[Parameter], fewest: int, most: int) -> bool:
    if any(p.kind is Parameter.KEYWORD_ONLY for p in inputs):
        return False
    named = [p for p in inputs if p.kind is not Parameter.VAR_POSITIONAL]
    required = sum(p.default is Parameter.empty for p in named)
    any_number = len(named) < len(inputs)
    return required <= fewest and (any_number or len(named) == most)


def _describe(ufunc: object, method: str, keywords: dict[str, object]) -> str:
    fewest, most = _input_counts(ufunc, method)
    count = "any number of" if most > 3 else f"{fewest} or {most}" if most > fewest else str(most)
    listed = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
    return f"{count} positional inputs" + (f", then the keywords {listed}" if listed else "")


@functools.lru_cache(maxsize=1024)
def out_position(function: Callable[..., object]) -> int | None:
    """The position at which a function accepts `out`, if it does so by position."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _OUT_POSITIONS.get(function)
    for position, parameter in enumerate(parameters):
        if parameter.name == "out" and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD:
            return position
        if parameter.kind is Parameter.VAR_POSITIONAL:
            return None
    return None
