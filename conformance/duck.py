"""A duck array of one process: an ndarray behind both protocols, NumPy's operators and its methods.

It computes with NumPy itself, so that what fails with it fails because it is no ndarray: the yardstick of other arrays.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.conformance.adapter import Adapter

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Duck", "Ducks"]

# How Python makes, copies and describes objects, what makes an ndarray of a duck, and addresses of memory.
_NOT_ITS_OWN = frozenset(
    """__new__ __init__ __init_subclass__ __subclasshook__ __class__ __class_getitem__ __getattribute__ __setattr__
    __delattr__ __dir__ __doc__ __hash__ __sizeof__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __array__
    __array_ufunc__ __array_function__ __array_finalize__ __array_wrap__ __array_interface__ __array_struct__
    __array_priority__ __iter__ __buffer__ __release_buffer__ __dlpack__ __dlpack_device__ ctypes data""".split()
)


class Duck:
    """An array that is no ndarray, and answers as one does.

    Parameters
    ----------
    values : ndarray
        What it holds, without a copy.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return np.array(self.values, dtype)

    def view(self, *args: object, **kwargs: object) -> Duck:
        """View of this class; one of another class would have to hold the memory itself."""
        made = _called(np.ndarray.view, (self, *args), kwargs)
        if not isinstance(made, Duck):
            raise TypeError(f"a duck array has no view as {type(made).__name__}")
        return made

    def __iter__(self) -> Iterator[object]:
        return map(functools.partial(_duck, given={}), iter(self.values))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        return _called(getattr(ufunc, method), inputs, options)

    def __array_function__(
        self, function: Function, types: object, args: Iterable[object], kwargs: Keywords
    ) -> object:
        return _called(function, args, kwargs)


def _called(function: Function, args: Iterable[object], kwargs: Keywords) -> object:
    """The result of a call on what the ducks hold; an argument that is returned comes back as it was given."""
    given: dict[int, object] = {}
    return _duck(function(*_bare(tuple(args), given), **_bare(kwargs, given)), given)


def _bare(x: Any, given: dict[int, object]) -> Any:
    if isinstance(x, Duck | np.ndarray):
        bare = x.values if isinstance(x, Duck) else x
        given[id(bare)] = x
        return bare
    if type(x) in (tuple, list):
        return type(x)(_bare(item, given) for item in x)
    return {name: _bare(item, given) for name, item in x.items()} if type(x) is dict else x


def _duck(x: object, given: dict[int, object]) -> Any:
    if type(x) is np.ndarray:
        return given[id(x)] if id(x) in given else Duck(x)
    if isinstance(x, tuple):
        items = [_duck(item, given) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    return [_duck(item, given) for item in x] if type(x) is list else x


def _method(name: str) -> Function:
    def method(self: Duck, *args: object, **kwargs: object) -> object:
        return _called(getattr(np.ndarray, name), (self, *args), kwargs)

    method.__name__ = name
    return method


def _attribute(name: str) -> property:
    def read(self: Duck) -> object:
        return _called(getattr, (self, name), {})

    def write(self: Duck, value: object) -> None:
        _called(setattr, (self, name, value), {})

    return property(read, write)


for _name in set(dir(np.ndarray)) - _NOT_ITS_OWN - set(vars(Duck)):
    _callable = callable(getattr(np.ndarray, _name))
    setattr(Duck, _name, _method(_name) if _callable else _attribute(_name))


class Ducks(Adapter):
    """Ducks as arrays under test."""

    def distribute(self, base: np.ndarray, generator: random.Random) -> tuple[Duck, str]:
        return Duck(base.copy(order="K")), "in one process"

    def is_array(self, x: object) -> bool:
        return isinstance(x, Duck)

    def gather(self, x: Duck) -> np.ndarray:
        return x.values.copy(order="K")
