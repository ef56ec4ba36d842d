"""Sums of products of two arrays at hand, which `numpy.einsum` writes with labels."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.argument_types import Keywords
from numpy_dist.distarray.at_hand.elements import elements
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.totals import reduced
from numpy_dist.engine.data.windows import near

_ndarray = np.ndarray


class _Pair(NamedTuple):
    """A sum of the products of two arrays, each of which has each label once.

    Attributes
    ----------
    left, right, output : str
        Their labels, and those of the result.
    common, rows, columns, gone : str
        Labels of both that are kept, of one of them, and of both that are summed over.
    """

    left: str
    right: str
    output: str
    common: str
    rows: str
    columns: str
    gone: str


@lru_cache(maxsize=1024)
def _pair_of(subscripts: str) -> _Pair | None:
    """What subscripts of `numpy.einsum` say of two arrays; None of others, and where one is summed by itself."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    left, comma, right = inputs.partition(",")
    if not comma or not left.isalpha() or not right.isalpha() or not subscripts.isascii():
        return None
    if not arrow:
        output = "".join(sorted({*left} ^ {*right}))
    common = [name for name in left if name in right]
    kept, gone = ("".join(n for n in common if (n in output) is there) for there in (True, False))
    rows, columns = ("".join(n for n in one if n not in other) for one, other in ((left, right), (right, left)))
    once = all(len({*names}) == len(names) for names in (left, right, output))
    if not once or {*output} != {*kept, *rows, *columns} or (gone and kept and rows + columns):
        return None
    return _Pair(left, right, output, kept, rows, columns, gone)


def einsum(args: tuple, kwargs: Keywords) -> object:
    """`numpy.einsum` of two arrays, as the engine computes it: as one sum of products, or one product of matrices."""
    if kwargs or len(args) != 3 or type(args[0]) is not str or (pair := _pair_of(args[0])) is None:
        return None
    x, y = (elements(one, type(one)) for one in args[1:])
    if x is None or y is None or x.dtype is not y.dtype or x.dtype.char not in "fdl":
        return None
    left, right, output, common, rows, columns, gone = pair
    sizes = dict(zip(left, x.shape, strict=False)) | dict(zip(right, y.shape, strict=False))
    lengths = x.shape + y.shape
    if tuple(sizes.get(name) for name in left + right) != lengths or min(lengths, default=0) < 2:
        return None  # NumPy's error, or extents of 1 and 0
    if prod(sizes[name] for name in common + rows + columns + gone) * x.itemsize >= windows.limit:
        return None
    if len(output) > 1 and not (output == common + rows + columns and x.flags.c_contiguous and y.flags.c_contiguous):
        return None  # the result has an order of its own in memory
    x, y = _lined_up(left, x, common + rows + gone), _lined_up(right, y, common + gone + columns)
    with np.errstate(all="ignore"):  # as NumPy, which does not look at what it meets
        if gone and rows + columns:
            inner = prod(sizes[name] for name in gone)
            made: Any = np.matmul(x.reshape(-1, inner), y.reshape(inner, -1))
            made = made.reshape([sizes[name] for name in output])
        elif gone:
            made = reduced(np.add, x * y, tuple(range(len(common), x.ndim)), False)
        else:
            made = x[(..., *(None,) * len(columns))] * y[(*(slice(None),) * len(common), *(None,) * len(rows))]
            made = made + made.dtype.type(0) if made.dtype.kind == "f" else made  # no zero is negative
    return near(made) if type(made) is _ndarray else made


def _lined_up(names: str, x: np.ndarray, wanted: str) -> np.ndarray:
    """An array with its axes in this order."""
    return x if names == wanted else x.transpose([names.index(name) for name in wanted])
