"""Conformance cases are data: a function of NumPy, arguments, and how its results may differ from NumPy's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.conformance.arguments import Array
from numpy_dist.dispatch.core.keys import name_of

if TYPE_CHECKING:
    from types import GetSetDescriptorType

    import numpy.typing as npt


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from NumPy's, in units of the last place of the largest finite result.

    Attributes
    ----------
    ulps : float
    reason : str
        Why it need not be bitwise equal.
    computed_in : str
        The dtype whose last place is counted, where a wider result was computed in it; "" for the result's own.
    """

    ulps: float
    reason: str
    computed_in: str = ""

    def unit(self, dtype: npt.DTypeLike) -> float:
        """The last place of a result of this dtype, relative to its largest value."""
        kinds = [dtype, self.computed_in] if self.computed_in else [dtype]
        return max(float(np.finfo(kind).eps) for kind in kinds)


SUMS = Tolerance(64, "the summation tree follows the layout, not NumPy's pairwise blocks")
PRODUCTS = Tolerance(64, "the order of the factors follows the layout")
BLAS = Tolerance(256, "sums over shards, each by BLAS, whose order of terms depends on the extents")


@dataclass
class Case:
    """One call.

    Attributes
    ----------
    function : callable
        The function, ufunc or method of ndarray that the case is about.
    args, kwargs
        Its arguments; `Array`s in them become arrays.
    via : callable or None
        What is called instead, with the same arguments (a method, an operator, several statements).
    tolerance : Tolerance or None
        None: bitwise equal.
    declines : str or None
        Why this call is gathered although the function is not.
    alone : bool
        Whether it is not gathered on a single rank all the same.
    materialises : bool
        Whether the call asks for the values as such (`repr`, `list`, a file), so that a gather is what is wanted.
    values : bool
        Whether the values are to be compared (``empty`` has none).
    apart : callable or None
        The same call on memory that does not overlap, for one whose operands do.
    variant : bool
        Whether the case was derived from one that is written (`variants`).
    """

    function: Any
    args: Arguments
    kwargs: Keywords = field(default_factory=dict)
    via: Function | None = None
    tolerance: Tolerance | None = None
    declines: str | None = None
    alone: bool = False
    materialises: bool = False
    values: bool = True
    apart: Function | None = None
    number: int = 0
    variant: bool = False

    def __str__(self) -> str:
        parts = [*map(_described, self.args), *(f"{k}={_described(v)}" for k, v in self.kwargs.items())]
        code = getattr(self.via, "__code__", None)
        via = "" if code is None else f" via line {code.co_firstlineno}"
        return f"{name_of(self.function)}({', '.join(parts)}){via}"


def _described(value: object) -> str:
    if isinstance(value, Array):
        return str(value)
    if isinstance(value, tuple | list):
        return type(value).__name__ + "(" + ", ".join(map(_described, value)) + ")"
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) < 60 else text[:57] + "..."


class Topic:
    """The cases of one topic of NumPy's documentation; a module of `cases` has one, called `TOPIC`."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.cases: list[Case] = []

    def case(
        self,
        function: Function | GetSetDescriptorType,
        *args: object,
        via: Function | None = None,
        tolerance: Tolerance | None = None,
        declines: str | None = None,
        alone: bool = False,
        materialises: bool = False,
        values: bool = True,
        apart: Function | None = None,
        **kwargs: object,
    ) -> Case:
        """Add one call; see `Case`."""
        number = len(self.cases)
        made = Case(function, args, kwargs, via, tolerance, declines, alone, materialises, values, apart, number)
        self.cases.append(made)
        return made

    def each(self, functions: Iterable[Function | GetSetDescriptorType], *args: object, **options: Any) -> None:
        """Add the same call for each of several functions."""
        for function in functions:
            self.case(function, *args, **options)
