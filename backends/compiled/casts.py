"""The types of kernels for processors, as Numba calls them, and casts between them."""

from __future__ import annotations

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
