"""Tables of plans and views do not grow without end."""

from __future__ import annotations

import numpy as np

import numpy_dist
from numpy_dist.engine import plans
from numpy_dist.ir import statements, views


def test_plans_of_moving_boxes_are_bounded(monkeypatch):
    monkeypatch.setattr(plans, "_MOST", 8)
    monkeypatch.setattr(views, "_MOST", 16)
    monkeypatch.setattr(statements, "_MOST", 8)
    values = np.arange(200.0)
    x = numpy_dist.asarray(values, split=0)
    plans.PLANS.clear()
    views.forget_parts()
    for i in range(1, 60):
        x[i : i + 4] = 0.5 * x[i - 1 : i + 3]
        values[i : i + 4] = 0.5 * values[i - 1 : i + 3]
        assert len(plans.PLANS) <= 9
        assert sum(len(view.parts) for view in set(views._DIVIDED)) == len(views._DIVIDED) <= 16
    assert np.array_equal(x.gather(), values)
