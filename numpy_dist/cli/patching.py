"""`numpy-dist run --patch`: numpy_dist in NumPy's place, for the user's own modules.

Those are the main program and what lies in the script's folder, or in the package of ``-m``. What is installed there,
as in a virtual environment, keeps its NumPy, and so does Python's own library.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any

import numpy

import numpy_dist
from numpy_dist.binding import namespace_builtins
from numpy_dist.frames import is_installed

__all__ = ["NumPyStandIn", "begin"]

_KEPT = ("numpy", "numpy_dist")


class NumPyStandIn(types.ModuleType):
    """The namespace `numpy_dist` with NumPy's version, by which programs decide what they may use."""

    def __init__(self) -> None:
        super().__init__(numpy_dist.__name__, numpy_dist.__doc__)
        vars(self).update(
            __version__=numpy.__version__,
            __file__=numpy_dist.__file__,
            __path__=numpy_dist.__path__,
            __spec__=numpy_dist.__spec__,
        )

    def __getattr__(self, name: str) -> Any:
        value = getattr(numpy_dist, name)
        vars(self)[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(numpy_dist)


class PatchingFinder(MetaPathFinder):
    """A finder of modules in some folder, which are given other builtins when they are executed.

    Parameters
    ----------
    folder : str
        Where they lie, or below it.
    names : module
        Their builtins.
    """

    def __init__(self, folder: str, names: types.ModuleType) -> None:
        self._folder = os.path.join(os.path.realpath(folder), "")
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification that the other finders have, with a loader of ours for modules of the folder."""
        if name.partition(".")[0] in _KEPT:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if type(spec.loader) is SourceFileLoader and self._is_users(spec.origin):
                    spec.loader = PatchingLoader(name, spec.loader.path, self._names)
                return spec
        return None

    def _is_users(self, origin: str | None) -> bool:
        return origin is not None and os.path.realpath(origin).startswith(self._folder) and not is_installed(origin)


class PatchingLoader(SourceFileLoader):
    """A loader of a module that is executed with other builtins."""

    def __init__(self, name: str, path: str, names: types.ModuleType) -> None:
        super().__init__(name, path)
        self._names = names

    def exec_module(self, module: types.ModuleType) -> None:
        """Execute the module."""
        vars(module)["__builtins__"] = self._names
        super().exec_module(module)


def begin(command: Sequence[str]) -> types.ModuleType:
    """Give the modules of a program, from now on, builtins whose ``import numpy`` gives `numpy_dist`.

    Parameters
    ----------
    command : sequence of str
        The script, or ``-m module``, with its arguments.

    Returns
    -------
    module
        These builtins, for the main program.
    """
    names = types.ModuleType(builtins.__name__, builtins.__doc__)
    vars(names).update(namespace_builtins(given=NumPyStandIn()))
    path = command[0]
    if path == "-m":
        folder = _folder_of(command[1])
    else:
        folder = path if os.path.isdir(path) else os.path.dirname(os.path.realpath(path))
    if folder is not None:
        sys.meta_path.insert(0, PatchingFinder(folder, names))
    return names


def _folder_of(module: str) -> str | None:
    """The folder of the package that a module is in, or of a module in none; None where there is no such file."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return next(iter(spec.submodule_search_locations))
    return os.path.dirname(spec.origin) if spec.has_location and spec.origin else None
