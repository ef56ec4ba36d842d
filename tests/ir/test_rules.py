"""Results have NumPy's dtypes and NumPy's memory order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numpy_dist.ir.meta_arrays import meta_array, offset_of, placed
from numpy_dist.ir.rules import begins_in_output, loop_dtypes, memory_axes, order_axes, scalar_kind


@st.composite
def operands(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    arrays = []
    for _ in range(draw(st.integers(1, 3))):
        base = np.empty([2 * n for n in shape])
        view = base[tuple(slice(0, 2 * n, draw(st.sampled_from([1, 2]))) for n in shape)]
        view = view[tuple(slice(0, n) for n in shape)]
        axes = draw(st.permutations(range(len(shape))))
        turned = np.empty([shape[a] for a in axes]).transpose(np.argsort(axes))
        choice = draw(st.sampled_from(["view", "turned", "flipped", "broadcast"]))
        if choice == "view":
            arrays.append(view)
        elif choice == "turned":
            arrays.append(turned)
        elif choice == "flipped":
            arrays.append(turned[tuple(slice(None, None, -1) for _ in shape)])
        else:
            arrays.append(np.empty(shape[1:] or (1,)))
    return shape, arrays


@given(operands())
def test_memory_order_is_numpys(case):
    shape, arrays = case
    if np.broadcast_shapes(*(a.shape for a in arrays)) != shape:
        return
    result = np.nditer([*arrays, None], order="K").operands[-1]
    axes = memory_axes(arrays, shape) or tuple(range(len(shape)))
    made = np.empty([shape[a] for a in axes]).transpose(np.argsort(axes))
    expected = [s for s, n in zip(result.strides, shape, strict=True) if n > 1]
    assert [s for s, n in zip(made.strides, shape, strict=True) if n > 1] == expected


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_order_argument(order):
    for array in (np.zeros((3, 4)), np.zeros((4, 3)).T):
        expected = np.negative(array, order=order)
        axes = order_axes(order, [array], array.shape) or (0, 1)
        made = np.empty([array.shape[a] for a in axes]).transpose(np.argsort(axes))
        assert made.strides == expected.strides


@pytest.mark.parametrize("scalar", [2, 0.5, 1j, True, np.float32(2), np.int64(3), np.uint8(1)])
@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "u1", "c8", "?"])
def test_scalars_promote_as_in_numpy(scalar, kind):
    array = np.ones(3, kind)
    assert (
        loop_dtypes(np.add, (array.dtype, scalar_kind(scalar), None), "same_kind", None)[-1] == (array + scalar).dtype
    )


def test_meta_arrays_describe_views_without_memory():
    whole = meta_array((1 << 20, 1 << 20), np.dtype("f8"))
    view = whole[5:-3:2, ::-1].T
    real = np.lib.stride_tricks.as_strided(np.zeros(1), whole.shape, whole.strides)[5:-3:2, ::-1].T
    assert view.strides == real.strides
    assert offset_of(view) == 5 * (8 << 20) + 8 * ((1 << 20) - 1)


@pytest.mark.parametrize("touch", ["p[3, 5]", "p.sum()", "p.__setitem__((0, 0), 1)", "p[::-1, ::-1].copy()"])
def test_values_of_meta_arrays_are_out_of_reach(touch):
    """Wrong values, or a write into somebody else's memory, would come to light much later."""
    script = f"""
import numpy
from numpy_dist.ir.meta_arrays import meta_array
p = meta_array((1000, 1000), numpy.dtype("f8"))
print(p.shape, flush=True)
{touch}
"""
    command = [sys.executable, "-X", "faulthandler", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "(1000, 1000)\n"
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert 'File "<string>", line 6' in done.stderr


def test_meta_arrays_where_address_space_is_scarce():
    script = """
import resource, mmap
resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
import numpy
from numpy_dist.ir import meta_arrays
assert len(meta_arrays._PAGES) == 1 << 20
whole = meta_arrays.meta_array((1 << 20, 1 << 10), numpy.dtype("f8"))
part = whole[7:, 1:]
assert meta_arrays.offset_of(part) == 8 * (7 * 1024 + 1)
again = meta_arrays.placed(part.dtype, meta_arrays.offset_of(part), part.shape, part.strides)
assert (meta_arrays.offset_of(again), again.shape, again.strides) == (8 * (7 * 1024 + 1), part.shape, part.strides)
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=environment)


def test_parts_of_arrays_that_are_longer_than_the_pages_without_access():
    """As where what was looked at in one process's array of 80 gigabytes becomes a sharded array again."""
    start = 5 << 36
    part = placed(np.dtype("f8"), start, (3, 4), (-8, 1 << 30))
    assert (offset_of(part), part.shape, part.strides) == (start, (3, 4), (-8, 1 << 30))
    assert part.flags.writeable


@pytest.mark.parametrize("shape", [(1 << 63,), (3, 1 << 63), (0, 1 << 64), (1 << 62,), (1 << 40, 1 << 40)])
def test_arrays_that_are_too_large_are_refused_as_numpy_refuses_them(shape):
    with pytest.raises(ValueError) as theirs:
        np.empty(shape)
    with pytest.raises(ValueError, match=f"^{re.escape(str(theirs.value))}$"):
        meta_array(shape, np.dtype(float))


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType(), [("a", "f8"), ("b", "O")], "V0"], ids=str)
def test_there_are_no_meta_arrays_of_objects(dtype):
    with pytest.raises(TypeError, match="cannot be sharded"):
        meta_array((3,), np.dtype(dtype))


@pytest.mark.parametrize(
    ("kind", "out", "begins"),
    [
        ("i8", "i8", False), ("i8", "i4", True), ("i4", "i8", True), ("u8", "i8", True), ("i8", "f8", True),
        ("u4", "c16", True), ("?", "f4", True), ("f8", "f4", False), ("f4", "f8", False), ("f8", "i8", True),
        ("c8", "c16", False), ("f8", "c16", True), ("c16", "f8", True), ("M8[s]", "M8[ms]", True),
    ],
)  # fmt: skip
def test_outputs_of_other_kinds_hold_the_first_element(kind: str, out: str, begins: bool) -> None:
    dtypes = np.dtype(kind), np.dtype(out)
    assert begins_in_output(np.maximum, *dtypes, np._NoValue) is begins
    assert begins_in_output(np.add, *dtypes, None) is begins
    assert not begins_in_output(np.add, *dtypes, np._NoValue)
    assert not begins_in_output(np.maximum, *dtypes, 3)
