"""Statements like those before are replayed, with no other results; the tables for it do not grow without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.recording import operands, record, replay
from numpy_dist.ir import statements, views
from numpy_dist.layout.layout import Cut, Layout, Pinned
from numpy_dist.layout.mesh import Mesh


def test_templates_of_moving_boxes_are_bounded(monkeypatch):
    monkeypatch.setattr(replay, "_MOST", 8)
    monkeypatch.setattr(views, "_MOST", 16)
    monkeypatch.setattr(statements, "_MOST", 8)
    values = np.arange(200.0)
    x = numpy_dist.asarray(values, split=0)
    replay.TEMPLATES.clear()
    views.forget_parts()
    for i in range(1, 60):
        x[i : i + 4] = 0.5 * x[i - 1 : i + 3]
        values[i : i + 4] = 0.5 * values[i - 1 : i + 3]
        assert len(replay.TEMPLATES) <= 9
        assert sum(len(view.parts) for view in set(views._DIVIDED)) == len(views._DIVIDED) <= 16
    assert np.array_equal(x.gather(), values)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_broadcast_operands_have_templates(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        values = [rng.standard_normal(shape) for shape in ((7, 5), (7, 1), (5,), (7,))]
        x, column, row, long = (numpy_dist.asarray(v, split=0) for v in values)
        made = [x - column, row * x, long[:, None] + row, np.maximum(2.0, column[::-1] + x)]
        x -= column
        x[1:] *= row[None]
        u, c, r, n = values
        want = [u - c, r * u, n[:, None] + r, np.maximum(2.0, c[::-1] + u)]
        u -= c
        u[1:] *= r[None]
        for got, expected in zip([*made, x], [*want, u], strict=True):
            np.testing.assert_array_equal(got.gather(), expected)
        with pytest.raises(ValueError, match="could not be broadcast together"):
            x - numpy_dist.asarray(np.ones((6, 1)))

    def recorded(rt: Any, call: record.ElementwiseCall, usual: bool = False) -> Any:
        assert call.inputs[1].shape == (6, 1), "a statement was recorded anew"
        return original(rt, call, usual)

    original = record._record
    for kept in (replay.TEMPLATES, views._LATEST):
        kept.clear()  # lest they be forgotten, since there are too many, in between
    run_simulated(ranks, work, 0)
    monkeypatch.setattr(record, "_record", recorded)
    run_simulated(ranks, work, 1)


@pytest.mark.parametrize("ranks", [1, 3])
def test_ndarrays_beside_sharded_arrays_and_copies_have_templates(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        u, values = rng.standard_normal((2, 9, 5))
        x = numpy_dist.asarray(u, split=0)
        made = [x - values, values[::-1].copy() * x[::-1], x[:, 1:] / values[:, :4].copy(), x.copy(), x.astype("f4")]
        want = [u - values, values[::-1] * u[::-1], u[:, 1:] / values[:, :4], u.copy(), u.astype("f4")]
        values[...] = 0  # what was recorded has the values from before
        x += values + 1.0
        u += 1.0
        for got, expected in zip([*made, x], [*want, u], strict=True):
            found = got.gather()
            np.testing.assert_array_equal(found, expected)
            assert (found.dtype, got.strides) == (expected.dtype, expected.strides)
        with pytest.raises(ValueError, match="could not be broadcast together"):
            x - np.ones((8, 5))

    def recorded(rt: Any, call: record.ElementwiseCall, usual: bool = False) -> Any:
        assert call.inputs[1].shape == (8, 5), "a statement was recorded anew"
        return original(rt, call, usual)

    original = record._record
    run_simulated(ranks, work, 0)
    monkeypatch.setattr(record, "_record", recorded)
    run_simulated(ranks, work, 1)


@pytest.mark.parametrize("ranks", [1, 3])
def test_copies_with_orders_and_layouts_of_their_own_are_not_replayed(ranks: int) -> None:
    def work() -> None:
        values = np.arange(24.0).reshape(6, 4)
        x = numpy_dist.asarray(values, split=0)
        for ours, theirs in ((x, values), (x.T, values.T)):
            for order in ("C", "K", "F", "A", "C"):
                for _ in range(2):
                    made, expected = ours.copy(order=order), theirs.copy(order=order)
                    assert made.strides == expected.strides and made.layout == ours.layout
                    np.testing.assert_array_equal(made.gather(), expected)
            for split in (1, 0, 1):
                made = ours.redistribute(split=split)
                assert made.layout.cut_axes == (split,)
                np.testing.assert_array_equal(made.gather(), theirs)

    with numpy_dist.config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        run_simulated(ranks, work)


def test_copies_that_lose_the_imaginary_part_warn_each_time() -> None:
    x = numpy_dist.asarray(np.full(20, 1 + 2j), split=0)
    for _ in range(3):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert (x.astype(float).gather() == 1).all()


@pytest.mark.parametrize("ranks", [1, 3])
def test_outputs_that_must_not_be_written_have_no_templates(ranks: int) -> None:
    """Whether they are the same part of the same array as one that may be written, and was with the same template."""

    def work() -> None:
        values = np.arange(20.0)
        x, y = numpy_dist.asarray(values, split=0), numpy_dist.asarray(values[:8], split=0)
        for number in range(3):
            np.add(y, number, out=x[4:12])
            x[4:12] += number
            part = x[4:12]
            part.flags.writeable = False
            with pytest.raises(ValueError, match="output array is read-only"):
                np.add(y, 7.0, out=part)
            with pytest.raises(ValueError, match="output array is read-only"):
                part += number
            values[4:12] = np.arange(8.0) + 2 * number
            np.testing.assert_array_equal(x.gather(), values)

    with numpy_dist.config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        run_simulated(ranks, work)


def test_results_on_the_way_to_an_output_have_no_templates() -> None:
    x, y = (numpy_dist.asarray(np.arange(20.0) + n, split=0) for n in range(2))
    real = numpy_dist.asarray(np.zeros(20, "f4"), split=0)
    for _ in range(2):
        with pytest.warns(np.exceptions.ComplexWarning):
            np.add(x, y, out=real, dtype="c8", casting="unsafe")
        total = x + y
        assert total.dtype == np.float64 and (total.gather() == 2 * np.arange(20.0) + 1).all()
        assert (real.gather() == total.gather()).all()


def test_results_keep_the_layout_of_a_part_that_half_of_the_ranks_have() -> None:
    points, pinned = (0, 4, 8), Pinned(1)
    halves = Layout((8,), Mesh((2, 2)), (pinned, Cut(0, points)))
    quarter = Layout((8,), Mesh((2, 2, 2)), (pinned, pinned, Cut(0, points)))
    whole = Layout((8, 8), Mesh((2, 2)), (Cut(1, points), Cut(0, points)))
    with numpy_dist.config(MIN_SHARD_BYTES=64):
        few = [operands._too_few(layout, layout.shape, 8) for layout in (whole, halves, quarter)]
        assert few == [False, False, True]
        assert not operands._too_few(quarter, (8,), 4)  # too small to be sharded anew
