"""What is compared of values where ranks meet: texts of scalars, and bytes of some elements of arrays."""

from __future__ import annotations

import numpy as np

MOST_SAMPLED = 1024
"""Elements of an array, or items of a list, that are compared between ranks: of longer ones some all over it."""


def text_of(value: object) -> str:
    """A scalar, or a sequence of them, as a text: those that have none of their own by digits in base 16 or bytes.

    Python prints no integer of more than some thousand digits, NumPy no datetime without a unit.
    """
    try:
        return repr(value)
    except ValueError:
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(text_of, value))}]"
        if isinstance(value, np.generic):
            return f"{value.dtype}({value.tobytes().hex()})"
        if isinstance(value, int):
            return hex(value)
        raise


def sample_of(array: np.ndarray) -> bytes:
    """The values of an array, or of elements all over a long one, as bytes; nothing of those that are not all value."""
    if array.dtype.kind not in "biufcmMSU" or array.dtype.char in "gG":
        return b""
    return (array if array.size <= MOST_SAMPLED else array.flat[:: step_of(array.size)]).tobytes()


def step_of(count: int) -> int:
    """From one of many elements that is compared to the next: an odd number, as what repeats has even periods."""
    return count // MOST_SAMPLED + 1 | 1
