"""Waiting for arrays, as one has to before one looks at a clock."""

from __future__ import annotations

from typing import TypeVar

from numpy_dist import engine

T = TypeVar("T")


def wait(*arrays: T) -> T | tuple[T, ...] | None:
    """Compute what was asked for, and return when it is there on every rank. Collective.

    Statements are executed when somebody needs their values, and devices work beside the processor: a clock that is
    read after ``y = np.sin(x)`` tells how long it took to write that down. ``numpy_dist.wait(np.sin(x))`` takes as long
    as computing it.

    Parameters
    ----------
    *arrays : DistArray, or anything
        What is waited for; other objects are there already. Without any: everything that is pending.

    Returns
    -------
    The array, a tuple of several, or None.
    """
    if arrays:
        handles: list[engine.Handle] = [x for x in arrays if engine.is_handle(x)]
        engine.force(*handles)
    else:
        engine.flush()
    rt = engine.runtime()
    rt.backend.fence()
    rt.comm.barrier()
    return (arrays[0] if len(arrays) == 1 else arrays) if arrays else None
