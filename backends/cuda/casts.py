"""The types of CUDA kernels, and casts between them. They have NumPy's names: kind and bytes."""

from __future__ import annotations

KINDS = frozenset("b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())


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
