"""What a device's own library computes on shards where they lie.

Algorithms name a shard-local operation and give NumPy's way of doing it: `compute` lets the library of the arrays'
device do it, and where that declines, the values are downloaded, and the host does it. So every rank decides for
itself, and what ranks tell each other does not depend on it. docs/gpu.md has the table of what is declined, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numpy_dist.argument_types import Function

Array = Any  # of a device

if TYPE_CHECKING:
    Module = ModuleType | SimpleNamespace  # with NumPy's functions, as attributes

MOST_SORTED = 32  # axes; NumPy refuses to sort along some of more

_FINDERS: list[tuple[type, Callable[[Array], Library]]] = []


class Library(Protocol):
    """Shard-local operations on arrays of a device, with NumPy's results; each returns None where it declines.

    Results are new arrays of the device, and may be there later only (`backends.memory.Memory.fence`); those whose
    shape depends on values (`compress`, `nonzero`) and those that may fail (`linalg`) are waited for.
    """

    def takes(self, dtype: np.dtype) -> bool:
        """Whether it computes with this dtype; the same on all ranks."""

    def download(self, x: Array) -> np.ndarray:
        """The values of an array, on the host."""

    def upload(self, values: np.ndarray) -> Array:
        """An array of these values, C-contiguous."""

    def sort(self, x: Array, axis: int) -> Array | None:
        """`x` in order along an axis, NaN last; equal elements may be any way around."""

    def argsort(self, x: Array, axis: int) -> Array | None:
        """The positions of `x` in order along an axis, NaN last; stable."""

    def searchsorted(self, x: Array, values: Array, side: str) -> Array:
        """As `numpy.searchsorted`, of numbers that are not complex."""

    def take(self, x: Array, positions: Array, axis: int = 0) -> Array:
        """As `numpy.take`; the positions are from 0 and within bounds."""

    def place(self, x: Array, positions: Array, values: Array) -> None:
        """``x[positions] = values`` in place, along axis 0; no position comes twice."""

    def put(self, x: Array, positions: Array, values: Array) -> None:
        """As `place`; of several values for one row the last one stays."""

    def compress(self, x: Array, mask: Array) -> Array:
        """``x[mask]`` for a mask of the leading axes."""

    def nonzero(self, x: Array) -> tuple[Array, ...]:
        """As `numpy.nonzero`."""

    def count(self, x: Array) -> int:
        """As `numpy.count_nonzero`."""

    def unravel(self, x: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
        """As `numpy.unravel_index`."""

    def from_zero(self, x: Array, n: int) -> tuple[Array | None, bool]:
        """As `parallel.picking.from_zero`: indices as positions along an axis of extent `n`, if all are within it."""

    def spread(self, values: Array, mask: Array, shape: tuple[int, ...]) -> Array:
        """Zeros of this shape, with the values where the mask of the leading axes is true."""

    def concatenate(self, arrays: Sequence[Array]) -> Array:
        """As `numpy.concatenate`, along axis 0."""

    def accumulate(self, x: Array, ufunc: np.ufunc, axis: int, dtype: np.dtype) -> Array | None:
        """``ufunc.accumulate(x, axis, dtype)``; of inexact numbers regrouped, if no part of it can overflow."""

    def matmul(self, a: Array, b: Array) -> Array | None:
        """As `numpy.matmul`, of operands of one dtype; sums are grouped in another way."""

    def fft(self, x: Array, name: str, args: tuple) -> Array | None:
        """``numpy.fft.name(x, *args)``."""

    def uniform(self, x: Array, state: Mapping[str, object], low: float, span: float) -> bool:
        """Fill `x`, doubles of one axis, with ``low + span * Generator.random()``, bit for bit.

        `state` is that of one of NumPy's bit generators; False for one that it does not know, on all ranks alike.
        """

    def linalg(
        self, *arrays: Array, name: str, args: tuple = (), **options: object
    ) -> Array | tuple[Array, ...] | None:
        """``numpy.linalg.name(*arrays, *args, **options)``, of finite matrices; None also where it met an error."""


def register(kind: type, find: Callable[[Array], Library]) -> None:
    """Tell whose library computes on arrays of a type."""
    _FINDERS[:] = [(other, its) for other, its in _FINDERS if other is not kind]
    _FINDERS.insert(0, (kind, find))


def library_of(*arrays: object) -> Library | None:
    """The library of the arrays' device; None where any of them lies on the host."""
    found = None
    for x in arrays:
        if type(x) is np.ndarray:
            return None
        found = next((find(x) for kind, find in _FINDERS if isinstance(x, kind)), None)
        if found is None:
            return None
    return found


def on_host(x: object) -> Any:
    """The values of an array; what lies on the host as it is."""
    library = library_of(x)
    return x if library is None else library.download(x)


def compute(operation: str, host: Function, *arrays: object, **options: object) -> Any:
    """A shard-local operation where the arrays lie, or on the host where they do not, or the library declines.

    Parameters
    ----------
    operation : str
        A method of `Library`, called with the arrays and the options.
    host : callable
        Does the same with ndarrays; called with them only.

    Returns
    -------
    array or tuple of array
        On the device or on the host; `engine.from_local` takes either.
    """
    library = library_of(*arrays)
    if library is not None:
        made = getattr(library, operation)(*arrays, **options)
        if made is not None:
            return made
    return host(*map(on_host, arrays))


class ModuleLibrary:
    """A library by a module with NumPy's functions, in the form in which CuPy has them.

    Where these differ from NumPy, the differences are dealt with here: NaN is sorted by its bits (also the negative NaN
    of x86 processors), of values for one row any may stay, and LAPACK reports errors on demand only.

    Parameters
    ----------
    module
        Its functions get arrays of the device.
    raising : callable
        Makes a context manager, in which decompositions raise `numpy.linalg.LinAlgError`.
    """

    def __init__(self, module: Module, raising: Callable[[], AbstractContextManager]) -> None:
        self._module, self._raising = module, raising

    def takes(self, dtype: np.dtype) -> bool:
        """As in `Library`: what CuPy has kernels for."""
        return dtype.kind in "?biufc" and dtype.char not in "gG" and dtype.isnative

    def download(self, x: Array) -> np.ndarray:
        """As in `Library`."""
        return x.get()

    def upload(self, values: np.ndarray) -> Array:
        """As in `Library`."""
        return self._module.asarray(np.ascontiguousarray(values))

    def sort(self, x: Array, axis: int) -> Array | None:
        """As in `Library`; a negative NaN is found where it would be sorted to, in front."""
        if not x.size or x.ndim > MOST_SORTED:
            return None
        made = self._module.sort(x, axis)
        if x.dtype.kind != "f":
            return made
        first = made[(slice(None),) * (axis % x.ndim) + (slice(1),)]
        return made if bool(self._module.all(first == first)) else self._module.sort(self._one_nan(x), axis)

    def argsort(self, x: Array, axis: int) -> Array | None:
        """As in `Library`: CuPy sorts stably."""
        return self._module.argsort(self._one_nan(x), axis) if x.size and x.ndim <= MOST_SORTED else None

    def _one_nan(self, x: Array) -> Array:
        """The same with one kind of NaN; most arrays have none, which is found out in half the time."""
        if x.dtype.kind != "f" or bool(self._module.all(x == x)):
            return x
        return self._module.where(x == x, x, x.dtype.type("nan"))

    def searchsorted(self, x: Array, values: Array, side: str) -> Array:
        """As in `Library`."""
        return self._module.searchsorted(x, values, side)

    def take(self, x: Array, positions: Array, axis: int = 0) -> Array:
        """As in `Library`."""
        return self._module.take(x, positions, axis)

    def place(self, x: Array, positions: Array, values: Array) -> None:
        """As in `Library`."""
        if positions.size:
            x[positions] = values

    def put(self, x: Array, positions: Array, values: Array) -> None:
        """As in `Library`. CuPy's scatter leaves any of several values: it gets the last one of each row."""
        if not positions.size:
            return
        order = self._module.argsort(positions)
        ranked = self._module.take(positions, order)
        last = self._module.ones(positions.shape, bool)
        last[:-1] = ranked[1:] != ranked[:-1]
        chosen = order[last]
        x[self._module.take(positions, chosen)] = self._module.take(values, chosen, 0)

    def compress(self, x: Array, mask: Array) -> Array:
        """As in `Library`."""
        return x[mask]

    def nonzero(self, x: Array) -> tuple[Array, ...]:
        """As in `Library`."""
        return self._module.nonzero(x)

    def count(self, x: Array) -> int:
        """As in `Library`."""
        return int(self._module.count_nonzero(x))

    def unravel(self, x: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
        """As in `Library`."""
        return self._module.unravel_index(x, shape)

    def from_zero(self, x: Array, n: int) -> tuple[Array | None, bool]:
        """As in `Library`."""
        low, high = (int(self._module.min(x)), int(self._module.max(x))) if x.size else (0, -1)
        if low < -n or high >= n:
            return None, False
        if low >= 0 and x.dtype == np.intp:
            return x, False
        positions = x.astype(np.intp)
        return self._module.where(positions < 0, positions + n, positions), True

    def spread(self, values: Array, mask: Array, shape: tuple[int, ...]) -> Array:
        """As in `Library`."""
        block = self._module.zeros(shape, values.dtype)
        block[mask] = values
        return block

    def concatenate(self, arrays: Sequence[Array]) -> Array:
        """As in `Library`."""
        return self._module.concatenate(list(arrays))

    def accumulate(self, x: Array, ufunc: np.ufunc, axis: int, dtype: np.dtype) -> Array | None:
        """As in `Library`: sums, and products of integers; NumPy rounds sums of float16 at each step."""
        integers = dtype.kind in "iu"
        if not x.size or not (integers or ufunc is np.add and dtype.kind in "fc" and dtype.char != "e"):
            return None
        if ufunc not in (np.add, np.multiply) or not np.can_cast(x.dtype, dtype, "same_kind"):
            return None
        scan = self._module.cumsum if ufunc is np.add else self._module.cumprod
        made = scan(x, None if x.ndim == 1 else axis, dtype)
        if integers:
            return made
        # Sums of parts are differences of these: none of them has overflowed if these are far from that.
        bound = np.finfo(dtype).max / 8
        if dtype.kind == "c":
            return made if bool(self._module.max(self._module.absolute(made)) < bound) else None
        return made if bool(self._module.max(made) < bound) and bool(self._module.min(made) > -bound) else None

    def matmul(self, a: Array, b: Array) -> Array | None:
        """As in `Library`: cuBLAS has these dtypes."""
        if a.dtype != b.dtype or a.dtype.char not in "fdFD" or not a.size or not b.size:
            return None
        return self._module.matmul(a, b)

    def fft(self, x: Array, name: str, args: tuple) -> Array | None:
        """As in `Library`: NumPy rounds factors to half precision for input of it, CuPy does not."""
        return None if x.dtype.char == "e" else getattr(self._module.fft, name)(x, *args)

    def linalg(
        self, *arrays: Array, name: str, args: tuple = (), **options: object
    ) -> Array | tuple[Array, ...] | None:
        """As in `Library`."""
        function = _LAPACK.get(name)
        if function is None or any(not x.size or x.dtype.char == "e" for x in arrays):
            return None
        if not all(bool(self._module.all(self._module.isfinite(x))) for x in arrays):
            return None
        try:
            with self._raising():
                return function(self._module, *arrays, *args, **options)
        except (np.linalg.LinAlgError, ValueError):
            return None  # NumPy says on the host what is wrong


# -- decompositions, in NumPy's form ----------------------------------------------------------------------------------


def _named(name: str, found: Iterable[Array]) -> tuple[Array, ...]:
    """The results of a function as NumPy's has them."""
    return type(getattr(np.linalg, name)(np.eye(1)))(*found)


def _cholesky(module: Module, a: Array, *, upper: bool = False) -> Array | None:
    return None if upper else module.linalg.cholesky(a)


def _eigh(module: Module, a: Array, UPLO: str = "L") -> tuple[Array, ...]:
    return _named("eigh", module.linalg.eigh(a, UPLO.upper()))


def _eigvalsh(module: Module, a: Array, UPLO: str = "L") -> Array:
    return module.linalg.eigvalsh(a, UPLO.upper())


def _inv(module: Module, a: Array) -> Array:
    return module.linalg.inv(a)


def _qr(module: Module, a: Array, mode: object = "reduced") -> Array | tuple[Array, ...] | None:
    if mode == "r":
        return module.linalg.qr(a, mode)
    return _named("qr", module.linalg.qr(a, mode)) if mode in ("reduced", "complete") else None


def _slogdet(module: Module, a: Array) -> tuple[Array, ...]:
    return _named("slogdet", module.linalg.slogdet(a))


def _solve(module: Module, a: Array, b: Array) -> Array:
    vector = b.ndim == 1
    right = b[:, None] if vector else b
    stack = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    # CuPy broadcasts nothing.
    left = module.broadcast_to(a, (*stack, *a.shape[-2:]))
    found = module.linalg.solve(left, module.broadcast_to(right, (*stack, *right.shape[-2:])))
    return found[..., 0] if vector else found


def _svd(
    module: Module, a: Array, full_matrices: object = True, compute_uv: object = True, hermitian: object = False
) -> Array | tuple[Array, ...] | None:
    if hermitian:
        return None
    found = module.linalg.svd(a, bool(full_matrices), bool(compute_uv))
    return _named("svd", found) if compute_uv else found


_LAPACK: dict[str, Callable[..., Array | tuple[Array, ...] | None]] = {
    "cholesky": _cholesky,
    "eigh": _eigh,
    "eigvalsh": _eigvalsh,
    "inv": _inv,
    "qr": _qr,
    "slogdet": _slogdet,
    "solve": _solve,
    "svd": _svd,
}
