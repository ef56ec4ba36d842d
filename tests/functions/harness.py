"""NumPy as the oracle: functions are called on ndarrays and on sharded arrays, presented in many ways."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import numpy_dist.distarray  # noqa: F401  (registers the class of handles)
from numpy_dist import engine
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers, run_simulated

RANKS = (1, 2, 4, 7)


def irregular(shape: tuple[int, ...], axis: int) -> Layout:
    """An axis cut at uneven points, with an empty shard where there are several."""
    size, n = engine.runtime().size, shape[axis]
    inner = sorted((k * k * n) // (size * size) for k in range(1, size))
    if size > 2:
        inner[1] = inner[0]
    return Layout(shape, Mesh((size,)), (Cut(axis, (0, *inner, n)),))


def descending(shape: tuple[int, ...], axis: int) -> Layout:
    """An axis that the ranks hold from its end."""
    size, n = engine.runtime().size, shape[axis]
    return Layout(shape, Mesh((size,)), (Cut(axis, tuple(n - (k * n) // size for k in range(size + 1))),))


def split(a: np.ndarray, axis: int) -> Any:
    return engine.from_global(a, engine.default_layout(a.shape, split=axis))


def _strided(a: np.ndarray) -> Any:
    wide = np.zeros((2 * a.shape[0], *a.shape[1:]), a.dtype)
    wide[::2] = a
    return engine.from_global(wide)[::2]


# Ways in which the same values can lie on the ranks.
PRESENTATIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "default": lambda a: engine.from_global(a),
    "first": lambda a: split(a, 0),
    "last": lambda a: split(a, a.ndim - 1),
    "irregular": lambda a: engine.from_global(a, irregular(a.shape, 0)),
    "descending": lambda a: engine.from_global(a, descending(a.shape, a.ndim - 1)),
    "flipped": lambda a: split(a[::-1].copy(), 0)[::-1],
    "strided": _strided,
    "transposed": lambda a: split(a.T.copy(), 0).T,
    "pinned": lambda a: split(np.stack([a, a, a]), 0)[1],
    "column": lambda a: split(np.stack([a, a], axis=-1), a.ndim)[..., 1],
}


# Some arguments sharded, others replicated, and new small arrays replicated, as with the default threshold.
MIXED = {"first of several": lambda index: index == 0, "last of several": lambda index: index > 0}


def presented(args: tuple[Any, ...], way: str) -> tuple[Any, ...]:
    """The arguments with ndarrays of one or more dimensions as sharded arrays."""
    made = []
    for index, a in enumerate(args):
        if not isinstance(a, np.ndarray):
            made.append(a)
        elif a.ndim == 0:
            made.append(a.copy())
        elif way in MIXED:
            made.append(split(a, 0) if MIXED[way](index) else engine.replicated(a.copy(order="K")))
        else:
            made.append(PRESENTATIONS[way](a))
    return tuple(made)


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any, list[tuple[type, str]]]:
    """What a call gives or raises, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: tuple[str, Any] = ("result", function(*args))
        except Exception as error:
            result = ("error", error)
    return (*result, [(w.category, str(w.message)) for w in caught])


def leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, tuple | list):
        for item in result:
            yield from leaves(item)
    else:
        yield result


def same(ours: Any, numpys: Any, rtol: float, what: str) -> None:
    """Assert that a result is NumPy's: container, scalar or array, dtype, shape, values."""
    assert type(ours) is type(numpys) or engine.is_handle(ours) and isinstance(numpys, np.ndarray), (
        f"{what}: {type(ours)} instead of {type(numpys)}"
    )
    if isinstance(numpys, tuple | list):
        assert len(ours) == len(numpys), what
        for a, b in zip(ours, numpys, strict=True):
            same(a, b, rtol, what)
        return
    if isinstance(numpys, np.ndarray):
        assert ours.shape == numpys.shape, f"{what}: shape {ours.shape} instead of {numpys.shape}"
        ours = engine.gather(ours) if engine.is_handle(ours) else ours
    if isinstance(numpys, np.ndarray | np.generic):
        assert ours.dtype == numpys.dtype, f"{what}: {ours.dtype} instead of {numpys.dtype}"
        if numpys.dtype.kind in "fc":
            tolerance = max(rtol, 16 * float(np.finfo(numpys.dtype).eps)) if rtol else 0
            scale = np.abs(numpys[np.isfinite(numpys)]).max(initial=0) if numpys.ndim else 0
            np.testing.assert_allclose(ours, numpys, rtol=tolerance, atol=tolerance * scale, err_msg=what)
        else:
            np.testing.assert_array_equal(ours, numpys, err_msg=what)
    else:
        assert ours == numpys, f"{what}: {ours!r} instead of {numpys!r}"


def check(
    function: Callable[..., Any],
    *args: Any,
    ranks: tuple[int, ...] = RANKS,
    ways: tuple[str, ...] = tuple(PRESENTATIONS),
    rtol: float = 1e-12,
    native: bool = True,
    messages: bool = True,
) -> None:
    """Compare a function's results, errors and effects on its arguments with NumPy's, on simulated ranks.

    Parameters
    ----------
    function : callable
        Called with `args`, once with ndarrays and once with sharded arrays in their place for each presentation.
    native : bool
        Whether the call must do without the fallback and without gathering whole arrays.
    messages : bool
        Whether error messages have to be NumPy's, too.
    """
    copies = tuple(a.copy(order="K") if isinstance(a, np.ndarray) else a for a in args)
    kind, expected, _ = outcome(function, copies)

    def on_each_rank() -> None:
        for way in ways + tuple(MIXED if set(ways) == set(PRESENTATIONS) else ("first of several",)):
            threshold = config.MIN_SHARD_BYTES if way in MIXED else 0
            with config(MIN_SHARD_BYTES=threshold, FALLBACK="error" if native else "silent"):
                ours = presented(args, way)
                what = f"{way} at {engine.runtime().size} ranks"
                if (
                    native and way not in MIXED
                ):  # what is sharded has to be gathered to be written into a replicated target
                    with forbid_gathers():
                        found, result, _ = outcome(function, ours)
                else:
                    found, result, _ = outcome(function, ours)
                if kind == "error":
                    assert found == "error", f"{what}: no error, NumPy raises {expected!r}"
                    assert type(result) is type(expected), f"{what}: {result!r} instead of {expected!r}"
                    if messages:
                        assert str(result) == str(expected), f"{what}: {result!r} instead of {expected!r}"
                    continue
                if found == "error":
                    raise AssertionError(f"{what}: {result!r}") from result
                same(result, expected, rtol, what)
                for mine, theirs in zip(ours, copies, strict=True):
                    if engine.is_handle(mine):
                        same(mine, theirs, rtol, f"{what}: an argument")

    for n in ranks:
        run_simulated(n, on_each_rank)
