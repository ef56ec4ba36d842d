"""Parts of one loop that run at the same time, each in a box of its own, and their reductions put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy_dist.backends.summation import fold_chunks
from numpy_dist.engine.executing.part import Part, Results, Work, address_of, reporter
from numpy_dist.ir.statements import Reduction, Statement
from numpy_dist.layout.regions import Box, bounding_box, box_slices


class FusedParts:
    """Parts of one loop. None of them reads what another one writes, so they run in any order, or as one launch.

    Parameters
    ----------
    parts : sequence of Part
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._bundle: Any = None  # how the backend runs them as one
        # What it wants: allocations (a slot, and whether the old version is meant), and of all operands of all parts
        # the number of the allocation, and the offset; the statements and inputs that are scalars.
        self._lying: list[tuple[int, bool]] = []
        self._numbers = self._offsets = np.empty(0, np.int64)
        self._scalars: list[tuple[int, int]] = []

    def run(self, work: Work) -> Results:
        """Run the parts."""
        if (self._bundle is not None or self._make_bundle()) and self._fill(work):
            work.execution.begin(work.execution.number + 1)
            return self._bundle.launch(lambda number: self.parts[number].loop(work)[0])
        return list(zip(*[part.run(work) for part in self.parts], strict=True))

    def _make_bundle(self) -> bool:
        """Find out how to run the parts as one, if that is possible by now."""
        repeats = [part.repeat for part in self.parts]
        if len(repeats) < 2 or not all(hasattr(x, "bundle") for x in repeats):  # None, too, has none
            return False
        bundle = repeats[0].bundle(repeats[1:])
        if bundle is None:
            return False
        places = [place for part in self.parts for place in part.places]
        self._lying = sorted({(slot, old) for slot, old, _ in places})
        self._numbers = np.array([self._lying.index((slot, old)) for slot, old, _ in places], np.int64)
        self._offsets = np.array([offset for *_, offset in places], np.int64)
        self._scalars = [scalar for part in self.parts for scalar in part.scalars]
        self._bundle = bundle
        return True

    def _fill(self, work: Work) -> bool:
        """Give the parts their arguments for a launch as one; False if the scalars do not fit."""
        statements, storages = work.statements, work.storages
        bases = np.array([address_of(storages[slot], old) for slot, old in self._lying], np.int64)
        scalars = [statements[number].inputs[position] for number, position in self._scalars]
        return self._bundle.fill(bases[self._numbers] + self._offsets, scalars)


class Folds:
    """How the partial results of reductions over a whole loop come from those of its parts.

    Parameters
    ----------
    boxes : sequence of Box
        Of the parts. Together they are a box.
    statements : sequence of Statement
        An example of the loop's.
    """

    def __init__(self, boxes: Sequence[Box], statements: Sequence[Statement]) -> None:
        whole = bounding_box(boxes)
        assert whole is not None
        self._reductions = [
            _Fold(number, boxes, whole, s) for number, s in enumerate(statements) if isinstance(s, Reduction)
        ]

    def fold(self, results: Results, work: Work) -> list[np.ndarray]:
        """The partial results of the whole loop: one for each reduction, its reduced axes with extent 1."""
        report = reporter(work.runtime, work.statements)
        download = work.runtime.backend.memory.download
        folded = []
        for reduction, parts in zip(self._reductions, results, strict=True):
            number = reduction.number
            with np.errstate(all="call", call=lambda kind, flag, number=number: report(number, kind)):
                folded.append(reduction.fold(parts if type(parts) is np.ndarray else [download(x) for x in parts]))
        return folded


class _Fold:
    """The same for one reduction."""

    def __init__(self, number: int, boxes: Sequence[Box], whole: Box, statement: Reduction) -> None:
        assert statement.op.ufunc is not None
        self.number, self._ufunc, self._dtype = number, statement.op.ufunc, statement.dtype
        axes = statement.axes
        self._shape = tuple(1 if axis in axes else hi - lo for axis, (lo, hi) in enumerate(whole))
        places = []
        for part, box in enumerate(boxes):
            place = box_slices(box, [lo for lo, _ in whole])
            begins = all(box[axis][0] == whole[axis][0] for axis in axes)
            places.append((part, tuple(slice(0, 1) if a in axes else s for a, s in enumerate(place)), begins))
        # First those that lie lowest along the reduced axes: each result has one of them.
        self._places = sorted(places, key=lambda place: not place[2])
        self._single = all(n == 1 for n in self._shape)

    def fold(self, parts: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """The partial result of the whole loop from those of its parts."""
        if self._single:
            values = parts if type(parts) is np.ndarray else np.concatenate([x.reshape(1) for x in parts])
            return fold_chunks(self._ufunc.reduce, values.reshape(1, -1)).reshape(self._shape)
        total = np.empty(self._shape, self._dtype)
        for part, place, begins in self._places:
            if begins:
                total[place] = parts[part]
            else:
                self._ufunc(total[place], parts[part], out=total[place])
        return total
