"""Input and output as text: what is printed is NumPy's text, and only the edges of a large array are moved."""

from __future__ import annotations

import numpy as np

from numpy_dist.dispatch.core.registry import implements
from numpy_dist.distarray import formatting


@implements(np.array_repr)
def array_repr(
    arr: object, max_line_width: object = None, precision: object = None, suppress_small: object = None
) -> str:
    return formatting.array_repr(arr, max_line_width, precision, suppress_small)


@implements(np.array_str)
def array_str(a: object, max_line_width: object = None, precision: object = None, suppress_small: object = None) -> str:
    return formatting.array_str(a, max_line_width, precision, suppress_small)


# NumPy 2.4 dropped a parameter `style` that had no effect, and made those behind it keywords.
@implements(np.array2string, varies=("style", "formatter", "threshold", "edgeitems", "sign", "floatmode", "suffix"))
def array2string(
    a: object,
    max_line_width: object = None,
    precision: object = None,
    suppress_small: object = None,
    separator: str = " ",
    prefix: str = "",
    *,
    formatter: object = None,
    threshold: object = None,
    edgeitems: object = None,
    sign: object = None,
    floatmode: object = None,
    suffix: str = "",
    legacy: object = None,
) -> str:
    options = {"formatter": formatter, "sign": sign, "floatmode": floatmode, "suffix": suffix, "legacy": legacy}
    return formatting.array2string(
        a,
        max_line_width,
        precision,
        suppress_small,
        separator,
        prefix,
        threshold=threshold,
        edgeitems=edgeitems,
        **options,
    )
