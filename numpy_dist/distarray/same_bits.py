"""Functions of NumPy whose results have the same bits whether NumPy computes them or the engine.

On arrays at hand (`distarray.at_hand`) they are NumPy's at once: nobody can tell from a result what was pending when it
was computed. Sums and products of floating-point numbers are grouped by the engine's own tree (ADR 11); what is made
of them is not here. `tests/distarray/test_same_bits.py` compares both ways for all cases of the conformance suite.
"""

from __future__ import annotations

import numpy as np

from numpy_dist.argument_types import Function

VIEWS: tuple[Function, ...] = (
    np.array_split, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.dsplit, np.expand_dims, np.flip,
    np.fliplr, np.flipud, np.hsplit, np.matrix_transpose, np.moveaxis, np.ravel, np.reshape, np.rollaxis, np.rot90,
    np.split, np.squeeze, np.swapaxes, np.transpose, np.vsplit,
)  # fmt: skip
"""Functions whose results are views, where they can be."""

NEW: tuple[Function, ...] = (
    np.allclose, np.angle, np.append, np.argmax, np.argmin, np.argpartition, np.argsort, np.argwhere, np.around,
    np.array_equal, np.array_equiv, np.astype, np.bincount, np.block, np.choose, np.clip, np.column_stack,
    np.compress, np.concatenate, np.convolve, np.copy, np.correlate, np.count_nonzero, np.cross, np.cumprod,
    np.cumsum, np.cumulative_prod, np.cumulative_sum, np.delete, np.diag, np.diagflat, np.diff, np.digitize,
    np.dstack, np.ediff1d, np.empty_like, np.extract, np.fft.fft, np.fft.fftshift, np.fft.ifft, np.fft.ifftshift,
    np.fft.irfft, np.fft.rfft, np.fix, np.flatnonzero, np.full_like, np.gradient, np.histogram, np.hstack,
    np.insert, np.interp, np.intersect1d, np.isclose, np.isin, np.isneginf, np.isposinf, np.kron, np.lexsort,
    np.linalg.cholesky, np.linalg.det, np.linalg.eig, np.linalg.eigh, np.linalg.eigvals, np.linalg.eigvalsh,
    np.linalg.inv, np.linalg.matrix_rank, np.linalg.outer, np.linalg.pinv, np.linalg.qr, np.linalg.slogdet,
    np.linalg.solve, np.median, np.nan_to_num, np.nanargmax, np.nanargmin, np.nancumprod, np.nancumsum, np.nanmax,
    np.nanmedian, np.nanmin, np.nanpercentile, np.nanquantile, np.nonzero, np.ones_like, np.outer, np.packbits,
    np.partition, np.percentile, np.poly, np.polyadd, np.polyder, np.polyint, np.polymul, np.polysub, np.polyval,
    np.prod, np.ptp, np.quantile, np.repeat, np.resize, np.roll, np.roots, np.round, np.searchsorted, np.select,
    np.setdiff1d, np.setxor1d, np.sinc, np.sort, np.stack, np.take, np.take_along_axis, np.tensordot, np.tile,
    np.trace, np.tril, np.triu, np.union1d, np.unique, np.unwrap, np.vander, np.vstack, np.where, np.zeros_like,
)  # fmt: skip
"""Functions whose results are new arrays, numbers, or tuples of them."""

SHORT: tuple[Function, ...] = (
    np.average, np.corrcoef, np.cov, np.nanmean, np.nanprod, np.nanstd, np.nansum, np.nanvar, np.std, np.trapezoid,
    np.var,
)  # fmt: skip
"""Functions that add or multiply elements: NumPy's for vectors of one chunk of the summation tree."""

TOLD: tuple[Function, ...] = (np.iscomplexobj, np.isrealobj, np.ndim, np.shape, np.size)
"""Functions that tell of an array what its elements have no part in."""

EVENTS: dict[Function, str] = {
    **dict.fromkeys((np.argmax, np.argmin, np.argsort, np.array_equal, np.column_stack, np.concatenate), "cast"),
    **dict.fromkeys((np.copy, np.count_nonzero, np.dstack, np.empty_like, np.flatnonzero, np.full_like), "cast"),
    **dict.fromkeys((np.hstack, np.nonzero, np.ones_like, np.roll, np.searchsorted, np.sort, np.stack), "cast"),
    **dict.fromkeys((np.take, np.tril, np.triu, np.vstack, np.where, np.zeros_like), "cast"),
    np.diff: "subtract",
    np.outer: "multiply",
}
"""Of those with one operation at the most: its name, by which NumPy tells floating-point events."""
