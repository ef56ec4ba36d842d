"""A kernel, as what generates its text and what fills its argument block share it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Kernel:
    """A kernel's source and what its argument block holds.

    Attributes
    ----------
    text : str
    width : int
        Most elements of a unit (reductions: `summation.CHUNK`).
    words : dict
        Name -> number of the word in the block; names as in the source.
    calls : list
        (ufunc, dtypes) of the inner loops, in the order of their words.
    length : int
        Words of the block.
    """

    text: str
    width: int
    words: dict[str, int]
    calls: list[tuple[np.ufunc, tuple[np.dtype, ...]]]
    length: int
