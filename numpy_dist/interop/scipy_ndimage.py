"""Filters of `scipy.ndimage` on blocks with halos: SciPy's own function runs on each rank's widened block."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.ndimage as ndimage

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.authoring import map_overlap
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

# SciPy's names of boundaries, in NumPy's words.
_BOUNDARIES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}
# Filters along one axis; how far each reaches, from its arguments.
_REACH_1D: dict[str, Callable[[Keywords], int]] = {
    "convolve1d": lambda a: len(a["weights"]) // 2,
    "correlate1d": lambda a: len(a["weights"]) // 2,
    "gaussian_filter1d": lambda a: _radius(a, a["sigma"]),
    "maximum_filter1d": lambda a: int(a["size"]) // 2,
    "minimum_filter1d": lambda a: int(a["size"]) // 2,
    "uniform_filter1d": lambda a: int(a["size"]) // 2,
}
# Filters with a window of any shape.
_WINDOWED = (
    "convolve correlate grey_closing grey_dilation grey_erosion grey_opening maximum_filter median_filter "
    "minimum_filter percentile_filter rank_filter"
).split()
# Filters that go along one axis after another.
_ALONG_AXES = {
    "gaussian_filter": ("gaussian_filter1d", "sigma"),
    "maximum_filter": ("maximum_filter1d", "size"),
    "minimum_filter": ("minimum_filter1d", "size"),
    "uniform_filter": ("uniform_filter1d", "size"),
}


def _radius(arguments: Keywords, sigma: float) -> int:
    radius = arguments.get("radius")
    return int(arguments["truncate"] * float(sigma) + 0.5) if radius is None else int(radius)


def register() -> None:
    """Register the filters."""
    for name, reach in _REACH_1D.items():
        _register(getattr(ndimage, name), _along_one_axis(getattr(ndimage, name), reach))
    for name in _WINDOWED:
        _register(getattr(ndimage, name), _with_window(getattr(ndimage, name)))
    for name, (one, option) in _ALONG_AXES.items():
        if name not in _WINDOWED:
            _register(getattr(ndimage, name), _along_all_axes(getattr(ndimage, name), getattr(ndimage, one), option))
    for name in ("sobel", "prewitt", "laplace"):
        _register(getattr(ndimage, name), _small(getattr(ndimage, name)))


def _register(function: Function, run: Callable[[Keywords], DistArray]) -> None:
    """Register ``run(arguments)`` under the function's own signature, whichever SciPy's version is."""
    signature = inspect.signature(function)

    def filtered(*args: object, **kwargs: object) -> DistArray:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return run(dict(bound.arguments))

    filtered.__name__ = filtered.__qualname__ = function.__name__
    filtered.__signature__ = signature  # type: ignore[attr-defined]
    implements(function, kind="axis-local")(filtered)


def _checked(arguments: Keywords) -> tuple[DistArray, str]:
    """The input and the boundary in NumPy's words; what is not done here is declined."""
    x, output, mode = arguments["input"], arguments.get("output"), arguments.get("mode", "reflect")
    if output is not None and not isinstance(output, str | type | np.dtype):
        decline("an output array")
    if not isinstance(mode, str) or mode not in _BOUNDARIES:
        decline("a boundary mode for each axis, or one that is not known")
    if not hasattr(x, "redistribute"):
        decline("only the input may be distributed")
    if x.dtype.kind not in "biuf" or (x.dtype.kind in "biu" and float(arguments.get("cval", 0)) % 1):
        decline(f"an input of dtype {x.dtype} with this boundary value")
    return x, _BOUNDARIES[mode]


def _apply(
    function: Callable[..., np.ndarray], arguments: Keywords, x: DistArray, depth: list[int], boundary: str
) -> DistArray:
    rest = {name: value for name, value in arguments.items() if name != "input"}
    extra = rest.pop("extra_keywords", None)
    if rest.get("extra_arguments") or extra:
        decline("extra arguments")
    return map_overlap(
        lambda block: function(block, **rest), x, depth, boundary, value=arguments.get("cval", 0)
    )


def _along_one_axis(
    function: Callable[..., np.ndarray], reach: Callable[[Keywords], int]
) -> Callable[[Keywords], DistArray]:
    def run(arguments: Keywords) -> DistArray:
        x, boundary = _checked(arguments)
        axis = np.lib.array_utils.normalize_axis_index(arguments["axis"], x.ndim)
        depth = [0] * x.ndim
        depth[axis] = reach(arguments) + abs(int(arguments.get("origin", 0)))
        return _apply(function, arguments, x, depth, boundary)

    return run


def _along_all_axes(
    function: Function, one: Function, option: str
) -> Callable[[Keywords], DistArray]:
    """As SciPy does it: the filter of one axis, along each in turn."""

    def run(arguments: Keywords) -> DistArray:
        x, _ = _checked(arguments)
        axes = arguments.get("axes")
        chosen = range(x.ndim) if axes is None else np.lib.array_utils.normalize_axis_tuple(axes, x.ndim)
        names = inspect.signature(one).parameters
        result = x
        if np.dtype(arguments["output"] or x.dtype) != x.dtype:
            decline("another dtype of the output")
        for place, axis in enumerate(chosen):
            given = {name: value for name, value in arguments.items() if name in names and name != "input"}
            for name, value in given.items():
                if isinstance(value, list | tuple) and name in (option, "order", "origin", "radius", "mode"):
                    given[name] = value[place]
            if option == "sigma" and given["sigma"] <= 1e-15:
                continue
            if option == "size" and given["size"] <= 1:
                continue
            result = one(result, axis=axis, **{k: v for k, v in given.items() if k != "axis"})
        return result if result is not x else x.copy()

    return run


def _with_window(function: Callable[..., np.ndarray]) -> Callable[[Keywords], DistArray]:
    def run(arguments: Keywords) -> DistArray:
        x, boundary = _checked(arguments)
        if arguments.get("axes") is not None:
            decline("some axes only")
        shape = _window(arguments, x.ndim)
        origin = arguments.get("origin", 0)
        origins = [int(origin)] * x.ndim if isinstance(origin, int | np.integer) else [int(o) for o in origin]
        passes = 2 if function.__name__ in ("grey_closing", "grey_opening") else 1
        if passes == 2 and boundary != "symmetric":
            decline("an opening or closing with another boundary than reflect")
        depth = [passes * (n // 2 + abs(o)) for n, o in zip(shape, origins, strict=True)]
        return _apply(function, arguments, x, depth, boundary)

    return run


def _window(arguments: Keywords, ndim: int) -> tuple[int, ...]:
    for name in ("weights", "structure", "footprint"):
        if arguments.get(name) is not None:
            shape = np.shape(arguments[name])
            if len(shape) != ndim:
                decline("a window of another number of axes")
            return shape
    size = arguments.get("size")
    if size is None:
        decline("no size and no footprint")
    return (int(size),) * ndim if isinstance(size, int | np.integer) else tuple(int(n) for n in size)


def _small(function: Callable[..., np.ndarray]) -> Callable[[Keywords], DistArray]:
    """Filters that reach one element in each direction; SciPy continues what it has after each axis."""

    def run(arguments: Keywords) -> DistArray:
        x, boundary = _checked(arguments)
        if boundary == "constant" and arguments.get("cval", 0):
            decline("a constant boundary that is not 0")
        if boundary == "constant" and function.__name__ != "laplace":
            decline("a constant boundary")
        return _apply(function, arguments, x, [1] * x.ndim, boundary)

    return run
