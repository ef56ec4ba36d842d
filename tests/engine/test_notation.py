"""Views of buffers in the notation of listings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.events.notation import view_text
from numpy_dist.engine.memory.handle import ref_of
from numpy_dist.settings import config

RECORD = np.dtype([("a", "f8"), ("b", "f8"), ("c", "i4")])

VIEWS: list[tuple[Any, Callable[[Any], Any], str]] = [
    ("c16", lambda x: x, "b0[i, j]"),
    ("c16", lambda x: x.T[1:], "b0[j, i+1]"),
    ("c16", lambda x: x.real, "b0[i, j].real"),
    ("c16", lambda x: x.imag[1:, ::-1], "b0[i+1, 5-j].imag"),
    ("c16", lambda x: x.reshape(12, 2).real, "b0.bytes.reshape(384)[32*i+16*j].view(float64)"),
    (RECORD, lambda x: x["a"], "b0[i, j].bytes[0].view(float64)"),
    (RECORD, lambda x: x["b"][2], "b0[2, i].bytes[8].view(float64)"),
    (RECORD, lambda x: x["c"], "b0[i, j].bytes[16].view(int32)"),
    ("i4", lambda x: x[::2, None, 3], "b0[2*i, 3]"),
    ("i4", lambda x: x.view("u4"), "b0[i, j].bytes[0].view(uint32)"),
    ("i4", lambda x: x.reshape(8, 3), "b0.reshape(24)[3*i+j]"),
    ("i4", lambda x: x.reshape(8, 3)[::-1], "b0.reshape(24)[j+21-3*i]"),
    ("i4", lambda x: x.reshape(8, 3)[:, 1], "b0.reshape(24)[3*i+1]"),
    ("i4", lambda x: x.view("i2"), "b0.bytes.reshape(96)[24*i+2*j].view(int16)"),
]


@pytest.mark.parametrize(("dtype", "view", "text"), VIEWS, ids=[text for _, _, text in VIEWS])
def test_a_view_in_the_loops_indices(dtype: Any, view: Callable[[Any], Any], text: str) -> None:
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        x = numpy_dist.asarray(np.zeros((4, 6), dtype), split=0)
        assert view_text("b0", ref_of(view(x))) == text


def test_a_reshape_that_leaves_cut_axes_as_they_are() -> None:
    def on_rank() -> list[str]:
        x, z = (numpy_dist.asarray(np.zeros((3, 2, 4), kind), split=2).reshape(6, 4) for kind in ("i4", "c16"))
        return [view_text("b0", ref_of(view)) for view in (x, x[::-1, 1], x.view("u4"), z.imag)]

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        for texts in run_simulated(2, on_rank):
            assert texts == [
                "b0.reshape(6, 4)[i, j]",
                "b0.reshape(6, 4)[5-i, 1]",
                "b0.bytes.reshape(6, 16)[i, 4*j].view(uint32)",
                "b0.bytes.reshape(6, 64)[i, 16*j+8].view(float64)",
            ]
