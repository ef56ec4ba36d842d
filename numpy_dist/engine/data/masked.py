"""What a mask selects of an array of one process, by NumPy at once; what is little is at hand."""

from __future__ import annotations

import numpy as np

from numpy_dist.engine.data import windows
from numpy_dist.engine.data.ingest import from_local
from numpy_dist.engine.data.scratch import Scratch
from numpy_dist.engine.data.totals import elements_of
from numpy_dist.engine.data.windows import KINDS
from numpy_dist.engine.memory.handle import Handle, is_sharded
from numpy_dist.engine.runtime import runtime


def masked(x: Handle, mask: Handle) -> Handle | None:
    """``x[mask]`` for a sharded array and a mask of its shape; None where NumPy cannot do it at once.

    Executes what both need.
    """
    rt = runtime()
    if not windows.limit or rt.size > 1 or not is_sharded(x) or x._array.dtype.char not in KINDS:
        return None
    if not (x._array.flags.c_contiguous and is_sharded(mask) and mask._array.flags.c_contiguous):
        return None
    if x._array.shape != mask._array.shape:
        return None
    for each in (x, mask):
        rt.program.force(each._storage)  # type: ignore[arg-type]
    values, chosen = elements_of(rt, x), elements_of(rt, mask)
    if values is None or chosen is None:
        return None
    count = int(np.count_nonzero(chosen))
    if count * values.itemsize < windows.limit:
        return windows.near(np.compress(chosen, values))
    with Scratch() as scratch:
        made = scratch.empty(count, values.dtype)
        values.take(chosen.nonzero()[0], out=made, mode="clip")  # which needs no copy, as errors would
        return from_local(made, rt.default_layout((count,)))
