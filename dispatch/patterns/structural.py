"""The structural pattern: views, which NumPy makes of the meta array.

Needs: nothing of a layout. Nothing is computed or communicated. The layout of the result is that of the operand, seen
through the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from numpy_dist import engine
from numpy_dist.ir import structure

H = TypeVar("H", bound=engine.Handle)


def view_or_self(x: H, operation: structure.Operation, *args: object) -> H:
    """A view of `x` that a structural operation makes, or `x` itself where NumPy returns its argument."""
    found = structure.view(x._array, operation, *args)
    return x if found is x._array else x._seen_as(found)


def views(x: H, parts: Sequence[np.ndarray]) -> list[H]:
    """Handles of several views of `x`, given as views of its `_array`."""
    return [x._seen_as(part) for part in parts]


def ours(found: np.ndarray, given: object) -> engine.Handle | np.ndarray:
    """What NumPy made of an argument that is no array of ours, as one: every rank has it. The argument itself stays."""
    return found if found is given else engine.replicated(found)
