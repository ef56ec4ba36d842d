"""`distribute`: the user's own code with its NumPy bound to the `numpy_dist` namespace; the original stays as it is."""

from __future__ import annotations

import builtins
import enum
import functools
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

import numpy_dist
from numpy_dist.argument_types import Function

__all__ = ["distribute", "namespace_builtins"]

Code = TypeVar("Code")
_MISSING = object()


def distribute(code: Code) -> Code:
    """The same code with its ``np`` bound to `numpy_dist`, so that the arrays it creates are distributed.

    Parameters
    ----------
    code : function, method, class or module
        Its globals that are NumPy, `numpy.random`, or functions imported from them, are replaced in a copy; so are
        functions and classes of the same module, inner functions, and ``import numpy`` statements inside of functions.
        What it imports from elsewhere keeps its NumPy.

    Returns
    -------
    function, method, class or module
        The copy. Module-level variables have the values that they had when `distribute` was called; a copied class is a
        subclass of the original.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> def ramp(n):
    ...     return np.arange(n) / n
    >>> type(numpy_dist.distribute(ramp)(10)).__name__
    'DistArray'
    """
    if isinstance(code, types.ModuleType):
        return _Binder(vars(code)).module(code)  # type: ignore[return-value]
    namespace = _globals_of(code)
    if namespace is None:
        raise TypeError(f"distribute takes a Python function, method, class or module, not {type(code).__name__}")
    return _Binder(namespace).value(code)


def _globals_of(code: object) -> dict[str, object] | None:
    """The globals of the module that some code belongs to."""
    if isinstance(code, functools.partial):
        return _globals_of(code.func)
    if isinstance(code, types.MethodType):
        return _globals_of(code.__func__)
    wrapped = getattr(code, "__wrapped__", None)
    if wrapped is not None:
        return _globals_of(wrapped)
    if isinstance(code, types.FunctionType):
        return code.__globals__
    if isinstance(code, type) and code.__module__ in sys.modules:
        return vars(sys.modules[code.__module__])
    return None


@functools.cache
def _replacements() -> dict[int, tuple[object, object]]:
    """What stands in NumPy's place, by the identity of what it replaces (and that itself, so that identities stay)."""
    import numpy_dist.creation as creation
    import numpy_dist.fft as fft
    import numpy_dist.random as random
    from numpy_dist.files.memory_maps import memmap
    from numpy_dist.ir.array_type import ndarray

    found: list[tuple[object, object]] = [(np, numpy_dist), (np.random, random), (np.fft, fft), (np.memmap, memmap)]
    found.append((np.ndarray, ndarray))
    found += [(getattr(np.fft, function.__name__), function) for function in fft.OWN]
    for name in creation.__all__:
        if hasattr(np, name):
            found.append((getattr(np, name), getattr(creation, name)))
    for name in dir(random):
        if not name.startswith("_") and hasattr(np.random, name):
            found.append((getattr(np.random, name), getattr(random, name)))
    return {id(old): (old, new) for old, new in found}


def namespace_builtins(
    base: types.ModuleType | dict[str, Any] = builtins, given: types.ModuleType = numpy_dist
) -> dict[str, object]:
    """The builtins for code whose own ``import numpy`` (not that of what it imports) is to give `numpy_dist`.

    Parameters
    ----------
    base : module or dict
        The builtins that it has.
    given : module
        What it gets in NumPy's place.
    """
    original = base["__import__"] if isinstance(base, dict) else base.__import__

    def import_(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        module = original(name, globals, locals, fromlist, level)
        if level:
            return module
        # `import numpy.random as r` gets the top package here, `from numpy.random import rand` the module.
        if module is np:
            return given
        replaced = _replacements().get(id(module)) if module in (np.random, np.fft) else None
        return module if replaced is None else replaced[1]

    found = dict(base if isinstance(base, dict) else vars(base))
    found["__import__"] = import_
    return found


class _Binder:
    """Copies the functions and classes of one module, with globals in which NumPy is replaced."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.old = namespace
        self.name = namespace.get("__name__")
        self.made: dict[int, tuple[object, object]] = {}
        self.new: dict[str, object] = {}
        self.new["__builtins__"] = namespace_builtins(namespace.get("__builtins__", builtins))
        self.changed = {name for name, value in namespace.items() if id(value) in _replacements()}
        for name, value in list(namespace.items()):
            if name != "__builtins__":
                self.new[name] = self.value(value)

    def module(self, module: types.ModuleType) -> types.ModuleType:
        made = types.ModuleType(module.__name__, module.__doc__)
        vars(made).update(self.new)
        # Functions look their names up in the copied module itself, so that `module.name = value` works there too.
        rebound = _Binder.__new__(_Binder)
        rebound.__dict__.update(self.__dict__, made={}, new=vars(made))
        for name, value in list(self.old.items()):
            if name != "__builtins__":
                vars(made)[name] = rebound.value(value)
        return made

    def value(self, value: object) -> Any:
        """What stands for a value in the copy: another one for NumPy and for the module's own code, else the same."""
        replaced = _replacements().get(id(value))
        if replaced is not None:
            return replaced[1]
        known = self.made.get(id(value))
        if known is not None:
            return known[1]
        made = self._copy(value)
        if made is not value:
            self.made[id(value)] = (value, made)
        return made

    def _copy(self, value: object) -> object:
        if isinstance(value, types.FunctionType):
            return self._function(value) if self._is_ours(value) else value
        if isinstance(value, types.MethodType) and self._is_ours(value.__func__):
            return types.MethodType(self.value(value.__func__), value.__self__)
        if isinstance(value, staticmethod | classmethod):
            return type(value)(self.value(value.__func__))
        if isinstance(value, property):
            getter, setter, deleter = map(self.value, (value.fget, value.fset, value.fdel))
            return property(getter, setter, deleter, value.__doc__)
        if isinstance(value, functools.partial):
            return functools.partial(self.value(value.func), *map(self.value, value.args), **value.keywords)
        if isinstance(value, functools._lru_cache_wrapper) and self._is_ours(value.__wrapped__):
            return functools.lru_cache(**value.cache_parameters())(self.value(value.__wrapped__))
        if isinstance(value, type) and value.__module__ == self.name and not issubclass(value, enum.Enum):
            bases = tuple(base for base in map(self.value, value.__bases__) if base not in value.__bases__)
            if bases or self._uses_numpy(value):
                return self._class(value, bases)
        return value

    def _is_ours(self, function: object, depth: int = 8) -> bool:
        """Whether a function is the module's own, or a decorator's wrapper around one."""
        if isinstance(function, functools._lru_cache_wrapper):
            return self._is_ours(function.__wrapped__, depth)
        if not isinstance(function, types.FunctionType):
            return False
        if function.__globals__ is self.old:
            return True
        return depth > 0 and any(self._is_ours(_contents(cell), depth - 1) for cell in function.__closure__ or ())

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        closure = function.__closure__
        cells = None if closure is None else tuple(types.CellType() for _ in closure)
        own = function.__globals__ is self.old
        made = types.FunctionType(
            function.__code__, self.new if own else function.__globals__, function.__name__, None, cells
        )
        self.made[id(function)] = (function, made)  # before the cells: functions may refer to themselves
        for old, cell in zip(closure or (), cells or (), strict=True):
            contents = _contents(old)
            if contents is not _MISSING:
                cell.cell_contents = contents if isinstance(contents, type) else self.value(contents)
        made.__defaults__ = function.__defaults__ and tuple(map(self.value, function.__defaults__))
        made.__kwdefaults__ = function.__kwdefaults__ and {k: self.value(v) for k, v in function.__kwdefaults__.items()}
        made.__dict__.update({k: self.value(v) for k, v in function.__dict__.items()})
        made.__qualname__, made.__doc__, made.__module__ = function.__qualname__, function.__doc__, function.__module__
        made.__annotations__ = function.__annotations__
        return made

    def _uses_numpy(self, cls: type) -> bool:
        """Whether a class has methods that name something that is replaced, or functions of the module."""
        ours = self.changed | {name for name, value in self.old.items() if isinstance(value, types.FunctionType)}
        return any(not ours.isdisjoint(self._names(value)) for value in vars(cls).values())

    def _names(self, value: Any) -> set[str]:
        """The global names in the module's own code of a method, property or the like."""
        functions: list[Function | None] = [value]
        if isinstance(value, staticmethod | classmethod):
            functions = [value.__func__]
        elif isinstance(value, property):
            functions = [value.fget, value.fset, value.fdel]
        found: set[str] = set()
        for function in functions:
            code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
            # Decorators give classes methods of other modules, too.
            if isinstance(code, types.CodeType) and self._is_ours(function):
                found |= _names_in(code)
        return found

    def _class(self, cls: type, bases: tuple[type, ...]) -> type:
        """A subclass with copied methods. Copies of the bases come after the original, where its `super()` looks."""
        made = type(cls)(
            cls.__name__,
            (cls, *bases),
            {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__slots__": ()},
        )
        self.made[id(cls)] = (cls, made)
        for name, value in vars(cls).items():
            copied = self.value(value) if not isinstance(value, type) else value
            if copied is not value:
                setattr(made, name, copied)
        return made


def _contents(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return _MISSING


def _names_in(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)))
