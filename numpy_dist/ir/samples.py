"""What is compared of values where ranks meet: texts of scalars, and bytes of some elements of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_SAMPLED = 1024
"""Elements of an array, or items of a list, that are compared between ranks: of longer ones some all over it."""


def text_of(scalars: Sequence[Any]) -> str:
    """The scalars as a text, those with more digits than Python prints in base 16."""
    try:
        return repr(scalars)
    except ValueError:
        return repr([hex(x) if type(x) is int else x for x in scalars])


def sample_of(array: np.ndarray) -> bytes:
    """The values of an array, or of elements all over a long one, as bytes; nothing of those that are not all value."""
    if array.dtype.kind not in "biufcmMSU" or array.dtype.char in "gG":
        return b""
    return (array if array.size <= MOST_SAMPLED else array.flat[:: array.size // MOST_SAMPLED + 1]).tobytes()
