"""Libraries that are waited for: what is put in front of their functions, when somebody else imports them."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

WAITED_FOR = {
    "matplotlib.axes": "numpy_dist.interop.plot_hooks:take_over_axes",
    "numpy.testing": "numpy_dist.interop.assertions:take_over",
    "pandas": "numpy_dist.interop.pandas_masks:take_over",
    "seaborn": "numpy_dist.interop.plot_hooks:take_over_seaborn",
}
"""By the name of a module: the function that is given the module, as ``module:function``."""
_ARRAYS = "numpy_dist.distarray"  # nobody has a distributed array before this module is imported


def install() -> None:
    """Call the functions of `WAITED_FOR`, now where the module has been imported, and else as soon as it is.

    A second time changes nothing.
    """
    there = [name for name in WAITED_FOR if name in sys.modules]
    for name in there:
        _came(sys.modules[name])
    missing = set(WAITED_FOR).difference(there)
    if missing and not any(isinstance(finder, ImportWatch) for finder in sys.meta_path):
        sys.meta_path.insert(0, ImportWatch(missing))  # type: ignore[arg-type]


def _came(module: ModuleType) -> None:
    where, _, function = WAITED_FOR[module.__name__].partition(":")
    getattr(importlib.import_module(where), function)(module)


class ImportWatch:
    """A finder of some modules, which it finds by the others, and then is told when they have been executed.

    It is the only one, and leaves `sys.meta_path` with the last of them.

    Parameters
    ----------
    names : set of str
        The modules'.
    """

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self._asking: set[tuple[str, int]] = set()  # threads that ask the other finders for a module by now

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The specification of such a module, as the other finders have it; None for any other one."""
        if name not in self.names or (asking := (name, threading.get_ident())) in self._asking:
            return None
        self._asking.add(asking)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.discard(asking)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.names.discard(name)  # not before: others may only ask whether the module is there
                if not self.names and self in sys.meta_path:
                    sys.meta_path.remove(self)  # type: ignore[arg-type]
                _came(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def put_before(owner: object, name: str, call: Callable[..., object]) -> None:
    """Let another function stand before one of a library's, where that one is there; a second time does nothing.

    Parameters
    ----------
    owner : module or type
    name : str
        Under which it has the function.
    call : callable
        Is given the function itself and its arguments, once there may be distributed arrays.
    """
    own = getattr(owner, name, None)
    if own is None or hasattr(own, "numpy_dist_own"):
        return

    @functools.wraps(own)
    def entry(*args: object, **kwargs: object) -> Any:
        return call(own, *args, **kwargs) if _ARRAYS in sys.modules else own(*args, **kwargs)

    setattr(entry, "numpy_dist_own", own)  # noqa: B010 - a function has no such attribute for type checkers
    setattr(owner, name, entry)
