"""What medians and quantiles are of rows that a rank has, and of all elements of a distributed array."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import _function_base_impl, _nanfunctions_impl

from numpy_dist import engine
from numpy_dist.argument_types import Keywords
from numpy_dist.backends.library import library_of, on_host
from numpy_dist.dispatch.core import outcome
from numpy_dist.dispatch.patterns.arguments import as_handle, astype
from numpy_dist.dispatch.patterns.blocks import blocks, exact_layout
from numpy_dist.dispatch.patterns.numpy_source import warn
from numpy_dist.dispatch.patterns.replicate import few
from numpy_dist.dispatch.patterns.select import boolean_getitem
from numpy_dist.dispatch.patterns.sort import ordered
from numpy_dist.dispatch.patterns.take import integer_getitem
from numpy_dist.parallel.on_device import Ordered
from numpy_dist.parallel.selection import Unordered, select_of

if TYPE_CHECKING:
    from numpy_dist.backends.library import Array
    from numpy_dist.distarray import DistArray

_numpy: ModuleType = _function_base_impl  # its formulas are those of the installed version
_nan: ModuleType = _nanfunctions_impl
# NumPy 2.1 does not move the axes of weights when it does those of the array.
MIXES_WEIGHTS = "weights" not in _numpy._ureduce.__code__.co_consts
_CHECKS_WEIGHTS = "were all zero" in inspect.getsource(_numpy._quantile)  # older ones divide by zero, and go on
_WEAK = "weak_q" in inspect.signature(_numpy._quantile).parameters


class Statistic(ABC):
    """A statistic of order.

    Attributes
    ----------
    lead : tuple of int
        The axes that its results have before those that remain of the array.
    nan : bool
        Whether NaN is left out.
    computes_in_output : bool
        Whether NumPy computes in the dtype of an output (and casts what it has computed otherwise).
    """

    lead: tuple[int, ...] = ()
    nan = False
    computes_in_output = True

    @abstractmethod
    def of_all(self, a: DistArray, *beside: DistArray, dtype: np.dtype | None = None) -> np.ndarray | np.generic:
        """That of all elements (collective); `dtype` is that of an output to compute in."""

    @abstractmethod
    def of_rows(self, block: np.ndarray, *beside: np.ndarray, axis: int, dtype: np.dtype | None = None) -> np.ndarray:
        """Those of rows, which are this rank's."""

    def check(self, out: DistArray | np.ndarray, shape: tuple[int, ...], a: DistArray, axis: int) -> None:
        """Raise NumPy's error for an output that has not this shape."""
        if self.computes_in_output and tuple(out.shape) != shape:
            self._complain(np.broadcast_to(np.zeros((), a.dtype), shape), np.zeros(out.shape, out.dtype), a, axis)

    @abstractmethod
    def _complain(self, result: np.ndarray, out: np.ndarray, a: DistArray, axis: int) -> None:
        """Write a result into an output as NumPy does it."""


class Median(Statistic):
    """The median."""

    def __init__(self, nan: bool) -> None:
        self.nan, self.computes_in_output = nan, not nan

    def of_all(self, a: DistArray, *beside: DistArray, dtype: np.dtype | None = None) -> np.ndarray | np.generic:
        if self.nan:
            whole = a
            a, _ = _without_nan(a)
            if not a.size:
                return few(integer_getitem(np.ravel(whole), (np.array([whole.size - 1]),)))[0]
        places = [(a.size - 1) // 2, a.size // 2]
        low, high, last = _at(a, [*places, a.size - 1])
        middle = np.array([low] if places[0] == places[1] else [low, high])
        mean = np.mean(middle, out=None if dtype is None else np.empty((), dtype))
        if dtype is not None and _is_nan(last):
            np.copyto(mean, last)  # NumPy's error where there is no NaN
        return last if _is_nan(last) else mean

    def of_rows(self, block: np.ndarray, *beside: np.ndarray, axis: int, dtype: np.dtype | None = None) -> np.ndarray:
        if self.nan:
            return np.nanmedian(on_host(block), axis)
        return np.median(_middle(block, axis), axis, out=_output(block, axis, (), dtype))

    def _complain(self, result: np.ndarray, out: np.ndarray, a: DistArray, axis: int) -> None:
        np.mean(np.expand_dims(result, axis), axis=axis, out=out)


class Quantiles(Statistic):
    """Quantiles, by one of NumPy's methods.

    Parameters
    ----------
    q : ndarray
        Probabilities from 0 to 1.
    weak : bool
        Whether they were given as a number of Python's.
    weighted : bool
        Whether the weights of all elements are beside them.
    line : ndarray, optional
        The weights of one row, which are those of all.
    """

    def __init__(
        self, q: np.ndarray, method: str, weak: bool, nan: bool, weighted: bool = False, line: np.ndarray | None = None
    ) -> None:
        if q.ndim > 2:
            raise ValueError("q must be a scalar or 1d")
        if method not in _numpy._QuantileMethods:
            _numpy._quantile(np.zeros(1), q, method=method)  # NumPy's error
        self.q, self.method, self.weak, self.nan, self.weighted, self.line = q, method, weak, nan, weighted, line
        self.lead = q.shape
        self.computes_in_output = not nan and not weighted

    def of_all(self, a: DistArray, *beside: DistArray, dtype: np.dtype | None = None) -> np.ndarray | np.generic:
        weights = as_handle(self.line.reshape(-1)) if self.line is not None else next(iter(beside), None)
        if self.nan:
            a, weights = _without_nan(a, weights)
            if not a.size:
                with outcome.Recorded([]):  # it has been said
                    return self._of_rows(np.full(1, np.nan, a.dtype), None if weights is None else np.ones(1), 0)
        return self._interpolated(a, dtype) if weights is None else self._chosen(a, weights)

    def of_rows(self, block: np.ndarray, *beside: np.ndarray, axis: int, dtype: np.dtype | None = None) -> np.ndarray:
        weights = self.line if self.line is not None else next(map(on_host, beside), None)
        return self._of_rows(on_host(block), weights, axis, dtype)

    def _of_rows(
        self, block: np.ndarray, weights: np.ndarray | None, axis: int, dtype: np.dtype | None = None
    ) -> np.ndarray:
        options: Keywords = {"weak_q": self.weak} if _WEAK else {}
        if not self.nan:
            options["out"] = _output(block, axis, self.lead, dtype)
        unchecked = _nan._nanquantile_unchecked if self.nan else _numpy._quantile_unchecked
        return unchecked(block, self.q, axis=axis, method=self.method, keepdims=False, weights=weights, **options)

    def check(self, out: DistArray | np.ndarray, shape: tuple[int, ...], a: DistArray, axis: int) -> None:
        if self.weighted and not self.nan and tuple(out.shape) != shape:
            raise ValueError(f"Wrong shape of argument 'out', shape={shape} is required; got shape={tuple(out.shape)}.")
        super().check(out, shape, a, axis)

    def _complain(self, result: np.ndarray, out: np.ndarray, a: DistArray, axis: int) -> None:
        if self._places(a.shape[axis], a.dtype)[2] is None:
            np.take(np.broadcast_to(result, (1, *result.shape)), 0, axis=0, out=out)
        np.add(result, result, out=out)

    def _places(self, count: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Between which places of so many elements in order the quantiles lie, and how far (None: at the first)."""
        formulas = _numpy._QuantileMethods[self.method]
        virtual = np.asanyarray(formulas["get_virtual_index"](count, self.q))
        integral = np.issubdtype(virtual.dtype, np.integer)
        if formulas["fix_gamma"] is None or (self.method == "linear" and integral):
            before = virtual.astype(np.intp)
            return before, before, None
        before, after = _numpy._get_indexes(np.empty(0, dtype), virtual, count)
        return before, after, _numpy._get_gamma(virtual, before, formulas)

    def _interpolated(self, a: DistArray, dtype: np.dtype | None) -> np.ndarray | np.generic:
        """What NumPy's `_quantile` makes of a one-dimensional array, from the few elements that it looks at."""
        count = a.size
        before, after, gamma = self._places(count, a.dtype)
        wanted = np.unique(np.concatenate([before.ravel() % count, after.ravel() % count, [count - 1]]))
        values = _at(a, wanted.tolist())
        out = None if dtype is None else np.empty(self.q.shape, dtype)
        low = np.searchsorted(wanted, before % count)
        if gamma is None:
            result = np.take(values, low, out=out)
        else:
            high = np.searchsorted(wanted, after % count)
            result = _numpy._lerp(values[low], values[high], float(gamma) if self.weak else gamma, out=out)
        if not _is_nan(values[-1]):
            return result
        if out is not None:
            np.copyto(out, values[-1])  # as above
            return out
        # A number is replaced by the NaN as it is, numbers in an array keep their dtype.
        return np.full(self.q.shape, values[-1], result.dtype) if self.q.ndim else values[-1]

    def _chosen(self, a: DistArray, weights: DistArray) -> np.ndarray | np.generic:
        """Where the running sum of the weights reaches the probabilities (collective: a sort, two exchanges)."""
        q = self.q
        values, positions = ordered(np.ravel(a))
        reached = np.cumsum(integer_getitem(np.ravel(weights), (positions,)), dtype=np.float64)
        reached /= reached[-1]
        if _CHECKS_WEIGHTS and np.isnan(reached[-1]):
            raise ValueError("Weights included NaN, inf or were all zero.")
        if q.dtype.kind == "f":
            reached = astype(reached, q.dtype)
        # The first element of some weight is sought, also for the probability 0.
        found = np.searchsorted(np.where(reached == 0, -1, reached), q, side="left")
        places = np.minimum(few(found) if engine.is_handle(found) else found, a.size - 1)
        chosen = few(integer_getitem(values, (np.append(places.ravel(), a.size - 1),)))
        if _is_nan(chosen[-1]):
            return np.full(q.shape, chosen[-1])[()]
        return chosen[:-1].reshape(q.shape)  # an array also where there is one probability


def _middle(block: Array, axis: int) -> np.ndarray:
    """Rows with the same medians, on the host: of rows on a device, the elements in the middle of their order."""
    library = library_of(block)
    ordered = None if library is None else library.sort(block, axis)
    if library is None or ordered is None:
        return on_host(block)
    count = block.shape[axis]
    places = np.array([(count - 1) // 2, count // 2, count - 1][count % 2 :])
    few = library.download(library.take(ordered, library.upload(places), axis))
    middle, last = np.split(few, [-1], axis)
    return np.where(np.isnan(last), last, middle) if few.dtype.kind in "fc" else middle


def _output(block: np.ndarray, axis: int, lead: tuple[int, ...], dtype: np.dtype | None) -> np.ndarray | None:
    """An output for rows, of the dtype that the user's has; None without one."""
    if dtype is None:
        return None
    return np.empty((*lead, *(n for other, n in enumerate(block.shape) if other != axis)), dtype)


def _without_nan(a: DistArray, beside: DistArray | None = None) -> tuple[DistArray, DistArray | None]:
    """The elements that are no NaN, flat, and what is beside them; a warning if there are none (collective)."""
    if a.dtype.kind not in "fcmM":
        return a, beside
    kept = ~np.isnan(a)
    found = boolean_getitem(a, kept)
    if not found.size:
        warn("All-NaN slice encountered", RuntimeWarning)
    return found, None if beside is None else boolean_getitem(as_handle(beside), kept)


def _at(a: DistArray, places: list[int]) -> np.ndarray:
    """Elements by their places in the order of all (collective)."""
    if not engine.is_sharded(a):
        return np.sort(engine.plain(a), axis=None)[places]
    if a.dtype.kind == "c":  # no order of complex numbers is that of `<` and of NaN at once
        return few(integer_getitem(np.sort(np.ravel(a)), (np.array(places),)))
    layout = exact_layout(a)
    (block,) = blocks((engine.aligned(a, layout), layout), library=True)
    device, rt = engine.device(a.dtype), engine.runtime()
    own = (block if device is None or block.ndim == 1 else device.flat(block)).reshape(-1)
    own = own if layout.primary(rt.rank) else own[:0]
    if device is not None and rt.size == 1:
        return Ordered.of(own, device).picked(np.array(places, np.intp))
    elements = Unordered(own) if device is None else Ordered.of(own, device)
    if not rt.computes:  # a plan: all ranks are taken to have as many elements as this one
        places = [min(place, len(own) * rt.size - 1) for place in places]
    return select_of(elements, places, a.dtype, rt.comm)


def _is_nan(value: np.generic) -> bool:
    return value.dtype.kind in "fcmM" and bool(np.isnan(value))
