"""Mathematical functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from numpy_dist.conformance.arguments import a, of, plain
from numpy_dist.conformance.case import PRODUCTS, SUMS, Topic

TOPIC = Topic("Mathematical functions")
case = TOPIC.case

FLOATS = "edfFD"
SHAPES = ((), (1,), (0,), (13,), (7, 5), (6, 1, 4), (0, 3), (3, 0))

for _function, _tolerance in ((np.sum, SUMS), (np.prod, PRODUCTS)):
    for _dtype in "?bBhHiIlLefdFD":
        case(_function, a(7, 5, dtype=_dtype), tolerance=_tolerance if _dtype in FLOATS else None)
        case(_function, a(7, 5, dtype=_dtype), axis=1, tolerance=_tolerance if _dtype in FLOATS else None)
    case(_function, a(7, 5, dtype="f4"), dtype="f8", tolerance=_tolerance)
    case(_function, a(7, 5, dtype="i1"), axis=0, dtype="i1")
    case(_function, a(7, 5), 0, None, a(5), tolerance=_tolerance)
case(np.sum, a(7, 5, dtype="m8[s]"))
case(np.sum, a(7, 5, dtype="M8[s]"))
case(np.sum, a(7, 5, dtype="U3"))

for _function in (np.sum, np.prod, np.max, np.min, np.any, np.all, np.amax, np.amin, np.ptp, np.count_nonzero):
    for _shape in SHAPES:
        for _axis in (None, 0, -1, tuple(range(len(_shape))), (), (0, 0), 5):
            case(_function, a(*_shape, values="whole"), axis=_axis)
        case(_function, a(*_shape, values="whole"), keepdims=True)
        case(_function, a(*_shape, values="whole"), axis=0, keepdims=True)
    for _view in ("flipped", "backwards", "fortran", "strided"):
        case(_function, a(6, 5, values="whole", view=_view), axis=0)
    case(_function, a(40, dtype="u1"))
    case(_function, a(6, 5, dtype="?"), axis=1)
    _tolerance = PRODUCTS if _function is np.prod else None  # the signs of zeros depend on the order
    case(_function, a(6, 5, dtype="c16", values="whole"), axis=1, tolerance=_tolerance)
    if _function is not np.count_nonzero:
        _dtype = "?" if _function in (np.any, np.all) else "f8"
        case(_function, a(6, 5, values="whole"), axis=0, out=a(5, dtype=_dtype))
        case(_function, a(6, 5, values="whole"), axis=0, out=a(6, dtype=_dtype))
        case(_function, a(6, 5, values="whole"), axis=0, out=a(1, 5, dtype=_dtype), keepdims=True)
        case(_function, a(6, 5, values="whole"), out=of(0.0 if _dtype == "f8" else False))
        case(_function, a(6, 5, values="whole"), axis=0, out=a(5, dtype="i4"))
    case(_function, a(6, 5), axis=1.5)
    case(_function, a(6, 5), axis="x")

for _function in (np.sum, np.prod, np.max, np.min):
    case(_function, a(6, 5, values="whole"), axis=0, initial=3, where=a(6, 5, dtype="?"))
    case(_function, a(6, 5, values="whole"), axis=1, initial=-2.5)
    case(_function, a(6, 5, values="whole"), where=a(6, 5, dtype="?", values="zeros"), initial=1)
    case(_function, a(6, 5, values="whole"), where=plain(5, dtype="?"), initial=1, keepdims=True)
    case(_function, a(6, 5, values="whole"), axis=0, where=a(6, 5, dtype="?"))
    case(_function, a(0, 5), initial=4)
for _function in (np.any, np.all):
    case(_function, a(6, 5, dtype="?"), axis=0, where=a(6, 5, dtype="?"))
    case(_function, a(6, 5, dtype="U3"))
    case(_function, a(6, 5, values="nans"), axis=1)
for _function in (np.max, np.min):
    case(_function, a(6, 5, values="nans"))
    case(_function, a(6, 5, values="nans"), axis=1)
    case(_function, a(6, 5, dtype="c16", values="special"), axis=0)
    case(_function, a(6, 5, dtype="M8[s]", values="special"), axis=0)
    case(_function, a(6, dtype="U4"))
case(np.sum, [a(4, values="whole"), a(4, values="whole")], declines="an ndarray was asked for")
case(np.sum, a(70000, dtype="e", values="ones"))

for _function in (np.cumsum, np.cumprod, np.cumulative_sum, np.cumulative_prod, np.nancumsum, np.nancumprod):
    _tolerance = PRODUCTS if "prod" in _function.__name__ else SUMS
    case(_function, a(9), tolerance=_tolerance)
    for _dtype in "?bLefFD":
        case(_function, a(11, dtype=_dtype), tolerance=_tolerance if _dtype in FLOATS else None)
        case(_function, a(7, 5, dtype=_dtype), axis=0, tolerance=_tolerance if _dtype in FLOATS else None)
    case(_function, a(7, 5), axis=1, dtype="f4", tolerance=_tolerance)
    case(_function, a(7, 5, view="fortran"), axis=0, tolerance=_tolerance)
    case(_function, a(7, 5, view="backwards"), axis=-1, tolerance=_tolerance)
    case(_function, a(7, 5, values="whole"), axis=0, out=a(7, 5))
    case(_function, a(7, 5), axis=2)
    case(_function, a(0))
    case(_function, a(3, 0), axis=0)
    case(_function, a(1, 1), axis=1)
    case(_function, a(23, values="nans"), tolerance=_tolerance)
    case(_function, a(9, dtype="U3"))
for _function in (np.cumulative_sum, np.cumulative_prod):
    case(_function, a(7, 5, values="whole"), axis=0, include_initial=True)
    case(_function, a(9, dtype="i4"), include_initial=True)
    case(_function, a(7, 5))
case(np.cumsum, a(4, 5), axis=1, tolerance=SUMS)
for _function in (np.cumsum, np.cumprod):
    for _axis in (0, -1, 1):
        case(_function, a(), axis=_axis)
case(np.cumsum, a(4, 5), tolerance=SUMS)
case(np.cumsum, a(9, dtype="m8[s]"))
case(np.cumsum, a(4, 5, dtype="i1"), axis=0, out=a(4, 5, dtype="i8"))

for _function in (np.round, np.around):
    case(_function, a(7, 5))
    case(_function, a(7, 5), 2)
    case(_function, a(7, 5, dtype="i4"), -1)
    case(_function, a(7, 5, dtype="c8"), 1)
    case(_function, a(5), out=a(5))
case(np.fix, a(7, 5))
case(np.fix, a(7), a(7))
case(np.fix, a(7, dtype="i4"))
case(np.clip, a(7, 5), -1, 2)
case(np.clip, a(7, 5), a(5), None)
case(np.clip, a(7, 5, dtype="i4"), 0, 2.5)
case(np.clip, a(7, 5, dtype="u1"), -1, 4)
case(np.clip, a(7, 5), None, None)
case(np.clip, a(7, 5), min=0)
case(np.clip, a(7, 5), -1, 1, out=a(7, 5))
case(np.clip, a(7, 5), 3, 1, where=a(7, 5, dtype="?"), out=a(7, 5))
case(np.diff, a(9))
case(np.diff, a(4, 5), axis=0)
case(np.diff, a(9), 3)
case(np.diff, a(9), 0)
case(np.diff, a(9), 20)
case(np.diff, a(9), prepend=1, append=[2, 3])
case(np.diff, a(4, 5), axis=0, prepend=a(2, 5), append=a(1, 5))
case(np.diff, a(4, 5), prepend=0, append=a(4, 2))
case(np.diff, a(4, 5), prepend=a(3, 2))
case(np.diff, a(9, dtype="?"))
case(np.diff, a(9, dtype="?"), 2)
case(np.diff, a(9, dtype="B"), append=3)
case(np.diff, a(9, dtype="M8[s]"))
case(np.diff, a(9, dtype="M8[s]"), 2)
case(np.diff, a(9), -1)
case(np.diff, a())
case(np.diff, a(9), axis=1)
case(np.ediff1d, a(3, 4))
case(np.ediff1d, a(9), to_begin=0, to_end=[1, 2])
case(np.ediff1d, a(9, dtype="i4"), to_begin=1.5)
case(np.ediff1d, a(9), to_end=a(2, 2))
case(np.ediff1d, a(1))
case(np.ediff1d, a(0))
case(np.ediff1d, a(0), to_end=[1])
case(np.ediff1d, a(9, dtype="M8[s]"))
case(np.ediff1d, a(9, dtype="M8[s]"), to_end=np.datetime64(3, "s"))
case(np.gradient, a(9))
case(np.gradient, a(4, 5))
case(np.gradient, a(4, 5), 2.0, axis=1)
case(np.gradient, a(4, 5), 2.0, 3)
case(np.gradient, a(4, 5), 2.0, a(5, values="sorted"))
case(np.gradient, a(4, 5, 6), axis=(0, 2), edge_order=2)
case(np.gradient, a(9), edge_order=2)
case(np.gradient, a(9), edge_order=3)
case(np.gradient, a(9), plain(9, values="sorted"))
case(np.gradient, a(9), a(9, values="sorted"))
case(np.gradient, a(9), a(9, values="sorted"), edge_order=2)
case(np.gradient, a(9), a(8, values="sorted"))
case(np.gradient, a(9), a(3, 3))
case(np.gradient, a(9), 1, 2)
case(np.gradient, a(2), edge_order=2)
case(np.gradient, a(9, dtype="i4"))
case(np.gradient, a(9, dtype="e"))
case(np.gradient, a(9, dtype="D"), 0.5)
case(np.gradient, a(9, dtype="M8[s]"))
case(np.gradient, a(1))
case(np.trapezoid, a(9), tolerance=SUMS)
case(np.trapezoid, a(4, 5), dx=0.5, axis=0, tolerance=SUMS)
case(np.trapezoid, a(5), a(5, values="sorted"), tolerance=SUMS)
case(np.trapezoid, a(4, 5), a(4, values="sorted"), axis=0, tolerance=SUMS)
case(np.trapezoid, a(4, 5), a(4, 5, values="sorted"), tolerance=SUMS)
case(np.trapezoid, a(4, 5), [1, 2, 4, 5, 9], tolerance=SUMS)
case(np.trapezoid, a(9, dtype="i4"), tolerance=SUMS)
case(np.trapezoid, a(9, dtype="F"), dx=2, tolerance=SUMS)
case(np.trapezoid, a(5), a(4))
case(np.trapezoid, a(5), axis=1)
case(np.trapezoid, a(1))
case(np.trapezoid, a(0))
case(np.angle, a(7, 5, dtype="c16"))
case(np.angle, a(7, 5), deg=True)
case(np.sinc, a(7, 5))
case(np.sinc, of(0.0))
case(np.i0, a(9))
case(np.i0, a(4, 5, dtype="f", view="fortran"))
case(np.i0, a(4, 5, dtype="i4"))
case(np.i0, a(4, dtype="D"))
case(np.i0, a())
case(np.i0, a(4, 5, dtype="f4", values="large", view="fortran"))
case(np.i0, a(5, dtype="i4"))
case(np.i0, a(5, dtype="c16"))
case(np.i0, of(2.5))
case(np.i0, a(0, 3))
case(np.unwrap, a(9), tolerance=SUMS)
case(np.unwrap, a(40, values="mixed"), 0.5, tolerance=SUMS)
case(np.unwrap, a(4, 9), axis=0, period=2.0, tolerance=SUMS)
case(np.unwrap, a(9, dtype="i4"), period=5)
case(np.unwrap, a(9, dtype="i4"), period=4, discont=3)
case(np.unwrap, a(4, 9, dtype="f", view="fortran"), axis=1, tolerance=SUMS)
case(np.unwrap, a(9), axis=1)
case(np.unwrap, a(1))
case(np.nan_to_num, a(7, 5, values="nans"))
case(np.nan_to_num, a(23, values="special"), nan=1, posinf=2, neginf=3)
case(np.nan_to_num, a(23, values="special"), copy=False)
case(np.nan_to_num, a(5, dtype="c16", values="special"))
case(np.nan_to_num, a(5, dtype="i4"))
for _function in (np.convolve, np.correlate):
    for _mode in ("full", "same", "valid", 1, "other"):
        for _long, _short in ((9, 3), (3, 9), (12, 4), (5, 5), (9, 1)):
            case(_function, a(_long), a(_short), _mode, tolerance=SUMS)
    for _dtype in "?bLefdFD":
        case(_function, a(11, dtype=_dtype), a(4, dtype=_dtype), tolerance=SUMS if _dtype in FLOATS else None)
    case(_function, a(11, dtype="i4"), a(4, dtype="F"), tolerance=SUMS)
    case(_function, a(11, view="strided"), a(4, view="flipped"), tolerance=SUMS)
    case(_function, a(11), [1, 2, 3], tolerance=SUMS)
    case(_function, plain(11), a(3), tolerance=SUMS)
    case(_function, a(11), 2.0)
    case(_function, a(11, values="special"), a(3), tolerance=SUMS)
    case(_function, a(11), a(0))
    case(_function, a(0), a(3))
    case(_function, a(3, 4), a(3))
    case(_function, a(9, dtype="U3"), a(3))
case(np.interp, a(5), plain(7, values="sorted"), a(7))
case(np.interp, plain(5), a(7, values="sorted"), plain(7))
case(np.interp, a(6, 5), a(7, values="sorted"), a(7, dtype="D"), -1j, 2.0)
case(np.interp, a(), a(7, values="sorted"), a(7))
case(np.interp, a(6, 5, values="special"), a(7, values="sorted"), a(7), right=5)
case(np.interp, a(9), a(7, values="distinct"), a(7), period=3.0)
case(np.interp, a(9), a(7, values="distinct"), a(7), period=0)
case(np.interp, a(9), a(7, values="sorted"), a(6))
case(np.interp, a(9), a(0), a(0))
case(np.interp, a(9), a(2, 3), a(2, 3))

for _function in (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanstd, np.nanvar):
    for _axis in (None, 0, 1):
        case(_function, a(6, 5, values="nans"), axis=_axis, tolerance=SUMS)
    case(_function, a(6, 5, values="nans"), axis=1, keepdims=True, tolerance=SUMS)
    case(_function, of([np.nan, np.nan]))
    case(_function, a(6, 5, dtype="i4"), tolerance=SUMS)
    case(_function, a(0, 3), axis=0)
for _function in (np.nanargmax, np.nanargmin):
    case(_function, a(23, values="nans"))
    case(_function, a(6, 5), axis=1)
    case(_function, of([np.nan, np.nan]))
for _function in (np.nanmedian, np.nanpercentile, np.nanquantile, np.percentile, np.quantile, np.median):
    case(_function, a(9, values="nans"), *(() if "median" in _function.__name__ else (0.5,)))

for _function in (
    np.emath.arccos, np.emath.arcsin, np.emath.arctanh, np.emath.log, np.emath.log10, np.emath.log2, np.emath.sqrt,
):  # fmt: skip
    case(_function, a(9))
    case(_function, a(9, values="positive"))
case(np.emath.logn, 3, a(9))
case(np.emath.power, a(9), 0.5)

case(np.apply_along_axis, lambda row: row.sum(), 1, a(4, 5), tolerance=SUMS)
case(np.apply_along_axis, lambda row: row.sum(), 0, a(4, 5, dtype="i4"))
case(np.apply_along_axis, lambda row, k, n=1: np.outer(row, row[:k]) * n, 1, a(4, 5, 3), 2, n=3)
case(np.apply_along_axis, lambda row: row[0] if row[0] > 0 else 2, 1, a(7, 3))
case(np.apply_along_axis, lambda row: row[0] if row[0] > 2 else 2, 1, of([[1.5], [2.5], [3.5], [0.5], [2.75]]))
case(np.apply_along_axis, lambda row: row[0] if row[0] > 2 else 2, 1, of([[2.5], [1.5], [3.5], [0.5], [2.75]]))
case(np.apply_along_axis, np.sort, -1, a(4, 5, view="fortran"))
case(np.apply_along_axis, lambda row: row[: int(row[0])], 1, of([[1, 2, 3], [1, 5, 6], [2, 5, 5]]))
case(np.apply_along_axis, lambda row: row[0], 1, a(4, 0))
case(np.apply_along_axis, lambda row: row, 2, a(4, 5))
case(np.apply_along_axis, lambda row: row, 1, a(0, 5))
case(np.apply_along_axis, np.sum, 0, a(7), tolerance=SUMS, declines="a single item cannot be divided")
case(np.apply_over_axes, np.sum, a(3, 4, 5), (0, 2), tolerance=SUMS)
case(np.piecewise, of([1.0, -2.0, 3.0]), [of([True, False, True])], [lambda x: -x, 7])
case(np.piecewise, a(9), [a(9, dtype="?"), a(9, dtype="?")], [lambda x, k: x * k, -1, lambda x, k: x + k], 3)
case(np.piecewise, a(4, 5), a(4, 5, dtype="?"), [1, 2])
case(np.piecewise, a(9), [a(9, dtype="?"), a(9, dtype="?")], [1])
case(np.piecewise, a(9, dtype="i4"), a(2, 9, dtype="?"), [1.5, 2])
case(np.packbits, a(19, dtype="?"))
case(np.packbits, a(3, 19, dtype="u1"))
case(np.packbits, a(0, dtype="?"))
case(np.packbits, a(19), 0)
case(np.packbits, a(40, dtype="i8"), bitorder="little")
case(np.packbits, a(40, dtype="i8"), bitorder="other")
for _view in ("whole", "fortran", "backwards"):
    for _axis in (0, 1, -1, 3):
        case(np.packbits, a(19, 4, 3, dtype="?", view=_view), axis=_axis)
        case(np.unpackbits, a(3, 4, 2, dtype="u1", view=_view), axis=_axis, bitorder="little")
case(np.unpackbits, a(3, 4, dtype="u1"), axis=1)
case(np.unpackbits, a(3, 4, dtype="u1"))
case(np.unpackbits, a(13, dtype="u1"), axis=0)
case(np.unpackbits, a(13, dtype="u1"), count=70)
case(np.unpackbits, a(13, dtype="u1"), count=-9)
case(np.unpackbits, a(13, dtype="u1"), count=111)
case(np.unpackbits, a(13, dtype="u1"), count=-111)
case(np.unpackbits, a(3, 4, dtype="u1"), axis=1, count=-111)
case(np.unpackbits, a(3, 4, dtype="u1"), axis=1, count=13)
case(np.unpackbits, a(13, dtype="i4"))

# Keywords.
for _function in (np.amax, np.amin):
    case(_function, a(6, 5), axis=0, initial=0.5, where=a(6, 5, dtype="?"))
_MASK = a(6, 5, dtype="?", values="mostly")
for _function in (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanstd, np.nanvar):
    _tolerance = SUMS if _function in (np.nansum, np.nanmean, np.nanstd, np.nanvar) else PRODUCTS
    _of_extremes = _function in (np.nanmax, np.nanmin)
    _wide = {} if _of_extremes else {"dtype": "c16"}
    case(_function, a(6, 5, values="nans"), axis=0, out=a(5), tolerance=_tolerance)
    case(_function, a(6, 5, values="nans"), axis=0, out=a(4))
    case(_function, a(6, 5, values="whole"), axis=0, out=a(5, dtype="i4"))
    _narrow = replace(_tolerance, computed_in="f4") if _function in (np.nanstd, np.nanvar) else _tolerance
    case(_function, a(6, 5, dtype="f4", values="nans"), axis=1, out=a(6, 1), keepdims=True, tolerance=_narrow)
    _initial = {"initial": 1.5} if _of_extremes or _function in (np.nansum, np.nanprod) else {}
    case(_function, a(6, 5, values="nans"), axis=0, where=_MASK, **_initial, tolerance=_tolerance)
    case(_function, a(6, 5, values="nans"), where=plain(5, dtype="?", values="ones"), **_initial, tolerance=_tolerance)
    case(_function, a(6, 5, values="nans"), axis=1, where=a(6, 5, dtype="?", values="zeros"), **_initial)
    case(_function, a(6, 5, dtype="f4", values="nans"), axis=1, **_wide, tolerance=_tolerance)
for _function in (np.nanstd, np.nanvar):
    case(_function, a(6, 5, values="nans"), axis=0, ddof=1, tolerance=SUMS)
    case(_function, a(6, 5, values="nans"), axis=0, correction=1, tolerance=SUMS)
    case(_function, a(6, 5, values="nans"), axis=0, correction=1, ddof=1)
    case(_function, a(6, 5, values="nans"), axis=0, ddof=9)
    case(_function, a(6, 5, values="nans"), axis=0, mean=a(1, 5), tolerance=SUMS)
for _function in (np.nanargmax, np.nanargmin):
    case(_function, a(6, 5, values="mixed"), axis=1, keepdims=True)
    case(_function, a(6, 5), axis=0, out=a(5, dtype="i8"))
    case(_function, a(6, 5), axis=0, out=a(5, dtype="f4"))
    case(_function, a(6, 5), keepdims=True)
case(np.clip, a(7, 5), max=0.5)
case(np.clip, a(7, 5), min=a(5), max=2)
case(np.real_if_close, of([1 + 1e-15j, 2.0]), 10)
case(np.real_if_close, of([1 + 1e-9j, 2.0]), tol=1e-8)
case(np.piecewise, a(9), [a(9, dtype="?")], [lambda x, k=1: x * k, lambda x, k=1: x - k], k=3)
for _function in (np.cumsum, np.cumprod, np.nancumsum):
    case(_function, a(9, dtype="i4"), dtype=">f8")  # its byte order is nobody's
    case(_function, a(9, dtype=">i4"), dtype=">i4", out=a(9, dtype=">i4"))
case(np.cumsum, a(9, dtype="m8[s]"), dtype="m8[ms]")
for _shape in ((6,), (1, 6), (3,)):  # parts are assigned to complex outputs
    case(np.round, a(1, 6, dtype="c16"), out=a(*_shape, dtype="c16"))
    case(np.round, a(6, dtype="c16"), 1, out=a(*_shape, dtype="c8"))
