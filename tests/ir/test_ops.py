"""Operations write into their outputs, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.backends.base import Loop, Step, Temp
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.ir.ops import COPY, op_of

MARGIN = 64
zfill = np._core.umath._zfill


def between_signs(count: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """An array in the middle of memory that is full of signs."""
    unit = np.dtype(f"{dtype[0]}1")
    whole = np.full(2 * MARGIN + count * np.dtype(dtype).itemsize // unit.itemsize, "-", unit)
    return whole, whole[MARGIN:-MARGIN].view(dtype)


TEXT = ["", "+1", "-22", "abcd", "-efgh", "", "+", "1-", "12345", ""]
FILLED = ["000", "+01", "-22", "abcd", "-efgh", "000", "+00", "01-", "12345", "000"]


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("width", [3, np.int64(3), np.full(10, 3)], ids=["int", "scalar", "array"])
@pytest.mark.parametrize("kind", ["U", "S"])
def test_zfill_looks_for_signs_in_its_own_text(kind, width, fused):
    """NumPy 2.4 reads and writes beside the result of empty text, and of text that is longer than the width."""
    text = np.array(TEXT, f"{kind}5")
    whole, out = between_signs(10, f"{kind}5")
    narrow = np.array(["", "+1", ""], f"{kind}3")
    around, exact = between_signs(3, f"{kind}3")
    steps = [Step(op_of(zfill), (text, width), (out,))]
    if fused:
        steps = [Step(COPY, (text,), (Temp(0, text.dtype),)), Step(op_of(zfill), (Temp(0, text.dtype), width), (out,))]
    Interpreter().run(Loop((10,), steps, lambda label, kind: None))
    op_of(zfill).apply([narrow, 3], (exact,), None, {})
    assert out.astype("U5").tolist() == FILLED
    assert exact.astype("U3").tolist() == ["000", "+01", "000"]
    for memory in (whole, around):
        assert set(memory[:MARGIN].astype("U1")) == set(memory[-MARGIN:].astype("U1")) == {"-"}


def test_zfill_under_a_mask():
    _, out = between_signs(4, "U3")
    op_of(zfill).apply([np.array(["", "1", "", "-1"]), 3], (out,), np.array([True, False, True, True]), {})
    assert out.tolist() == ["000", "---", "000", "-01"]


@pytest.mark.parametrize("kind", ["F", "D"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_complex_numbers_are_cast_as_real_ones_with_such_strides(kind, step):
    """What does not fit an unsigned integer depends on it: NumPy 2.4 has 2**31 for infinity where all is contiguous."""
    values = np.resize([2.0**32 + 4096, -1, 1e20, np.inf, -np.inf, np.nan, 3e9, -3e9], 32).astype(kind)[::step]
    reals = values.real.repeat(abs(step))[::step] if step > 0 else values.real[::-1].copy()[::-1]
    assert reals.strides == (step * reals.itemsize,)
    with np.errstate(all="ignore"):
        for target in "BHIL":
            expected, found = np.zeros(values.shape, target), np.zeros(values.shape, target)
            np.copyto(expected, reals, casting="unsafe")
            COPY.apply([values], (found,), None, {})
            assert found.tolist() == expected.tolist(), target
