"""Sets: the different values of arrays, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions import counting
from numpy_dist.dispatch.functions.common import as_handle, blocks
from numpy_dist.dispatch.functions.counting import known
from numpy_dist.dispatch.functions.indexing import boolean_getitem
from numpy_dist.dispatch.functions.numpy_source import numpy_source
from numpy_dist.dispatch.functions.ordering import ordered
from numpy_dist.parallel.picking import put

for _function in (
    np.intersect1d,
    np.setxor1d,
    np.union1d,
    np.unique_all,
    np.unique_counts,
    np.unique_inverse,
    np.unique_values,
):
    implements(_function, kind="composed")(numpy_source(_function))


@implements(np.unique, kind="composed", varies=("sorted",))
def unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,
) -> Any:
    """Collective: a sort; with the inverse, one more exchange. The result is in order, whether `sorted` or not."""
    ar = as_handle(ar)
    if (axis is not None and ar.ndim != 1) or ar.dtype.kind == "V":
        decline("the different rows of an array")
    if axis is not None:
        np.unique(np.zeros((0,), ar.dtype), axis=axis)  # NumPy's error for an axis that there is not
    flat, positions = np.ravel(ar), None
    if return_index or return_inverse:
        values, positions = ordered(flat)
    else:
        values = np.sort(flat)
    first = _first_of_each(values, equal_nan)
    found = [boolean_getitem(values, first)]
    if return_index:
        found.append(boolean_getitem(positions, first))
    if return_inverse:
        found.append(np.reshape(_put_back(np.cumsum(first) - 1, positions), ar.shape))
    if return_counts:
        found.append(np.diff(np.concatenate([np.flatnonzero(first), np.array([values.size])])))
    return found[0] if len(found) == 1 else tuple(found)


def _first_of_each(values: Any, equal_nan: bool) -> Any:
    """Whether elements in order are other than the one before."""
    first = engine.full(
        values.shape, True, bool, layout=engine.layout_of(values) if engine.is_sharded(values) else None
    )
    if values.size > 1:
        differs = values[1:] != values[:-1]
        if equal_nan and values.dtype.kind in "cfmM":
            differs &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
        first[1:] = differs
    return first


def _put_back(ranks: Any, positions: Any) -> Any:
    """Each element's value at the position from which the element came (collective)."""
    layout = engine.layout_of(positions)
    assert layout is not None
    values, places = blocks((engine.aligned(ranks, layout), layout), (positions, layout))
    result = engine.default_layout(tuple(positions.shape), split=0)
    cut = result.cut_of(0)
    assert cut is not None and cut.extent == result.size
    comm = engine.runtime().comm
    own = np.empty(cut.points[comm.rank + 1] - cut.points[comm.rank], values.dtype)
    return engine.from_local(put(own, cut.points, places, values, comm)[0], result)


@implements(np.isin, kind="composed")
def isin(element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None) -> Any:
    """Collective where `test_elements` are sharded: all ranks get them; many are sorted, and asked."""
    return _is_in(element, test_elements, assume_unique, invert, kind=kind)


def _is_in(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> Any:
    element = as_handle(element)
    if engine.is_sharded(test_elements) and test_elements.nbytes > counting.MOST_KNOWN:
        np.isin(np.zeros(0, element.dtype), np.zeros(0, test_elements.dtype), kind=kind)  # NumPy's errors
        found = counting.contained(element, test_elements)
        return np.logical_not(found) if invert else found
    tests = known(test_elements)
    np.isin(np.zeros(0, element.dtype), tests[:0], kind=kind)  # NumPy's errors
    if not engine.is_sharded(element):
        return engine.wrap(np.isin(element._array, tests, assume_unique, invert, kind=kind))
    layout = engine.layout_of(element) or engine.default_layout(tuple(element.shape))
    (block,) = blocks((engine.aligned(element, layout), layout))
    return engine.from_local(np.isin(block, tests, False, invert, kind=kind), layout)


# NumPy's source calls it by the one name or, since 2.4, by the other.
implements(np.setdiff1d, kind="composed")(numpy_source(np.setdiff1d, _in1d=_is_in, _isin=_is_in))
if hasattr(np, "in1d"):  # until NumPy 2.3
    implements(np.in1d, kind="composed")(
        lambda ar1, ar2, assume_unique=False, invert=False, *, kind=None: np.ravel(
            _is_in(np.ravel(as_handle(ar1)), ar2, assume_unique, invert, kind=kind)
        )
    )
