"""Snapshots: what each rank writes of the arrays of a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.checkpoint.writer import RankPart
from numpy_dist.files.npy import header_of
from numpy_dist.files.pieces import in_long_runs
from numpy_dist.ir import structure

__all__ = ["part_of"]


def part_of(x: Any, name: str, copied: bool) -> tuple[RankPart, dict[str, Any]]:
    """This rank's part of a distributed array, and what the manifest says of the array (collective).

    Where the parts of the ranks would be many short runs of a file, the array is redistributed by rows.

    Parameters
    ----------
    x : DistArray
        Sharded.
    name : str
        Of its file.
    copied : bool
        Whether the part is a copy, which the program does not change.
    """
    fortran = x.flags.f_contiguous and not x.flags.c_contiguous
    ordered = x._view(structure.attribute, "T") if fortran else x
    made, share = ordered, engine.share(ordered)
    if share is None or not in_long_runs(share.boxes, ordered.shape, x.dtype.itemsize):
        made = engine.copy(ordered, order="C", layout=engine.default_layout(ordered.shape, split=0))
        share = engine.share(made)
        assert share is not None
    block = share.block
    if copied and made is ordered:
        block = np.array(block, order="C")
    layout = engine.layout_of(x)
    cut = () if layout is None else layout.cut_axes
    entry = {"file": name, "split": cut[0] if len(cut) == 1 else None, "pieces": None}
    box = share.boxes[engine.runtime().rank]
    return RankPart(name, header_of(x.shape, x.dtype, fortran), ordered.shape, x.dtype, box, block), entry
