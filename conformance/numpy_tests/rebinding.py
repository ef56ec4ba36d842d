"""Rebinding of the names in a test module: what creates arrays creates those under test, and asserts gather first."""

from __future__ import annotations

import functools
import random
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Function
from numpy_dist.conformance.adapter import Adapter

if TYPE_CHECKING:
    import pytest

    from numpy_dist.distarray.array import DistArray

__all__ = ["Rebinding"]

# With the parameter `like=`, by which an array under test says what its copy is.
_CREATION = """array asarray asanyarray ascontiguousarray asfortranarray require zeros ones empty full arange eye
identity tri fromiter frombuffer fromstring fromfile fromfunction loadtxt genfromtxt"""
_UNINITIALISED = (np.empty, np.empty_like)
_MORE_CREATION = """zeros_like ones_like empty_like full_like linspace logspace geomspace meshgrid indices diag diagflat
vander copy hanning hamming bartlett blackman kaiser"""
_RANDOM = """rand randn randint random random_sample ranf sample normal uniform permutation standard_normal choice
binomial exponential poisson"""
# They call their arguments, which are to be as the test made them.
_CALLING = ("assert_raises", "assert_raises_regex", "assert_warns", "assert_no_warnings", "assert_no_gc_cycles")


class Namespace(types.ModuleType):
    """A module, some of whose attributes are others."""

    def __init__(self, module: types.ModuleType, attributes: Mapping[str, object]) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(attributes, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def __dir__(self) -> list[str]:
        return dir(self._module)


class Rebinding:
    """Replacements of NumPy's functions and modules, for the arrays of an adapter.

    Parameters
    ----------
    adapter : Adapter
        Makes the arrays, and gathers them.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._generator = random.Random()
        functions = {name: self._creating(getattr(np, name), True) for name in _CREATION.split()}
        functions |= {name: self._creating(getattr(np, name), False) for name in _MORE_CREATION.split()}
        of_random = {name: self._creating(getattr(np.random, name), False) for name in _RANDOM.split()}
        of_random["shuffle"] = self._shuffling(np.random.shuffle)
        of_testing = {
            name: self._gathering(value)
            for name, value in vars(np.testing).items()
            if name.startswith("assert_") and name not in _CALLING
        }
        modules = {"random": Namespace(np.random, of_random), "testing": Namespace(np.testing, of_testing)}
        self._replacements: list[tuple[object, object]] = [(np, Namespace(np, {**functions, **modules}))]
        for module, names in ((np, {**functions, **modules}), (np.random, of_random), (np.testing, of_testing)):
            self._replacements += [(getattr(module, name), value) for name, value in names.items()]

    def seed(self, text: str) -> None:
        """Let how arrays lie depend on this text, on all ranks alike."""
        self._generator.seed(text)

    def rebind(self, module: types.ModuleType) -> None:
        """Replace what a test module has imported from NumPy."""
        replacements = {id(original): other for original, other in self._replacements}
        for name, value in list(vars(module).items()):
            if id(value) in replacements:
                setattr(module, name, replacements[id(value)])

    def wrapped(self, x: Any) -> object:
        """A result, with arrays under test instead of ndarrays; subclasses and scalars stay."""
        if type(x) is np.ndarray and self._adapter.holds(x.dtype):
            return self._adapter.distribute(x, self._generator)[0]
        return type(x)(self.wrapped(item) for item in x) if type(x) in (tuple, list) else x

    def gathered(self, x: object) -> Any:
        """A value, with ndarrays instead of arrays under test, in tuples, lists and dictionaries too."""
        if self._adapter.is_array(x):
            return self._adapter.gather(x)
        if isinstance(x, tuple):
            items = [self.gathered(item) for item in x]
            return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
        if type(x) is list:
            return [self.gathered(item) for item in x]
        return {name: self.gathered(item) for name, item in x.items()} if type(x) is dict else x

    def _creating(self, function: Function, likened: bool) -> Function:
        @functools.wraps(function)
        def create(*args: object, **kwargs: object) -> object:
            if likened and args and self._adapter.is_array(args[0]):
                kwargs.setdefault("like", args[0])
            made = function(*args, **kwargs)
            if function in _UNINITIALISED and type(made) is np.ndarray and not made.dtype.hasobject:
                # Each rank would have values of its own. One test makes 100 GB, of which nobody looks at a byte.
                if made.flags.forc:
                    made = np.zeros(made.shape, made.dtype, "F" if made.flags.fnc else "C")
                else:
                    made[...] = np.zeros((), made.dtype)
            return self.wrapped(made)

        return create

    def _shuffling(self, function: Function) -> Function:
        """Of generators, which ask no array, and swap elements of unknown ones one by one."""

        @functools.wraps(function)
        def shuffle(x: DistArray | np.ndarray) -> None:
            if self._adapter.is_array(x):
                values = self._adapter.gather(x)
                function(values)
                x[...] = values
            else:
                function(x)

        return shuffle

    def _gathering(self, function: Function) -> Function:
        @functools.wraps(function)
        def compare(*args: object, **kwargs: object) -> object:
            return function(*self.gathered(args), **self.gathered(kwargs))

        return compare


def modules_of(items: list[pytest.Item]) -> Iterator[types.ModuleType]:
    """The modules of these tests, each once."""
    yield from {id(item.module): item.module for item in items if hasattr(item, "module")}.values()
