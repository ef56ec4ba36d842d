"""What the examples share: run a function on NumPy and on numpy_dist, compare the results, prove that the work was cut.

`both_ways` exits non-zero, on every rank alike, when a result disagrees, when an array is not cut over the ranks, when
a rank holds more than its share plus halo, or when anything was gathered before the comparison.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numpy_dist import engine

SCALAR_TOLERANCE = 1e-12
"""Relative difference allowed to scalars: sums of floats are folded in another order than NumPy's."""
DEVICE_TOLERANCE = 1e-14
"""Relative difference allowed on devices: their exponentials and logarithms are not NumPy's in the last bits."""


def rank() -> int:
    """This process's number among the ranks."""
    return engine.runtime().rank


def ranks() -> int:
    """The number of ranks."""
    return engine.runtime().size


def say(text: str = "") -> None:
    """Print on rank 0."""
    if rank() == 0:
        print(text, flush=True)


def both_ways(
    title: str,
    distributed: Callable[[], Any],
    reference: Callable[[], Any],
    *,
    halo: int = 0,
    tolerance: float = 0.0,
) -> dict[str, Any]:
    """Run `distributed` on every rank and `reference`, which is plain NumPy, on rank 0, and compare what they return.

    Parameters
    ----------
    title : str
        What the report calls the work.
    distributed, reference : callable
        Without arguments. They return an array, a scalar, or a dictionary of them.
    halo : int, optional
        How many ghost cells a rank may hold on each side of its share.
    tolerance : float, optional
        Largest difference of an array's elements, relative to its largest element; with 0 (default) they agree to the
        last bit, but for what GPUs compute (`DEVICE_TOLERANCE`).

    Returns
    -------
    dict
        The distributed results, gathered on rank 0; elsewhere None instead of arrays. Collective.
    """
    communicator = engine.runtime().comm
    if not engine.runtime().backend.memory.on_host:
        tolerance = max(tolerance, DEVICE_TOLERANCE)
    communicator.barrier()
    begin = time.perf_counter()
    results = _named(distributed())
    engine.force(*(x for x in results.values() if engine.is_handle(x)))
    communicator.barrier()
    seconds = time.perf_counter() - begin

    complaints = [text for name, x in results.items() if engine.is_handle(x) for text in _share(name, x, halo)]
    gathers = engine.counters().gathers
    if gathers:
        complaints.append(f"{gathers} gathers before the comparison: there should be none")

    expected, reference_seconds = _on_rank_0(reference)
    gathered = {name: engine.gather(x, root=0) if engine.is_handle(x) else x for name, x in results.items()}
    lines = {}
    for name, reference_result in expected.items():
        agrees, lines[name] = _difference(gathered[name], reference_result, tolerance)
        if not agrees:
            complaints.append(f"{name}: {lines[name]}")

    everywhere = [f"rank {r}: {text}" for r, texts in enumerate(communicator.allgather(complaints)) for text in texts]
    _report(title, results, lines, seconds, reference_seconds)
    if everywhere:
        say("\n".join(f"  FAILED {text}" for text in everywhere))
        raise SystemExit(1)
    return gathered


def _named(results: Any) -> dict[str, Any]:
    return dict(results) if isinstance(results, Mapping) else {"result": results}


def _on_rank_0(reference: Callable[[], Any]) -> tuple[dict[str, Any], float]:
    """Results and seconds of the reference; the other ranks sleep meanwhile, so that they do not slow it down."""
    begin = time.perf_counter()
    expected = _named(reference()) if rank() == 0 else {}
    seconds = time.perf_counter() - begin
    native = engine.runtime().comm.native
    if native is not None:
        done = native.Ibarrier()
        while not done.Test():
            time.sleep(0.005)
    return expected, seconds


def _share(name: str, x: Any, halo: int) -> list[str]:
    """What is wrong with how `x` lies on this rank: an equal share, and `halo` cells around it at most, is right."""
    layout, ranks = x.layout, engine.runtime().size
    if layout is None or not layout.cut_axes:
        return [f"{name} is not cut: {x.shape} {x.dtype}, layout {layout}"]
    parts = [1] * x.ndim
    for dim, extent in zip(layout.dims, layout.mesh.shape, strict=True):
        parts[dim.axis] = extent
    complaints = [] if math.prod(parts) == ranks else [f"{name} lies on {math.prod(parts)} of {ranks} ranks"]
    share = tuple(-(-n // count) for n, count in zip(x.shape, parts, strict=True))
    block = x.local
    if any(n > most for n, most in zip(block.shape, share, strict=True)):
        complaints.append(f"{name} is cut unevenly: this rank owns {block.shape} of {x.shape}, a share is {share}")
    with_halo = [n + 2 * halo * (count > 1) for n, count in zip(share, parts, strict=True)]
    held, most = _allocation(block), math.prod(with_halo) * x.itemsize
    if held > most:
        complaints.append(f"{name}: this rank holds {held} bytes; its share and the halo are {most}")
    return complaints


def _allocation(block: np.ndarray) -> int:
    """Bytes of the memory that `block` is a view of."""
    while isinstance(block.base, np.ndarray):
        block = block.base
    return block.nbytes


def _difference(got: Any, expected: Any, tolerance: float) -> tuple[bool, str]:
    """Whether two results agree, and how well, in words."""
    got, expected = np.asarray(got), np.asarray(expected)
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return False, f"{got.shape} {got.dtype} instead of {expected.shape} {expected.dtype}"
    if np.array_equal(_bytes(got), _bytes(expected)):
        return True, "equal to the last bit"
    if expected.ndim == 0:
        tolerance = SCALAR_TOLERANCE
    largest = np.max(np.abs(np.subtract(got, expected, dtype=float))) / np.max(np.abs(expected))
    return bool(largest <= tolerance), f"largest relative difference {largest:.1e}, allowed {tolerance:.0e}"


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.atleast_1d(array)).view(np.uint8)


def _report(
    title: str, results: Mapping[str, Any], differences: Mapping[str, str], seconds: float, reference_seconds: float
) -> None:
    ranks = engine.runtime().size
    say(f"{title}, {ranks} rank{'s' * (ranks > 1)}")
    for name, difference in differences.items():
        x = results[name]
        what = f"{x.dtype}, {x.layout.describe()}" if engine.is_handle(x) and x.layout else f"{x:.6g}"
        say(f"  {name}: {what}; {difference}")
    times = reference_seconds / seconds
    say(f"  NumPy {reference_seconds:.3f} s, numpy_dist {seconds:.3f} s: {times:.2f} times NumPy's speed")
