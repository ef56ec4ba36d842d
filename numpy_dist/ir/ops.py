"""Operations: every element-wise operation that a program can hold, and how one tile of it is computed by NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Tile = Any  # an ndarray or a scalar


class Op:
    """An element-wise operation.

    Parameters
    ----------
    name : str
        NumPy's name of it, as in its warnings.
    nin, nout : int
        Number of inputs and outputs.
    apply : callable
        ``apply(inputs, outputs, where, options)`` computes one tile with NumPy.
    ufunc : numpy.ufunc, optional
        The ufunc that it is, if it is one.
    direct : bool
        Whether calling `ufunc` with ``out=`` is as good as `apply`.
    """

    __slots__ = ("apply", "direct", "name", "nin", "nout", "ufunc")

    def __init__(
        self,
        name: str,
        nin: int,
        nout: int,
        apply: Callable[..., None],
        ufunc: np.ufunc | None = None,
        direct: bool = False,
    ) -> None:
        self.name, self.nin, self.nout, self.apply, self.ufunc, self.direct = name, nin, nout, apply, ufunc, direct

    def __repr__(self) -> str:
        return f"Op({self.name})"


def _apply_ufunc(ufunc: np.ufunc) -> Callable[..., None]:
    def apply(inputs: list[Tile], outputs: tuple[np.ndarray, ...], where: np.ndarray | None, options: dict) -> None:
        if where is None:
            ufunc(*inputs, out=outputs, **options)
        else:
            ufunc(*inputs, out=outputs, where=where, **options)

    return apply


# NumPy 2.1 crashes where it compares strided integers with a Python int that their dtype cannot hold.
_COMPARISONS: dict[np.ufunc, Callable[[int, int], bool]] = {
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
}


def _apply_comparison(ufunc: np.ufunc) -> Callable[..., None]:
    numpys = _apply_ufunc(ufunc)

    def apply(inputs: list[Tile], outputs: tuple[np.ndarray, ...], where: np.ndarray | None, options: dict) -> None:
        a, b = inputs
        if _outside(a, b) or _outside(b, a):
            # As for zero, which every dtype of integers holds.
            result = _COMPARISONS[ufunc](*(x if type(x) is int else 0 for x in inputs))
            np.copyto(outputs[0], result, where=True if where is None else where)
        else:
            numpys(inputs, outputs, where, options)

    return apply


def _outside(value: Tile, other: Tile) -> bool:
    if type(value) is not int or type(other) is int or other.dtype.kind not in "iu":
        return False
    limits = np.iinfo(other.dtype)
    return not limits.min <= value <= limits.max


def _apply_select(inputs: list[Tile], outputs: tuple[np.ndarray, ...], where: np.ndarray | None, options: dict) -> None:
    condition, chosen, other = inputs
    out = outputs[0]
    if condition.dtype != np.bool_ or np.may_share_memory(out, condition):  # a donated mask is written to
        condition = condition.astype(bool)
    if np.may_share_memory(out, chosen):
        np.copyto(out, chosen, casting="unsafe")
        np.copyto(out, other, where=~condition, casting="unsafe")
    else:
        np.copyto(out, other, casting="unsafe")
        np.copyto(out, chosen, where=condition, casting="unsafe")


def _is_contiguous_cast(source: Tile, out: np.ndarray) -> bool:
    """Whether NumPy casts between contiguous elements, along the axis in which the output's lie closest.

    What its loops make of numbers that an unsigned integer does not hold depends on this.
    """
    if not out.ndim or source.shape != out.shape:
        return False
    axis = min(range(out.ndim), key=lambda i: (out.shape[i] == 1, abs(out.strides[i])))
    return source.strides[axis] == (source.itemsize if out.strides[axis] > 0 else -source.itemsize)


def _apply_copy(inputs: list[Tile], outputs: tuple[np.ndarray, ...], where: np.ndarray | None, options: dict) -> None:
    source, out = inputs[0], outputs[0]
    if source.dtype.kind == "c" and out.dtype.kind in "iuf":
        # That this discards something was said when it was recorded.
        alike = out.dtype.kind == "u" and _is_contiguous_cast(source, out)
        source = source.real.copy(order="K") if alike else source.real
    np.copyto(out, source, casting="unsafe", where=True if where is None else where)


COPY = Op("cast", 1, 1, _apply_copy)
SELECT = Op("where", 3, 1, _apply_select)

UFUNC_OPS: dict[np.ufunc, Op] = {}


def _apply_without_out(ufunc: np.ufunc) -> Callable[..., None]:
    def apply(inputs: list[Tile], outputs: tuple[np.ndarray, ...], where: np.ndarray | None, options: dict) -> None:
        np.copyto(outputs[0], ufunc(*inputs, **options), where=True if where is None else where, casting="unsafe")

    return apply


def _apply_zfill(ufunc: np.ufunc) -> Callable[..., None]:
    """NumPy looks for a sign where the text would begin that it has padded: also behind the memory of the result, for
    empty text in all of its width, and before the element, for text that is longer than the width; there it writes.
    """

    def apply(inputs: list[Tile], outputs: tuple[np.ndarray, ...], where: np.ndarray | None, options: dict) -> None:
        text, width = np.asarray(inputs[0]), inputs[1]
        out = outputs[0]
        found = np.zeros(out.size + 1, out.dtype)[:-1].reshape(out.shape)
        longer = np.strings.str_len(text) > width
        ufunc(text, width, out=found, where=~longer, **options)
        np.copyto(found, text, where=longer, casting="unsafe")
        np.copyto(out, found, where=True if where is None else where)

    return apply


_APPLY: dict[str, Callable[[np.ufunc], Callable[..., None]]] = {
    "_slice": _apply_without_out,  # the one ufunc of NumPy's whose loops refuse `out`
    "_zfill": _apply_zfill,
}


def op_of(ufunc: np.ufunc) -> Op:
    """The op of a ufunc (made at first sight)."""
    op = UFUNC_OPS.get(ufunc)
    if op is None:
        apply = _APPLY.get(ufunc.__name__, _apply_ufunc)
        if ufunc in _COMPARISONS and np.__version__.startswith("2.1."):
            apply = _apply_comparison
        direct = ufunc.__name__ not in _APPLY
        op = UFUNC_OPS[ufunc] = Op(ufunc.__name__, ufunc.nin, ufunc.nout, apply(ufunc), ufunc, direct)
    return op


# Their NumPy inner loops give other bits (or take another path) for negative strides: the interpreter hands them
# ascending contiguous tiles, as every other tier must.
STRIDE_SENSITIVE = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh "
    "arctanh cbrt power float_power sqrt hypot".split()
)

COMPLEX_EXACT = frozenset(
    "add subtract negative positive conjugate equal not_equal less less_equal greater greater_equal maximum minimum "
    "fmax fmin logical_and logical_or logical_xor logical_not isnan isinf isfinite".split()
)
"""Those whose results for complex numbers are the same whatever the strides: a part is rounded once, or not at all."""


def wants_ascending(op: Op, dtype: np.dtype) -> bool:
    """Whether tiles of this op must be ascending for its results not to depend on the stride."""
    return op.name in STRIDE_SENSITIVE or (dtype.kind == "c" and op.ufunc is not None)
