"""Entries: how calls of functions that do not take part in NumPy's protocols come to the table.

NumPy's functions and ufuncs dispatch by themselves. For others an *entry* stands before the function: it looks whether
an argument is a distributed array, and if none is, calls the function itself.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from numpy_dist.dispatch.core import fallback, operands, protocol, registry
from numpy_dist.dispatch.core.keys import ENTRY, Key, canonical, name_of

Function = TypeVar("Function", bound=Callable[..., Any])

_decorated: weakref.WeakSet[Callable[..., object]] = weakref.WeakSet()
_installed: dict[Key, tuple[Callable[..., object], list[tuple[ModuleType, str]]]] = {}


def dispatchable(*names: str) -> Callable[[Function], Function]:
    """Make a function of your own one that can be overridden, and that takes distributed arrays.

    Called with a distributed array, the function asks the overrides that `implements` has registered for it. Where
    none applies it runs as it is written, once, on gathered arrays (`FallbackWarning`), and its results are distributed
    again.

    Parameters
    ----------
    *names : str
        The parameters that may be arrays (or lists, tuples and dicts of arrays). By default all are looked at.

    Raises
    ------
    TypeError
        If the function has no such parameter.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> @numpy_dist.dispatchable("x")
    ... def spread(x, axis=None):
    ...     return np.max(x, axis) - np.min(x, axis)
    >>> @numpy_dist.implements(spread)
    ... def spread_of_shards(x, axis=None):
    ...     return np.ptp(x, axis)
    >>> float(spread(numpy_dist.arange(100_000.0)))
    99999.0
    """
    if len(names) == 1 and callable(names[0]):
        return dispatchable()(names[0])

    def make(function: Function) -> Function:
        if isinstance(function, type) or not callable(function):
            raise TypeError(f"dispatchable is for functions, not for {function!r}")
        readers = _readers(function, names)
        _decorated.add(function)
        return _entry(function, readers)  # type: ignore[return-value]

    return make


def _readers(function: Callable[..., object], names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """The name and the position of each parameter that is looked at."""
    parameters = inspect.signature(function).parameters
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise TypeError(
            f"{name_of(function)}{inspect.signature(function)} has no parameter {', '.join(map(repr, unknown))}"
        )
    kinds = {name: parameters[name].kind for name in names}
    if not {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}.isdisjoint(kinds.values()):
        return ()
    places = list(parameters)
    by_keyword = inspect.Parameter.KEYWORD_ONLY
    return tuple((name, sys.maxsize if kinds[name] is by_keyword else places.index(name)) for name in names)


def _entry(function: Callable[..., object], readers: tuple[tuple[str, int], ...]) -> Callable[..., object]:
    """What stands before a function; without `readers` all arguments are looked at."""

    @functools.wraps(function)
    def entry(*args: object, **kwargs: object) -> object:
        if readers:
            given = [args[at] if at < len(args) else kwargs.get(name) for name, at in readers]
            held = operands.survey(given, {})
        else:
            held = operands.survey(args, kwargs)
        if held == operands.NOTHING:
            return function(*args, **kwargs)
        for value in (*args, *kwargs.values()):
            if hasattr(type(value), "__array_function__") and operands.is_foreign(type(value)):
                raise TypeError(
                    f"{name_of(function)} was called with a DistArray and with a {type(value).__name__}, which has "
                    "rules of its own; convert one of them"
                )
        if not registry.loaded:
            registry.load()
        record = registry.TABLE.get(function)
        if record is None:
            return fallback.call(function, args, kwargs, protocol.NO_RULE)
        return protocol.apply(record, function, args, kwargs)

    setattr(entry, ENTRY, function)
    return entry


def install(key: Key) -> None:
    """Make calls of a function reach the table, if they do not yet.

    Where its library does not know us, an entry takes the function's place in that library's public modules. Who has
    imported the function by its name before keeps the function itself.

    """
    homes = places(key)
    if not homes:
        return
    entry = _entry(key, ())
    for module, name in homes:
        setattr(module, name, entry)
    _installed[key] = entry, homes


def places(key: Key) -> list[tuple[ModuleType, str]]:
    """Where an entry would have to take a function's place; nowhere if calls of it reach the table already.

    Raises
    ------
    TypeError
        For functions of NumPy's that its protocols do not hand over, and for functions that have no home.
    """
    if _dispatches(key) or key in _installed:
        return []
    homes = [] if getattr(key, "__module__", None) == "builtins" else list(_homes(key))
    if not homes:
        raise TypeError(
            f"{name_of(key)} cannot be overridden: it does not dispatch by itself, and no public module of its package "
            "has it under its name; decorate it with numpy_dist.dispatchable"
        )
    return homes


def uninstall(key: Key) -> None:
    """Put the function itself back into its place."""
    entry, homes = _installed.pop(key, (None, []))
    for module, name in homes:
        if getattr(module, name, None) is entry:
            setattr(module, name, key)


def _dispatches(key: Key) -> bool:
    """Whether NumPy or an entry of its own hands calls over."""
    if isinstance(key, tuple | np.ufunc) or key is np.ufunc or isinstance(canonical(key), np.ufunc):
        return True
    module = getattr(key, "__module__", None) or ""
    if module.partition(".")[0] != "numpy" and not isinstance(getattr(key, "__objclass__", None), type):
        return key in _decorated
    from numpy_dist.dispatch.core import catalogue

    if key in catalogue.overridable_functions() or getattr(key, "__objclass__", None) is np.ndarray:
        return True
    raise TypeError(f"{name_of(key)} cannot be overridden: NumPy does not hand calls of it over")


def _homes(function: object) -> Iterator[tuple[ModuleType, str]]:
    """The public modules of a function's package that have it, and under which names."""
    own = getattr(function, "__module__", None) or ""
    package, name = own.partition(".")[0], getattr(function, "__name__", "")
    for title, module in sorted(sys.modules.items()):
        public = title == own or not any(part.startswith("_") for part in title.split("."))
        inside = title == package or title.startswith(f"{package}.")
        if inside and public and module is not None and vars(module).get(name) is function:
            yield module, name
