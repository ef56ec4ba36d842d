"""How views of gathered arrays are described, and taken of other arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from numpy_dist.dispatch.core import aliases

RECORD = np.dtype([("a", "i4"), ("b", "f8"), ("c", "f4", 3)])

VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "itself": lambda a: a,
    "a part": lambda a: a[1:, 2:, 3:],
    "one row": lambda a: a[1, 2],
    "a column": lambda a: a[:, 2, 3],
    "backwards": lambda a: a[::-1, :, ::-2],
    "transposed": lambda a: a[:, 1:].transpose(2, 0, 1),
    "a diagonal": lambda a: a[:, 1:].diagonal(0, 1, 2),
    "with new axes": lambda a: a[:, None, 1, :, None],
    "broadcast": lambda a: np.broadcast_to(a[:, 1:2], a.shape),
    "real parts": lambda a: a.real[1:],
    "imaginary parts": lambda a: a.imag[:, ::-1],
}
FIELDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a field": lambda a: a["b"][1:, ::-1],
    "some fields": lambda a: a[["a", "c"]][:, 2],
    "an array in each": lambda a: a["c"][1, :, ::2],
}


def _same_view(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return ours.__array_interface__ == theirs.__array_interface__


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
@pytest.mark.parametrize("name", [*VIEWS, *FIELDS])
def test_a_view_is_described_by_places_in_its_argument(name: str, order: tuple[int, ...]) -> None:
    """And taken of an argument that lies otherwise in memory, it is what the function would have returned of that."""
    shape, dtype = (3, 4, 5), RECORD if name in FIELDS else np.dtype("c16")
    view = (VIEWS | FIELDS)[name]
    argument = np.zeros([shape[axis] for axis in order], dtype).transpose(np.argsort(order))
    other = np.zeros(shape, dtype)
    unrelated = np.zeros(shape, dtype)
    result = view(argument)
    alias = aliases.find(result, [unrelated, None, argument])
    assert alias is not None and alias.number == 2
    assert _same_view(alias.of(argument), result)
    assert alias.of(argument).flags.writeable == result.flags.writeable
    assert _same_view(alias.of(other), view(other))


def test_what_is_no_view() -> None:
    argument = np.arange(12.0).reshape(3, 4)
    assert aliases.find(argument.copy(), [argument]) is None
    assert aliases.find(argument[:0], [argument]) is None
    assert aliases.find(argument[1], ["a text", 3.0, np.empty(0)]) is None
    assert aliases.find(argument.view("c16"), [argument]) is None  # larger elements than the argument's
    assert aliases.find(argument[::2][1:], [argument[::2]]) is None  # the argument is not contiguous
