"""A call of every function, of any size: from a conformance case, or written here where no case can be scaled."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_dist.conformance import suite
from numpy_dist.conformance.arguments import VIEWS, Array, TemporaryFile, a
from numpy_dist.conformance.case import Case
from numpy_dist.dispatch.core.keys import name_of

CANDIDATES = 6
"""How many cases of a function are tried."""


@dataclass(frozen=True)
class Call:
    """A function and its arguments, in which `Array`s stand for arrays.

    Attributes
    ----------
    function : callable
    args, kwargs
    scaled : bool
        Whether the arguments have the size that was asked for already.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    scaled: bool = False

    def __str__(self) -> str:
        parts = [*map(_described, self.args), *(f"{name}={_described(x)}" for name, x in self.kwargs.items())]
        return f"({', '.join(parts)})"

    def of_size(self, size: int) -> Call:
        """The same call with about so many elements in its largest array."""
        if self.scaled:
            return self
        arrays = [x for x in _leaves((self.args, self.kwargs)) if isinstance(x, Array)]
        largest = max(arrays, key=lambda x: math.prod(x.shape))
        axes = sum(extent > 1 for extent in largest.shape)
        factor = (size / math.prod(largest.shape)) ** (1 / axes)

        def scaled(x: Any) -> Any:
            if not isinstance(x, Array) or not isinstance(x.values, str):
                return x
            shape = tuple(max(2, round(extent * factor)) if extent > 1 else extent for extent in x.shape)
            return dataclasses.replace(x, shape=shape)

        return Call(self.function, _mapped(scaled, self.args), _mapped(scaled, self.kwargs), True)

    def arguments(self, put: Callable[[np.ndarray], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with an array made by `put` for each description."""

        def made(x: Any) -> Any:
            if not isinstance(x, Array):
                return x
            base, view = VIEWS[x.view]
            values = base(x.make(""))
            return view(put(values) if x.distributed else values)

        return _mapped(made, self.args), _mapped(made, self.kwargs)


def _described(x: Any) -> str:
    if isinstance(x, tuple | list):
        return "[" + ", ".join(map(_described, x)) + "]"
    text = getattr(x, "__name__", None) or str(x)
    return text if len(text) < 40 else text[:37] + "..."


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, tuple | list):
        for item in x:
            yield from _leaves(item)
    else:
        yield x


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    if isinstance(x, dict):
        return {name: _mapped(change, item) for name, item in x.items()}
    if type(x) in (tuple, list):
        return type(x)(_mapped(change, item) for item in x)
    return change(x)


def _can_be_scaled(case: Case) -> bool:
    leaves = list(_leaves((case.args, case.kwargs)))
    arrays = [x for x in leaves if isinstance(x, Array)]
    return (
        not any(isinstance(x, TemporaryFile) for x in leaves)
        and any(x.distributed and isinstance(x.values, str) and math.prod(x.shape) > 1 for x in arrays)
        and not any(0 in x.shape for x in arrays)
        # Creation functions, for which an array only says whose it is to be.
        and [x for x in arrays if x is not case.kwargs.get("like")] != []
    )


def _oddness(case: Case) -> tuple[Any, ...]:
    """How far a case is from an everyday call; cases are tried in this order."""
    arrays = [x for x in _leaves((case.args, case.kwargs)) if isinstance(x, Array)]
    return (
        case.declines is not None or case.materialises,
        case.via is not None,
        sum(x.view != "whole" for x in arrays),
        sum(not isinstance(x.values, str) or not x.distributed for x in arrays),
        sum(x.dtype != "f8" for x in arrays),
        sum(x.values in ("special", "nans") for x in arrays),
        len(case.kwargs),
    )


def _with_like(function: Callable[..., Any], *args: Callable[[int], Any]) -> Callable[[int], Call]:
    """A creation function, which knows by ``like=`` whose array to make."""
    return lambda size: Call(function, tuple(make(size) for make in args), {"like": a(2)}, True)


def _written(function: Callable[..., Any], *args: Callable[[int], Any], **kwargs: Any) -> Callable[[int], Call]:
    return lambda size: Call(function, tuple(make(size) for make in args), kwargs, True)


def _side(size: int) -> int:
    return max(2, math.isqrt(size))


def _line(size: int) -> Array:
    return a(size)


def _matrix(size: int) -> Array:
    return a(_side(size), _side(size))


def _indices(extent: int, count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, extent, count)


def _few(x: Any) -> Any:
    return np.any(x > 99.0)


def _taken(m: Any) -> Any:
    half = len(m) // 2
    return m[np.ix_(_indices(len(m), half), _indices(len(m), half))]


def _scattered(x: Any) -> Any:
    x[_indices(len(x), len(x))] = 1.0
    return x


WRITTEN: dict[str, Callable[[int], Call]] = {
    "numpy.zeros": _with_like(np.zeros, int),
    "numpy.ones": _with_like(np.ones, int),
    "numpy.empty": _with_like(np.empty, int),
    "numpy.full": _with_like(np.full, int, lambda size: 2.5),
    "numpy.arange": _with_like(np.arange, int),
    "numpy.identity": _with_like(np.identity, _side),
    "numpy.eye": _with_like(np.eye, _side),
    "numpy.tri": _with_like(np.tri, _side),
    "numpy.convolve": _written(np.convolve, _line, lambda size: a(min(size, 33))),
    "numpy.correlate": _written(np.correlate, _line, lambda size: a(min(size, 33))),
    "numpy.repeat": _written(np.repeat, _line, lambda size: 3),
    "numpy.tile": _written(np.tile, _line, lambda size: 3),
    "numpy.reshape": _written(np.reshape, _line, lambda size: (-1,)),
    "numpy.take": _written(np.take, _line, lambda size: _indices(size, size)),
    "numpy.cov": _written(np.cov, lambda size: a(min(50, _side(size)), max(1, size // min(50, _side(size))))),
    "numpy.corrcoef": _written(np.corrcoef, lambda size: a(min(50, _side(size)), max(1, size // min(50, _side(size))))),
    "numpy.dot": _written(np.dot, _matrix, _matrix),
    "any of a comparison": _written(_few, _line),
    "all of bools": _written(np.all, lambda size: a(size, dtype="?", values="ones")),
    "any of bools": _written(np.any, lambda size: a(size, dtype="?", values="zeros")),
    "count_nonzero of bools": _written(np.count_nonzero, lambda size: a(size, dtype="?")),
    "u1 + u1": _written(np.add, lambda size: a(size, dtype="u1"), lambda size: a(size, dtype="u1")),
    "max of u1": _written(np.max, lambda size: a(size, dtype="u1")),
    "sum(axis=0)": _written(np.sum, _matrix, axis=0),
    "sum(axis=1)": _written(np.sum, _matrix, axis=1),
    "std(axis=0)": _written(np.std, _matrix, axis=0),
    "nanmean(axis=0)": _written(np.nanmean, _matrix, axis=0),
    "x[mask]": _written(lambda x: x[x > 0], _line),
    "x[np.ix_(i, j)]": _written(_taken, _matrix),
    "x[i] = 1": _written(_scattered, _line),
    'einsum("ij,ij->i")': _written(lambda x: np.einsum("ij,ij->i", x, x), _matrix),
    "x[1:] - x[:-1]": _written(lambda x: x[1:] - x[:-1], _line),
    "x.T.copy()": _written(lambda x: x.T.copy(), _matrix),
}
"""Calls of which the suite has none that can be scaled, and operations that are no function."""


@functools.cache
def calls() -> dict[str, tuple[Callable[[int], Call], ...]]:
    """By name, the calls to try for each function: each makes one of a given size."""
    found: dict[str, tuple[Callable[[int], Call], ...]] = {}
    for function, cases in suite.cases_by_function().items():
        name = name_of(function)
        if name in found:  # the module of a ufunc is not part of its name
            name = suite.label(function)
        usable = sorted(filter(_can_be_scaled, cases), key=_oddness)[:CANDIDATES]
        found[name] = tuple(Call(case.via or case.function, case.args, case.kwargs).of_size for case in usable)
    return found | {name: (make,) for name, make in WRITTEN.items()}


def elements(x: Any) -> int:
    """The elements of the largest array of a result that has memory of its own."""
    return max((item.size for item in _leaves(x) if isinstance(item, np.ndarray) and item.base is None), default=1)
