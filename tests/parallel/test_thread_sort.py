"""Sorting on the threads of a rank, against NumPy's own sort, bit for bit."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from numpy_dist.parallel import division, packed_order, thread_sort
from numpy_dist.parallel.division import Division
from numpy_dist.parallel.packed_order import labels_in_order

RNG = np.random.default_rng(7)
N = 5001
FLOATS = RNG.normal(size=N)
NAN = np.where(RNG.random(N) < 0.3, np.nan, FLOATS)
KINDS = {
    "doubles": FLOATS,
    "single": FLOATS.astype("f4"),
    "half": FLOATS.astype("f2"),
    "long double": FLOATS.astype("g"),
    "numbers and NaN": NAN,
    "NaN for the most part": np.where(RNG.random(N) < 0.9, np.nan, FLOATS),
    "zeros of both signs": np.where(RNG.random(N) < 0.3, np.copysign(0, FLOATS), FLOATS),
    "two zeros": np.concatenate([FLOATS[:2000], [0.0], FLOATS[2000:4000], [-0.0], FLOATS[4000:]]),
    "positive zeros": np.where(RNG.random(N) < 0.3, 0.0, FLOATS),
    "infinities": np.where(RNG.random(N) < 0.3, np.copysign(np.inf, FLOATS), FLOATS),
    "integers": RNG.integers(-(2**63), 2**63 - 1, N),
    "few": RNG.integers(0, 9, N),
    "equal": np.ones(N),
    "bytes": RNG.integers(-128, 127, N).astype("i1"),
    "other byte order": FLOATS.astype(">f8"),
    "every other one": np.repeat(FLOATS, 2)[::2],
    "backwards": FLOATS[::-1],
    "in order": np.sort(FLOATS),
    "dates": np.where(RNG.random(N) < 0.2, np.datetime64("NaT"), RNG.integers(-999, 999, N).astype("M8[s]")),
    "complex": RNG.integers(0, 9, N) + 1j * np.where(RNG.random(N) < 0.2, np.nan, RNG.integers(-3, 3, N)),
    "text": RNG.integers(0, 9999, N).astype("U5"),
}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The threads that divide elements, of which few are worth one."""
    found = set()

    class Noting(Division):
        def __init__(self, *arguments: Any) -> None:
            found.add(threading.get_ident())
            super().__init__(*arguments)

    monkeypatch.setattr(thread_sort, "FEW", 8)
    monkeypatch.setattr(thread_sort, "EACH", 64)
    monkeypatch.setattr(thread_sort, "Division", Noting)
    monkeypatch.setattr(division, "ELEMENTS", 1000)
    return found


@pytest.mark.parametrize("kind", [None, "stable", "heapsort"])
@pytest.mark.parametrize("name", KINDS)
def test_bits_are_numpys_with_any_number_of_threads(name: str, kind: Any, seen: set[int]) -> None:
    values = KINDS[name]
    expected = np.sort(values, kind=kind)
    for threads in (1, 2, 3, 7):
        found = thread_sort.sort(values, kind, threads)
        assert found.dtype == expected.dtype
        if values.dtype.char == "g":  # of which some bytes are nothing
            assert np.array_equal(found, expected)
        else:
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["doubles", "numbers and NaN", "half", "integers", "dates", "text", "positive zeros"])
def test_several_threads_take_part(name: str, seen: set[int]) -> None:
    thread_sort.sort(KINDS[name], None, 1)
    assert not seen
    thread_sort.sort(KINDS[name], None, 3)
    assert threading.get_ident() in seen and len(seen) > 1


@pytest.mark.parametrize("name", ["equal", "few", "bytes", "in order"])
def test_nothing_is_divided_in_vain(name: str, seen: set[int]) -> None:
    thread_sort.sort(KINDS[name], "stable" if name == "in order" else None, 7)
    assert not seen


@pytest.mark.parametrize("name", KINDS)
def test_labels(name: str, seen: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_order, "ELEMENTS", 700)
    labels = 10**9 + np.cumsum(RNG.integers(1, 5, len(KINDS[name])))
    found = labels_in_order(KINDS[name], labels, threads=3)
    np.testing.assert_array_equal(found, labels[np.argsort(KINDS[name], kind="stable")])
    assert not seen or packed_order.has_keys(KINDS[name].dtype)
