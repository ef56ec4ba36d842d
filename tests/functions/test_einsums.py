"""Einstein sums of sharded arrays."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers, run_simulated
from tests.functions.harness import PRESENTATIONS, check, split

rng = np.random.default_rng(6)
A, B, C = (rng.standard_normal(shape) for shape in ((6, 8), (8, 5), (5, 6)))
S, T = rng.standard_normal((4, 3, 5)), rng.standard_normal((4, 5, 2))
FEW = tuple(sorted(PRESENTATIONS)[::4])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subscripts", "arrays"),
    [
        ("ij,jk->ik", (A, B)),
        ("ij,jk->ki", (A, B)),
        ("ij,jk,ki->", (A, B, C)),
        ("ij,jk,kl->lij", (A, B, C)),
        ("bij,bjk->bik", (S, T)),
        ("bij,bjk->kib", (S, T)),
        ("bij,bij->b", (S, S)),
        ("...ij,...jk->...ik", (S, T)),
        ("ij,i->j", (A, A[:, 0])),
        ("ij->j", (A,)),
        ("ii->", (A[:, :6],)),
        ("i,j->ji", (A[0], B[0])),
    ],
)
@pytest.mark.parametrize("optimize", [False, True])
def test_sums(subscripts, arrays, optimize):
    check(lambda *x: np.einsum(subscripts, *x, optimize=optimize), *arrays, ranks=(1, 3, 7), ways=FEW)


def test_what_is_moved():
    """A product and its sum are one pass over the data, and a stack of products needs no other rank's matrices."""

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            x, y = split(np.ones((600, 7, 5)), 0), split(np.ones((600, 5, 2)), 0)
            engine.force(x, y)
            counters = engine.runtime().comm.counters
            counters.reset()
            made = np.einsum("bij,bjk->bik", x, y)
            engine.force(made)
            assert counters.messages == 0
            loops = engine.counters().loops
            total = np.einsum("bij,bij->", x, x)
            assert total == 600 * 7 * 5
            assert engine.counters().loops - loops == 1

    run_simulated(3, on_each_rank)


@pytest.mark.parametrize(
    ("subscripts", "keys"),
    [
        ("i->", [(0, slice(1))]),
        ("->", [(3, 4, ...)]),
        (",->", [(3, 4, ...), (3, 5, ...)]),
        ("i,i->", [(0, slice(1, 2)), (1, slice(1, 2))]),
        ("ij->", [(slice(1), slice(1))]),
        ("ij,kl->ijkl", [(slice(1, 2), slice(1, 2)), (slice(1, 2), slice(1, 2))]),
        ("ij,jk->ik", [(slice(1, 2), slice(1, 2)), (slice(1, 2), slice(1, 2))]),
        ("ij,ik->", [(slice(1, 2), slice(1, 2)), (slice(1, 2), slice(None))]),
        ("...->...", [(3, 4, ...)]),
    ],
)
def test_one_element(subscripts, keys):
    check(lambda x: np.einsum(subscripts, *(x[key] for key in keys)), A, ranks=(1, 3), ways=("default",))


LAYOUTS = {"contiguous": slice(None), "flipped": slice(None, None, -1), "strided": slice(None, None, 2)}


@pytest.mark.parametrize("subscripts", ["i,j->i", "i,j->j", "i,j->", "ij,jk->ik", "ij,kl->i", "ij,kl->jk"])
@pytest.mark.parametrize("second", sorted(LAYOUTS))
@pytest.mark.parametrize("first", sorted(LAYOUTS))
def test_infinities_of_sums_over_one_operand(first, second, subscripts):
    """A product of sums is no sum of products where there are infinities; which it is, NumPy decides by the layout."""
    values = np.array([1, 0, np.inf, -1, -2.5, 1, 0.5, 0.5])
    values = values if "i," in subscripts else values[:, None]
    keys = LAYOUTS[first], LAYOUTS[second]
    with np.errstate(all="ignore"), config(MIN_SHARD_BYTES=0):
        expected = np.einsum(subscripts, *(values[key] for key in keys))
        made = np.einsum(subscripts, *(nd.asarray(values)[key] for key in keys))
    np.testing.assert_array_equal(made.gather() if isinstance(made, nd.DistArray) else made, expected)


@pytest.mark.parametrize("subscripts", ["ii", "ii->i", "ij,jk", "ij,ij->"])
def test_errors_tell_of_the_arrays_given(subscripts):
    arrays = (np.zeros((2, 0)), np.zeros((3, 4)))[: 1 + subscripts.count(",")]
    check(lambda *x: np.einsum(subscripts, *x), *arrays, ranks=(1, 3), ways=("default",))
