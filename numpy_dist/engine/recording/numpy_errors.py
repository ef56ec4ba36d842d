"""NumPy's own errors, for arguments of which some are sharded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from numpy_dist.argument_types import Keywords
from numpy_dist.engine.memory.handle import Handle
from numpy_dist.ir import structure


def numpy_error(function: Callable, args: Sequence[object], kwargs: Keywords | None = None) -> NoReturn:
    """Raise the error that NumPy raises for arguments of these shapes and dtypes.

    `function` is called with a stand-in for each sharded array: one element, seen with strides of zero. It must be
    known to fail on metadata alone.
    """

    def stand_in(x: object) -> object:
        if isinstance(x, Handle):
            return x._array if x._storage is None else structure.stand_in(x._array)
        if isinstance(x, tuple | list):
            return type(x)(stand_in(y) for y in x)
        return x

    function(*map(stand_in, args), **{k: stand_in(v) for k, v in (kwargs or {}).items()})
    raise AssertionError(f"{function} was expected to refuse these arguments")
