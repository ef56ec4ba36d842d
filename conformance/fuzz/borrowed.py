"""Calls borrowed from the cases of the conformance suite, with arrays of the program in place of some arguments."""

from __future__ import annotations

import functools
import re

import numpy as np

from numpy_dist.conformance import known_differences, suite
from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.arguments import Array
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking.oracle import asks_us, is_overridable
from numpy_dist.conformance.fuzz.statements import kind
from numpy_dist.conformance.fuzz.writer import ORDERS, Writer, distinct, ordered
from numpy_dist.dispatch.core.keys import name_of

__all__: list[str] = []

_POSITIONS = re.compile("argsort|argpartition")  # without kind="stable", which of equal elements comes first is open
_BY_ROWS = ("nanmedian", "nanpercentile", "nanquantile")  # NumPy goes through rows in Python, and warns for each
_PATH = re.compile(r"numpy((\.[A-Za-z]\w*)+)")


@functools.cache
def _groups() -> tuple[tuple[Case, ...], ...]:
    """The cases that are one call of a public function, by function."""
    found = []
    explained = {known.function for known in current().differences()}
    for cases in suite.groups().values():
        usable = tuple(case for case in cases if case.function not in explained and _usable(case))
        if usable:
            found.append(usable)
    return tuple(found)


def _usable(case: Case) -> bool:
    text = _function(case)
    if case.via is not None or not case.values or text is None or known_differences.is_undefined(case):
        return False
    asked = is_overridable(case.function) and asks_us(case.function)
    return asked and all(map(_can_be_written, (*case.args, *case.kwargs.values())))


def _function(case: Case) -> str | None:
    """The function as source text."""
    owner = getattr(case.function, "__self__", None)
    method = f".{case.function.__name__}" if isinstance(owner, np.ufunc) else ""
    found = _PATH.fullmatch(name_of(owner if method else case.function))
    if found is None:
        return None
    text = f"np{found[1]}"
    try:
        same = eval(text, {"np": np}) is (owner if method else case.function)
    except AttributeError:
        return None
    return text + method if same else None


def _can_be_written(value: object) -> bool:
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(map(_can_be_written, value))
    if isinstance(value, Array):
        return isinstance(value.dtype, str) and (isinstance(value.values, str) or _literal(value.values[0]))
    return _literal(value)


def _literal(value: object) -> bool:
    if isinstance(value, float) and not np.isfinite(value):
        return False
    if isinstance(value, list | tuple):
        return all(map(_literal, value))
    return value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes, slice)


def _text(w: Writer, value: object, substitute: bool) -> str:
    """An argument as source text; an array may become one of the program's."""
    if isinstance(value, list):
        return f"[{', '.join(_text(w, item, substitute) for item in value)}]"
    if isinstance(value, tuple):
        return f"({''.join(_text(w, item, substitute) + ', ' for item in value)})"
    if not isinstance(value, Array):
        return "..." if value is Ellipsis else repr(value)
    if substitute:
        kinds = "biu" if np.dtype(value.dtype).kind in "biu" else np.dtype(value.dtype).kind
        name = w.pick(lambda x: x.ndim == len(value.shape) and x.dtype.kind in kinds)
        if name is not None:
            return name
    if not isinstance(value.values, str):
        text = f"of({value.values[0]!r}, {value.dtype!r}, view={value.view!r})"
    else:
        shape = "".join(f"{n}, " for n in value.shape)
        text = f"a({shape}dtype={value.dtype!r}, values={value.values!r}, view={value.view!r})"
    text = text.replace(", view='whole'", "")
    return f"array({text}, {w.upto(99)})" if value.distributed else f"{text}.make('')"


@kind(14)
def borrowed(w: Writer) -> None:
    """A call with the arguments of a case."""
    case = w.one(w.one(_groups()))
    function = _function(case)
    assert function is not None
    topic_is_delicate = any(part in function for part in ("linalg", "fft", "poly"))
    delicate = topic_is_delicate or function.endswith(_BY_ROWS)
    substitute = w.chance(0.6) and not (w.big or delicate or "out" in case.kwargs)
    words = [_text(w, value, substitute) for value in case.args]
    words += [f"{name}={_text(w, value, substitute)}" for name, value in case.kwargs.items()]
    text = f"{function}({', '.join(words)})"
    if _POSITIONS.search(function) and not re.search("stable|mergesort", text):
        if not all(distinct(w.names[name]) for name in re.findall(r"\bv\d+", text)):
            return
    if ORDERS.search(function) and not all(ordered(w.names[name]) for name in re.findall(r"\bv\d+", text)):
        return
    if case.tolerance is None and not substitute and case.function not in known_differences.ROUNDING:
        w.bind(text) if not _rounds(case) else w.seal(text, 512)
        return
    before = {name: x.tobytes() for name, x in w.names.items() if type(x) is np.ndarray}
    if w.seal(text, 4096 if case.tolerance is None else max(4 * case.tolerance.ulps, 512)) and substitute:
        changed = [n for n, x in w.names.items() if n in before and before[n] != x.tobytes()]
        for name in changed:  # what was written there may be rounded otherwise
            w.add(f"{name}[...] = 1")


def _rounds(case: Case) -> bool:
    """Whether NumPy rounds otherwise where the arguments lie otherwise."""
    arrays = [x for x in case.args if isinstance(x, Array)]
    inexact = any(np.dtype(x.dtype).kind in "fc" for x in arrays)
    owner = suite.owner_of(case.function)
    return inexact and any(owner is entry.function for entry in known_differences.STRIDE_DEPENDENT)
