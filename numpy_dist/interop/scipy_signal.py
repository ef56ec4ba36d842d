"""Convolutions of `scipy.signal`: on blocks with halos for a kernel that every rank has whole, else by transforms."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.fft
import scipy.signal as signal

from numpy_dist import engine
from numpy_dist.argument_types import Keywords
from numpy_dist.authoring import map_overlap
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.arguments import as_handle

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

_CONVOLVE = ("convolve", "fftconvolve", "oaconvolve")


def register() -> None:
    """Register the convolutions."""
    for name in (*_CONVOLVE, "correlate"):
        _register(getattr(signal, name))


def _register(function: Callable[..., np.ndarray]) -> None:
    signature = inspect.signature(function)
    convolve = signal.convolve if function.__name__ in ("convolve", "correlate") else function

    def convolved(*args: object, **kwargs: object) -> DistArray:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        x, kernel, mode = given["in1"], given["in2"], given["mode"]
        options = {"method": given["method"]} if "method" in given else {}
        if engine.is_sharded(kernel) and given.get("axes") is None:
            return _both_distributed(function, x, kernel, mode, options.get("method"))
        kernel = kernel if isinstance(kernel, np.ndarray) else getattr(kernel, "_array", kernel)
        if given.get("axes") is not None:
            decline("some axes only")
        if not engine.is_sharded(x):
            decline("inputs that are not distributed")
        kernel = np.asarray(kernel)
        if kernel.ndim != x.ndim or any(k > n or not k for k, n in zip(kernel.shape, x.shape, strict=True)):
            decline("a kernel of another number of axes, or a larger one than the array")
        if function.__name__ == "correlate":
            kernel = np.conj(np.flip(kernel))
        return _convolved(convolve, x, kernel, mode, options)

    convolved.__name__ = convolved.__qualname__ = function.__name__
    convolved.__signature__ = signature  # type: ignore[attr-defined]
    implements(function, kind="native")(convolved)


def _convolved(
    convolve: Callable[..., np.ndarray], x: engine.Handle | np.ndarray, kernel: np.ndarray, mode: str, options: Keywords
) -> DistArray:
    before = [(k - 1) // 2 for k in kernel.shape]  # what stands before the centre of the full result
    after = [k // 2 for k in kernel.shape]
    if mode not in ("full", "same", "valid"):
        decline(f"mode {mode!r}")
    if mode == "full":
        x = np.pad(x, list(zip(before, after, strict=True)))
    made = map_overlap(
        lambda block: convolve(block, kernel, mode="valid", **options),
        x,
        list(zip(after, before, strict=True)),
        "constant",
        trim=False,
    )
    if mode == "valid":
        return made[tuple(slice(b, n - a) for a, b, n in zip(before, after, made.shape, strict=True))]
    return made


def _both_distributed(
    function: Callable[..., np.ndarray], x: object, y: object, mode: str, method: object
) -> DistArray:
    """A convolution, or the correlation, of two arrays that ranks share (collective: three transforms)."""
    x, y = as_handle(x), as_handle(y)
    fits = all(n >= m for n, m in zip(x.shape, y.shape, strict=False))
    other_fits = all(n <= m for n, m in zip(x.shape, y.shape, strict=False))
    wrong = x.ndim != y.ndim or mode not in ("full", "same", "valid") or (mode == "valid" and not (fits or other_fits))
    if x.ndim and y.ndim and x.size and y.size and (wrong or method not in (None, "auto", "direct", "fft")):
        options = {} if method is None else {"method": method}
        with contextlib.suppress(AssertionError):
            engine.numpy_error(function, (x, y), {"mode": mode, **options})
        decline("inputs neither of which fits into the other one")
    # The transforms of whole numbers are rounded, and SciPy's choice between the methods is a matter of time.
    if wrong or method == "direct" or not x.size or not y.size or not x.ndim:
        decline("a direct convolution of two distributed arrays" if method == "direct" else "nothing to transform")
    if (function.__name__ in ("convolve", "correlate") or mode == "valid") and not fits:
        decline("a second input that is larger")
    if np.result_type(x.dtype, y.dtype).kind not in "fc" and method is not None:
        decline("whole numbers, which are convolved directly")
    made = _by_transforms(x, np.conj(np.flip(y)) if function.__name__ == "correlate" else y, mode)
    kind = np.result_type(x.dtype, y.dtype)
    return made if method is None or made.dtype == kind else engine.copy(made, dtype=kind)


def _by_transforms(x: DistArray, y: DistArray, mode: str) -> Any:
    """A convolution by the product of transforms of arrays that zeros make long enough.

    Along axes of which one array has one index only, products are broadcast.
    """
    shape = tuple(n + m - 1 for n, m in zip(x.shape, y.shape, strict=True))
    real = x.dtype.kind != "c" and y.dtype.kind != "c"
    axes = [axis for axis in range(x.ndim) if 1 not in (x.shape[axis], y.shape[axis])]
    lengths = [scipy.fft.next_fast_len(shape[axis], real) for axis in axes]
    there, back = (np.fft.rfftn, np.fft.irfftn) if real else (np.fft.fftn, np.fft.ifftn)
    made = x * y if not axes else back(there(x, lengths, axes) * there(y, lengths, axes), lengths, axes)
    wanted = {"full": shape, "same": x.shape}.get(mode, tuple(n - m + 1 for n, m in zip(x.shape, y.shape, strict=True)))
    starts = [(n - m) // 2 for n, m in zip(shape, wanted, strict=True)]
    return made[tuple(slice(start, start + n) for start, n in zip(starts, wanted, strict=True))]
