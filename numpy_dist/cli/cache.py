"""`numpy-dist cache`: what the compiled kernels on disk take, and removing them."""

from __future__ import annotations

import json
from dataclasses import asdict

from numpy_dist.backends.compiled.store import Store
from numpy_dist.settings import config


def _store() -> Store:
    return Store(config.CACHE_DIR, config.CACHE_SIZE)


def _size(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    shift = max(0, min(40, (count.bit_length() - 1) // 10 * 10))
    unit = {0: "B", 10: "KiB", 20: "MiB", 30: "GiB", 40: "TiB"}[shift]
    return f"{count / (1 << shift):.{1 if shift else 0}f} {unit}"


def show(as_json: bool = False) -> int:
    """Print the cache's directory, how many kernels it holds, their bytes and the bound; returns the exit code."""
    usage = _store().usage()
    if as_json:
        print(json.dumps(asdict(usage)))
        return 0
    print(f"directory  {usage.directory}")
    print(f"kernels    {usage.kernels}")
    print(f"size       {_size(usage.bytes)} of {_size(usage.limit)}")
    if usage.problem is not None:
        print(f"not used   {usage.problem}")
    return 0


def clear() -> int:
    """Remove the compiled kernels; returns the exit code."""
    store = _store()
    removed = store.clear()
    left = store.usage()
    print(f"removed {removed} files from {left.directory}")
    if left.kernels:
        print(f"{left.kernels} kernels are left: they could not be removed, or have just been compiled")
        return 1
    return 0
