"""Routes: which functions are computed at once, while nobody else has rules for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.dispatch.core import registry
from numpy_dist.engine.data import windows

if TYPE_CHECKING:
    from numpy_dist.dispatch.core.keys import Key

_rules = registry.TABLE
ROUTES: dict[Key, Function] = {}
"""How a function is computed at once, while nobody else has rules for it: ``route(args, kwargs)`` gives None where the
engine has to."""
WRITERS: dict[Key, Callable[[tuple, Keywords], bool]] = {}
"""How a function writes to an array at once, in the same way; False where the engine has to."""
COMPOSED: set[Function] = set()
"""Functions that are made of others, each of which may be at once."""


def routed(function: Function, args: tuple, kwargs: Keywords) -> object:
    """A function whose arguments come near, where the program is eager; None where the engine has to do it."""
    route = ROUTES.get(function)
    if route is None or not all(map(windows.come_near, args)):
        return None
    return route(args, kwargs)


def is_ours(function: Function) -> bool:
    """Whether a function is computed by a rule of the house."""
    if not registry.loaded:
        registry.load()
    record = _rules.get(function)
    return record is not None and record.rules[0].house


def is_method_ours(ufunc: np.ufunc, method: str) -> bool:
    """Whether nobody else has rules for a method of a ufunc."""
    return all(
        record is None or record.rules[0].house for record in map(_rules.get, ((ufunc, method), (np.ufunc, method)))
    )
