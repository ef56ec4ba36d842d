"""Snapshots: what each rank writes of the arrays of a state, and copies of it that the program does not change."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.checkpoint.checksum import Sums
from numpy_dist.checkpoint.writer import CHECKSUM, RankPart
from numpy_dist.files.direct import memory_for
from numpy_dist.files.npy import header_of
from numpy_dist.files.pieces import bytes_of, in_long_runs, parts_of
from numpy_dist.files.writing import in_file_order
from numpy_dist.layout.runs import runs

__all__ = ["copied", "part_of"]

_CACHED = 1 << 18  # bytes that are copied at once, and are in a core's cache then, beside those that they came from


def part_of(x: Any, name: str) -> tuple[RankPart, dict[str, object], object]:
    """This rank's part of a distributed array, and what the manifest says of the array (collective).

    Floating-point events are for the caller to tell (`engine.tell_events`). Where the parts of the ranks would be many
    short runs of a file, the array is redistributed by rows.

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
    made, share = ordered, engine.share(ordered, tells=False)
    if share is None or not in_long_runs(share.boxes, ordered.shape, x.dtype.itemsize):
        made = engine.copy(ordered, order="C", layout=engine.default_layout(ordered.shape, split=0))
        share = engine.share(made, tells=False)
        assert share is not None
    layout = engine.layout_of(x)
    cut = () if layout is None else layout.cut_axes
    split = cut[0] if len(cut) == 1 else None
    entry = {"file": name, "member": None, "shape": x.shape, "split": split, "pieces": None}
    box, header = share.boxes[engine.runtime().rank], header_of(x.shape, x.dtype, fortran)
    entry |= {"checksum": CHECKSUM, "header": [len(header), zlib.crc32(header)]}
    return RankPart(name, header, ordered.shape, x.dtype, box, share.block), entry, made


def copied(part: RankPart, scratch: engine.Scratch, fills: bool = True) -> RankPart:
    """A part with a block of its own, in memory of the pool, from which the disk can fetch it (`files.direct`).

    Its checksums come with it: what was copied last is still in the core's cache. With ``fills=False`` only the memory
    is taken, for what nobody will write.
    """
    if part.box is None or not part.block.size:
        return part
    first = next(iter(runs(part.shape, part.box)))
    place = len(part.header) + first * part.dtype.itemsize
    memory = memory_for(place, part.block.nbytes, lambda nbytes: scratch.empty(nbytes, np.uint8))
    block = np.ndarray(part.block.shape, part.dtype, buffer=memory.data)
    pieces = parts_of(part.box, block) if fills else ()
    checksums = {box: _copy(block[key], part.block[key]) for box, key in pieces}
    return part._replace(block=block, checksums=checksums)


def _copy(target: np.ndarray, source: np.ndarray) -> int:
    """Copy elements to where they follow each other; the checksum of their bytes."""
    sums, done = Sums(bytes_of(target)), 0
    for key in engine.parts_in_order(target.shape, target.itemsize, limit=_CACHED):
        np.copyto(target[key], source[key])
        done += target[key].nbytes
        sums.add(done)
    return sums.value
