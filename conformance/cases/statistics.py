"""Statistics: averages, variances, histograms."""

from __future__ import annotations

import numpy as np

from numpy_dist.conformance.arguments import a, of, plain
from numpy_dist.conformance.case import BLAS, SUMS, Topic

TOPIC = Topic("Statistics")
case = TOPIC.case

for _function in (np.mean, np.var, np.std):
    for _dtype in "?bBhHiIlLefdFD":
        case(_function, a(7, 5, dtype=_dtype), tolerance=SUMS)
        case(_function, a(7, 5, dtype=_dtype), axis=1, tolerance=SUMS)
    for _shape in ((), (1,), (13,), (0,), (0, 3), (3, 0), (6, 1, 4)):
        for _axis in (None, 0, -1, tuple(range(len(_shape))), (), 5):
            case(_function, a(*_shape), axis=_axis, tolerance=SUMS)
        case(_function, a(*_shape), keepdims=True, tolerance=SUMS)
    for _view in ("flipped", "backwards", "fortran", "strided"):
        case(_function, a(6, 5, view=_view), axis=0, tolerance=SUMS)
    case(_function, a(6, 5), axis=0, out=a(5), tolerance=SUMS)
    case(_function, a(6, 5), axis=0, out=a(6))
    case(_function, a(6, 5, values="ones"), axis=0, out=a(5, dtype="i4"))
    case(_function, a(6, 5), axis=0, out=a(5, dtype="f4"), dtype="f4", tolerance=SUMS)
    case(_function, a(6, 5, dtype="f4"), dtype="f8", tolerance=SUMS)
    case(_function, a(6, 5, dtype="i4"), dtype="f4", tolerance=SUMS)
    case(_function, a(6, 5), axis=1, where=a(6, 5, dtype="?"), tolerance=SUMS)
    case(_function, a(6, 5), where=plain(5, dtype="?"), tolerance=SUMS)
    case(_function, a(6, 5), axis=0, where=a(6, 5, dtype="?", values="zeros"), tolerance=SUMS)
    case(_function, a(6, 5), axis=(0, 1), keepdims=True, tolerance=SUMS)
    case(_function, a(6, 5, values="nans"), axis=1, tolerance=SUMS)
    case(_function, a(7, dtype="m8[s]"))
    case(_function, a(7, dtype="M8[s]"))
    case(_function, a(7, dtype="U4"))
    case(_function, a(7, 5), axis="x")
for _function in (np.var, np.std):
    case(_function, a(6, 5), ddof=1, tolerance=SUMS)
    case(_function, a(6, 5), axis=1, ddof=2, keepdims=True, tolerance=SUMS)
    case(_function, a(3), ddof=3, tolerance=SUMS)
    case(_function, a(1), ddof=1)
    case(_function, a(6, 5), correction=1, tolerance=SUMS)
    case(_function, a(6, 5), correction=1, ddof=1)
    case(_function, a(6, 5, values="ones"), axis=0, mean=a(1, 5, values="ones"), tolerance=SUMS)
    case(_function, a(6, 5), axis=0, ddof=1, where=a(6, 5, dtype="?"), tolerance=SUMS)
case(np.mean, a(70000, dtype="e", values="ones"))
case(np.average, a(6, 5), tolerance=SUMS)
case(np.average, a(6, 5), axis=1, weights=a(5, values="positive"), tolerance=SUMS)
case(np.average, a(6, 5), weights=a(6, 5, values="positive"), returned=True, tolerance=SUMS)
case(np.average, a(6, 5), axis=1, weights=[1, 2, 3, 4, 5], tolerance=SUMS)
case(np.average, a(6, 5), weights=a(5))
case(np.average, a(4), weights=a(4, values="zeros"))
case(np.cov, a(3, 7), tolerance=BLAS)
case(np.cov, a(7), a(7), tolerance=BLAS)
case(np.cov, a(3, 7), rowvar=False, bias=True, tolerance=BLAS)
case(np.corrcoef, a(3, 7), tolerance=BLAS)
case(np.corrcoef, a(7), a(7), tolerance=BLAS)
case(np.median, a(6, 5), axis=1)
case(np.percentile, a(6, 5), [25, 75], axis=0)
case(np.quantile, a(9), 0.3)
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
for _method in METHODS:
    case(np.quantile, a(23), [0.0, 0.3, 1.0], method=_method)
    case(np.nanquantile, a(23, values="nans"), [0.0, 0.3, 1.0], method=_method)
    case(np.percentile, a(4, 6), 40, axis=1, method=_method, keepdims=True)
for _dtype in ("i2", "f4", "e", "m8[s]", "M8[D]"):
    case(np.median, a(8, dtype=_dtype))
    case(np.quantile, a(9, dtype=_dtype), 0.5, method="lower")
for _axis in (None, 0, 1, (0, 1), (1,), 2):
    for _keepdims in (False, True):
        case(np.median, a(6, 5), axis=_axis, keepdims=_keepdims)
        case(np.quantile, a(6, 5), [0.25, 0.5], axis=_axis, keepdims=_keepdims)
case(np.median, a(9, values="nans"))
case(np.quantile, a(9, values="nans"), [0.1, 0.9])
case(np.median, a(6, 0), axis=0)
case(np.median, a(3, 4, 2), axis=(0, 2))
case(np.median, a(3, 4, 2), axis=1)
case(np.median, a(9, dtype="c16"))
case(np.median, a(9, dtype="c16", values="nans"))
case(np.median, a(9, values="ones"), overwrite_input=True)
case(np.median, a(6, 5), axis=1, out=a(6))
case(np.median, a(6, 5), axis=1, out=a(5))
case(np.median, a(0, 3))
case(np.median, a(6, 5), axis=(0, 0))
case(np.median, a(6, 5), axis=0, keepdims=True, out=a(1, 5))
for _function in (np.nanmedian, np.nanquantile, np.nanpercentile, np.quantile, np.percentile):
    _q = () if _function is np.nanmedian else ([0.25, 0.5],)
    for _values in ("mixed", "nans"):
        for _axis in (None, 0, (0, 2), -1):
            case(_function, a(3, 4, 5, values=_values), *_q, axis=_axis)
            case(_function, a(3, 4, 5, values=_values), *_q, axis=_axis, keepdims=True)
    case(_function, of([[np.nan, np.nan], [1.0, np.nan]]), *_q, axis=1)
    case(_function, of([np.nan, np.nan]), *_q)
    case(_function, a(9, dtype="i2"), *_q)
    case(_function, a(9, dtype="f4", values="nans"), *_q)
    case(_function, a(9, dtype="M8[s]", values="special"), *(() if _function is np.nanmedian else (0.5,)),
         **({} if _function is np.nanmedian else {"method": "lower"}))  # fmt: skip
    case(_function, a(0, 3), *_q, axis=0)
    case(_function, a(6, 5), *_q, axis=2)
    if _function is not np.nanmedian:
        W = {"method": "inverted_cdf"}
        case(_function, a(9, values="nans"), 0.5, weights=a(9, dtype="i4", values="ones"), **W)
        case(_function, a(9), a(3, values="zeros"), weights=plain(9, dtype="i4", values="bits"), **W)
        case(_function, a(4, 6), [0.1, 0.9], weights=a(4, 6, dtype="i4", values="bits"), axis=0, **W)
        case(_function, a(4, 6), 0.5, weights=a(5, values="ones"), axis=1, **W)
        case(_function, a(4, 6), 0.5, weights=a(4, 6, values="ones"), axis=1)
        case(_function, a(4, 6), 0.5, weights=a(4, 6, values="zeros"), **W)
        case(_function, a(4, 6), 0.5, axis=0, out=a(6))
        case(_function, a(4, 6), 0.5, axis=0, out=a(6, dtype="f4"))
        case(_function, a(4, 6), -1)
for _function in (np.quantile, np.percentile):
    case(_function, a(4, 6), 0.5, weights=a(6, dtype="i4", values="bits"), axis=1, method="inverted_cdf")
case(np.percentile, a(9), 101)
case(np.percentile, a(9), 50, method="other")
case(np.quantile, a(9, dtype="c16"), 0.5)
case(np.quantile, a(9), 0.5, weights=plain(9, values="ones"), method="inverted_cdf")
case(np.histogram, a(23), 5)
case(np.histogram, a(23), [-1.0, 0.0, 0.25, 2.0], density=True, tolerance=SUMS)
case(np.histogram, a(23), 4, weights=a(23, values="ones"))
case(np.histogram, a(6, 5), 3, (0.0, 1.0))
case(np.histogram, a(23, dtype="i2"), 0)
case(np.histogram_bin_edges, a(23), 7)
case(np.histogram_bin_edges, a(23), "auto")
case(np.histogram, a(23), "fd")
case(np.histogram, a(23), "sturges", (0.0, 0.5))
case(np.histogram, a(23), "other")
case(np.histogram2d, a(23), a(23), 4)
case(np.histogram2d, a(23), a(23), [3, [-1.0, 0.0, 2.0]], density=True, tolerance=SUMS)
case(np.histogram2d, a(23), a(23), [-1.0, 0.0, 0.5, 2.0], weights=a(23), tolerance=SUMS)
case(np.histogram2d, a(23, dtype="i2"), a(23), 4, [[-5, 5], [0, 1]])
case(np.histogram2d, a(23), a(22))
case(np.histogram2d, a(23, values="nans"), a(23))
case(np.histogramdd, a(23, 2), (3, 4))
case(np.histogramdd, a(23, 3), 3, density=True, tolerance=SUMS)
case(np.histogramdd, a(23, 2, view="fortran"), [[-1.0, 0.0, 1.0], 2], [None, (0, 1)])
case(np.histogramdd, [a(23), a(23)], 3, weights=a(23, values="whole"))
case(np.histogramdd, a(23), 3)
case(np.histogramdd, a(23, 2, dtype="f"), plain(2, values="ones", dtype="i4"))
case(np.histogramdd, a(0, 2), 3)
case(np.histogramdd, a(23, 2), (3, 4, 5))
case(np.histogramdd, a(23, 2), (3, 0))
case(np.histogramdd, a(23, 2), (3, 2.5))
case(np.histogramdd, a(23, 2), [[1.0, 0.0], 3])
case(np.histogramdd, a(23, 2), 3, [(0, 1)])
case(np.histogramdd, a(23, 2), 3, weights=a(22))
case(np.bincount, a(23, dtype="i8", values="bits"))
case(np.bincount, of([1, 1, 2]), of([0.5, 0.25, 1.0]))
case(np.bincount, of([1, -1, 2]))
case(np.bincount, a(4, 2, dtype="i8", values="bits"))
case(np.bincount, a(23, dtype="u1", values="bits"), minlength=-1)
case(np.digitize, a(9), plain(4, values="sorted"))
case(np.digitize, a(6, 5), plain(4, values="sorted"), right=True)
