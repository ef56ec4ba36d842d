"""Cuts of an array that follow the speed of ranks, on request."""

from __future__ import annotations

from collections.abc import Sequence

from numpy_dist import engine
from numpy_dist.distarray import DistArray
from numpy_dist.layout.default import reweighted
from numpy_dist.settings import config

__all__ = ["rebalance"]


def rebalance(array: DistArray, weights: Sequence[float] | str | None = None) -> DistArray:
    """A copy of an array of which each rank has as much as its weight says.

    Parameters
    ----------
    array : DistArray
    weights : sequence of float, or str, optional
        A positive number for each rank, beside those of the others: with ``(2, 1, 1)`` rank 0 has half of the array.
        All ranks must give the same. ``"measured"``: the speed of each rank is measured now, for less than a second;
        with that setting, new arrays follow it from now on. By default those of the setting WEIGHTS; where it is empty,
        cuts are even.

    Returns
    -------
    DistArray
        With the same values. The same axes are cut, unless they are cut in two directions and such cuts cannot follow
        the weights; then it has the layout of a new array. An array that is whole on every rank gets that, too.

    Raises
    ------
    TypeError
        For what is no DistArray.
    ValueError
        For weights that are not positive, or not as many as there are ranks.

    Notes
    -----
    It is recorded, as `DistArray.redistribute` is: ranks exchange what they need of each other when values are wanted.
    Measuring is collective.

    Examples
    --------
    >>> import numpy_dist
    >>> x = numpy_dist.zeros((1000, 100))
    >>> numpy_dist.rebalance(x, [1]).shape
    (1000, 100)
    """
    if not isinstance(array, DistArray):
        raise TypeError(f"rebalance takes a DistArray, not {type(array).__name__}")
    rt = engine.runtime()
    layout = array.layout
    shares = rt.weights if weights is None else _given(weights, rt)
    if layout is None or layout.is_replicated:
        layout = rt.default_layout(array.shape, weights=shares)
    return engine.copy(array, layout=reweighted(layout, shares))


def _given(weights: Sequence[float] | str, rt: engine.Runtime) -> tuple[float, ...]:
    """Weights that somebody has given, or wants to have measured."""
    with config(WEIGHTS=weights) as settings:
        shares = settings.WEIGHTS
    if isinstance(shares, str):
        return rt.measure_weights()
    count = len(weights.replace(",", " ").split() if isinstance(weights, str) else weights)
    if count != rt.size:
        raise ValueError(f"there are {count} weights for {rt.size} ranks")
    return shares
