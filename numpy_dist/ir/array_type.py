"""The type `ndarray` in code whose NumPy is numpy_dist: arrays of ours are instances of it, as NumPy's are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

__all__ = ["Distributed", "ndarray"]


class Distributed:
    """The base of all distributed arrays, by which a type tells them."""

    __slots__ = ()


class ArrayType(type):
    """The type of a class that stands for ``numpy.ndarray`` wherever a program names it.

    Subclasses derive from ``numpy.ndarray`` itself, and a call makes one.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **options: object) -> type:
        if any(isinstance(base, cls) for base in bases):
            bases = tuple(np.ndarray if isinstance(base, cls) else base for base in bases)
            return type(name, bases, namespace, **options)
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.ndarray(*args, **kwargs)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, np.ndarray | Distributed)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, np.ndarray | Distributed)


if TYPE_CHECKING:
    from numpy import ndarray
else:

    class ndarray(np.ndarray, metaclass=ArrayType):
        """NumPy's array type, of which a `DistArray` is an instance, too."""

        __module__ = "numpy_dist"

        def __repr__(self) -> str:  # of views that were asked for by this name
            return repr(self.view(np.ndarray))
