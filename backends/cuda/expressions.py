"""The op table of CUDA kernels: operations as C++ expressions of device functions (`header`).

What is not in the table is computed by the interpreter. Types have NumPy's names: kind and bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

INTEGERS = frozenset("i1 i2 i4 i8 u1 u2 u4 u8".split())
REALS = frozenset(("f2", "f4", "f8"))
COMPLEX = frozenset(("c8", "c16"))
KINDS = INTEGERS | REALS | COMPLEX | {"b1"}

_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_COMPARE = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_LOGIC = {"logical_and": "&&", "logical_or": "||", "logical_xor": "!="}
_ON_BOOL = {"multiply": "&&", "minimum": "&&", "bitwise_and": "&&", "add": "||", "maximum": "||", "bitwise_or": "||"}
_ON_BOOL |= {"fmin": "&&", "fmax": "||", "bitwise_xor": "!=", **_LOGIC}

# Functions of integers in the header, of numbers of their own type.
_INTEGER_FUNCTIONS = frozenset(
    "floor_divide remainder fmod left_shift right_shift absolute negative sign gcd lcm bitwise_count".split()
)
# Functions of CUDA's library, by NumPy's names; they differ from NumPy's by some ulp.
_LIBRARY = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p",
    "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "cbrt": "cbrt",
    "arctan2": "atan2", "hypot": "hypot", "power": "pow", "float_power": "pow",
}  # fmt: skip
# Those that are exact, with NumPy's bits.
_EXACT = {
    "sqrt": "sqrt", "fabs": "fabs", "absolute": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "rint": "rint", "copysign": "copysign", "nextafter": "nextafter", "fmod": "fmod",
}  # fmt: skip
_REAL_FUNCTIONS = {
    "floor_divide": "nd_floor_divide_real", "remainder": "nd_remainder_real", "maximum": "nd_maximum",
    "minimum": "nd_minimum", "fmax": "nd_fmax", "fmin": "nd_fmin", "sign": "nd_sign_real",
    "heaviside": "nd_heaviside", "logaddexp": "nd_logaddexp", "logaddexp2": "nd_logaddexp2", "isnan": "nd_isnan",
    "isinf": "nd_isinf", "isfinite": "nd_isfinite", "signbit": "nd_signbit", "fraction": "nd_fraction",
}  # fmt: skip
_COMPLEX_FUNCTIONS = {
    "add": "nd_cadd", "subtract": "nd_csubtract", "multiply": "nd_cmultiply", "divide": "nd_cdivide",
    "reciprocal": "nd_creciprocal", "negative": "nd_cnegative", "conjugate": "nd_cconjugate", "absolute": "nd_cabs",
    "isnan": "nd_cisnan", "isinf": "nd_cisinf", "isfinite": "nd_cisfinite", "equal": "nd_cequal",
    "less": "nd_cless", "less_equal": "nd_cless_equal", "maximum": "nd_cmaximum", "minimum": "nd_cminimum",
    "fmax": "nd_cfmax", "fmin": "nd_cfmin",
}  # fmt: skip
INEXACT = frozenset(_LIBRARY) | {"logaddexp", "logaddexp2"}
_PI = "3.141592653589793238462643383279502884"


def ctype(kind: str) -> str:
    """The C++ type of a kind."""
    return f"nd_{kind}"


def wide(kind: str) -> str:
    """The kind in which values of a kind are computed: halves are single while they are in a register."""
    return "f4" if kind == "f2" else kind


def cast(value: str, source: str, target: str) -> str:
    """A value of one kind as another one, as ``numpy.copyto(casting="unsafe")`` has it.

    Negative and too large reals as unsigned integers are no number that NumPy defines. Halves are given, and returned,
    as singles that a half can hold.
    """
    if source == target:
        return value
    if source[0] == "c":
        if target == "b1":
            return f"nd_ctrue({value})"
        if target[0] == "c":
            part = wide("f4" if target == "c8" else "f8")
            return f"nd_complex<{ctype(target)}>(({ctype(part)})({value}).re, ({ctype(part)})({value}).im)"
        return cast(f"({value}).re", "f4" if source == "c8" else "f8", target)
    if target[0] == "c":
        part = "f4" if target == "c8" else "f8"
        return f"nd_complex<{ctype(target)}>({cast(value, source, part)}, ({ctype(part)})0)"
    if target == "b1":
        return f"(({value}) != 0)"
    if target == "f2":
        return f"nd_single(nd_half(({'nd_f8' if source == 'f8' else 'nd_f4'})({value})))"
    if source[0] == "f" and target[0] in "iu":
        if target in ("i8", "u8"):
            return f"nd_to_{target}({value})"
        if target[0] == "i":
            return f"(({ctype(target)})nd_to_i4({value}))"
        return f"(({ctype(target)})nd_to_i8({value}))"
    return f"(({ctype(wide(target))})({value}))"


def expressions(name: str, kinds: Sequence[str], nin: int, args: Sequence[str]) -> list[str] | None:
    """The results of an operation, of the kinds of its outputs; None if it is not in the table.

    Parameters
    ----------
    name : str
        NumPy's.
    kinds : sequence of str
        Of the NumPy loop's inputs and outputs.
    nin : int
    args : sequence of str
        Names of variables of the inputs' kinds (halves as singles).
    """
    ins, outs = kinds[:nin], kinds[nin:]
    if len(outs) == 2:
        parts = {"divmod": ("floor_divide", "remainder"), "modf": ("fraction", "trunc")}.get(name)
        found = [expressions(part, (*ins, outs[0]), nin, args) for part in parts or ()]
        return [each[0] for each in found if each is not None] if found and None not in found else None
    if set(ins) == {"i8", "u8"} and name in _COMPARE:
        return _mixed(name, *args)
    if name == "ldexp" and ins[0] in REALS:
        text: str | None = f"ldexp({args[0]}, (int){args[1]})" if ins[1] == "i4" else None
    elif len(set(ins)) != 1:
        return None
    elif ins[0] == "b1":
        text = _on_bool(name, args)
    elif ins[0] in INTEGERS:
        text = _on_integers(name, ins[0], args)
    elif ins[0] in REALS:
        text = _on_reals(name, ins[0], args)
    else:
        text = _on_complex(name, args)
    if text is None:
        return None
    return [f"nd_single(nd_half({text}))" if outs[0] == "f2" else text]


def _mixed(name: str, a: str, b: str) -> list[str]:
    return [
        {
            "equal": f"nd_equal({a}, {b})",
            "not_equal": f"(!nd_equal({a}, {b}))",
            "less": f"nd_less({a}, {b})",
            "greater": f"nd_less({b}, {a})",
            "less_equal": f"(!nd_less({b}, {a}))",
            "greater_equal": f"(!nd_less({a}, {b}))",
        }[name]
    ]


def _on_bool(name: str, args: Sequence[str]) -> str | None:
    a, b = args[0], args[-1]
    if name in _ON_BOOL:
        return f"({a} {_ON_BOOL[name]} {b})"
    if name in _COMPARE:
        return f"((int){a} {_COMPARE[name]} (int){b})"
    if name in ("logical_not", "invert"):
        return f"(!{a})"
    if name in ("isnan", "isinf"):
        return "false"
    if name == "isfinite":
        return "true"
    return a if name in ("absolute", "positive", "conjugate", "floor", "ceil", "trunc") else None


def _on_integers(name: str, kind: str, args: Sequence[str]) -> str | None:
    a, b, t = args[0], args[-1], ctype(kind)
    if name in _ARITHMETIC:
        return f"(({t})((nd_u8){a} {_ARITHMETIC[name]} (nd_u8){b}))"
    if name in _BITS:
        return f"(({t})({a} {_BITS[name]} {b}))"
    if name in _COMPARE:
        return f"({a} {_COMPARE[name]} {b})"
    if name in _LOGIC:
        return f"(({a} != 0) {_LOGIC[name]} ({b} != 0))"
    if name in _INTEGER_FUNCTIONS:
        return f"nd_{name}({', '.join(args)})"
    if name == "power" and kind[0] == "u":
        return f"nd_power({a}, {b})"
    if name in ("minimum", "fmin", "maximum", "fmax"):
        return f"nd_{name[-3:] if name[0] == 'f' else name[:3]}_int({a}, {b})"
    if name == "square":
        return f"(({t})((nd_u8){a} * (nd_u8){a}))"
    if name in ("invert", "logical_not"):
        return f"(({t})~{a})" if name == "invert" else f"({a} == 0)"
    if name in ("isnan", "isinf", "isfinite"):
        return "true" if name == "isfinite" else "false"
    return a if name in ("positive", "conjugate", "floor", "ceil", "trunc") else None


def _on_reals(name: str, kind: str, args: Sequence[str]) -> str | None:
    a, b, t = args[0], args[-1], ctype(wide(kind))
    if name in _ARITHMETIC:
        return f"({a} {_ARITHMETIC[name]} {b})"
    if name in _COMPARE:
        return f"({a} {_COMPARE[name]} {b})"
    if name in _LOGIC:
        return f"(({a} != 0) {_LOGIC[name]} ({b} != 0))"
    if name in _REAL_FUNCTIONS:
        if kind == "f2" and name in ("floor_divide", "remainder", "nextafter"):
            return None  # NumPy computes them in a way of its own
        return f"{_REAL_FUNCTIONS[name]}({', '.join(args)})"
    if name in _EXACT or name in _LIBRARY:
        if kind == "f2" and name == "nextafter":
            return None
        return f"{(_EXACT | _LIBRARY)[name]}({', '.join(args)})"
    plain = {
        "divide": f"({a} / {b})",
        "reciprocal": f"(({t})1 / {a})",
        "square": f"({a} * {a})",
        "negative": f"(-{a})",
        "logical_not": f"({a} == 0)",
        "degrees": f"({a} * (({t})180 / ({t}){_PI}))",
        "radians": f"({a} * (({t}){_PI} / ({t})180))",
        "positive": a,
        "conjugate": a,
    }
    return plain.get({"rad2deg": "degrees", "deg2rad": "radians"}.get(name, name))


def _on_complex(name: str, args: Sequence[str]) -> str | None:
    a, b = args[0], args[-1]
    if name in _COMPLEX_FUNCTIONS:
        return f"{_COMPLEX_FUNCTIONS[name]}({', '.join(args)})"
    if name in _LOGIC:
        return f"(nd_ctrue({a}) {_LOGIC[name]} nd_ctrue({b}))"
    plain = {
        "not_equal": f"(!nd_cequal({a}, {b}))",
        "greater": f"nd_cless({b}, {a})",
        "greater_equal": f"nd_cless_equal({b}, {a})",
        "square": f"nd_cmultiply({a}, {a})",
        "logical_not": f"(!nd_ctrue({a}))",
        "positive": a,
    }
    return plain.get(name)
