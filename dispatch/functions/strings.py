"""String functionality: functions of elements that are no ufuncs, on each rank's own elements."""

from __future__ import annotations

import numpy as np
from numpy._core import strings as numpys_strings

from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.registry import declare
from numpy_dist.dispatch.patterns.elementwise import elementwise

S = np.strings
# What NumPy makes by calling methods of Python's strings has C order.
_PYTHONS: tuple[Function, ...] = (
    S.capitalize,
    S.decode,
    S.encode,
    S.lower,
    S.mod,
    S.swapcase,
    S.title,
    S.upper,
)
_NUMPYS: tuple[Function, ...] = (
    S.center,
    S.expandtabs,
    S.ljust,
    S.multiply,
    S.partition,
    S.replace,
    S.rjust,
    S.rpartition,
    S.zfill,
    np.char.equal,
    np.char.greater,
    np.char.greater_equal,
    np.char.less,
    np.char.less_equal,
    np.char.not_equal,
)
for _function in _PYTHONS:
    elementwise(__name__, _function, "C")
for _function in _NUMPYS:
    elementwise(__name__, _function, "K")
elementwise(__name__, S.translate, "C", plain=("table",))

# Private in NumPy, and not handed over before NumPy 2.2; what is has `_implementation`.
_LISTS_OF_TEXTS = tuple(
    function
    for name in ("_join", "_rsplit", "_split", "_splitlines")
    if hasattr(function := vars(numpys_strings).get(name), "_implementation")
)
declare(*_LISTS_OF_TEXTS, kind="gathered", reason="its elements are Python objects", source=__name__)
