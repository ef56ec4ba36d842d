"""`repr` and `str` with NumPy's text, of which only the edges of a large array are moved."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.ir import structure


def array_repr(x: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """What `numpy.array_repr` says of the gathered array (collective; where NumPy prints the edges, only they move).

    Where it prints the edges of a sharded array the text begins with ``DistArray(``, as NumPy names subclasses: nobody
    can evaluate such a text, and doctests seldom have one. What is printed whole reads as NumPy's.
    """
    options: Any = np.get_printoptions()
    override = options.get("override_repr")
    if override is not None:
        return override(x)
    shown, summarised = printed_part(x, options["threshold"], options["edgeitems"])
    if not summarised:
        return np.array_repr(shown, max_line_width, precision, suppress_small)
    width = options["linewidth"] if max_line_width is None else max_line_width
    begin = "DistArray(" if engine.is_sharded(x) else "array("
    text = np.array2string(
        shown, width, precision, suppress_small, ", ", begin, threshold=0, edgeitems=options["edgeitems"], suffix=")"
    )
    extras = _extras(x)
    if not extras:
        return f"{begin}{text})"
    text, tail = f"{begin}{text},", ", ".join(extras) + ")"
    if options["legacy"] == "1.13":
        breaks = issubclass(x.dtype.type, np.flexible)
    else:
        breaks = len(text) - (text.rfind("\n") + 1) + len(tail) + 1 > width
    return text + ("\n" + " " * len(begin) if breaks else " ") + tail


def array_str(x: object, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """What `numpy.array_str` says of the gathered array (collective, see `array_repr`)."""
    options = np.get_printoptions()
    shown, summarised = printed_part(x, options["threshold"], options["edgeitems"])
    if not summarised:
        return np.array_str(shown, max_line_width, precision, suppress_small)
    return np.array2string(
        shown, max_line_width, precision, suppress_small, " ", "", threshold=0, edgeitems=options["edgeitems"]
    )


def array2string(x: object, *args: Any, **kwargs: Any) -> str:
    """What `numpy.array2string` says of the gathered array (collective, see `array_repr`)."""
    options = np.get_printoptions()
    threshold = kwargs.pop("threshold", None)
    edgeitems = kwargs.pop("edgeitems", None)
    threshold = options["threshold"] if threshold is None else threshold
    edgeitems = options["edgeitems"] if edgeitems is None else edgeitems
    shown, summarised = printed_part(x, threshold, edgeitems)
    return np.array2string(shown, *args, threshold=0 if summarised else threshold, edgeitems=edgeitems, **kwargs)


def printed_part(x: Any, threshold: int, edgeitems: int) -> tuple[np.ndarray, bool]:
    """The elements that decide NumPy's text, and whether they are a summary.

    Returns
    -------
    part : ndarray
        The whole array, or one in which every axis that NumPy shortens has a single element between its edges: printed
        with ``threshold=0`` it gives the text of the whole.
    summarised : bool
    """
    if x.size <= threshold or edgeitems == 0:  # without edges NumPy's text depends on all elements
        return (x.gather() if engine.is_sharded(x) else engine.plain(x)), False
    short = tuple(min(n, 2 * edgeitems + 1) for n in x.shape)
    part = np.empty(short, x.dtype)
    pieces = []
    for n in x.shape:
        if n <= 2 * edgeitems + 1:
            pieces.append([(slice(0, n), slice(0, n))])
        else:
            head = slice(0, edgeitems + 1)
            pieces.append([(head, head), (slice(edgeitems + 1, None), slice(n - edgeitems, n))])
    for corner in itertools.product(*pieces):
        source = x._view(structure.index, tuple(p[1] for p in corner))
        part[tuple(p[0] for p in corner)] = source.gather() if engine.is_sharded(x) else engine.plain(source)
    return part, True


def _extras(x: engine.Handle | np.ndarray) -> list[str]:
    """The `shape=` and `dtype=` that this NumPy appends to the repr of a summarised array like `x`."""
    extras = []
    with np.printoptions(threshold=0):
        if "shape=" in repr(np.zeros(2)):
            extras.append(f"shape={x.shape}")
    if "dtype=" in repr(np.zeros(1, x.dtype)):
        spelled = repr(np.zeros(0, x.dtype))
        extras.append(spelled[spelled.index("dtype=") : -1])
    return extras
