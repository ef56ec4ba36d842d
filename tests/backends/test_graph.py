"""Graphs of loops: values, operands, masks and dtypes, and what is refused; nothing is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.graph import Graph, OperationNode, ReductionNode, UnfitScalar, Unsupported, build
from numpy_dist.ir.ops import COPY, SELECT, op_of

X, Y, MASK = np.ones(8), np.ones(8, np.float32), np.ones(8, bool)
TEXTS = np.full(8, "abc")


def graph_of(*steps: Any, shape: tuple[int, ...] = (8,)) -> Graph:
    loop = Loop(shape, steps, lambda label, kind: None)
    return build(loop, lambda x: isinstance(x, np.ndarray), lambda x: (x.ctypes.data, x.strides, x.dtype))


def step(op: Any, inputs: tuple, *outputs: Any, where: Any = None, **options: Any) -> Step:
    return Step(op if op in (COPY, SELECT) else op_of(op), inputs, outputs, where, options)


def test_a_read_sees_the_last_write() -> None:
    out = np.empty(8)
    graph = graph_of(step(np.add, (X, X), out), step(np.multiply, (out, X), out), step(np.exp, (out,), X))
    first, second, third = graph.nodes
    assert first.inputs == (("a", 0), ("a", 0)) and first.outputs == (0,)
    assert second.inputs == (("v", 0), ("a", 0)) and third.inputs == (("v", 1),)
    assert [x is y for x, y in zip(graph.arrays, (X, out), strict=True)] == [True, True]
    assert graph.stores == {1: ("v", 1), 0: ("v", 2)} and graph.reads == {0}


def test_arrays_over_the_same_elements_are_one_operand() -> None:
    graph = graph_of(step(np.add, (X, X[:]), X.view()), step(np.add, (X[::-1], 1.0), Temp(0, X.dtype)))
    assert len(graph.arrays) == 2  # the reversed one has others
    assert graph.nodes[1].inputs == (("a", 1), ("s", 0))


def test_temporaries_and_dtypes() -> None:
    temp = Temp(0, np.dtype(np.float32))
    graph = graph_of(step(np.add, (X, Y), temp), step(COPY, (temp,), np.empty(8, np.int32)))
    first, second = graph.nodes
    assert isinstance(first, OperationNode) and isinstance(second, OperationNode)
    assert first.dtypes == (np.float64,) * 3 and first.sources == (np.float64, np.float32)
    assert first.targets == (np.float32,)
    assert second.inputs == (("v", 0),) and second.dtypes == (np.float32, np.int32)


def test_scalars_have_the_dtype_in_which_they_are_used() -> None:
    graph = graph_of(step(np.multiply, (Y, 3), np.empty(8, np.float32)), step(SELECT, (MASK, 2, Y), np.empty(8)))
    assert [(s.dtype, s[()]) for s in graph.scalars] == [(np.float32, 3), (np.float64, 2)]
    assert graph.scalar_places == [(0, 1), (1, 1)]


def test_masks_keep_what_was_there() -> None:
    old, new = np.empty(8), Temp(0, np.dtype(float))
    graph = graph_of(step(np.sqrt, (X,), old, where=MASK), step(np.sqrt, (X,), new, where=MASK))
    written, made = graph.nodes
    assert isinstance(written, OperationNode) and isinstance(made, OperationNode)
    assert written.where == made.where == ("a", 1)
    assert written.olds == (("a", 2),) and made.olds == (None,)
    assert graph.reads == {0, 1, 2}


def test_reductions() -> None:
    matrix, mask = np.ones((4, 2)), np.ones((4, 2), bool)
    reduce = ReduceStep(op_of(np.add), matrix, (0,), np.empty((1, 2)), mask)
    graph = graph_of(reduce, shape=(4, 2))
    assert graph.nodes == [ReductionNode(reduce, ("a", 0), np.dtype(float), ("a", 1))] and graph.tree is not None


@pytest.mark.parametrize(
    ("made", "reason", "kind"),
    [
        (lambda: step(np.add, (X, X), X, order="C"), "such options", Unsupported),
        (lambda: step(np.strings.str_len, (TEXTS,), TEXTS), "other things than numbers", Unsupported),
        (lambda: step(np.add, (X, X), X, where=Y), "a mask that is not bool", Unsupported),
        (lambda: step(np.less, (np.ones(8, np.int8), 300), MASK), "a Python int", UnfitScalar),
        (lambda: step(np.add, (Y, 1e300), Y), "a Python float", UnfitScalar),
    ],
)
def test_what_no_kernel_can_do(made: Any, reason: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=reason):
        graph_of(made())
