"""``import numpy_dist.linalg``: the submodules of NumPy are submodules of `numpy_dist`, too; the same objects."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence

_PREFIX = "numpy_dist."


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module("numpy." + spec.name.removeprefix(_PREFIX))
        self._spec, self._loader, self._package = module.__spec__, module.__loader__, module.__package__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        # It has been executed under its own name; importlib has just put that of the alias there.
        module.__spec__, module.__loader__, module.__package__ = self._spec, self._loader, self._package


class Finder(importlib.abc.MetaPathFinder):
    """Finds ``numpy_dist.name`` where only NumPy has such a public submodule."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_PREFIX) or self._is_own(fullname, path):
            return None
        try:
            found = importlib.util.find_spec("numpy." + fullname.removeprefix(_PREFIX))
        except (ModuleNotFoundError, ValueError):
            return None
        return None if found is None else importlib.machinery.ModuleSpec(fullname, _Loader())

    @staticmethod
    def _is_own(fullname: str, path: Sequence[str] | None) -> bool:
        """Whether a module is not for NumPy to find: private, or below a package of ours."""
        parent, _, name = fullname.rpartition(".")
        if name.startswith("_"):
            return True
        if parent + "." == _PREFIX:
            return importlib.machinery.PathFinder.find_spec(fullname, path) is not None
        return sys.modules[parent].__name__.startswith(_PREFIX)


def install() -> None:
    """Look for submodules in NumPy."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())  # Python's own would find NumPy's files below NumPy's packages, and run them
