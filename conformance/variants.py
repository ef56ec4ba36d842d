"""Further cases derived from those that are written: the same call on other shapes, views and dtypes.

NumPy is the oracle, also where it raises an error; so whatever a call means for an empty or a 0-d array, for every
dtype and for every kind of view, is tried for every function without anybody writing it down.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from numpy_dist.conformance import known_differences
from numpy_dist.conformance.arguments import VIEWS, Array
from numpy_dist.conformance.case import Case

DTYPES = "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 g F D M8[s] m8[ms] S3 U5".split()
_EXTENTS: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "empty": lambda shape: tuple(0 if axis == 0 else n for axis, n in enumerate(shape)),
    "empty at the end": lambda shape: (*shape[:-1], 0) if shape else shape,
    "single": lambda shape: (1,) * len(shape),
    "0-d": lambda shape: (),
    "larger": lambda shape: tuple(2 * n + 1 if n else 0 for n in shape),
}


def variants(cases: Iterable[Case], first: int = 2) -> Iterator[Case]:
    """Variants of the first cases of each function among some, numbered after them.

    Parameters
    ----------
    cases : iterable of Case
    first : int
        How many cases of each function are varied.
    """
    cases = tuple(cases)
    taken: dict[object, int] = {}
    number = max((case.number for case in cases), default=0)
    for case in cases:
        if taken.get(case.function, 0) >= first or not _is_plain(case):
            continue
        taken[case.function] = taken.get(case.function, 0) + 1
        for change in _changes():
            changed = _changed(case, change)
            if changed is not None:
                number += 1
                tolerance = case.tolerance or known_differences.ROUNDING.get(case.function)
                changed = replace(changed, number=number, variant=True, tolerance=tolerance)
                if not known_differences.is_undefined(changed):
                    yield changed


def _is_plain(case: Case) -> bool:
    """Whether a case is a call whose arrays can be replaced: not one of several statements, or of literal values."""
    return case.apart is None and any(True for _ in _arrays((*case.args, *case.kwargs.values())))


def _changes() -> Iterator[Callable[[Array], Array]]:
    for extents in _EXTENTS.values():
        yield functools.partial(_with_shape, extents=extents)
    for view in VIEWS:
        yield functools.partial(replace, view=view)  # type: ignore[misc]
    for dtype in DTYPES:
        yield functools.partial(_with_dtype, dtype=dtype)


def _with_shape(array: Array, extents: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Array:
    if not isinstance(array.values, str) or array.values == "definite":
        return array
    return replace(array, shape=extents(array.shape))


def _with_dtype(array: Array, dtype: str) -> Array:
    if not isinstance(array.values, str):
        return array
    number = dtype[0] not in "MmSU"
    keeps = array.values == "sorted" or number and (array.values == "whole" or dtype[0] in "fgFD")
    values = array.values if keeps else "mixed"
    if values == "mixed" and dtype[0] in "fgFD" and np.dtype(array.dtype).kind not in "fc":
        values = "whole"  # exact, as what the case was written for
    return replace(array, dtype=dtype, values=values)


def _arrays(value: object) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)


def _changed(case: Case, change: Callable[[Array], Array]) -> Case | None:
    """The case with all arrays changed, those that are one staying one; None where nothing changes."""
    made: dict[int, Array] = {}

    def convert(value: object) -> object:
        if isinstance(value, Array):
            if id(value) not in made:
                made[id(value)] = change(value)
            return made[id(value)]
        if isinstance(value, list | tuple) and any(True for _ in _arrays(value)):
            return type(value)(convert(item) for item in value)
        return value

    args = tuple(convert(value) for value in case.args)
    kwargs = {name: convert(value) for name, value in case.kwargs.items()}
    if args == case.args and kwargs == case.kwargs:
        return None
    return replace(case, args=args, kwargs=kwargs)
