"""Which groups may form a chain, on metadata made by hand: what each of their rows needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from numpy_dist.engine.planning.links import MOST, Link, Rows, _rows, chains_of, link_of
from numpy_dist.ir.statements import Reduction, Ref
from numpy_dist.layout.layout import Copies, Layout
from numpy_dist.layout.mesh import Mesh

from .metadata import OneGroup, elementwise, reduction, ref, rows, storage

SAME: Rows = (0, 1, 0)
OTHERS: Rows = (0, 1, 1)


def _link(of: OneGroup) -> Link | None:
    return link_of(of.group, of.statements, of.slots)


def test_a_group_of_loops_over_rows_is_a_link() -> None:
    x, y = storage(rows(20, 4)), storage(rows(20, 4))
    of = OneGroup(elementwise(ref(y), ref(x)), rank=1)
    assert _link(of) == Link((10, 20), {of.slot(x): {SAME}, of.slot(y): {SAME}}, {of.slot(y)})


def test_groups_that_need_other_ranks_are_none() -> None:
    x, y = storage(rows(20, 4)), storage(rows(20, 4))
    halo = OneGroup(elementwise(ref(y, np.s_[1:-1]), ref(x, np.s_[:-2])))
    assert halo.group.halos and _link(halo) is None
    x.pinned = True
    fetch = OneGroup(elementwise(ref(y, np.s_[1:-1]), ref(x, np.s_[:-2])))
    assert fetch.group.fetches and _link(fetch) is None


def test_groups_of_several_cells_or_none_are_none() -> None:
    x, y = storage(rows(20, 4)), storage(rows(20, 4))
    part = np.s_[1:-1]
    assert _link(OneGroup(elementwise(ref(y), ref(x)), elementwise(ref(y, part), ref(x, part)))) is None
    x, y = storage(rows(20, 4, at=0)), storage(rows(20, 4, at=0))
    assert _link(OneGroup(elementwise(ref(y), ref(x)))) is None


def _reduced(change: Callable[[Reduction], None] = lambda statement: None, axes: tuple[int, ...] = (1,)) -> Link | None:
    """The link of a reduction of rows that was changed in something."""
    result = rows(20) if axes == (1,) else rows(4)
    statement = reduction(ref(storage(result)), ref(storage(rows(20, 4))), axes)
    change(statement)
    return _link(OneGroup(statement))


def test_reductions_of_rows_are_links() -> None:
    assert _reduced() == Link((0, 10), {0: {SAME}, 1: {SAME}}, {1})


def test_reductions_whose_partial_results_are_not_the_results_are_none() -> None:
    def begins(statement: Reduction) -> None:
        statement.initial = 1.0

    def other_order(statement: Reduction) -> None:
        statement.outputs[0].storage.axes = (0,)

    def other_dtype(statement: Reduction) -> None:
        statement.dtype = np.dtype("f4")

    def everywhere(statement: Reduction) -> None:
        statement.outputs = (ref(storage(Layout((20,), Mesh((2,)), (Copies(),)))),)

    assert [_reduced(change) for change in (begins, other_order, other_dtype, everywhere)] == [None] * 4
    assert _reduced(axes=(0,)) is None


def test_each_reduction_of_a_group_must_be_one_of_rows() -> None:
    x = storage(rows(20, 4))
    both = reduction(ref(storage(rows(20))), ref(x), (1,)), reduction(ref(storage(rows(4))), ref(x), (0,))
    assert _link(OneGroup(*both)) is None


def _of(change: Callable[[np.ndarray], np.ndarray], *shape: int, dtype: str = "f8") -> Rows | None:
    of = storage(rows(*shape), dtype)
    return _rows(Ref(of, change(of.meta_array())))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda x: x, (0, 1, 0)),
        (lambda x: x[2:], (0, 1, 2)),
        (lambda x: x[1::3], (0, 3, 1)),
        (lambda x: x[:2], (0, 1, 0)),
        (lambda x: x[:, 1:], (0, 1, 0)),
        (lambda x: x.T, (1, 1, 0)),
        (lambda x: x[:1], None),  # one row does not say where the next one is
        (lambda x: x[3, 2, ...], None),
        (np.diagonal, None),  # rows along two axes
        (lambda x: np.broadcast_to(x[0], (20, 4)), None),  # the same row again and again
    ],
)
def test_rows_of_a_view_lie_along_one_axis(change: Callable[[np.ndarray], np.ndarray], found: Rows | None) -> None:
    assert _of(change, 20, 4) == found


def test_rows_that_overlap_are_none() -> None:
    assert _of(lambda x: np.lib.stride_tricks.sliding_window_view(x, 3), 20) is None
    assert _of(lambda x: x, 20) == SAME


def test_parts_of_elements_are_no_rows() -> None:
    assert _of(lambda x: x.view("f8").reshape(20, 2).T, 20, dtype="c16") is None


# -- chains ------------------------------------------------------------------------------------------------------------


def _ends(*links: Link) -> list[tuple[int, int]]:
    return [(chain.first, chain.end) for chain in chains_of(links)]


def test_what_any_group_of_a_chain_has_written_must_be_aligned() -> None:
    one, two = Link((0, 10), {0: {SAME}}, {0}), Link((0, 10), {1: {SAME}}, {1})
    assert _ends(one, two, Link((0, 10), {1: {SAME}}, set())) == [(0, 3)]
    assert _ends(one, two, Link((0, 10), {1: {OTHERS}}, set())) == [(0, 2)]
    assert _ends(one, two, Link((0, 10), {0: {OTHERS}}, set())) == [(0, 2)]


def test_each_storage_of_a_group_must_be_aligned() -> None:
    both = {0: {SAME}, 1: {SAME}}
    first = Link((0, 10), both, {0, 1})
    assert _ends(first, Link((0, 10), {0: {SAME}, 1: {OTHERS}}, set())) == []
    assert _ends(first, Link((0, 10), {0: {SAME}, 1: {SAME, None}}, set())) == []
    assert _ends(first, Link((0, 10), both, set())) == [(0, 2)]


def test_a_chain_has_no_more_groups_than_it_may() -> None:
    link = Link((0, 10), {0: {SAME}}, {0})
    assert _ends(*[link] * (MOST + 2)) == [(0, MOST), (MOST, MOST + 2)]
