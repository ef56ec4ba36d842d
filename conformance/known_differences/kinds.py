"""What a known difference says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numpy_dist.conformance.case import Tolerance


@dataclass(frozen=True)
class StrideDependent:
    """A function of which NumPy's own results depend on strides and on memory that inputs and outputs share.

    Attributes
    ----------
    function : callable
        A ufunc (its methods are meant, too), or a function that is made of one.
    dtypes : str
        Characters of the dtypes concerned.
    reason : str
    """

    function: object
    dtypes: str
    reason: str


@dataclass(frozen=True)
class Difference:
    """A function whose results differ from NumPy's on purpose, or until it is native.

    Attributes
    ----------
    function : callable or None
        None: of any function, and no unexpected pass where it is not seen.
    text : str
        A part of what the oracle says.
    reason : str
    variants : bool
        Whether it is one of derived cases (`variants`), not of those that are written.
    by_layout : bool
        Whether it shows in some layouts only, so that a run without it is no unexpected pass.
    here : bool
        Whether it shows on this processor; else it is listed, and explains nothing.
    """

    function: object
    text: str
    reason: str
    variants: bool = False
    by_layout: bool = False
    here: bool = True


@dataclass(frozen=True)
class Arithmetic:
    """In which ways a backend's arithmetic as a whole is not NumPy's, which no list of cases would tell better.

    Attributes
    ----------
    tells_events : bool
        Whether it warns, or raises, of all floating-point events.
    rounded : mapping
        Functions whose results are rounded otherwise, by how much.
    """

    tells_events: bool = True
    rounded: Mapping[object, Tolerance] = field(default_factory=dict)
