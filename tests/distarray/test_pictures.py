"""Pictures of layouts, and waiting: what is drawn, and that a rank may look alone."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.distarray import pictures
from numpy_dist.layout.layout import Layout

pytestmark = pytest.mark.spmd(ranks=(1, 2, 3, 4))


def rectangles(text: str) -> list[ET.Element]:
    """Those of a card's picture; the whole of it is well-formed."""
    return list(ET.fromstring(text).iter("rect"))


@pytest.mark.parametrize(("shape", "split"), [((40,), 0), ((12, 30), 0), ((12, 30), 1), ((8, 5, 9), 2)])
def test_every_rank_has_a_block(shape, split):
    x = numpy_dist.zeros(shape, split=split)
    picture = pictures.picture_of(x.layout)
    ranks = x.comm.size
    assert sorted(rank for patch in picture.patches for rank in patch.ranks) == list(range(ranks))
    assert split in picture.axes and picture.hidden == 0
    area = sum(np.prod([hi - lo for lo, hi in (patch.rows, patch.columns)]) for patch in picture.patches)
    assert area == np.prod(picture.extents)
    assert len(rectangles(x._repr_html_())) == ranks


def test_beside_the_cut_axis_the_longest_is_drawn():
    assert pictures.picture_of(numpy_dist.zeros((60, 100, 4), split=0).layout).axes == (0, 1)
    assert pictures.picture_of(numpy_dist.zeros((60, 4, 4), split=2).layout).axes == (0, 2)


def test_copies_are_one_block():
    mesh = numpy_dist.zeros((6, 6), split=0).layout.mesh
    layout = engine.runtime().replicated_layout((6, 6))
    (patch,) = pictures.picture_of(layout).patches
    assert patch.ranks == tuple(range(mesh.size)) and (patch.rows, patch.columns) == ((0, 6), (0, 6))
    ranks = pictures.Patch(tuple(range(9)), (0, 1), (0, 1))
    assert ranks.label == "0, 1, 2, 3 ..."


def test_a_rank_looks_alone_and_nothing_is_executed():
    x = numpy_dist.asarray(np.arange(60.0).reshape(12, 5), split=0)
    y = x + 1
    pending = len(engine.runtime().program._pending)
    if x.comm.rank == 0:
        text = y._repr_html_()
        assert "not computed yet" in text and "(12, 5)" in text and "480 bytes" in text
        assert len(engine.runtime().program._pending) == pending
    assert np.array_equal(y.gather(), np.arange(60.0).reshape(12, 5) + 1)
    if x.comm.rank == 0:
        text, turned = y._repr_html_(), y.T._repr_html_()
        assert "[[ 1.  2.  3.]" in text and "[[ 1.  6. 11.]" in turned
    assert float(y.sum()) == 1830


@pytest.mark.parametrize("make", [
    lambda: numpy_dist.zeros((0, 4), split=0), lambda: numpy_dist.asarray(np.float32(3)),
    lambda: numpy_dist.asarray(["<b>", "&"] * 20, split=0), lambda: numpy_dist.zeros((30, 30), split=0).diagonal(),
    lambda: numpy_dist.zeros((4,) * 9, np.int8, split=0), lambda: numpy_dist.ones(70, split=0)[::-3],
])  # fmt: skip
def test_any_array_has_a_card(make):
    x = make()
    text = x._repr_html_()
    card = ET.fromstring(text)
    assert str(x.dtype) in "".join(card.itertext()) and len(text) < 40_000


def test_a_thousand_ranks():
    layout = Layout((5000, 3), *_blocks(1000))
    picture = pictures.picture_of(layout)
    assert len(picture.patches) == pictures.MOST_BLOCKS and picture.hidden == 600
    assert len({pictures.colour(rank) for rank in range(1000)}) == 1000


def _blocks(ranks):
    from numpy_dist.layout.layout import Cut
    from numpy_dist.layout.mesh import Mesh

    return Mesh((ranks,)), (Cut(0, tuple(range(0, 5 * ranks + 1, 5))),)


def test_matplotlib_draws_the_same():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib.figure import Figure

    x = numpy_dist.zeros((12, 30), split=1)
    ax = numpy_dist.show_layout(x, Figure().add_subplot())
    assert len(ax.patches) == len(pictures.picture_of(x.layout).patches)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("axis 1", "axis 0") and ax.get_ylim() == (12, 0)
    ax.figure.canvas.draw()
    line = numpy_dist.show_layout(numpy_dist.zeros(40, split=0).layout, Figure().add_subplot())
    assert line.get_xlabel() == "axis 0" and not line.get_ylabel()
    with pytest.raises(ValueError, match="no layout describes"):
        numpy_dist.show_layout(np.zeros(3), ax)


def test_waiting():
    x = numpy_dist.asarray(np.arange(3000.0), split=0)
    y, z = np.sin(x), x * 2
    program = engine.runtime().program
    assert numpy_dist.wait(y) is y and program.is_settled(y._storage)
    assert [type(item) for item in numpy_dist.wait(y, z, 3)] == [numpy_dist.DistArray] * 2 + [int]
    assert program.is_settled(z._storage)
    w = x + 1
    assert numpy_dist.wait() is None and program.is_settled(w._storage)
