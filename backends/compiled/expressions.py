"""The op table of native code: operations that Numba's machine code computes with NumPy's bits, as Python expressions.

Everything else calls NumPy's inner loops. Native are the exact operations of IEEE arithmetic and of integers modulo
2**n; not the ordered comparisons, minima and maxima of floats (a NaN raises the "invalid" flag there, which NumPy
clears), not division of integers, shifts, or complex arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

# Type names are NumPy's: kind and bytes.
NUMBA = {
    "b1": "boolean",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}
SIZE = {name: int(name[1:]) for name in NUMBA}

_COMPARE = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_LOGIC = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}


def cast(value: str, source: str, target: str) -> str:
    """A value of one type as another one, as ``numpy.copyto(casting="unsafe")`` has it, where it is not `unfit`."""
    if source == target:
        return value
    if target == "b1":
        return f"({value}.real != 0 or {value}.imag != 0)" if source[0] == "c" else f"({value} != 0)"
    if target[0] == "c":
        if source[0] == "c":
            return f"{NUMBA[target]}({value})"
        part = cast(value, source, "f4" if target == "c8" else "f8")
        return f"{NUMBA[target]}({part})"
    if source[0] == "c":
        return cast(f"{value}.real", "f4" if source == "c8" else "f8", target)
    if source == "b1":
        return f"{NUMBA[target]}(uint8({value}))"
    if source[0] == "f" and target[0] in "iu":
        if target == "u8":
            # Where a processor converts to signed integers only, LLVM converts what is beyond them, too, and takes what
            # is right afterwards: that raises the flag for invalid values where there are none.
            large = f"({value} >= {2.0**63!r})"
            signed = f"int64(({value} - {2.0**63!r}) if {large} else float64({value}))"
            return f"(uint64({signed}) ^ (uint64({large}) << uint64(63)))"
        if target in ("i8", "i4"):
            return f"{NUMBA[target]}({value})"
        return f"{NUMBA[target]}({'int64' if target[0] == 'u' else 'int32'}({value}))"
    return f"{NUMBA[target]}({value})"


def unfit(value: str, source: str, target: str) -> str | None:
    """Whether `cast` does not have NumPy's bits for a value, which for some depend on how NumPy was built."""
    if target[0] != "u" or source[0] not in "fc":
        return None
    real = value if source[0] == "f" else f"{value}.real"
    return f"(not (({real} > -1) & ({real} < {2.0 ** (8 * SIZE[target])!r})))"


def expression(name: str, kind: str, args: Sequence[str]) -> str | None:
    """The expression of an operation whose loop takes arguments of one type; None if it is not native.

    Parameters
    ----------
    name : str
        NumPy's.
    kind : str
        The type of the loop's inputs.
    args : sequence of str
        Expressions of that type: names, since they may appear twice.
    """
    if kind == "b1":
        return _on_bool(name, args)
    if kind[0] in "iu":
        return _on_integers(name, kind, args)
    if kind[0] == "f":
        return _on_floats(name, kind, args)
    return None


def _on_bool(name: str, args: Sequence[str]) -> str | None:
    a, b = args[0], args[-1]
    if name in ("logical_and", "bitwise_and", "multiply", "minimum"):
        return f"({a} & {b})"
    if name in ("logical_or", "bitwise_or", "add", "maximum"):
        return f"({a} | {b})"
    if name in ("logical_xor", "bitwise_xor", "not_equal"):
        return f"({a} ^ {b})"
    if name in ("logical_not", "invert"):
        return f"(not {a})"
    if name == "equal":
        return f"(not ({a} ^ {b}))"
    return None


def _on_integers(name: str, kind: str, args: Sequence[str]) -> str | None:
    a, b = args[0], args[-1]
    number = NUMBA[kind]
    if name in _ARITHMETIC:
        return f"{number}({a} {_ARITHMETIC[name]} {b})"
    if name in _BITS:
        return f"{number}({a} {_BITS[name]} {b})"
    if name in _COMPARE:
        return f"({a} {_COMPARE[name]} {b})"
    if name in _LOGIC:
        return f"(({a} != 0) {_LOGIC[name]} ({b} != 0))"
    if name == "logical_not":
        return f"({a} == 0)"
    if name == "negative":
        return f"{number}({number}(0) - {a})"
    if name == "square":
        return f"{number}({a} * {a})"
    if name == "invert":
        return f"{number}(~{a})"
    if name == "positive" or (name == "absolute" and kind[0] == "u"):
        return a
    if name == "absolute":
        return f"({a} if {a} >= 0 else {number}({number}(0) - {a}))"
    if name == "minimum":
        return f"({a} if {a} < {b} else {b})"
    if name == "maximum":
        return f"({a} if {a} > {b} else {b})"
    return None


def _on_floats(name: str, kind: str, args: Sequence[str]) -> str | None:
    a, b = args[0], args[-1]
    if name in _ARITHMETIC:
        return f"({a} {_ARITHMETIC[name]} {b})"
    if name == "divide":
        return f"({a} / {b})"
    if name == "reciprocal":
        return f"({NUMBA[kind]}(1) / {a})"
    if name == "square":
        return f"({a} * {a})"
    if name == "sqrt":
        return f"sqrt({a})"
    if name in ("absolute", "fabs"):
        return f"abs({a})"
    if name == "positive":
        return a
    if name in ("equal", "not_equal"):
        return f"({a} {_COMPARE[name]} {b})"
    if name in _LOGIC:
        return f"(({a} != 0) {_LOGIC[name]} ({b} != 0))"
    if name == "logical_not":
        return f"({a} == 0)"
    if name == "isnan":
        return f"({a} != {a})"
    if name == "isinf":
        return f"(abs({a}) == {NUMBA[kind]}(1e400))"
    if name == "isfinite":
        return f"(({a} == {a}) & (abs({a}) != {NUMBA[kind]}(1e400)))"
    return None
