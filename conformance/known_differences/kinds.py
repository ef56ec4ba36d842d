"""What a known difference says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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
