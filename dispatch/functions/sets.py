"""Set routines: the different values of arrays, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core import fallback
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns import replicate
from numpy_dist.dispatch.patterns.arguments import as_handle, astype, metadata, moveaxis
from numpy_dist.dispatch.patterns.blocks import blocks, exact_layout, row_layout
from numpy_dist.dispatch.patterns.numpy_source import adopt, warn
from numpy_dist.dispatch.patterns.replicate import known
from numpy_dist.dispatch.patterns.search import routed
from numpy_dist.dispatch.patterns.sort import cut_at, first_position, ordered_parts, shares, sorted_part
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel import key_sort, runs
from numpy_dist.parallel.picking import put

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

adopt(
    __name__,
    np.intersect1d,
    np.setxor1d,
    np.union1d,
    np.unique_all,
    np.unique_counts,
    np.unique_inverse,
    np.unique_values,
)

# Until NumPy 2.2 or so an array of one axis has rows of one element, if the axis is given: no two NaN are equal then.
_ROWS_OF_ONE = len(np.unique(np.full(2, np.nan), axis=0)) == 2
# Since NumPy 2.3 or so complex values are told apart by a table of hashes where nothing else is wanted: of equal ones
# it keeps the first. Those sorted have another order, in which what is no number in its real part comes last.
_BY_HASHES = bool(np.isnan(np.unique(np.array([complex(np.nan, 1), complex(1, np.nan)])).real[0]))
# Since NumPy 2.4 or so dates are, too, and there NaT equals itself.
_ONE_NAT = len(np.unique(np.full(2, "NaT", "M8[D]"), equal_nan=False)) == 1
_MANY_COLUMNS = 16  # rows of more are compared as structures, as NumPy does it
_MANY_INTEGERS = 1 << 19  # are sorted sooner than NumPy hashes them

_TESTS = "elements to be tested for"


def _is_numpys(
    ar: DistArray,
    return_index: object = False,
    return_inverse: object = False,
    return_counts: object = False,
    axis: object = None,
    sorted: object = True,
    **options: object,
) -> bool:
    """Whether one process leaves the different values to NumPy.

    Its result has to be in order, as it is with several ranks: by hashing it need not be. Many integers are sorted
    sooner than NumPy hashes them.
    """
    if not sorted:
        return False
    dtype = metadata(ar).dtype
    many = axis is None and np.size(ar) >= _MANY_INTEGERS and dtype.kind in "iu" and dtype.itemsize > 2
    return not many or bool(return_index or return_inverse or return_counts)


@implements(np.unique, kind="parallel", varies=("sorted",), alone=_is_numpys)
def unique(
    ar: DistArray,
    return_index: object = False,
    return_inverse: object = False,
    return_counts: object = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: object = True,
) -> object:
    """Collective: a sort; with the inverse, one more exchange. The result is in order, whether `sorted` or not."""
    ar = as_handle(ar)
    wanted = (return_index, return_inverse, return_counts)
    if not engine.shardable(ar.dtype):
        decline(f"the different values of dtype {ar.dtype}")
    if not ar.size:
        options = {"axis": axis, "equal_nan": equal_nan}
        return fallback.plain(np.unique, (np.zeros(ar.shape, ar.dtype), *wanted), options)
    if axis is not None:
        if ar.ndim > 1 or _ROWS_OF_ONE:
            return _unique_rows(ar, wanted, axis)
        np.unique(np.zeros((0,), ar.dtype), axis=axis)  # NumPy's error for an axis that there is not
    flat, positions = np.ravel(ar), None
    equal_nan = equal_nan or (_ONE_NAT and ar.dtype.kind == "M" and not any(wanted))
    by_hashes = _BY_HASHES and ar.dtype.kind == "c" and not any(wanted)
    with engine.Scratch() as scratch:
        if return_index or return_inverse or by_hashes:
            part, positions, counts, layout = ordered_parts(flat)
        else:
            part, counts, layout = sorted_part(flat, None, scratch)
        first = runs.first_of_each(part, _unlike(ar.dtype, equal_nan), engine.runtime().comm)
        values = part[first]
        if by_hashes and equal_nan:
            _take_first_nan(values, flat)
        return _found(values, first, positions, counts, layout, wanted, tuple(ar.shape))


def _take_first_nan(values: np.ndarray, flat: object) -> None:
    """Have a line's first NaN stand for all of them (collective: one allgather of an element)."""
    layout = row_layout(flat)
    (block,) = blocks((engine.aligned(flat, layout), layout))
    firsts = np.concatenate(engine.runtime().comm.allgather_array(block[np.isnan(block)][:1]))
    if firsts.size:
        values[np.isnan(values)] = firsts[0]


def _unlike(dtype: np.dtype, equal_nan: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    if not equal_nan or dtype.kind not in "cfmM":
        return np.ndarray.__ne__
    return lambda one, other: (one != other) & ~(np.isnan(one) & np.isnan(other))


def _unique_rows(ar: DistArray, wanted: tuple[object, object, object], axis: int) -> object:
    """The different rows along an axis (collective: a sort by all columns)."""
    try:
        moved = moveaxis(ar, axis, 0)
    except np.exceptions.AxisError:
        raise np.exceptions.AxisError(axis, ar.ndim) from None
    rest = tuple(moved.shape[1:])
    width = prod(rest)
    rows = np.reshape(moved, (moved.shape[0], width))
    layout, comm = row_layout(rows), engine.runtime().comm
    (block,) = blocks((engine.aligned(rows, layout), layout))
    first = first_position(layout)
    arrays = [np.ascontiguousarray(block), np.arange(first, first + len(block))]
    if width > _MANY_COLUMNS or ar.dtype == np.float16:  # in structures NaN of this type comes first
        structure = np.dtype([(f"f{i}", ar.dtype) for i in range(width)])
        (part, positions), counts = key_sort.sort(arrays, lambda a: [a[0].view(structure)[:, 0]], comm)
    else:
        (part, positions), counts = key_sort.sort(arrays, lambda a: [a[0][:, i] for i in reversed(range(width))], comm)
    (part, positions), counts = shares([part, positions], counts, layout)
    starts = runs.first_of_each(part, lambda one, other: np.any(one != other, axis=1), comm)
    found = _found(part[starts], starts, positions, counts, layout, wanted, positions_shape=(moved.shape[0],))
    several = found if isinstance(found, tuple) else (found,)
    values = moveaxis(np.reshape(several[0], (several[0].shape[0], *rest)), 0, axis)
    return (values, *several[1:]) if len(several) > 1 else values


def _found(
    values: np.ndarray,
    first: np.ndarray,
    positions: Any,
    counts: list[int],
    layout: Layout,
    wanted: tuple[object, object, object],
    positions_shape: tuple[int, ...],
) -> DistArray | tuple[DistArray, ...]:
    """What `unique` returns, from the first of each run of equal sorted rows and where these begin (collective).

    The first row of each run stays where it is: a rank has at most its share of the sorted rows, and few if many of
    these are alike.
    """
    comm = engine.runtime().comm
    long, numbers = runs.lengths(first, counts, comm)
    result = cut_at(numbers, layout)
    line = result.drop_axes(range(1, result.ndim))
    found = [engine.from_local(values, result)]
    return_index, return_inverse, return_counts = wanted
    if return_index:
        found.append(engine.from_local(positions[first], line))
    if return_inverse:
        places = engine.default_layout((sum(counts),), split=0)
        cut = places.cut_of(0)
        assert cut is not None
        # A run may have begun on a rank before this one.
        numbered = np.cumsum(first) + (list(accumulate(numbers, initial=0))[comm.rank] - 1)
        own = np.empty(cut.points[comm.rank + 1] - cut.points[comm.rank], numbered.dtype)
        inverse = put(own, cut.points, positions, numbered, comm)[0]
        found.append(np.reshape(engine.from_local(inverse, places), positions_shape))
    if return_counts:
        found.append(engine.from_local(long, line))
    return found[0] if len(found) == 1 else tuple(found)


@implements(np.isin, kind="parallel")
def isin(
    element: object,
    test_elements: object,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Literal["sort", "table"] | None = None,
) -> object:
    """Collective where `test_elements` are sharded: all ranks get them, or (many) they are sorted and asked for.

    Many records, and many integers whose common dtype would be inexact, come to all ranks part after part.
    """
    return _is_in(element, test_elements, assume_unique, invert, kind=kind)


def _is_in(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Literal["sort", "table"] | None = None,
) -> DistArray | np.ndarray:
    element = as_handle(element)
    np.isin(np.zeros(1, element.dtype), np.zeros(0, metadata(test_elements).dtype), kind=kind)  # NumPy's errors
    if engine.is_sharded(element) and metadata(test_elements).dtype.hasobject:
        decline("comparing with Python objects may raise, for some elements only")
    if kind == "table":
        _check_range(test_elements)
        # Nobody has a table of more than six times its elements (NumPy's own limit), unless sorted ones were inexact.
        kind = None if np.result_type(element.dtype, metadata(test_elements).dtype).kind in "iub" else kind
    many = engine.is_sharded(test_elements) and test_elements.nbytes > replicate.most_known()
    if many and kind != "table" and element.dtype.kind != "V":
        found = contained(element, test_elements)
        return np.logical_not(found) if invert else found
    layout, sharded = exact_layout(element), engine.is_sharded(element)
    block = blocks((engine.aligned(element, layout), layout))[0] if sharded else engine.plain(element)
    if not many:
        tests = known(test_elements, np.isin, _TESTS, chosen=True)
        if sharded:
            block, tests = _comparable(block, tests, element.size)
        made = np.isin(block, tests, not sharded and assume_unique, invert, kind=kind)
        return engine.from_local(made, layout) if sharded else engine.wrap(made)
    made, flat = np.zeros(block.shape, bool), np.ravel(test_elements)
    step = max(replicate.most_known() // flat.dtype.itemsize, 1)
    for start in range(0, flat.size, step):  # no rank has all of them at a time
        made |= np.isin(block, known(flat[start : start + step], np.isin, _TESTS, chosen=True), kind=kind)
    made = ~made if invert else made
    return engine.from_local(made, layout) if sharded else engine.wrap(made)


def _check_range(tests: DistArray | np.ndarray) -> None:
    """NumPy's error for values that a table cannot number (collective where they are sharded)."""
    tests = tests if engine.is_handle(tests) else np.asarray(tests)
    if tests.size:
        ends = np.array([np.min(tests), np.max(tests)], tests.dtype)
        if int(ends[1]) - int(ends[0]) > np.iinfo(np.uint8 if tests.dtype == bool else tests.dtype).max:
            np.isin(np.zeros(1, int), ends, kind="table")


def _comparable(block: np.ndarray, tests: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A part of `size` elements and what they are compared with, so that NumPy's `isin` finds the same in each part.

    It compares with few values one by one, and sorts all elements together with many, in the dtype of both. Where the
    dtypes differ, so does what is equal: none of them for dates and numbers, and an error where they are to be sorted.
    """
    of_numbers = all(x.dtype.kind in "iubfc" for x in (block, tests))
    if block.dtype == tests.dtype or of_numbers or tests.dtype.hasobject:
        return block, tests
    if tests.size < 10 * size**0.145:
        return block, tests if not tests.size or _can_equal(block, tests) else np.empty(0, block.dtype)
    common = np.concatenate((np.empty(0, block.dtype), np.empty(0, tests.dtype))).dtype
    return block.astype(common), tests.astype(common)


def _can_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether values of these dtypes can be equal: ``==`` says that nothing is where no loop compares them."""
    a, b = np.empty(0, a.dtype), np.empty(0, b.dtype)
    try:
        np.equal(a, b)
    except TypeError:
        _ = a == b  # NumPy's error where only one of them is a record
        return a.dtype.kind == "V"  # these are compared without a loop
    return True


# NumPy's source calls it by the one name or, since 2.4, by the other.
adopt(__name__, np.setdiff1d, _in1d=_is_in, _isin=_is_in)
if hasattr(np, "in1d"):  # until NumPy 2.3

    @implements(np.in1d, kind="composed")
    def in1d(
        ar1: object,
        ar2: object,
        assume_unique: bool = False,
        invert: bool = False,
        *,
        kind: Literal["sort", "table"] | None = None,
    ) -> object:
        warn("`in1d` is deprecated. Use `np.isin` instead.", DeprecationWarning)
        return np.ravel(_is_in(np.ravel(as_handle(ar1)), ar2, assume_unique, invert, kind=kind))


def contained(values: Any, tests: Any) -> DistArray:
    """Which of `values` are among `tests`, many sharded ones (collective: a sort, and what is sought is sent there)."""
    kind = np.result_type(values.dtype, tests.dtype)

    def answer(sought: np.ndarray, held: np.ndarray, low: int) -> np.ndarray:
        place = np.searchsorted(held, sought)
        inside = place < held.size
        inside[inside] = held[place[inside]] == sought[inside]
        return inside

    tests = np.sort(np.ravel(astype(tests, kind, copy=False)))
    return routed(tests, astype(values, kind, copy=False), "left", answer, np.dtype(bool))
