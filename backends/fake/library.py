"""The library of the fake device: NumPy's functions in the form in which CuPy has them, done when somebody waits.

It is as careless as CuPy is: NaN is sorted by its sign, and decompositions say on demand only that they have failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from numpy_dist.argument_types import Function
from numpy_dist.backends.fake.arrays import FakeArray, hidden
from numpy_dist.backends.library import ModuleLibrary, register

if TYPE_CHECKING:
    from numpy_dist.backends.fake.arrays import FakeStream

    class DeviceWithValues(Protocol):
        """What the library asks of a `FakeMemory`."""

        stream: FakeStream

        def empty(self, shape: Sequence[int], dtype: np.dtype) -> FakeArray:
            """An array of its own, not initialised."""

        def upload(self, target: FakeArray, source: np.ndarray) -> None:
            """``target[...] = source``."""

        def download(self, source: FakeArray) -> np.ndarray:
            """The values, which are counted."""


register(FakeArray, lambda x: x.stream.library)


_FUNCTIONS = (
    "absolute all argsort broadcast_to concatenate count_nonzero cumprod cumsum isfinite matmul max min searchsorted "
    "sort take unravel_index where"
).split()


class FakeLibrary(ModuleLibrary):
    """What the fake device computes on its arrays.

    Parameters
    ----------
    memory : FakeMemory
        It counts what is downloaded.
    """

    def __init__(self, memory: DeviceWithValues) -> None:
        self._memory = memory
        self._module = module(memory)
        super().__init__(self._module, self._module.raising)
        memory.stream.library = self

    def download(self, x: FakeArray) -> np.ndarray:
        """As in `Library`."""
        return self._memory.download(x)

    def uniform(self, x: FakeArray, state: Mapping[str, object], low: float, span: float) -> bool:
        """As in `Library`, of the bit generators that devices have."""
        name = state["bit_generator"]
        if name not in ("PCG64", "PCG64DXSM", "Philox"):
            return False
        bit_generator = getattr(np.random, name)(0)
        bit_generator.state = state

        def draw() -> None:
            hidden(x)[...] = low + span * np.random.Generator(bit_generator).random(x.size)

        x.stream.put(draw)
        return True


def module(memory: DeviceWithValues) -> SimpleNamespace:
    """Functions with the names that CuPy's have."""
    found = SimpleNamespace(linalg=SimpleNamespace(), fft=SimpleNamespace())
    for name in _FUNCTIONS:
        setattr(found, name, _later(_LIKE_CUPY.get(name, getattr(np, name))))
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        setattr(found.fft, name, _later(getattr(np.fft, name)))
    state = SimpleNamespace(raises=False)

    @contextmanager
    def raising() -> Iterator[None]:
        state.raises = True
        try:
            yield
        finally:
            state.raises = False

    def decomposition(function: Function) -> Function:
        def decompose(*arguments: object) -> object:
            try:
                return _now(function)(*arguments)
            except np.linalg.LinAlgError:
                if state.raises:
                    raise
                return arguments[0]  # whatever there is

        return decompose

    for name in ("cholesky", "eigh", "eigvalsh", "inv", "qr", "slogdet", "solve", "svd"):
        setattr(found.linalg, name, decomposition(getattr(np.linalg, name)))
    found.nonzero, found.raising = _now(np.nonzero), raising

    def made(function: Callable[..., np.ndarray]) -> Callable[..., FakeArray]:
        def make(*arguments: object) -> FakeArray:
            values = function(*arguments)
            array = memory.empty(values.shape, values.dtype)
            hidden(array)[...] = values
            return array

        return make

    found.zeros, found.ones = made(np.zeros), made(np.ones)

    def asarray(values: np.ndarray) -> FakeArray:
        array = memory.empty(values.shape, values.dtype)
        memory.upload(array, values)
        return array

    found.asarray = asarray
    return found


def _device_array(arguments: Sequence[FakeArray | list[FakeArray]]) -> FakeArray:
    first = arguments[0]
    return first[0] if isinstance(first, list) else first


def _later(function: Function) -> Function:
    return lambda *arguments: _device_array(arguments)._later(function, arguments, {})


def _now(function: Function) -> Function:
    return lambda *arguments: _device_array(arguments).now(function, arguments, {})


# -- where CuPy is not NumPy ------------------------------------------------------------------------------------------


def _negative_first(x: np.ndarray) -> np.ndarray | None:
    """Where elements of a single axis are negative NaN, which radix sort takes for the least."""
    found = np.isnan(x) & np.signbit(x) if x.ndim == 1 and x.dtype.kind == "f" else np.zeros(1, bool)
    return found if found.any() else None


def _sort(x: np.ndarray, axis: int = -1) -> np.ndarray:
    first = _negative_first(x)
    return np.sort(x, axis, kind="stable") if first is None else np.concatenate([x[first], np.sort(x[~first])])


def _argsort(x: np.ndarray, axis: int = -1) -> np.ndarray:
    first = _negative_first(x)
    if first is None:
        return np.argsort(x, axis, kind="stable")
    others = np.flatnonzero(~first)
    return np.concatenate([np.flatnonzero(first), others[np.argsort(x[others], kind="stable")]])


def _cumsum(x: np.ndarray, axis: int | None = None, dtype: np.dtype | None = None) -> np.ndarray:
    """Running sums of two halves, and then those of the first half added to the others, as in a tree."""
    rows = np.moveaxis(x.astype(dtype), -1 if axis is None else axis, -1)
    if rows.shape[-1] <= 4:
        return np.moveaxis(np.cumsum(rows, -1, dtype), -1, -1 if axis is None else axis)
    middle = rows.shape[-1] // 2
    first, second = (_cumsum(half, -1, dtype) for half in (rows[..., :middle], rows[..., middle:]))
    return np.moveaxis(np.concatenate([first, second + first[..., -1:]], -1), -1, -1 if axis is None else axis)


_LIKE_CUPY: dict[str, Callable[..., np.ndarray]] = {"sort": _sort, "argsort": _argsort, "cumsum": _cumsum}
