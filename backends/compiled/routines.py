"""Moving elements to or from several places at once, for which NumPy has no function: kernels that are no loop's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from numpy_dist.backends.compiled.threads import KERNEL

WORTH = 1 << 18  # elements for which a kernel is asked for
MOST_PLACES = 1 << 8
_INDICES = {np.dtype(kind).str: kind for kind in ("u4", "i8")}

# The block's words: the addresses of the ranks of some elements and of the elements, then for each rank the address of
# its next element, which is moved on. Elements are moved as unsigned integers of their size.
_HEAD = """from numba import int64, uint64
from numpy_dist.backends.compiled.memory import {names}


def kernel(block, first, last):
    ranks, elements = peek_i8(block, 0), peek_i8(block, 1)
"""
# Of two ranks both addresses stay in registers: twice as fast.
_TWO = """    low, high = peek_i8(block, 2), peek_i8(block, 3)
    for k in range(uint64(first), uint64(last)):
        beyond = int64(load_u1(ranks, k))
        place = low + beyond * (high - low)
        {move}
        high += {size} * beyond
        low += {size} - {size} * beyond
    put_i8(block, 2, low)
    put_i8(block, 3, high)
    return 0
"""
_SEVERAL = """    for k in range(uint64(first), uint64(last)):
        rank = uint64(load_u1(ranks, k)) + uint64(2)
        place = peek_i8(block, rank)
        {move}
        put_i8(block, rank, place + {size})
    return 0
"""


# Rows of one array at some positions, which are counted from `low`.
_ROWS = """from numba import int64, uint64
from numpy_dist.backends.compiled.memory import {names}


def kernel(block, first, last):
    positions, elements = peek_i8(block, 0), peek_i8(block, 1)
    rows, low = peek_i8(block, 2), peek_i8(block, 3)
    for k in range(uint64(first), uint64(last)):
        row = uint64(int64(load_{index}(positions, k)) - low)
        {move}
    return 0
"""


def _move(size: int, back: bool, place: str) -> tuple[set[str], str]:
    """The functions that an element's move needs, and the line: from `elements` to a place, or back from there."""
    load, store = f"load_u{size}", f"store_u{size}_0"
    line = f"{store}(elements, k, {load}({place}))" if back else f"{store}({place}, {load}(elements, k))"
    return {load, store, "peek_i8"}, line


def places_source(two: bool, size: int, back: bool) -> str:
    """The text of a kernel that moves elements of `size` bytes to the places of their ranks, or back from there."""
    names, move = _move(size, back, "place, 0")
    head = _HEAD.format(names=", ".join(sorted(names | {"load_u1", "put_i8"})))
    return head + (_TWO if two else _SEVERAL).format(move=move, size=size)


def rows_source(index: str, size: int, back: bool) -> str:
    """The text of a kernel that stores elements in rows at positions, of the type `index`, or reads them there."""
    names, move = _move(size, back, "rows, row")
    return _ROWS.format(names=", ".join(sorted(names | {f"load_{index}"})), index=index, move=move)


class KernelMover:
    """Moves elements by kernels, as soon as they are there (see `backends.base.Mover`).

    Parameters
    ----------
    address : callable
        ``address(text, asked)`` returns a kernel's address or None, and has it compiled if that is `asked` for.
    """

    def __init__(self, address: Callable[[str, bool], int | None]) -> None:
        self._address = address
        self._functions: dict[int, Callable[[int, int, int], int]] = {}

    def moving(self, places: Sequence[np.ndarray], count: int, back: bool = False) -> Callable[..., None] | None:
        """As in `backends.base.Mover`."""
        if not 2 <= len(places) <= MOST_PLACES or len({place.dtype for place in places}) > 1 or not _fit(*places):
            return None
        function = self._function(places_source(len(places) == 2, places[0].itemsize, back), count)
        return None if function is None else _Moving(function, places)

    def rows(
        self, rows: np.ndarray, low: int, positions: np.ndarray, elements: np.ndarray, back: bool = False
    ) -> bool:
        """As in `backends.base.Mover`."""
        if rows.dtype != elements.dtype or positions.dtype.str not in _INDICES or not _fit(rows, positions, elements):
            return False
        function = self._function(rows_source(_INDICES[positions.dtype.str], rows.itemsize, back), len(positions))
        if function is None:
            return False
        words = np.array([*(x.ctypes.data for x in (positions, elements, rows)), low], np.int64)
        function(words.ctypes.data, 0, len(positions))
        return True

    def _function(self, text: str, count: int) -> Callable[[int, int, int], int] | None:
        address = self._address(text, count >= WORTH)
        if address is None:
            return None
        found: Callable[[int, int, int], int] | None = self._functions.get(address)
        if found is None:
            found = self._functions[address] = KERNEL(address)
        return found


def _fit(*arrays: np.ndarray) -> bool:
    """Whether the kernels can move the elements of some arrays."""
    return all(
        x.ndim == 1 and x.flags.c_contiguous and not x.dtype.hasobject and x.itemsize in (1, 2, 4, 8) for x in arrays
    )


class _Moving:
    """One kernel on its way through the elements of some places."""

    def __init__(self, function: Callable[[int, int, int], int], places: Sequence[np.ndarray]) -> None:
        self._function, self._places = function, places  # which are to stay where they are
        self._words = np.array([0, 0, *(place.ctypes.data for place in places)], np.int64)
        self._block = self._words.ctypes.data

    def __call__(self, ranks: np.ndarray, elements: np.ndarray) -> None:
        assert ranks.itemsize == 1 and ranks.flags.c_contiguous and elements.flags.c_contiguous
        assert elements.dtype == self._places[0].dtype and len(elements) == len(ranks)
        self._words[0], self._words[1] = ranks.ctypes.data, elements.ctypes.data
        self._function(self._block, 0, len(ranks))
