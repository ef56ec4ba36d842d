"""Convolutions of `scipy.signal` on blocks with halos, for a kernel that every rank has whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.signal as signal

from numpy_dist import engine
from numpy_dist.argument_types import Keywords
from numpy_dist.authoring import map_overlap
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline

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
        kernel = kernel if isinstance(kernel, np.ndarray) else getattr(kernel, "_array", kernel)
        if engine.is_sharded(given["in2"]) or not engine.is_sharded(x):
            decline("only the first input may be distributed: the kernel is every rank's")
        if given.get("axes") is not None:
            decline("some axes only")
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
    convolve: Callable[..., np.ndarray], x: Any, kernel: np.ndarray, mode: str, options: Keywords
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
