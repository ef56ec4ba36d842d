"""Random programs give NumPy's values at every number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.ir import structure
from numpy_dist.settings import config

from .random_programs import NumpySide, fresh, perform, random_program

VIEWS = {
    "getitem": structure.index,
    "transpose": np.ndarray.transpose,
    "expand": np.expand_dims,
    "reshape": structure.reshape,
    "diagonal": np.ndarray.diagonal,
}


class ShardSide:
    """The engine's handles."""

    def view(self, a: Any, chain: list) -> Any:
        for name, argument in chain:
            a = a._view(VIEWS[name], *(() if name == "diagonal" else (argument,)))
        return a

    def call(self, ufunc: np.ufunc, *inputs: Any, out: Any = None) -> Any:
        return engine.elementwise(ufunc, inputs, out)

    def assign(self, target: Any, value: Any, where: Any = True) -> None:
        engine.assign(target, value, where)

    def reduce(self, ufunc: np.ufunc, a: Any, axis: int | None, keepdims: bool) -> Any:
        return engine.reduction(ufunc, a, axis=axis, keepdims=keepdims)


def _run(program: list[tuple]) -> list[np.ndarray]:
    side, arrays = ShardSide(), []
    with config(MIN_SHARD_BYTES=0), np.errstate(all="ignore"):
        for step in program:
            if step[0] == "new":
                arrays.append(engine.from_global(fresh(*step[1:])))
            else:
                perform(arrays, step, side)
        return [engine.gather(a) for a in arrays]


def _expected(program: list[tuple]) -> list[np.ndarray]:
    side, arrays = NumpySide(), []
    with np.errstate(all="ignore"):
        for step in program:
            if step[0] == "new":
                arrays.append(fresh(*step[1:]))
            else:
                perform(arrays, step, side)
    return arrays


def check(seed: int, ranks: int) -> None:
    """Run one program on NumPy and at a number of ranks."""
    program = random_program(seed)
    expected = _expected(program)
    exact = not any(step[0] == "sum" for step in program)
    for rank, results in enumerate(run_simulated(ranks, _run, program)):
        for number, (got, want) in enumerate(zip(results, expected, strict=True)):
            where = f"seed {seed}, {ranks} ranks, rank {rank}, array {number}: {program}"
            assert got.dtype == want.dtype and got.shape == want.shape, where
            if exact or want.dtype.kind in "bi":
                np.testing.assert_array_equal(got, want, err_msg=where)
            else:
                rtol = 1e-4 if want.dtype.char in "fF" else 1e-10
                np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-7, err_msg=where)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("block", range(4))
def test_random_programs(ranks: int, block: int) -> None:
    for seed in range(block * 10, block * 10 + 10):
        check(seed, ranks)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 16])
def test_many_random_programs(ranks: int) -> None:
    for seed in range(1000, 2000):
        check(seed, ranks)
