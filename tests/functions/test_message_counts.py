"""Messages of a rank grow at most with the number of ranks that it has to do with, at 4 to 1,024 ranks: by counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.counting import CountingCommunicator
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.parallel import counts, picking, sample_sort
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [4, 64, 1024])
SHARE, RANK = 1000, 1


def _counted(ranks: int, work: Callable[[np.ndarray, Any], object]) -> tuple[int, int]:
    """Messages and collectives of a rank with `SHARE` elements; all others have the same ones."""
    comm = CountingCommunicator(RANK, ranks, {})
    work(np.random.default_rng(2).random(SHARE), comm)
    return comm.counters.messages, comm.counters.collectives


@RANKS
def test_sorting(ranks):
    """Any rank may have something for any other."""
    messages, collectives = _counted(ranks, lambda block, comm: sample_sort.sort(block, None, comm))
    assert min(ranks - 1, SHARE // 2) <= messages <= ranks - 1
    assert collectives == 3 + (ranks > counts.FEW)  # shares are told by themselves
    messages, collectives = _counted(ranks, lambda block, comm: sample_sort.argsort(block, RANK * SHARE, comm))
    assert messages <= 2 * (ranks - 1)
    assert collectives == 4 + (ranks > counts.FEW)


@RANKS
def test_rows_by_position(ranks):
    points = tuple(range(0, ranks * SHARE + 1, SHARE))
    anywhere = np.random.default_rng(3).integers(0, ranks * SHARE, 200)
    near = np.arange(2 * SHARE, 4 * SHARE, 20)  # the rows of two other ranks
    for wanted, partners in ((anywhere, ranks - 1), (near, 2)):
        messages, collectives = _counted(ranks, lambda block, comm, at=wanted: picking.pick(block, points, at, comm))
        assert messages <= 2 * partners and collectives == 1
        values = np.zeros(len(wanted))
        messages, collectives = _counted(
            ranks, lambda block, comm, at=wanted, new=values: picking.put(block, points, at, new, comm)
        )
        assert messages <= 2 * partners and collectives == 1
    assert _counted(ranks, lambda block, comm: picking.pick(block, points, near, comm))[0] == 2


@RANKS
def test_redistribution(ranks):
    """Rows that become columns come from everywhere; what moves by a few elements comes from a neighbour."""
    columns = Layout((ranks, ranks), Mesh((ranks,)), (Cut(1, tuple(range(ranks + 1))),))
    with config(MIN_SHARD_BYTES=1):
        turned = numpy_dist.count_program(
            lambda x: engine.copy(numpy_dist.asarray(x), layout=columns),
            np.broadcast_to(0.0, (ranks, ranks)),
            ranks=ranks,
        )
        rolled = numpy_dist.count_program(
            lambda x: np.roll(x, 3) + 1, np.broadcast_to(0.0, (ranks * SHARE,)), ranks=ranks
        )
    assert 0 < turned.most("messages") <= ranks - 1
    assert rolled.most("messages") == 1


TRANSFORMS: dict[str, tuple[Callable[[Any], Any], int, int]] = {
    "fft2": (np.fft.fft2, 2, 2),
    "rfft2": (np.fft.rfft2, 2, 2),
    "the first axis": (lambda x: np.fft.fft(x, axis=0), 2, 1),
    "there and back": (lambda x: np.fft.ifft2(np.fft.fft2(x)), 2, 4),
    "fftn": (np.fft.fftn, 3, 3),
    "irfftn": (np.fft.irfftn, 3, 3),
    "two axes of three": (lambda x: np.fft.fftn(x, axes=(2, 0)), 3, 2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("ranks", [4, 16])
def test_a_transform_takes_one_redistribution_an_axis_at_most(ranks: int, name: str) -> None:
    """A redistribution sends each complex number of a rank's share once, at most."""
    function, ndim, axes = TRANSFORMS[name]
    x = np.broadcast_to(0.0, {2: (128, 128), 3: (32, 32, 32)}[ndim])
    with config(MIN_SHARD_BYTES=1):
        counted = numpy_dist.count_program(function, x, ranks=ranks)
    small = 1 << 12  # what ranks tell each other besides
    assert 0 < counted.most("bytes") <= axes * (2 * x.nbytes / ranks) + small
