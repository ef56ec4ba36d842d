"""The backend protocol, and which backend a name means."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from numpy_dist.ir.ops import Op


@dataclass(frozen=True)
class Temp:
    """A value that lives only while its tile is computed.

    Attributes
    ----------
    index : int
        Which temporary of the loop.
    dtype : dtype
    """

    index: int
    dtype: np.dtype


@dataclass
class Step:
    """One operation of a loop: operands are local arrays of the loop's full shape, scalars or `Temp`."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    where: Any = None
    options: dict = field(default_factory=dict)
    label: int = 0  # the statement's serial, for floating-point reports


@dataclass
class ReduceStep:
    """Reduce `source` over `axes` into `partial`, a local array of the kept axes (reduced axes have extent 1)."""

    op: Op
    source: Any
    partial: np.ndarray
    axes: tuple[int, ...]
    where: Any = None
    label: int = 0


@dataclass
class Loop:
    """A fused loop nest over local arrays.

    Attributes
    ----------
    shape : tuple of int
        The local iteration space.
    steps : sequence of Step or ReduceStep
        In program order.
    report : callable
        ``report(label, kind)`` is told of every floating-point event; kind as in `numpy.seterrcall`.
    watched : frozenset of str
        The kinds of events that anybody wants to hear of, by NumPy's names in `numpy.errstate`.
    """

    shape: tuple[int, ...]
    steps: Sequence[Step | ReduceStep]
    report: Callable[[int, str], None]
    watched: frozenset[str] = frozenset(("divide", "over", "under", "invalid"))


class Backend(Protocol):
    """What executes loops on local arrays."""

    name: str

    def run(self, loop: Loop) -> None:
        """Execute a loop; on return, or after `fence`, its outputs are valid."""

    def fence(self) -> None:
        """Wait until everything that was started has finished."""


_MODULES = {"auto": "interpreter", "numpy": "interpreter", "null": "null"}


def make_backend(name: str) -> Backend:
    """The backend of a `BACKEND` setting.

    Raises
    ------
    ValueError
        For a backend that this version does not have.
    """
    module = _MODULES.get(name)
    if module is None:
        raise ValueError(f"BACKEND={name!r}: this version of numpy_dist has the backends {', '.join(_MODULES)}")
    return importlib.import_module(f"numpy_dist.backends.{module}").make()
