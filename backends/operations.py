"""The table of operations: how each is written for processors and for devices, side by side.

A row has, for kinds of inputs, an expression in the Python that Numba compiles, and one in CUDA C++ (whose functions
`cuda.header` has). What is not written for processors is computed there by NumPy's own inner loop, on scratch memory of
the kernel; what is not written for devices, or stands in no row, has no kernel there.

Rows are those of NumPy's own ufuncs: another's ufunc of the same name is another operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from numpy_dist.ir.ops import SELECT, Op

__all__ = ["TABLE", "Row", "Unsupported", "Written", "row_of"]


class Unsupported(Exception):
    """A loop has no kernel; the message is the reason."""


class Written(NamedTuple):
    """The expressions of an operation for some kinds of inputs.

    They name the arguments ``{0}``, ``{1}``, …, perhaps more than once, and ``{t}`` the type of the first.

    Attributes
    ----------
    numba : str or None
        With NumPy's bits and floating-point events: the exact operations of IEEE arithmetic and of integers modulo
        2**n. Not the ordered comparisons, minima and maxima of floats (a NaN raises the "invalid" flag there, which
        NumPy clears), not division of integers, shifts, or complex arithmetic. `zero` and `nought` are words
        that are 0, which the optimiser does not know.
    cuda : tuple of str, or None
        One for each output. Halves are computed as singles, and rounded afterwards.
    """

    numba: str | None = None
    cuda: tuple[str, ...] | None = None


_NOT_WRITTEN = Written()


class Row:
    """What kernels know of an operation.

    Parameters
    ----------
    written : mapping
        By kinds of inputs: Numba's expression, or None, and CUDA's, or one for each output. Kinds are NumPy's letters
        (``"iu"``) where all inputs are of one type, or types (``"f4 f8"``, ``"f4,i4"`` for unlike inputs), which are
        looked for first; ``"*"`` are all others.
    folds : bool
        Whether kernels reduce by it.
    inexact : bool
        Whether devices compute it with other last digits than NumPy.
    harmless : int
        A value of the inputs for which NumPy's loop meets no floating-point event.
    uncalled : mapping
        By letters of kinds why no kernel may call NumPy's loop.
    not_masked : str
        Why no kernel on processors computes it for floats where a mask is true; empty if they do.
    """

    def __init__(
        self,
        written: Mapping[str, tuple[str | None, str | tuple[str, ...] | None]],
        *,
        folds: bool = False,
        inexact: bool = False,
        harmless: int = 1,
        uncalled: Mapping[str, str] | None = None,
        not_masked: str = "",
    ) -> None:
        self.folds, self.inexact, self.harmless, self.not_masked = folds, inexact, harmless, not_masked
        self._uncalled = {letter: reason for letters, reason in (uncalled or {}).items() for letter in letters}
        self._found: dict[tuple[str, ...], Written] = {}  # by types, those that were asked for
        self._written: dict[str, Written] = {}
        for kinds, (numba, cuda) in written.items():
            found = Written(numba, (cuda,) if isinstance(cuda, str) else cuda)
            for each in kinds if kinds.isalpha() else kinds.split():
                self._written[each] = found

    def written(self, kinds: tuple[str, ...]) -> Written:
        """How it is written for inputs of these types, which have NumPy's names: kind and bytes."""
        found = self._found.get(kinds)
        if found is None:
            first, table = kinds[0], self._written
            keys = (first, first[0], "*") if all(kind == first for kind in kinds) else (",".join(kinds), "*")
            found = self._found[kinds] = next((table[key] for key in keys if key in table), _NOT_WRITTEN)
        return found

    def why_not_called(self, kind: str) -> str | None:
        """Why kernels may not call NumPy's loop for inputs of a type; None if they may."""
        return self._uncalled.get(kind[0])


# fmt: off
def _library(name: str, arguments: str = "{0}", harmless: int = 1) -> Row:
    """A function of CUDA's library, some ulp from NumPy's."""
    return Row({"f": (None, f"{name}({arguments})")}, inexact=True, harmless=harmless)


_PI = "3.141592653589793238462643383279502884"
_DEGREES = Row({"f": (None, f"({{0}} * (({{t}})180 / ({{t}}){_PI}))")})
_RADIANS = Row({"f": (None, f"({{0}} * (({{t}}){_PI} / ({{t}})180))")})
_SIGNED_ZEROS = "minima and maxima of floats with where="  # which of 0 and -0 it is depends on the mask
_NOTHING = Row({})

TABLE: dict[np.ufunc | Op, Row] = {
    # arithmetic
    np.add: Row({
        "b": ("({0} | {1})", "({0} || {1})"),
        "iu": ("{t}({0} + {1})", "(({t})((nd_u8){0} + (nd_u8){1}))"),
        "f": ("({0} + {1})", "({0} + {1})"),
        "c": (None, "nd_cadd({0}, {1})"),
    }, folds=True),
    np.subtract: Row({
        "iu": ("{t}({0} - {1})", "(({t})((nd_u8){0} - (nd_u8){1}))"),
        "f": ("({0} - {1})", "({0} - {1})"),
        "c": (None, "nd_csubtract({0}, {1})"),
    }),
    np.multiply: Row({
        "b": ("({0} & {1})", "({0} && {1})"),
        "iu": ("{t}({0} * {1})", "(({t})((nd_u8){0} * (nd_u8){1}))"),
        "f": ("({0} * {1})", "({0} * {1})"),
        "c": (None, "nd_cmultiply({0}, {1})"),
    }, folds=True),
    np.divide: Row({
        "f": ("({0} / {1})", "({0} / {1})"),
        "c": (None, "nd_cdivide({0}, {1})"),
    }),
    np.floor_divide: Row({  # halves NumPy computes in a way of its own, here and in what follows
        "iu": (None, "nd_floor_divide({0}, {1})"),
        "f4 f8": (None, "nd_floor_divide_real({0}, {1})"),
    }),
    np.remainder: Row({
        "iu": (None, "nd_remainder({0}, {1})"),
        "f4 f8": (None, "nd_remainder_real({0}, {1})"),
    }),
    np.divmod: Row({
        "iu": (None, ("nd_floor_divide({0}, {1})", "nd_remainder({0}, {1})")),
        "f4 f8": (None, ("nd_floor_divide_real({0}, {1})", "nd_remainder_real({0}, {1})")),
    }),
    np.fmod: Row({
        "iu": (None, "nd_fmod({0}, {1})"),
        "f": (None, "fmod({0}, {1})"),
    }),
    np.power: Row({
        "u": (None, "nd_power({0}, {1})"),
        "f": (None, "pow({0}, {1})"),
    }, inexact=True, uncalled={"iu": "integer powers, which may raise an exception"}),
    np.float_power: _library("pow", "{0}, {1}"),
    np.negative: Row({
        "iu": ("{t}({t}(0) - {0})", "nd_negative({0})"),
        "f": (None, "(-{0})"),
        "c": (None, "nd_cnegative({0})"),
    }),
    np.positive: Row({
        "bc": (None, "{0}"),
        "iuf": ("{0}", "{0}"),
    }),
    np.absolute: Row({
        "b": (None, "{0}"),
        "i": ("({0} if {0} >= 0 else {t}({t}(0) - {0}))", "nd_absolute({0})"),
        "u": ("{0}", "nd_absolute({0})"),
        "f": ("abs({0})", "fabs({0})"),
        "c": (None, "nd_cabs({0})"),
    }),
    np.fabs: Row({"f": ("abs({0})", "fabs({0})")}),
    np.sign: Row({
        "iu": (None, "nd_sign({0})"),
        "f": (None, "nd_sign_real({0})"),
    }),
    np.square: Row({
        "iu": ("{t}({0} * {0})", "(({t})((nd_u8){0} * (nd_u8){0}))"),
        "f": ("({0} * {0})", "({0} * {0})"),
        "c": (None, "nd_cmultiply({0}, {0})"),
    }),
    np.reciprocal: Row({
        "f": ("({t}(1) / {0})", "(({t})1 / {0})"),
        "c": (None, "nd_creciprocal({0})"),
    }),
    np.sqrt: Row({"f": ("opaque(sqrt({0}), zero)", "sqrt({0})")}),
    np.conjugate: Row({
        "biuf": (None, "{0}"),
        "c": (None, "nd_cconjugate({0})"),
    }),
    np.gcd: Row({"iu": (None, "nd_gcd({0}, {1})")}),
    np.lcm: Row({"iu": (None, "nd_lcm({0}, {1})")}),

    # comparisons, minima and maxima
    np.equal: Row({
        "b": ("(not ({0} ^ {1}))", "((int){0} == (int){1})"),
        "iuf": ("({0} == {1})", "({0} == {1})"),
        "c": (None, "nd_cequal({0}, {1})"),
        "i8,u8 u8,i8": (None, "nd_equal({0}, {1})"),
    }),
    np.not_equal: Row({
        "b": ("({0} ^ {1})", "((int){0} != (int){1})"),
        "iuf": ("({0} != {1})", "({0} != {1})"),
        "c": (None, "(!nd_cequal({0}, {1}))"),
        "i8,u8 u8,i8": (None, "(!nd_equal({0}, {1}))"),
    }),
    np.less: Row({
        "b": (None, "((int){0} < (int){1})"),
        "iu": ("({0} < {1})", "({0} < {1})"),
        "f": (None, "({0} < {1})"),
        "c": (None, "nd_cless({0}, {1})"),
        "i8,u8 u8,i8": (None, "nd_less({0}, {1})"),
    }),
    np.less_equal: Row({
        "b": (None, "((int){0} <= (int){1})"),
        "iu": ("({0} <= {1})", "({0} <= {1})"),
        "f": (None, "({0} <= {1})"),
        "c": (None, "nd_cless_equal({0}, {1})"),
        "i8,u8 u8,i8": (None, "(!nd_less({1}, {0}))"),
    }),
    np.greater: Row({
        "b": (None, "((int){0} > (int){1})"),
        "iu": ("({0} > {1})", "({0} > {1})"),
        "f": (None, "({0} > {1})"),
        "c": (None, "nd_cless({1}, {0})"),
        "i8,u8 u8,i8": (None, "nd_less({1}, {0})"),
    }),
    np.greater_equal: Row({
        "b": (None, "((int){0} >= (int){1})"),
        "iu": ("({0} >= {1})", "({0} >= {1})"),
        "f": (None, "({0} >= {1})"),
        "c": (None, "nd_cless_equal({1}, {0})"),
        "i8,u8 u8,i8": (None, "(!nd_less({0}, {1}))"),
    }),
    np.maximum: Row({
        "b": ("({0} | {1})", "({0} || {1})"),
        "iu": ("({0} if {0} > {1} else {1})", "nd_max_int({0}, {1})"),
        "f": (None, "nd_maximum({0}, {1})"),
        "c": (None, "nd_cmaximum({0}, {1})"),
    }, folds=True, not_masked=_SIGNED_ZEROS),
    np.minimum: Row({
        "b": ("({0} & {1})", "({0} && {1})"),
        "iu": ("({0} if {0} < {1} else {1})", "nd_min_int({0}, {1})"),
        "f": (None, "nd_minimum({0}, {1})"),
        "c": (None, "nd_cminimum({0}, {1})"),
    }, folds=True, not_masked=_SIGNED_ZEROS),
    np.fmax: Row({
        "b": (None, "({0} || {1})"),
        "iu": (None, "nd_max_int({0}, {1})"),
        "f": (None, "nd_fmax({0}, {1})"),
        "c": (None, "nd_cfmax({0}, {1})"),
    }, folds=True, not_masked=_SIGNED_ZEROS),
    np.fmin: Row({
        "b": (None, "({0} && {1})"),
        "iu": (None, "nd_min_int({0}, {1})"),
        "f": (None, "nd_fmin({0}, {1})"),
        "c": (None, "nd_cfmin({0}, {1})"),
    }, folds=True, not_masked=_SIGNED_ZEROS),

    # logic and bits
    np.logical_and: Row({
        "b": ("({0} & {1})", "({0} && {1})"),
        "iuf": ("(({0} != 0) & ({1} != 0))", "(({0} != 0) && ({1} != 0))"),
        "c": (None, "(nd_ctrue({0}) && nd_ctrue({1}))"),
    }, folds=True),
    np.logical_or: Row({
        "b": ("({0} | {1})", "({0} || {1})"),
        "iuf": ("(({0} != 0) | ({1} != 0))", "(({0} != 0) || ({1} != 0))"),
        "c": (None, "(nd_ctrue({0}) || nd_ctrue({1}))"),
    }, folds=True),
    np.logical_xor: Row({
        "b": ("({0} ^ {1})", "({0} != {1})"),
        "iuf": ("(({0} != 0) ^ ({1} != 0))", "(({0} != 0) != ({1} != 0))"),
        "c": (None, "(nd_ctrue({0}) != nd_ctrue({1}))"),
    }, folds=True),
    np.logical_not: Row({
        "b": ("(not {0})", "(!{0})"),
        "iuf": ("({0} == 0)", "({0} == 0)"),
        "c": (None, "(!nd_ctrue({0}))"),
    }),
    np.bitwise_and: Row({
        "b": ("({0} & {1})", "({0} && {1})"),
        "iu": ("{t}({0} & {1})", "(({t})({0} & {1}))"),
    }, folds=True),
    np.bitwise_or: Row({
        "b": ("({0} | {1})", "({0} || {1})"),
        "iu": ("{t}({0} | {1})", "(({t})({0} | {1}))"),
    }, folds=True),
    np.bitwise_xor: Row({
        "b": ("({0} ^ {1})", "({0} != {1})"),
        "iu": ("{t}({0} ^ {1})", "(({t})({0} ^ {1}))"),
    }, folds=True),
    np.invert: Row({
        "b": ("(not {0})", "(!{0})"),
        "iu": ("{t}(~{0})", "(({t})~{0})"),
    }),
    np.left_shift: Row({"iu": (None, "nd_left_shift({0}, {1})")}),
    np.right_shift: Row({"iu": (None, "nd_right_shift({0}, {1})")}),
    np.bitwise_count: Row({"iu": (None, "nd_bitwise_count({0})")}),

    # parts of numbers
    np.isnan: Row({
        "biu": (None, "false"),
        "f": ("({0} != {0})", "nd_isnan({0})"),
        "c": (None, "nd_cisnan({0})"),
    }),
    np.isinf: Row({
        "biu": (None, "false"),
        "f": ("(abs({0}) == {t}(1e400))", "nd_isinf({0})"),
        "c": (None, "nd_cisinf({0})"),
    }),
    np.isfinite: Row({
        "biu": (None, "true"),
        "f": ("(({0} == {0}) & (abs({0}) != {t}(1e400)))", "nd_isfinite({0})"),
        "c": (None, "nd_cisfinite({0})"),
    }),
    np.signbit: Row({"f": (None, "nd_signbit({0})")}),
    np.copysign: Row({"f": (None, "copysign({0}, {1})")}),
    np.nextafter: Row({"f4 f8": (None, "nextafter({0}, {1})")}),
    np.heaviside: Row({"f": (None, "nd_heaviside({0}, {1})")}),
    np.ldexp: Row({"f2,i4 f4,i4 f8,i4": (None, "ldexp({0}, (int){1})")}),
    np.modf: Row({"f": (None, ("nd_fraction({0})", "trunc({0})"))}),
    np.floor: Row({"biu": (None, "{0}"), "f": (None, "floor({0})")}),
    np.ceil: Row({"biu": (None, "{0}"), "f": (None, "ceil({0})")}),
    np.trunc: Row({"biu": (None, "{0}"), "f": (None, "trunc({0})")}),
    np.rint: Row({"f": (None, "rint({0})")}),

    # transcendental functions
    np.exp: _library("exp"),
    np.exp2: _library("exp2"),
    np.expm1: _library("expm1"),
    np.log: _library("log"),
    np.log2: _library("log2"),
    np.log10: _library("log10"),
    np.log1p: _library("log1p"),
    np.logaddexp: _library("nd_logaddexp", "{0}, {1}"),
    np.logaddexp2: _library("nd_logaddexp2", "{0}, {1}"),
    np.cbrt: _library("cbrt"),
    np.hypot: _library("hypot", "{0}, {1}"),
    np.sin: _library("sin"),
    np.cos: _library("cos"),
    np.tan: _library("tan"),
    np.arcsin: _library("asin"),
    np.arccos: _library("acos"),
    np.arctan: _library("atan"),
    np.arctan2: _library("atan2", "{0}, {1}"),
    np.sinh: _library("sinh"),
    np.cosh: _library("cosh"),
    np.tanh: _library("tanh"),
    np.arcsinh: _library("asinh"),
    np.arccosh: _library("acosh"),
    np.arctanh: _library("atanh", harmless=0),
    np.degrees: _DEGREES,
    np.rad2deg: _DEGREES,
    np.radians: _RADIANS,
    np.deg2rad: _RADIANS,

    # a choice between two values
    SELECT: Row({"*": ("choose({0}, {1}, {2}, zero, nought)", "({0} ? {1} : {2})")}),
}
# fmt: on


def row_of(op: Op | np.ufunc) -> Row:
    """What kernels know of an operation; nothing of one that stands in no row."""
    return TABLE.get(op if isinstance(op, np.ufunc) or op.ufunc is None else op.ufunc, _NOTHING)
