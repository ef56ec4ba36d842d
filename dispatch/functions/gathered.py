"""What is gathered on purpose, and why; the table of functions and the fallback's warning say it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy._core import strings
from numpy.lib import recfunctions

from numpy_dist.dispatch.core.registry import declare

# Private in NumPy, and not handed over before NumPy 2.2; what is has `_implementation`.
_LISTS_OF_TEXTS = tuple(
    function
    for name in ("_join", "_rsplit", "_split", "_splitlines")
    if hasattr(function := vars(strings).get(name), "_implementation")
)
_REASONS: dict[str, tuple[Any, ...]] = {
    "each coefficient follows from the one before": (np.polydiv,),
    "it needs the eigenvalues of a single matrix": (np.poly, np.roots),
    "its result is a masked array, unless it is told otherwise": (recfunctions.join_by,),
    "its result is a numpy.recarray, which every rank holds whole": (
        recfunctions.rec_append_fields,
        recfunctions.rec_drop_fields,
        recfunctions.rec_join,
    ),
    "its elements are Python objects": _LISTS_OF_TEXTS,
}
for _reason, _functions in _REASONS.items():
    declare(*_functions, kind="gathered", reason=_reason, source=__name__)
