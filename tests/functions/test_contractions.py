"""Contractions of tensors whose joined axes are cut inside, and of stacks of matrices that are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
from numpy_dist.dispatch.functions import linear_algebra_contractions
from numpy_dist.parallel import pieces
from numpy_dist.parallel.contraction import Contraction
from numpy_dist.spmd_testing import forbid_gathers

pytestmark = pytest.mark.spmd(ranks=(2, 3, 4))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays take the way of large ones, in pieces of some elements."""
    monkeypatch.setattr(pieces, "_LEAST", 7)


def _values(shape: tuple[int, ...], kind: str) -> np.ndarray:
    values = np.random.default_rng(shape).integers(-4, 5, shape)
    made: np.ndarray = values.astype(kind)
    return made + 1j * made[::-1] if kind in "FD" else made


def _check(call: Any, *operands: tuple[np.ndarray, nd.DistArray | np.ndarray]) -> None:
    """Numbers are whole and small, so that sums are those of NumPy in any order."""
    expected = call(*(plain for plain, _ in operands))
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        found = call(*(x for _, x in operands))
        engine.force(found)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.flags.c_contiguous == expected.flags.c_contiguous
    np.testing.assert_array_equal(engine.gather(found), expected)


def _array(shape: tuple[int, ...], split: int | None, kind: str = "d") -> tuple[np.ndarray, nd.DistArray]:
    values = _values(shape, kind)
    with nd.config(MIN_SHARD_BYTES=0):
        return values, nd.asarray(values, split=split)


_SPLITS = [(None, None), (0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize("splits", _SPLITS)
@pytest.mark.parametrize("subscripts", ["abi,abj->ij", "abi,baj->ij", "iab,jba->ji", "aib,bja->ij", "iaj,kal->ijkl"])
def test_layouts(subscripts: str, splits: tuple[int | None, int | None]) -> None:
    extents = {"a": 6, "b": 5, "i": 7, "j": 4, "k": 3, "l": 5}
    left, right = (tuple(extents[axis] for axis in term) for term in subscripts.split("->")[0].split(","))
    _check(lambda x, y: np.einsum(subscripts, x, y), _array(left, splits[0]), _array(right, splits[1]))


@pytest.mark.parametrize("kinds", ["fd", "dF", "ii", "ib", "Dd"])
@pytest.mark.parametrize("splits", [(1, 1), (1, 2), (None, None)])
def test_dtypes(kinds: str, splits: tuple[int | None, int | None]) -> None:
    x, y = _array((6, 8, 7), splits[0], kinds[0]), _array((6, 8, 5), splits[1], kinds[1])
    _check(lambda x, y: np.tensordot(x, y, ([0, 1], [0, 1])), x, y)
    _check(lambda x, y: np.tensordot(x, y, ([1, 0], [1, 0])), x, y)


def test_axes_of_tensordot() -> None:
    x, y = _array((4, 6, 5), 1), _array((5, 6, 3), 1)
    for axes in (1, ([1, 2], [1, 0]), ([-1, -2], [0, 1]), (1, 1), ((2,), [0])):
        _check(lambda x, y, axes=axes: np.tensordot(x, y, axes), x, y)
    for axes in (2, ([0, 1], [0, 1]), ([0, 0], [0, 0]), ([3], [0]), ([0], [0, 1])):
        with pytest.raises((ValueError, IndexError)) as theirs:
            np.tensordot(x[0], y[0], axes)  # type: ignore[arg-type]
        with pytest.raises(theirs.type) as ours:
            np.tensordot(x[1], y[1], axes)  # type: ignore[arg-type]
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("splits", _SPLITS)
def test_views(splits: tuple[int | None, int | None]) -> None:
    """Strided, reversed, of a part, and with an axis of one index."""
    left, right = _array((8, 9, 7), splits[0]), _array((8, 9, 10), splits[1])
    for key in (np.s_[::-1], np.s_[:, ::2], np.s_[:, :, ::-1], np.s_[1:5, 3:8], np.s_[2:3]):
        pair = [(plain[key], x[key]) for plain, x in (left, right)]
        _check(lambda x, y: np.tensordot(x, y, ([0, 1], [0, 1])), *pair)
        _check(lambda x, y: np.einsum("abi,abj->ji", x, y), *pair)


@pytest.mark.parametrize("split", (None, 0, 1, 2))
def test_one_operand_on_every_rank(split: int | None) -> None:
    x, y = _array((6, 8, 7), split), _values((6, 8, 5), "d")
    _check(lambda x, y: np.tensordot(x, y, ([0, 1], [0, 1])), x, (y, y))
    _check(lambda x, y: np.tensordot(y, x, ([0, 1], [0, 1])), x, (y, y))
    matrix = _values((7, 5), "d")
    _check(lambda x, y: x @ y, x, (matrix, matrix))


@pytest.mark.parametrize("splits", _SPLITS)
@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("kind", "dFi")
def test_stacks(count: int, splits: tuple[int | None, int | None], kind: str) -> None:
    left, right = _array((count, 6, 8), splits[0], kind), _array((count, 8, 7), splits[1], kind)
    _check(np.matmul, left, right)
    _check(lambda x, y: np.einsum("bij,bjk->bik", x, y), left, right)


@pytest.mark.parametrize("splits", [(0, 1), (1, 2), (2, 3), (3, 2), (None, None)])
def test_stacks_that_are_broadcast(splits: tuple[int | None, int | None]) -> None:
    left, right = _array((3, 1, 6, 8), splits[0]), _array((4, 8, 7), None if splits[1] is None else splits[1] - 1)
    _check(np.matmul, left, right)
    _check(np.matmul, (right[0], right[1]), _array((3, 1, 7, 5), splits[1]))


@pytest.mark.parametrize("least", [40, 120, 400, 1000])
def test_stacks_whose_summed_axis_is_cut_unevenly(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items are divided alike whatever the extent of what is summed."""
    monkeypatch.setattr(pieces, "_LEAST", least)
    for k in (5, 10, 13):
        _check(np.matmul, _array((9, 6, k), 2), _array((9, k, 7), 1))


def test_nothing_to_sum() -> None:
    x, y = _array((6, 0, 7), 0), _array((6, 0, 5), 2)
    _check(lambda x, y: np.tensordot(x, y, ([0, 1], [0, 1])), x, y)
    _check(np.matmul, _array((3, 6, 0), 1), _array((3, 0, 5), 2))


def test_both_ways_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of what the ranks have where operands are cut alike along a summed axis, and panels elsewhere."""
    taken = []
    for owner, name in ((Contraction, "tensors"), (linear_algebra_contractions, "tensor_product")):
        function = getattr(owner, name)

        def watched(*args: Any, name: str = name, function: Any = function) -> None:
            taken.append(name)
            function(*args)

        monkeypatch.setattr(owner, name, watched)
    for splits in ((1, 1), (2, 1)):
        x, y = _array((30, 8, 7), splits[0]), _array((30, 8, 5), splits[1])
        _check(lambda x, y: np.tensordot(x, y, ([0, 1], [0, 1])), x, y)
    _check(np.matmul, _array((3, 6, 8), 1), _array((3, 8, 7), 2))
    assert taken[0] == "tensors" and taken[-1] == "tensor_product"


def test_a_small_sum_is_on_every_rank() -> None:
    """As that of matrices, whether or not what is joined is cut inside; and each copy has the same bits."""
    with nd.config(MIN_SHARD_BYTES=1 << 10, FALLBACK="error"), forbid_gathers():
        x, y = (nd.asarray(np.random.default_rng(n).standard_normal((6, 50, n)), split=1) for n in (7, 5))
        found = [np.tensordot(x, y, ([0, 1], [0, 1])), np.einsum("abi,abj->ij", x, y)]
        matrices = [np.reshape(t.transpose(1, 0, 2), (300, -1)) for t in (x, y)]
        found.append(matrices[0].T @ matrices[1])
    for made in found:
        assert made.layout.is_replicated
        copies = get_communicator().allgather(engine.shard(made).tobytes())
        assert len(set(copies)) == 1
