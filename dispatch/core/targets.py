"""What NumPy's functions do to their arguments: which ones write into them, and which return views of them.

Writing is restored after a fallback. A view of a gathered copy would be wrong in silence, so functions that return
views are never gathered: each needs a structural rule.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np

from numpy_dist.argument_types import Arguments, Keywords
from numpy_dist.dispatch.core import signatures

# Functions that write into their first argument, with its name.
IN_PLACE: dict[Callable[..., object], str] = {
    np.copyto: "dst",
    np.put: "a",
    np.place: "arr",
    np.putmask: "a",
    np.fill_diagonal: "a",
    np.put_along_axis: "arr",
    np.ndarray.sort: "self",
    np.ndarray.partition: "self",
    np.ndarray.put: "self",
    np.ndarray.fill: "self",
    np.ndarray.__setitem__: "self",
}


def _without_copy(args: Arguments, kwargs: Keywords) -> bool:
    """Whether nan_to_num was asked to write into its argument."""
    return not (args[1] if len(args) > 1 else kwargs.get("copy", True))


def _byteswap_in_place(args: Arguments, kwargs: Keywords) -> bool:
    return bool(args[1] if len(args) > 1 else kwargs.get("inplace", False))


# Functions that write into their first argument only for some values of the others.
SOMETIMES_IN_PLACE: dict[Callable[..., object], tuple[str, Callable[[Arguments, Keywords], bool]]] = {
    np.nan_to_num: ("x", _without_copy),
    np.ndarray.byteswap: ("self", _byteswap_in_place),
}

# Functions that return views of their arguments (or the arguments themselves), always or where they can. Most are
# NumPy's "array manipulation routines"; the last ones tell whether arrays are views of one another.
VIEW_FUNCTIONS: frozenset[Callable[..., object]] = frozenset(
    {
        np.array_split,
        np.atleast_1d,
        np.atleast_2d,
        np.atleast_3d,
        np.broadcast_arrays,
        np.broadcast_to,
        np.diag,
        np.diagonal,
        np.dsplit,
        np.expand_dims,
        np.flip,
        np.fliplr,
        np.flipud,
        np.hsplit,
        np.imag,
        np.ix_,
        np.linalg.diagonal,
        np.linalg.matrix_transpose,
        np.matrix_transpose,
        np.meshgrid,
        np.moveaxis,
        np.ravel,
        np.real,
        np.real_if_close,
        np.reshape,
        np.rollaxis,
        np.rot90,
        np.split,
        np.squeeze,
        np.swapaxes,
        np.transpose,
        np.trim_zeros,
        np.unstack,
        np.vsplit,
        np.lib.stride_tricks.sliding_window_view,
        np.may_share_memory,
        np.shares_memory,
    }
)


# Functions that write files: one rank runs them, also where every rank could.
FILE_WRITERS: frozenset[Callable[..., object]] = frozenset(
    {np.save, np.savez, np.savez_compressed, np.savetxt, np.ndarray.dump, np.ndarray.tofile}
)


def writes_in_memory(function: Callable[..., object], args: Arguments, kwargs: Keywords) -> bool:
    """Whether the file that a call writes is in memory, so that every rank has its own."""
    if function not in FILE_WRITERS:
        return False
    return any(isinstance(x, io.BytesIO | io.StringIO) for x in (*args[:2], *kwargs.values()))


def is_view_function(function: object) -> bool:
    """Whether `function` returns views, so that it must not run on gathered copies."""
    try:
        return function in VIEW_FUNCTIONS
    except TypeError:  # not hashable, hence none of NumPy's
        return False


def outputs(function: Callable[..., object], args: Arguments, kwargs: Keywords) -> list[object]:
    """What a call was given as `out`: the arrays in it."""
    out = kwargs.get("out")
    if out is None:
        position = signatures.out_position(function)
        out = args[position] if position is not None and len(args) > position else None
    return [item for item in (out if isinstance(out, tuple) else (out,)) if item is not None]


def writes(function: Callable[..., object], args: Arguments, kwargs: Keywords) -> list[object]:
    """The arguments that a call writes into: `out`, and the targets of in-place functions, each once."""
    found = outputs(function, args, kwargs)
    owner = getattr(function, "__self__", None)
    if isinstance(function, np.ufunc) and not function.nout:  # which of its operands it writes into it does not tell
        found += [x for x in args[: function.nin] if hasattr(x, "flags") and x.flags.writeable]
    elif owner is not None and function.__name__ == "at" and hasattr(owner, "nin"):
        found.append(args[0])
    else:
        name = IN_PLACE.get(function)
        if name is None and function in SOMETIMES_IN_PLACE:
            sometimes, applies = SOMETIMES_IN_PLACE[function]
            name = sometimes if applies(args, kwargs) else None
        if name is not None:
            found.append(args[0] if args else kwargs.get(name))
        elif function is np.apply_along_axis:  # its function gets views of the array
            arr: object = args[2] if len(args) > 2 else kwargs.get("arr")
            found += [arr] if hasattr(arr, "flags") and arr.flags.writeable else []
        elif getattr(function, "__name__", None) == "recursive_fill_fields":  # of a module that is imported late
            found.append(args[1] if len(args) > 1 else kwargs.get("output"))
    return list({id(item): item for item in found if item is not None}.values())
