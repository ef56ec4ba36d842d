"""Under which topic NumPy's manual has a function ("Routines and objects by topic")."""

from __future__ import annotations

import numpy as np

from numpy_dist.dispatch.core.keys import name_of

# By the module, for all that stand there.
_BY_MODULE = {
    "numpy.char": "String functionality",
    "numpy.fft": "Discrete Fourier Transform",
    "numpy.lib.recfunctions": "Structured arrays",
    "numpy.lib.scimath": "Mathematical functions with automatic domain",
    "numpy.lib.stride_tricks": "Indexing routines",
    "numpy.linalg": "Linear algebra",
    "numpy.polynomial": "Polynomials",
    "numpy.strings": "String functionality",
}
# Of the others each name once, under the first of its topics that one would look in.
_BY_NAME = {
    "Array creation routines": """
        arange array asanyarray asarray ascontiguousarray astype copy diag diagflat empty empty_like eye frombuffer
        fromfunction fromiter fromstring full full_like geomspace identity linspace logspace meshgrid ones ones_like
        tri tril triu vander zeros zeros_like""",
    "Array manipulation routines": """
        append array_split asfortranarray atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to
        column_stack concatenate copyto delete dsplit dstack expand_dims flip fliplr flipud hsplit hstack insert
        matrix_transpose moveaxis ndim pad ravel repeat require reshape resize roll rollaxis rot90 shape size split
        squeeze stack swapaxes tile transpose trim_zeros unstack vsplit vstack""",
    "Bit-wise operations": "packbits unpackbits",
    "Data type routines": "can_cast common_type min_scalar_type result_type",
    "Datetime support functions": "busday_count busday_offset datetime_as_string is_busday",
    "Functional programming": "apply_along_axis apply_over_axes piecewise",
    "Indexing routines": """
        choose compress diag_indices_from diagonal fill_diagonal ix_ nonzero place put put_along_axis putmask
        ravel_multi_index select take take_along_axis tril_indices_from triu_indices_from unravel_index where""",
    "Input and output": """
        array2string array_repr array_str fromfile genfromtxt loadtxt save savetxt savez savez_compressed""",
    "Linear algebra": "dot einsum einsum_path inner kron outer tensordot trace vdot",
    "Logic functions": """
        all allclose any array_equal array_equiv isclose iscomplex iscomplexobj isneginf isposinf isreal isrealobj""",
    "Mathematical functions": """
        amax amin angle around clip convolve cross cumprod cumsum cumulative_prod cumulative_sum diff ediff1d fix
        gradient i0 imag interp max min nan_to_num nancumprod nancumsum nanmax nanmin nanprod nansum prod real
        real_if_close round sinc sum trapezoid unwrap""",
    "Miscellaneous routines": "may_share_memory shares_memory",
    "Polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "Set routines": """
        in1d intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse
        unique_values""",
    "Sorting, searching, and counting": """
        argmax argmin argpartition argsort argwhere count_nonzero extract flatnonzero lexsort nanargmax nanargmin
        partition searchsorted sort sort_complex""",
    "Statistics": """
        average bincount corrcoef correlate cov digitize histogram histogram2d histogram_bin_edges histogramdd mean
        median nanmean nanmedian nanpercentile nanquantile nanstd nanvar percentile ptp quantile std var""",
}
# Ufuncs that the manual has under another topic, too.
_UFUNCS = {"Linear algebra": "matmul matvec vecdot vecmat"}
_TITLES = {f"numpy.{name}": title for title, names in _BY_NAME.items() for name in names.split()}


def title_of(function: object) -> str | None:
    """The topic of a function, ufunc, or method of an array; None for what the manual does not have."""
    if isinstance(function, np.ufunc):
        return "Universal functions"
    name = name_of(function)
    if name.startswith("numpy.ndarray."):
        return "The array object"
    modules = (title for module, title in _BY_MODULE.items() if name.startswith(f"{module}."))
    return _TITLES.get(name) or next(modules, None)


def titles_of(function: object) -> set[str]:
    """All topics under which one may look for a function, ufunc (the class stands for all of them) or method."""
    if function is np.ufunc:
        return {"Universal functions"}
    title, found = title_of(function), set()
    if isinstance(function, np.ufunc):
        found = {other for other, names in _UFUNCS.items() if function.__name__ in names.split()}
    return found if title is None else found | {title}
