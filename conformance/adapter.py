"""What the suite asks of the arrays under test: those of numpy_dist, or of another library that implements NumPy's
protocols.

To test other arrays, write a subclass of `Adapter` and pass it as ``numpy-dist conformance --adapter module:Class``,
or make it `current` with `use`.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy as np

from numpy_dist.conformance import known_differences
from numpy_dist.conformance.known_differences import Arithmetic, Difference

if TYPE_CHECKING:
    from numpy_dist.argument_types import Function

    class Ranks(Protocol):
        """The ranks on which cases run (see `comm.base.Communicator`)."""

        rank: int
        size: int

        def allgather(self, value: T, /) -> list[T]:
            """The values of all ranks; collective."""

        def bcast(self, value: object, /) -> Any:
            """The value of rank 0; collective."""

        def barrier(self) -> None:
            """Return when every rank has called it."""


T = TypeVar("T")


class AdapterCommunicator:
    """The ranks of a program that has one."""

    rank, size = 0, 1

    def allgather(self, value: T) -> list[T]:
        return [value]

    def bcast(self, value: T) -> T:
        return value

    def barrier(self) -> None:
        """Nobody to wait for."""


class Adapter:
    """Arrays of another library, on one rank. `distribute`, `is_array` and `gather` are all that has to be written.

    Attributes
    ----------
    memory_order : bool
        Whether strides and contiguity are compared.
    views : bool
        Whether parts of arrays share their memory and can be assigned to. If so, arguments are views of larger
        arrays, taken by slices, integers, `...` and ``.T``, and results are written to, to see what else changes.
    """

    memory_order = False
    views = True

    def distribute(self, base: np.ndarray, generator: random.Random) -> tuple[Any, str]:
        """An array with these values, lying as `generator` tells, and how it lies, in words."""
        return _to_be_written(self)

    def is_array(self, x: object) -> bool:
        """Whether `x` is an array under test."""
        return _to_be_written(self)

    def gather(self, x: Any) -> np.ndarray:
        """The values as an ndarray of its own."""
        return _to_be_written(self)

    def is_sharded(self, x: object) -> bool:
        """Whether functions that gather are to say so for this array."""
        return False

    def kind_of(self, function: Function) -> str:
        """ "gathered" where a function is known to run on gathered NumPy, with a warning; else anything."""
        return "native"

    def differences(self) -> tuple[Difference, ...]:
        """What is known to differ from NumPy; by default what ``--load`` has brought."""
        return known_differences.added()

    def arithmetic(self) -> Arithmetic:
        """In which ways sums, exponentials and events are not NumPy's."""
        return Arithmetic()

    def reason_of(self, function: Function) -> str:
        """Why a function is gathered or refused, or which of its calls are, for the report."""
        return ""

    def finish(self, *arrays: Any) -> None:
        """Run what was only recorded so far."""

    def settings(self) -> AbstractContextManager[object]:
        """In force while arguments are made and results are written to."""
        return nullcontext()

    def holds(self, dtype: np.dtype) -> bool:
        """Whether arrays under test can have this dtype; in NumPy's own tests those of others stay ndarrays."""
        return True

    def foreign_tests(self) -> AbstractContextManager[object]:
        """In force during each of NumPy's own tests, which may gather."""
        return nullcontext()

    def watched(self, may_gather: bool, may_move: bool) -> AbstractContextManager[object]:
        """In force during a call; it should raise an error where something is gathered that must not be."""
        return nullcontext()

    def is_declined(self, error: BaseException) -> bool:
        """Whether an error says that something would have to be gathered."""
        return False

    def is_fallback(self, category: type[Warning]) -> bool:
        """Whether a warning says that something was gathered."""
        return False

    @property
    def comm(self) -> Ranks:
        """The ranks on which the case runs."""
        return AdapterCommunicator()


def _to_be_written(adapter: Adapter) -> NoReturn:
    raise NotImplementedError(f"{type(adapter).__name__} has no distribute, is_array or gather")


_current: Adapter | None = None


def current() -> Adapter:
    """The arrays under test; by default those of numpy_dist."""
    global _current
    if _current is None:
        # By name: it is a subclass of what stands here.
        _current = importlib.import_module("numpy_dist.conformance.dist_arrays").DistArrays()
    assert _current is not None
    return _current


@contextmanager
def use(adapter: Adapter) -> Iterator[Adapter]:
    """Test other arrays within the block."""
    global _current
    before, _current = _current, adapter
    try:
        yield adapter
    finally:
        _current = before
