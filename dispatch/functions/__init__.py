"""Implementations of NumPy's functions, one module for each topic of NumPy's documentation.

`MODULES` names them all. The registry imports them, in this order, at the first dispatch.
"""

from __future__ import annotations

import pkgutil

MODULES: tuple[str, ...] = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))
