"""`repr` and `str` with NumPy's text, of which only the edges of a large array are moved."""

from __future__ import annotations

import itertools
import re
import sys
from typing import Any

import numpy as np

from numpy_dist import engine


def array_repr(x: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """What `numpy.array_repr` says of the gathered array (collective; moves the edges only where NumPy prints only those)."""
    options = np.get_printoptions()
    override = options.get("override_repr")
    if override is not None:
        return override(x)
    shown, summarised = printed_part(x, options["threshold"], options["edgeitems"])
    if not summarised:
        return np.array_repr(shown, max_line_width, precision, suppress_small)
    width = options["linewidth"] if max_line_width is None else max_line_width
    text = np.array2string(
        shown, width, precision, suppress_small, ", ", "array(", threshold=0, edgeitems=options["edgeitems"], suffix=")"
    )
    return _with_extras(f"array({text}", _extras(x), width, options["legacy"])


def array_str(x: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """What `numpy.array_str` says of the gathered array (collective, see `array_repr`)."""
    options = np.get_printoptions()
    shown, summarised = printed_part(x, options["threshold"], options["edgeitems"])
    if not summarised:
        return np.array_str(shown, max_line_width, precision, suppress_small)
    return np.array2string(
        shown, max_line_width, precision, suppress_small, " ", "", threshold=0, edgeitems=options["edgeitems"]
    )


def array2string(x: Any, *args: Any, **kwargs: Any) -> str:
    """What `numpy.array2string` says of the gathered array (collective, see `array_repr`)."""
    options = np.get_printoptions()
    threshold = kwargs.pop("threshold", None)
    edgeitems = kwargs.pop("edgeitems", None)
    threshold = options["threshold"] if threshold is None else threshold
    edgeitems = options["edgeitems"] if edgeitems is None else edgeitems
    shown, summarised = printed_part(x, threshold, edgeitems)
    return np.array2string(shown, *args, threshold=0 if summarised else sys.maxsize, edgeitems=edgeitems, **kwargs)


def printed_part(x: Any, threshold: int, edgeitems: int) -> tuple[np.ndarray, bool]:
    """The elements that NumPy prints, and whether they are a summary.

    Returns
    -------
    part : ndarray
        The whole array, or one in which every axis that NumPy shortens has a single element between its edges: printed with
        ``threshold=0`` it gives the text of the whole.
    summarised : bool
    """
    if x.size <= threshold:
        return (x.gather() if engine.is_sharded(x) else x._array), False
    short = tuple(min(n, 2 * edgeitems + 1) for n in x.shape)
    part = np.empty(short, x.dtype)
    pieces = []
    for n in x.shape:
        if n <= 2 * edgeitems + 1:
            pieces.append([(slice(0, n), slice(0, n))])
        else:
            edges = [(slice(0, edgeitems + 1), slice(0, edgeitems + 1))]
            if edgeitems:
                edges.append((slice(edgeitems + 1, None), slice(n - edgeitems, n)))
            pieces.append(edges)
    for corner in itertools.product(*pieces):
        source = x._view(lambda a, index=tuple(p[1] for p in corner): a[index])
        part[tuple(p[0] for p in corner)] = source.gather() if engine.is_sharded(x) else source._array
    return part, True


def _extras(x: Any) -> list[str]:
    """The `shape=` and `dtype=` that this NumPy appends to the repr of a summarised array like `x`."""
    extras = []
    with np.printoptions(threshold=0):
        if "shape=" in repr(np.zeros(2)):
            extras.append(f"shape={x.shape}")
    sample = repr(np.zeros(1, x.dtype))
    if re.search(r"dtype=", sample):
        # NumPy spells the dtype of an empty array even where its elements imply it.
        extras.append(repr(np.zeros(0, x.dtype)).removeprefix("array([], ").removesuffix(")").strip())
    return extras


def _with_extras(text: str, extras: list[str], width: int, legacy: Any) -> str:
    """Close the parenthesis as `numpy.array_repr` does: the extras go on a line of their own where they do not fit."""
    if not extras:
        return text + ")"
    text += ","
    tail = ", ".join(extras) + ")"
    last_line = len(text) - (text.rfind("\n") + 1)
    spacer = " "
    if last_line + len(tail) + 1 > width:
        spacer = "\n" + " " * len("array(")
    return text + spacer + tail
