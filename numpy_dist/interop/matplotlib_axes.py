"""The plug-in ``matplotlib``: lines and images are thinned before they are gathered, histograms are counted on shards.

It is on unless ``PLUGINS`` says otherwise. `plot_hooks` calls these functions in place of methods of Matplotlib's usual
axes and of seaborn's functions, where an argument is a distributed array; `own` is the library's. They are collective:
every rank makes the same call, and draws the same.

A line keeps the first, the last, the least and the greatest point of each of some thousand buckets, after the
aggregation M4 of U. Jugel, Z. Jerzak, G. Hackenbroich and V. Markl, M4: A Visualization-Oriented Time Series Data
Aggregation, Proceedings of the VLDB Endowment 7 (2014). Theirs are the columns of pixels; ours are of equal numbers of
points, which is the same where x grows evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from numpy_dist import engine
from numpy_dist.argument_types import Function, Keywords
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.plugins import permission_of
from numpy_dist.errors import ThinningWarning
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray


Own = Function

LONGEST_LINE = 1_000_000
"""Points of a line that is drawn as it is."""
FEWEST_BUCKETS = 4096
"""Of a longer line; a figure that is wider than half of this has two for each of its pixels."""
LARGEST_IMAGE = 2048
"""Rows and columns of an image that is drawn as it is, or twice the figure's pixels, if that is more."""
OFF = "NUMPY_DIST_PLUGINS=-matplotlib gathers and draws all of it"
_MOST_SETS = 100  # of a list; the histogram of more has a distributed array among the first, or is Matplotlib's
_PER_OCTAVE = 512  # buckets, where x is not drawn to a linear scale


def plot(own: Own, axes: Axes, *args: object, **kwargs: object) -> list[object]:
    """Lines, as ``Axes.plot`` draws them; of more than `LONGEST_LINE` points, those that can be seen.

    Communicates the points that are drawn, and for those of longer lines their positions.
    """
    lines: list[object] = []
    for pair, more in _pairs(args):
        length = len(pair[-1]) if np.ndim(pair[-1]) else 0
        shaped = all(np.ndim(a) in (1, 2) and len(a) == length for a in pair)
        if not shaped or length <= LONGEST_LINE:
            lines += own(axes, *map(_gathered, pair), *more, **kwargs)
            continue
        if len(pair) == 1:
            pair = [np.arange(length), *pair]
        seen = _seen(axes, pair)
        drawn = own(axes, *[_taken(a, seen) for a in pair], *more, **kwargs)
        if drawn and all(line.get_linestyle() == "None" for line in drawn):  # markers: a cloud, not an outline
            seen = np.arange(0, length, -(-length // LONGEST_LINE))
            for n, line in enumerate(drawn):
                line.set_data(*[_taken(a if a.ndim == 1 else a[:, n % a.shape[1]], seen) for a in pair])
            axes.relim()
            axes.autoscale_view()
        policy.warn_once(
            "matplotlib.plot",
            f"plots {len(seen):,} of {length:,} points, those that can be seen at this size; draw a part of "
            f"the array to look closer ({OFF})",
            ThinningWarning,
        )
        lines += drawn
    return lines


def _seen(axes: Axes, pair: Sequence[DistArray | np.ndarray]) -> np.ndarray:
    """The positions of the points that a line of one or more columns keeps."""
    length = len(pair[-1])
    columns = [a if a.ndim == 1 else a[:, n] for a in map(_array, pair) for n in range(a[:1].size)]
    if axes.get_xscale() == "linear":
        pieces = [(0, length, max(FEWEST_BUCKETS, 2 * math.ceil(axes.figure.bbox.width)))]
    else:  # each half of what is left has the same width in a logarithmic scale
        edges = [length]
        while edges[-1] > 2 * _PER_OCTAVE:
            edges.append(edges[-1] // 2)
        pieces = [(lo, hi, _PER_OCTAVE) for hi, lo in zip(edges, [*edges[1:], 0], strict=True)]
    uneven = [column for column in columns if not _grows_evenly(column)]
    return np.unique(np.concatenate([_extremes(column, *piece) for column in uneven for piece in pieces]))


def imshow(own: Own, axes: Axes, X: object, *args: object, **kwargs: object) -> object:  # noqa: N803
    """An image, as ``Axes.imshow`` draws it; a larger one than `LARGEST_IMAGE` by the means of its blocks.

    With the interpolations ``"nearest"`` and ``"none"`` one element stands for a block. Colours are those of the
    whole image. Communicates what is drawn.
    """
    if not engine.is_handle(X):
        return own(axes, X, *args, **kwargs)
    most = [max(LARGEST_IMAGE, 2 * math.ceil(n)) for n in (axes.figure.bbox.height, axes.figure.bbox.width)]
    steps = [-(-n // limit) for n, limit in zip(X.shape[:2], most, strict=False)]
    if X.ndim not in (2, 3) or X.dtype.kind not in "biuf" or max(steps) <= 1:
        return own(axes, _gathered(X), *args, **kwargs)
    rows, columns = [n // step for n, step in zip(X.shape[:2], steps, strict=True)]
    whole = X[: rows * steps[0], : columns * steps[1]]
    if X.ndim == 2:
        _fix_colours(X, args, kwargs)
    if kwargs.get("interpolation") in ("nearest", "none"):
        how, drawn = "one element for each block", whole[:: steps[0], :: steps[1]]
    else:
        how, blocks = "the means of blocks", whole.reshape(rows, steps[0], columns, steps[1], *X.shape[2:])
        drawn = blocks.mean(axis=(1, 3))
        if X.ndim == 3 and X.dtype.kind in "iu":
            drawn = np.rint(drawn).astype(X.dtype)
    kwargs["extent"] = _extent(X, whole, kwargs)
    _warn_of_blocks("matplotlib.imshow", how, steps, X.shape)
    return own(axes, _gathered(drawn), *args, **kwargs)


def _extent(image: engine.Handle, whole: DistArray, kwargs: Keywords) -> tuple[float, float, float, float]:
    """Where the blocks lie that are whole, in the coordinates of the image."""
    import matplotlib

    upper = (kwargs.get("origin") or matplotlib.rcParams["image.origin"]) == "upper"
    height, width = image.shape[:2]
    given = kwargs.get("extent")
    if given is None:
        given = (-0.5, width - 0.5, height - 0.5, -0.5) if upper else (-0.5, width - 0.5, -0.5, height - 0.5)
    left, right, bottom, top = given
    right = left + (right - left) * whole.shape[1] / width
    if upper:
        bottom = top + (bottom - top) * whole.shape[0] / height
    else:
        top = bottom + (top - bottom) * whole.shape[0] / height
    return left, right, bottom, top


def hist(own: Own, axes: Axes, x: Any, bins: Any = None, **kwargs: Any) -> Any:
    """A histogram, as ``Axes.hist`` draws it, whose elements are counted where they lie: nothing is gathered.

    Communicates the counts.
    """
    weights: Any = kwargs.get("weights")
    if engine.is_handle(x) and x.ndim == 2:  # its columns are sets of their own
        x = [x[:, n] for n in range(x.shape[1])]
        weights = [weights[:, n] for n in range(len(x))] if np.ndim(weights) == 2 else weights
    sets = list(x) if isinstance(x, list | tuple) else [x]
    if weights is None:
        weighed: list[Any] = [None] * len(sets)
    else:
        weighed = list(weights) if isinstance(weights, list | tuple) and np.ndim(weights[0]) else [weights]
    if any(np.ndim(a) != 1 for a in sets) or len(weighed) != len(sets):
        return own(axes, _gathered(x), bins, **kwargs)
    if bins is None:
        import matplotlib

        bins = matplotlib.rcParams["hist.bins"]
    kwargs.pop("weights", None)
    bounds = kwargs.pop("range", None)
    full = [a for a in sets if len(a)]
    if bounds is None and full:  # NaNs do not count
        least, most = min(float(np.nanmin(a)) for a in full), max(float(np.nanmax(a)) for a in full)
        bounds = (least, most) if least <= most else None
    if np.ndim(bins) == 0 and len(sets) > 1:
        together = np.concatenate(sets) if isinstance(bins, str) else np.array(bounds or (0.0, 1.0))
        bins = np.histogram_bin_edges(together, bins, bounds)
    counts = []
    for values, weight in zip(sets, weighed, strict=True):
        count, bins = np.histogram(values, bins, bounds, weights=weight)
        counts.append(_gathered(count))
    edges = _gathered(bins)
    drawn, counted = [edges[:-1]] * len(sets), counts
    if not isinstance(x, list | tuple):
        return own(axes, edges[:-1], edges, weights=counts[0], **kwargs)
    return own(axes, drawn, edges, weights=counted, **kwargs)


def scatter(own: Own, axes: Axes, *args: object, **kwargs: object) -> Any:
    """Points, as ``Axes.scatter`` draws them; of more than `LONGEST_LINE`, as many, evenly (collective)."""
    given, named = _thinned("matplotlib.scatter", args, kwargs)
    return own(axes, *given, **named)


def boxplot(own: Own, axes: Axes, *args: Any, **kwargs: Any) -> Any:
    """What ``Axes.boxplot`` draws of gathered arrays: it would read them element by element (collective)."""
    return own(axes, *map(_gathered_inside, args), **{name: _gathered_inside(a) for name, a in kwargs.items()})


violinplot = boxplot


def seaborn_plot(own: Own, *args: object, **kwargs: object) -> object:
    """What a function of seaborn's draws; of arrays of more than `LONGEST_LINE` elements, a part (collective).

    The part has elements at equal distances, which are the same of all arrays.
    """
    given, named = _thinned(f"seaborn.{own.__name__}", args, kwargs)
    return own(*given, **named)


def seaborn_histplot(own: Own, *args: Any, **kwargs: Any) -> Any:
    """What ``seaborn.histplot`` draws; one large array is counted where it lies, exactly (collective).

    Communicates the counts. What needs more than counts in bins of equal width is done as `seaborn_plot` does it.
    """
    names = ("data", "x", "y")
    given = dict(zip(("data",), args, strict=False)) | kwargs
    arrays = [name for name in names if given.get(name) is not None]
    counted = {"bins", "binrange", "stat", "cumulative", "common_norm", "element", "fill", "shrink", "color", "ax"}
    single = len(arrays) == 1 and engine.is_handle(given[arrays[0]]) and given[arrays[0]].ndim == 1
    if len(args) > 1 or not single or not given.keys() - set(names) <= counted | {"legend", "alpha", "label"}:
        return seaborn_plot(own, *args, **kwargs)
    values = given.pop(arrays[0])
    if values.size <= LONGEST_LINE or values.dtype.kind not in "iuf":
        return own(**given, **{arrays[0]: _gathered(values)})
    bounds = given.pop("binrange", None) or (float(np.nanmin(values)), float(np.nanmax(values)))
    bins = given.pop("bins", "auto")
    if isinstance(bins, str):  # NumPy's estimators know no NaNs
        values = values[np.isfinite(values)]
    count, edges = map(_gathered, np.histogram(values, bins, bounds))
    axis = "y" if arrays[0] == "y" else "x"
    # A list, since seaborn compares it with a text.
    return own(**given, **{axis: (edges[:-1] + edges[1:]) / 2}, weights=count, bins=edges.tolist())


def seaborn_heatmap(own: Own, data: DistArray | ArrayLike, *args: object, **kwargs: object) -> object:
    """What ``seaborn.heatmap`` draws; of more than `LARGEST_IMAGE` rows or columns the means of blocks (collective)."""
    if not engine.is_handle(data) or data.ndim != 2 or data.dtype.kind not in "biuf":
        return own(_gathered(data), *args, **kwargs)
    steps = [-(-n // LARGEST_IMAGE) for n in data.shape]
    if max(steps) > 1:
        rows, columns = [n // step for n, step in zip(data.shape, steps, strict=True)]
        whole = data[: rows * steps[0], : columns * steps[1]]
        _warn_of_blocks("seaborn.heatmap", "the means of blocks", steps, data.shape)
        data = whole.reshape(rows, steps[0], columns, steps[1]).mean(axis=(1, 3))
    return own(_gathered(data), *args, **kwargs)


def _warn_of_blocks(name: str, how: str, steps: Sequence[int], shape: Sequence[int]) -> None:
    policy.warn_once(
        name,
        f"draws {how} of {steps[0]} x {steps[1]} elements of an image of {shape[0]:,} x {shape[1]:,}; "
        f"draw a part of the array to look closer ({OFF})",
        ThinningWarning,
    )


def _thinned(name: str, args: Sequence[object], kwargs: Keywords) -> tuple[list[object], Keywords]:
    """Gathered arguments, of which those that are as long as the longest distributed one are thinned alike."""
    given = [*args, *kwargs.values()]
    length = max([a.shape[0] for a in given if engine.is_handle(a) and a.ndim], default=0)
    step = -(-length // LONGEST_LINE) if length else 1

    def of(a: Any) -> object:
        long = step > 1 and np.ndim(a) and not isinstance(a, str) and hasattr(a, "shape") and len(a) == length
        return _gathered(a[::step] if long else a)

    if step > 1:
        policy.warn_once(
            name,
            f"draws one of each {step} of the {length:,} elements, which is also what it counts ({OFF})",
            ThinningWarning,
        )
    return [of(a) for a in args], {key: of(a) for key, a in kwargs.items()}


def _gathered_inside(a: list[DistArray]) -> Any:
    return [_gathered(one) for one in a] if isinstance(a, list | tuple) else _gathered(a)


def concerns(args: Sequence[object], kwargs: Keywords) -> bool:
    """Whether one of these, or in a list among these, is a distributed array, and the plug-in is on."""
    given = [*args, *kwargs.values()]
    inside = [a for some in given if isinstance(some, list | tuple) for a in some[:_MOST_SETS]]
    ours = any([engine.is_handle(a) for a in (*given, *inside)])
    return ours and permission_of("matplotlib", config.PLUGINS) == "all"


def _array(a: DistArray | np.ndarray) -> Any:
    return a if engine.is_handle(a) else np.asanyarray(a)


def _gathered(a: object) -> Any:
    return a.gather() if engine.is_handle(a) else a


def _taken(a: DistArray | np.ndarray, positions: np.ndarray) -> np.ndarray:
    return _gathered(_array(a)[positions])


def _pairs(args: Sequence[Any]) -> list[tuple[list[Any], list[str]]]:
    """The arrays of each line, one or two, with its format, by the rules of ``Axes.plot``."""
    found, rest = [], list(args)
    while rest:
        arrays = rest[:1] if len(rest) < 2 or isinstance(rest[1], str) else rest[:2]
        rest = rest[len(arrays) :]
        form = [rest.pop(0)] if rest and isinstance(rest[0], str) else []
        found.append(([_array(a) for a in arrays], form))
    return found


def _grows_evenly(column: DistArray | np.ndarray) -> bool:
    """Whether these are the positions themselves, which have no extremes but their ends."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "i" and bool((np.diff(column) == 1).all())


def _extremes(column: DistArray | np.ndarray, begin: int, end: int, buckets: int) -> np.ndarray:
    """The positions of the first, last, least and greatest elements of each bucket of ``column[begin:end]``."""
    size = max(1, (end - begin) // buckets)
    count = (end - begin) // size
    edge = begin + count * size
    starts = np.arange(begin, edge, size)
    found = [starts, starts + size - 1, _of_rows(column[begin:edge].reshape(count, size), starts)]
    if edge < end:
        found += [np.array([edge, end - 1]), _of_rows(column[edge:end].reshape(1, end - edge), np.array([edge]))]
    return np.concatenate(found)


def _of_rows(rows: Any, starts: np.ndarray) -> np.ndarray:
    """The positions of the least and the greatest element of each row; NaNs only of rows of NaNs."""
    if rows.dtype.kind == "f":
        missing = np.isnan(rows)
        low, high = np.where(missing, np.inf, rows), np.where(missing, -np.inf, rows)
    else:
        low = high = rows
    return np.concatenate([starts + _gathered(low.argmin(axis=1)), starts + _gathered(high.argmax(axis=1))])


def _fix_colours(image: engine.Handle, args: Sequence[object], kwargs: dict[str, object]) -> None:
    """Give the ends of the colour scale, which means would narrow, by the whole image, where the user gives none."""
    if kwargs.get("colorizer") is not None or not image.size:
        return
    norm = args[1] if len(args) > 1 else kwargs.get("norm")
    finite = np.where(np.isfinite(image), image, np.nan) if image.dtype.kind == "f" else image
    ends = [float(np.nanmin(finite)), float(np.nanmax(finite))]
    if isinstance(norm, Normalize):
        norm.autoscale_None(np.array(ends))
        return
    for name, value in zip(("vmin", "vmax"), ends, strict=True):
        if kwargs.get(name) is None and not math.isnan(value):
            kwargs[name] = value
