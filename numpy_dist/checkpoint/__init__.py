"""Checkpoints: the state of a program on disk, from which it goes on after it was killed, at any number of ranks.

    state = numpy_dist.checkpoint.restore("run") or {"step": 0, "u": initial()}
    while state["step"] < 1000 and not numpy_dist.checkpoint.should_end():
        advance(state)
        if state["step"] % 100 == 0:
            numpy_dist.checkpoint.save("run", state, step=state["step"], background=True)

What may be in a state, what lies where in the folder, and what happens when: docs/files.md.
"""

from __future__ import annotations

from numpy_dist import distarray as distarray  # arrays that are made here are DistArrays
from numpy_dist.checkpoint.ending import should_end
from numpy_dist.checkpoint.restoring import latest, restore, steps
from numpy_dist.checkpoint.saving import save, wait

__all__ = ["latest", "restore", "save", "should_end", "steps", "wait"]
