"""What may be given as ``where=``: arrays of bools, and whatever is no array for its truth."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.ir.ops import SELECT
from numpy_dist.settings import config

CALLS = {
    "add": lambda x, m, out: np.add(x, x, out=out, where=m),
    "outer": lambda x, m, out: np.multiply.outer(x[:2], x[:3], where=m[:3]).shape,
    "reduce": lambda x, m, out: np.add.reduce(x, where=m),
    "sum": lambda x, m, out: np.sum(x, where=m),
    "prod": lambda x, m, out: np.prod(x, where=m),
    "mean": lambda x, m, out: np.mean(x, where=m),
    "max": lambda x, m, out: np.max(x, where=m, initial=0),
    "any": lambda x, m, out: np.any(x, where=m),
    "copyto": lambda x, m, out: np.copyto(out, x, where=m),
    "method": lambda x, m, out: x.sum(where=m),
}
MASKS = [np.array([0, 1, 1, 0, 1, 0]), np.ones(6), np.ones(6, "M8[s]"), np.ones(6, bool), np.array(["a"] * 6)]
SCALARS = [1, 0, 2.5, np.int8(1), np.float32(0), np.True_, np.array(True)]


def _outcome(call: Any, *arguments: Any, **keywords: Any) -> str:
    try:
        made = call(*arguments, **keywords)
        return repr(made.gather() if isinstance(made, numpy_dist.DistArray) else np.asarray(made))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
def test_masks_are_arrays_of_bools(ranks, name):
    call = CALLS[name]

    def on_rank() -> list[str]:
        with config(MIN_SHARD_BYTES=0):
            x, out = numpy_dist.asarray(np.arange(6.0)), numpy_dist.asarray(np.zeros(6))
            return [_outcome(call, x, given, out) for mask in MASKS for given in (mask, numpy_dist.asarray(mask))]

    x, out = np.arange(6.0), np.zeros(6)
    expected = [_outcome(call, x, mask, out) for mask in MASKS for _ in range(2)]
    assert sum("Cannot cast array data" in text for text in expected) >= 4
    for found in run_simulated(ranks, on_rank):
        assert found == expected


@pytest.mark.parametrize("ranks", [1, 3])
def test_of_scalars_the_truth_is_taken(ranks):
    def check(x: Any, out: Any) -> list[str]:
        return [_outcome(np.add, x, x, out, where=scalar) for scalar in SCALARS]

    def on_rank() -> list[str]:
        with config(MIN_SHARD_BYTES=0):
            return check(numpy_dist.asarray(np.arange(6.0)), numpy_dist.asarray(np.zeros(6)))

    expected = check(np.arange(6.0), np.zeros(6))
    for found in run_simulated(ranks, on_rank):
        assert found == expected


@pytest.mark.parametrize("bytes_to_shard", [0, 1 << 20])
def test_nobody_is_warned_of_masks_without_outputs(bytes_to_shard):
    """The protocol does not tell a call without `out` from one with None, by which users say that they mean it."""
    with config(MIN_SHARD_BYTES=bytes_to_shard), warnings.catch_warnings():
        warnings.simplefilter("error")
        x = numpy_dist.asarray(np.arange(6.0))
        for one, two in (({}, {}), ({"out": None}, {"out": (None, None)})):
            assert np.add(x, 1, where=x > 2, **one).gather()[3:].tolist() == [4.0, 5.0, 6.0]
            assert [part.gather()[4] for part in np.divmod(x, 3, where=x > 2, **two)] == [1.0, 1.0]


def test_text_of_one_element_has_the_width_of_its_dtype() -> None:
    one = np.arange(3.0)
    with numpy_dist.config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(one)
        assert np.where(False, x[0, ...], "a").dtype == np.where(False, one[0], "a").dtype


@pytest.mark.parametrize("given_up", ["mask", "x", "y"])
@pytest.mark.parametrize("kind", ["?", "u1"])
def test_any_operand_may_become_the_result(given_up, kind):
    """The interpreter writes to an operand that nobody needs any more, which may be the mask of a result of bools."""
    mask = np.array([True, True, False, True, False, True, True])
    operands = {"mask": mask, "x": np.array([1, 0, 0, 0, 1, 0, 1], kind), "y": np.array([1, 0, 1, 1, 1, 1, 1], kind)}
    expected = np.where(*operands.values())
    out = operands[given_up].view(kind)
    SELECT.apply(list(operands.values()), (out,), None, {})
    assert np.array_equal(out, expected)
