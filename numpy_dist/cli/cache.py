"""`numpy-dist cache`: what the compiled kernels on disk take, making them beforehand, and removing them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

from numpy_dist.backends.store import Store
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


def warm(ranks: int, command: Sequence[str]) -> int:
    """Run a script so that every kernel is compiled that it could use; returns the script's exit code.

    Parameters
    ----------
    ranks : int
        How many it is to run on: each loop of another number of ranks may be another kernel.
    command : sequence of str
        The script or ``-m module``, with its arguments.
    """
    store = _store()
    before = store.usage()
    if before.problem is not None:
        print(f"numpy-dist: {before.problem}", file=sys.stderr)
        return 2
    run = [sys.executable, "-P", "-m", "numpy_dist", "run", "-n", str(ranks), "--", *command]
    sys.stdout.flush()
    try:
        code = subprocess.run(run, env=os.environ | {"NUMPY_DIST_COMPILE": "first"}, check=False).returncode
    except KeyboardInterrupt:  # the script had it, too
        code = -signal.SIGINT
    after = store.usage()
    print(f"{after.kernels - before.kernels} kernels were added to {after.directory}, which has {after.kernels}")
    return 128 - code if code < 0 else code
