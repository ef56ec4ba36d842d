"""The functions of the package that remember what they returned."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Any

import numpy_dist


@functools.cache
def caches() -> dict[str, Any]:
    """All functions of the package that remember what they returned."""
    found = {}
    for module in pkgutil.walk_packages(numpy_dist.__path__, "numpy_dist."):
        if not module.name.startswith(("numpy_dist.interop", "numpy_dist.__main__", "numpy_dist.conformance")):
            try:
                loaded = importlib.import_module(module.name)
            except ImportError:  # of what is not installed here
                continue
            for name, value in vars(loaded).items():
                if isinstance(value, functools._lru_cache_wrapper) and value.__module__.startswith("numpy_dist"):
                    found[f"{module.name}.{name}"] = value
    return found
