"""What a rank holds: of an array read from a memory-mapped file on four ranks, and after many stencil steps.

Counted are the bytes of the rank's pool and its anonymous memory. Resident size says nothing: the pages of mapped files
count there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from harness import Comparison, main

RANKS = 4
SLACK = 1 << 20
"""Bytes of anonymous memory that may come and go beside the arrays: Python's own and MPI's."""


def anonymous() -> int:
    """Bytes of anonymous memory of this process, now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("benchmarks/memory.py reads RssAnon from /proc/self/status: it needs Linux")


class Peak:
    """The largest growth of anonymous memory within a `with` block, looked at every millisecond by a second thread."""

    def __enter__(self) -> "Peak":
        self.before = self.highest = anonymous()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.001):
            self.highest = max(self.highest, anonymous())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.highest = max(self.highest, anonymous())

    @property
    def growth(self) -> int:
        return self.highest - self.before


def on_a_rank(path: str, size: int, steps: int) -> None:
    """What every rank runs; rank 0 prints each measurement as the largest over the ranks."""
    import numpy as np
    from stencil_functions import plate, relax

    import numpy_dist
    from numpy_dist import engine

    runtime = engine.runtime()
    numpy_dist.asarray(np.ones((600, 600)))[1:-1].sum()  # what is loaded and set up once should not count
    runtime.comm.barrier()
    pool = runtime.pool
    pool.peak = before = pool.held
    with Peak() as peak:
        x = numpy_dist.asarray(np.load(path, mmap_mode="r"))
        engine.force(x)
    reading = [x.nbytes, pool.peak - before, peak.growth]
    edges = (x[1:-1, 1:-1] - x[:-2, 2:]).max()  # through the halo
    reading.append(pool.held - before)
    del x, edges

    grid = numpy_dist.asarray(plate(size))
    relax(grid, max(100, steps // 10))
    engine.force(grid)
    begin = pool.held + pool.free, anonymous()
    relax(grid, steps)
    engine.force(grid)
    growth = [pool.held + pool.free - begin[0], anonymous() - begin[1]]

    measured = [max(values) for values in zip(*runtime.comm.allgather(reading + growth), strict=True)]
    if runtime.rank == 0:
        print(json.dumps(measured), flush=True)


def run_ranks(rows: int, columns: int, size: int, steps: int) -> list[int]:
    """Write the file, start the ranks, and return what rank 0 printed."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "array.npy")
        file = np.lib.format.open_memmap(path, mode="w+", dtype=float, shape=(rows, columns))
        for row in range(rows):
            file[row] = row
        file.flush()
        del file
        worker = [__file__, "--on-a-rank", path, str(size), str(steps)]
        launcher = [sys.executable, "-c", "from numpy_dist.cli.main import main; raise SystemExit(main())", "run"]
        command = [*launcher, "-n", str(RANKS), *worker]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(f"the ranks failed with exit code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(quick: bool) -> list[Comparison]:
    rows, columns, size, steps = (1000, 1000, 400, 300) if quick else (6000, 6000, 1000, 1000)
    whole, peak, anon, with_halo, grown, grown_anon = run_ranks(rows, columns, size, steps)
    share = whole / RANKS
    ring = 2 * (rows + columns) * 8  # more than the halo of one cell around any share
    read, stepped = "asarray of a memmap, 4 ranks", f"{steps} stencil steps, growth"

    def quarter(case: str, held: float, target: str) -> Comparison:
        return Comparison(case, whole, held, "MiB", held / share, "x a quarter", target)

    def growth(case: str, more: float, target: str) -> Comparison:
        return Comparison(case, None, more, "MiB", more / 2**20, "MiB", target)

    return [
        quarter(f"{read}: pool, peak", peak, "<= 1"),
        quarter(f"{read}: anonymous, peak", anon, f"<= {1 + SLACK / share:.4f}"),
        quarter("after shifted slices of it: pool", with_halo, f"<= {1 + ring / share:.4f}"),
        growth(f"{stepped}: pool", grown, "<= 0"),
        growth(f"{stepped}: anonymous", grown_anon, f"<= {SLACK / 2**20:g}"),
    ]


if __name__ == "__main__":
    if "--on-a-rank" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--on-a-rank", nargs=3)
        where, grid_size, count = parser.parse_args().on_a_rank
        on_a_rank(where, int(grid_size), int(count))
    else:
        main("memory", measure)
