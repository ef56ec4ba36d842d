"""Snapshots: what each rank writes of the arrays of a state."""

from __future__ import annotations

from typing import Any

from numpy_dist import engine
from numpy_dist.checkpoint.writer import RankPart
from numpy_dist.files.npy import header_of
from numpy_dist.files.pieces import in_long_runs
from numpy_dist.files.writing import in_file_order

__all__ = ["part_of"]


def part_of(x: Any, name: str) -> tuple[RankPart, dict[str, Any], Any]:
    """This rank's part of a distributed array, and what the manifest says of the array (collective).

    Where the parts of the ranks would be many short runs of a file, the array is redistributed by rows.

    Parameters
    ----------
    x : DistArray
        Sharded.
    name : str
        Of its file.

    Returns
    -------
    RankPart
        Its block is to be written, or copied, before the program goes on.
    dict
    DistArray
        In whose memory the block lies: to be kept until then.
    """
    ordered, fortran = in_file_order(x)
    made, share = ordered, engine.share(ordered)
    if share is None or not in_long_runs(share.boxes, ordered.shape, x.dtype.itemsize):
        made = engine.copy(ordered, order="C", layout=engine.default_layout(ordered.shape, split=0))
        share = engine.share(made)
        assert share is not None
    layout = engine.layout_of(x)
    cut = () if layout is None else layout.cut_axes
    split = cut[0] if len(cut) == 1 else None
    entry = {"file": name, "member": None, "shape": x.shape, "split": split, "pieces": None}
    box, header = share.boxes[engine.runtime().rank], header_of(x.shape, x.dtype, fortran)
    return RankPart(name, header, ordered.shape, x.dtype, box, share.block), entry, made
