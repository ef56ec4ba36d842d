"""The table of operations: every row can be written, and stands for one of NumPy's ufuncs only."""

from __future__ import annotations

import ast
import string

import numpy as np
import pytest

from numpy_dist.backends.operations import TABLE, row_of
from numpy_dist.ir.ops import SELECT, Op, op_of

KINDS = "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
OPERATIONS = [op if isinstance(op, Op) else op_of(op) for op in TABLE]


def places(text: str) -> set[str]:
    """The names of what is filled in."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_rows_can_be_written(op: Op) -> None:
    names = {str(number) for number in range(op.nin)}
    found = [row_of(op).written((kind,) * op.nin) for kind in KINDS]
    found += [row_of(op).written((kind, "i4")) for kind in KINDS if op.name == "ldexp"]
    assert any(one.cuda is not None for one in found)
    for one in found:
        if one.numba is not None:
            assert places(one.numba) - {"t"} == names
            ast.parse(one.numba.format("x", "y", "z", t="float64"), mode="eval")
        if one.cuda is not None:
            assert len(one.cuda) == op.nout
            assert all(places(text) - {"t"} in (names, set()) for text in one.cuda)  # "true" names nothing
            assert all(text.count("(") == text.count(")") for text in one.cuda)


def test_types_come_before_letters() -> None:
    absolute, remainder, less = row_of(np.absolute), row_of(np.remainder), row_of(np.less)
    assert absolute.written(("u4",)).numba == "{0}" != absolute.written(("i4",)).numba
    assert remainder.written(("f4", "f4")).cuda == ("nd_remainder_real({0}, {1})",)
    assert remainder.written(("f2", "f2")).cuda is None  # NumPy computes halves in a way of its own
    assert less.written(("u8", "i8")).cuda == less.written(("i8", "u8")).cuda == ("nd_less({0}, {1})",)
    assert less.written(("i8", "f8")) == (None, None)
    assert row_of(SELECT).written(("b1", "c8", "c8")) == row_of(SELECT).written(("b1", "b1", "b1"))


def test_another_ufunc_of_a_name_is_another_operation() -> None:
    square = np.frompyfunc(lambda x: x * x + 1, 1, 1)
    named = Op("square", 1, 1, op_of(square).apply, square)
    assert row_of(named).written(("f8",)) == (None, None) != row_of(np.square).written(("f8",))
