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
case(np.histogram, a(23), 5)
case(np.histogram, a(23), [-1.0, 0.0, 0.25, 2.0], density=True, tolerance=SUMS)
case(np.histogram, a(23), 4, weights=a(23, values="ones"))
case(np.histogram, a(6, 5), 3, (0.0, 1.0))
case(np.histogram, a(23, dtype="i2"), 0)
case(np.histogram_bin_edges, a(23), 7)
case(np.histogram_bin_edges, a(23), "auto", declines="percentiles")
case(np.histogram2d, a(23), a(23), 4)
case(np.histogramdd, a(23, 2), (3, 4))
case(np.bincount, a(23, dtype="i8", values="bits"))
case(np.bincount, of([1, 1, 2]), of([0.5, 0.25, 1.0]))
case(np.bincount, of([1, -1, 2]))
case(np.bincount, a(4, 2, dtype="i8", values="bits"))
case(np.bincount, a(23, dtype="u1", values="bits"), minlength=-1)
case(np.digitize, a(9), plain(4, values="sorted"))
case(np.digitize, a(6, 5), plain(4, values="sorted"), right=True)
