"""Memory of products: nobody needs more than one and a half times what a rank holds of the operands and the result."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
from numpy_dist.spmd_testing import forbid_gathers

pytestmark = [pytest.mark.slow, pytest.mark.host_memory, pytest.mark.spmd(ranks=(2, 3, 4))]

SPLITS = pytest.mark.parametrize("split", (0, 1))


def array(shape: tuple[int, ...], split: int | None, kind: str = "d") -> nd.DistArray:
    values = np.random.default_rng(shape).standard_normal(shape).astype(kind)
    x = nd.asarray(values + 1j if kind == "D" else values, split=split)
    engine.force(x)
    return x


def check(call: Callable[..., Any], *operands: nd.DistArray, kept: int = 0) -> None:
    """Ranks compare their peaks: a bound that one of them misses fails on all.

    `kept` is how many further products of the result's size there are at a time, which count as operands do.
    """
    runtime = engine.runtime()
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        engine.force(call(*operands))  # what is imported
        runtime.pool.clear()  # of memory that is kept for reuse
        tracemalloc.start()
        try:
            made = call(*operands)
            engine.force(made)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    shares = sum(x.nbytes for x in operands) / runtime.size
    assert max(get_communicator().allgather(peak)) + shares <= 1.5 * (shares + (1 + kept) * made.nbytes / runtime.size)


@pytest.mark.parametrize("shape", [(900, 900, 900), (6000, 80, 80), (900, 80, 900), (80, 80, 6000), (80, 900, 900)])
@pytest.mark.parametrize("splits", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products(shape: tuple[int, int, int], splits: tuple[int, int]) -> None:
    (m, k, n), (left, right) = shape, splits
    if max(m, n) == 6000 and (left if m == 6000 else 1 - right):
        left = right = 0 if m == 6000 else 1  # else the longer operand is redistributed
    check(np.matmul, array((m, k), left), array((k, n), right))


@pytest.mark.parametrize("shape", [(900, 900, 900), (6000, 80, 80), (80, 80, 6000)])
def test_products_of_default_layouts(shape: tuple[int, int, int]) -> None:
    """Four ranks have blocks of a mesh of two by two."""
    m, k, n = shape
    check(np.matmul, array((m, k), None), array((k, n), None))
    check(np.dot, array((m, k), None), array((k, n), None))


def test_transposed_operands_of_default_layouts() -> None:
    a, b = array((900, 900), None), array((900, 700), None)
    check(lambda a, b: a.T @ b, a, b)
    check(lambda a, b: b.T @ a.T, a, b)


@pytest.mark.parametrize("width", (1, 20))
def test_narrow_operands_beside_one_of_default_layout(width: int) -> None:
    a, v = array((900, 900), None), array((900, width), None)
    for call in (lambda a, v: a @ v, lambda a, v: a.T @ v, lambda a, v: v.T @ a, lambda a, v: a @ v[:, 0]):
        check(call, a, v)


@pytest.mark.parametrize("splits", [(1, 0), (1, 1)])
def test_a_long_operand_cut_along_the_summed_axis(splits: tuple[int, int]) -> None:
    left, right = splits
    check(np.matmul, array((6000, 80), left), array((80, 80), right))
    check(np.matmul, array((80, 80), 1 - right), array((80, 6000), 1 - left))


@pytest.mark.parametrize("split", (None, 0, 1))
@pytest.mark.parametrize("kinds", ["fd", "df", "dD", "id", "dq"])
def test_operands_of_two_dtypes(kinds: str, split: int | None) -> None:
    check(np.matmul, array((900, 900), split, kinds[0]), array((900, 900), split, kinds[1]))


@pytest.mark.parametrize("splits", [(None, None), (0, 0), (0, 1), (1, 0), (1, 1)])
def test_half_precision(splits: tuple[int | None, int | None]) -> None:
    """It is multiplied and added up in single precision, of which there is never a whole result."""
    check(np.matmul, array((1800, 1800), splits[0], "e"), array((1800, 1800), splits[1], "e"))


@pytest.mark.spmd(ranks=(2, 3, 4, 6))
@pytest.mark.parametrize("shape", [(80, 6000, 80), (300, 3000, 300), (20, 20_000, 20)])
@pytest.mark.parametrize("splits", [(None, None), (0, None), (0, 0), (0, 1), (1, 1)])
def test_long_sums(shape: tuple[int, int, int], splits: tuple[int | None, int | None]) -> None:
    """Operands that are cut along the other axes come by panels, not as a whole."""
    (m, k, n), (left, right) = shape, splits
    check(np.matmul, array((m, k), left), array((k, n), right))


@SPLITS
@pytest.mark.parametrize("other", (0, 1))
def test_transposed_operands(split: int, other: int) -> None:
    a, b = array((900, 900), split), array((900, 900), other)
    check(lambda a, b: a.T @ b, a, b)
    check(lambda a, b: a @ b.T, a, b)


@SPLITS
@pytest.mark.parametrize("kind", "dD")
def test_a_matrix_and_its_transpose(split: int, kind: str) -> None:
    for shape in ((900, 900), (6000, 80)):
        x = array(shape, split, kind)
        check(lambda x: x.conj().T @ x, x)
        if shape[0] == 900:
            check(lambda x: x @ x.conj().T, x)
            check(lambda x: x.T @ x, x)


@pytest.mark.spmd(ranks=(4, 6))
@pytest.mark.parametrize("kind", "dD")
def test_a_matrix_on_a_mesh_and_its_transpose(kind: str) -> None:
    """Meshes of two by two, and of three by two."""
    for shape in ((900, 900), (1200, 1000)):
        x = array(shape, None, kind)
        for call in (lambda x: x.T @ x, lambda x: x @ x.T, lambda x: np.einsum("ij,ik->jk", x, x)):
            check(call, x)
        check(lambda x: x.conj().T @ x, x)
        check(lambda x: np.dot(x, x.conj().T), x)


@pytest.mark.spmd(ranks=(4, 6))
@pytest.mark.parametrize("splits", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_operands_in_rows_or_columns(splits: tuple[int, int]) -> None:
    """Ranks whose number is no prime make blocks of a mesh."""
    left, right = splits
    a, b = array((900, 900), left), array((900, 700), right)
    check(np.matmul, a, b)
    check(lambda a, b: b.T @ a.T, a, b)


@pytest.mark.parametrize("split", (None, 0, 1))
def test_einsums_by_a_path(split: int | None) -> None:
    a, b = array((900, 900), split), array((900, 700), split)
    for subscripts in ("ij,jk->ik", "ij,jk->ki", "ji,jk->ik", "ij,jk"):
        check(lambda a, b, subscripts=subscripts: np.einsum(subscripts, a, b, optimize=True), a, b)
    check(lambda a: np.einsum("ij,ik->jk", a, a, optimize=True), a)


@pytest.mark.parametrize("split", (None, 0, 1))
def test_chains(split: int | None) -> None:
    """A product on the way counts as an operand; powers keep two of them, and a square none."""
    a, b, c = (array((700, 700), split) for _ in range(3))
    check(lambda a, b, c: a @ b @ c, a, b, c, kept=1)
    check(lambda a, b, c: np.linalg.multi_dot([a, b, c]), a, b, c, kept=1)
    check(lambda a, b, c: np.einsum("ij,jk,kl->il", a, b, c, optimize=True), a, b, c, kept=1)
    check(lambda a: a @ a, a)
    check(lambda a: np.linalg.matrix_power(a, 2), a)
    check(lambda a: np.linalg.matrix_power(a, 5), a, kept=2)


@pytest.mark.spmd(ranks=(2, 3, 4, 6))
@pytest.mark.parametrize("split", (None, 0, 1))
def test_powers(split: int | None) -> None:
    """Third powers keep one product on the way and longer ones two, however many there are; a square keeps none."""
    a = array((1200, 1200), split)
    check(lambda a: a @ a, a)
    for exponent, kept in ((2, 0), (3, 1), (4, 1), (5, 2), (7, 2), (11, 2), (15, 2), (31, 2)):
        check(lambda a, exponent=exponent: np.linalg.matrix_power(a, exponent), a, kept=kept)


def test_contractions() -> None:
    t, u = array((100, 20, 500), 0), array((100, 20, 300), 0)
    check(lambda t, u: np.tensordot(t, u, ([0, 1], [0, 1])), t, u)
    check(lambda t, u: np.einsum("abi,abj->ij", t, u), t, u)


def _check_contraction(function: str, subscripts: str, splits: tuple[int | None, int | None]) -> None:
    extents = {"a": 40, "b": 60, "i": 600, "j": 500}
    left, right = ([extents[axis] for axis in term] for term in subscripts[:7].split(","))
    t, u = array(tuple(left), splits[0]), array(tuple(right), splits[1])
    if function == "einsum":
        check(lambda t, u: np.einsum(subscripts, t, u), t, u)
    else:
        axes = [[term.index(axis) for axis in "ab"] for term in subscripts[:7].split(",")]
        check(lambda t, u: np.tensordot(t, u, axes), t, u)


@pytest.mark.spmd(ranks=(3, 4))
@pytest.mark.parametrize("splits", [(None, None), (0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("subscripts", ["abi,abj->ij", "abi,baj->ij", "abi,bja->ij", "iab,bja->ij"])
def test_contractions_of_axes_that_are_cut_inside(subscripts: str, splits: tuple[int | None, int | None]) -> None:
    """What is joined to make matrices is what is multiplied, some of it at a time."""
    _check_contraction("einsum", subscripts, splits)


@pytest.mark.spmd(ranks=(2, 3, 4, 6))
@pytest.mark.parametrize("splits", [(None, None), (1, 2), (2, 1)])
@pytest.mark.parametrize("subscripts", ["abi,baj->ij", "iab,bja->ij"])
def test_tensordot_of_axes_that_are_cut_inside(subscripts: str, splits: tuple[int | None, int | None]) -> None:
    _check_contraction("tensordot", subscripts, splits)


@pytest.mark.spmd(ranks=(3, 4))
@pytest.mark.parametrize("splits", [(None, None), (1, 0), (1, 1), (2, 0), (2, 1)])
def test_tensors_by_matrices(splits: tuple[int | None, int | None]) -> None:
    check(lambda t, b: t @ b, array((40, 60, 500), splits[0]), array((500, 300), splits[1]))


@pytest.mark.spmd(ranks=(3, 4, 6))
@pytest.mark.parametrize("splits", [(None, None), (0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("count", [2, 24])
def test_stacks_of_matrices(count: int, splits: tuple[int | None, int | None]) -> None:
    """Matrices that are cut are not brought together before they are multiplied."""
    if count == 2 and 0 in splits:
        return  # some ranks have matrices, and others have none
    size = 200 if count > 2 else 600
    check(np.matmul, array((count, size, size + 40), splits[0]), array((count, size + 40, size), splits[1]))


@pytest.mark.spmd(ranks=(2, 3, 6))
@pytest.mark.parametrize("splits", [(None, None), (0, 0), (0, 1), (1, 0), (1, 1)])
def test_narrow_results_of_a_long_sum(splits: tuple[int | None, int | None]) -> None:
    left, right = splits
    check(np.matmul, array((20, 12_000), left), array((12_000, 20), right))


@pytest.mark.spmd(ranks=(2, 3, 6))
@pytest.mark.parametrize("width", [1, 9, 20])
@pytest.mark.parametrize("splits", [(0, 0), (1, 0), (1, 1)])
def test_narrow_results_of_a_short_sum(splits: tuple[int, int], width: int) -> None:
    """Nothing is redistributed, and the partial products of one column come in pieces."""
    left, right = splits
    check(np.matmul, array((60_000, 30), left), array((30, width), right))
    check(np.matmul, array((width, 30), 1 - right), array((30, 60_000), 1 - left))
