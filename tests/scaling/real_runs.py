"""What a program really takes, to be compared with its plan."""

from __future__ import annotations

from typing import Any

from numpy_dist import engine


def taken(program: Any) -> dict[str, int]:
    """The memory at its peak on this rank, and what this rank sends, of one run."""
    result = program()
    engine.flush()
    rt = engine.runtime()
    del result
    return {"peak": rt.pool.peak, **vars(rt.comm.counters)}
