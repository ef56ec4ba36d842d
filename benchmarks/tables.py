"""What planning costs one rank as the job grows: time and memory for each way in which ranks communicate.

One rank of P that are not there plans and does its part (as in `numpy_dist.count_program`: the backend computes
nothing, and every other rank is taken to tell what this one does), with 64 elements on each rank at any P. Memory is
the peak of `tracemalloc` from the first statement on. The exponents are those of the growth between the two largest P:
1 is proportional to the ranks, 2 would be a table of all pairs.

    python benchmarks/tables.py [--ranks 16,256,1024,16384] [--where corner,edge,inside] [--only sort,take]
"""

from __future__ import annotations

import argparse
import atexit
import math
import os
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm import detect
from numpy_dist.comm.counting import Broadcasts, CountingCommunicator
from numpy_dist.scaling.simulation import in_child
from numpy_dist.settings import config

EACH = 64  # elements of a rank
SIDE = 8

Program = Callable[[int], Any]


def line(ranks: int) -> Any:
    """Ascending numbers, 64 on each rank."""
    return nd.arange(ranks * EACH) * 1.0


def square(ranks: int) -> Any:
    """A square matrix, 8 x 8 on each rank where their number is a square."""
    side = math.isqrt(ranks) * SIDE
    return nd.ones((side, side))


def regular(ranks: int) -> Any:
    """A square matrix with an inverse."""
    return nd.eye(math.isqrt(ranks) * SIDE)


def halo(ranks: int) -> Any:
    x = square(ranks)
    x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return x


def put(ranks: int) -> Any:
    x = line(ranks)
    x[nd.arange(ranks * EACH)[::-1].copy()] = 2.0
    return x


def mask_put(ranks: int) -> Any:
    x = line(ranks)
    x[x > 5.0] = 1.0
    return x


def checks(ranks: int) -> Any:
    comm = engine.runtime().comm
    for _ in range(10):
        comm.barrier()
    return comm.allgather(1)


def journal(ranks: int) -> Any:
    """A hundred statements, which the ranks' journals note, and a comparison."""
    x = line(ranks)
    for _ in range(100):
        x = x + 1.0
    engine.runtime().comm.barrier()
    return x


def wide(ranks: int) -> tuple[Any, Any]:
    """Matrices of few rows and of few columns, cut along the axis that a product sums."""
    return nd.ones((SIDE, ranks * SIDE), split=1), nd.ones((ranks * SIDE, SIDE), split=0)


def parquet(ranks: int) -> Any:
    """Two columns of a file with a row group for every 16 ranks."""
    with nd.open(PARQUET) as file:
        return file.read(["a", "b"])["a"] + 1.0


PARQUET = "/dev/shm/numpy_dist_tables.parquet"


def write_parquet(ranks: int) -> None:
    """The file that `parquet` reads."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"a": np.arange(ranks * EACH) * 1.0, "b": np.ones(ranks * EACH)})
    pyarrow.parquet.write_table(table, PARQUET, row_group_size=16 * EACH)


PATHS: dict[str, Program] = {
    "halo": halo,
    "shift": lambda p: line(p)[100:] + line(p)[:-100],
    "transpose": lambda p: square(p).T.copy() + square(p),
    "reverse": lambda p: line(p) + line(p)[::-1],
    "reshape": lambda p: square(p).reshape(-1) + 1.0,
    "concatenate": lambda p: nd.concatenate([line(p), line(p)]),
    "sum": lambda p: float(line(p).sum()),
    "sum of an axis": lambda p: square(p).sum(axis=0),
    "cumsum": lambda p: nd.cumsum(line(p)),
    "sort": lambda p: nd.sort(line(p)),
    "argsort": lambda p: nd.argsort(line(p)),
    "unique": lambda p: nd.unique(line(p)),
    "lexsort": lambda p: nd.lexsort((line(p), line(p))),
    "median": lambda p: nd.median(line(p)),
    "bincount": lambda p: nd.bincount(nd.arange(p * EACH) % 7),
    "take": lambda p: line(p)[nd.arange(p * EACH)[::-1].copy()],
    "put": put,
    "mask": lambda p: line(p)[line(p) > 5.0],
    "mask put": mask_put,
    "gather": lambda p: line(p).gather(),
    "item": lambda p: float(line(p)[5]),
    "product": lambda p: square(p) @ square(p),
    "tall product": lambda p: nd.ones((p * SIDE, 16)).T @ nd.ones((p * SIDE, 16)),
    "QR, tall": lambda p: nd.linalg.qr(nd.ones((p * SIDE, SIDE))),
    "partial product": lambda p: wide(p)[0] @ wide(p)[1],
    "outer product": lambda p: wide(p)[1] @ wide(p)[0],
    "contraction": lambda p: nd.tensordot(nd.ones((p, 4, 16)), nd.ones((16, 4, p)), ((1, 2), (1, 0))),
    "einsum": lambda p: nd.einsum("ij,ij->i", square(p), square(p)),
    "gram": lambda p: square(p).T @ square(p),
    "narrow product": lambda p: square(p) @ nd.ones((square(p).shape[1], 4)),
    "matrix and vector": lambda p: square(p) @ nd.ones(square(p).shape[1]),
    "solve": lambda p: nd.linalg.solve(regular(p), nd.ones(regular(p).shape[0])),
    "cholesky": lambda p: nd.linalg.cholesky(regular(p)),
    "eigenvalues": lambda p: nd.linalg.eigvalsh(regular(p)),
    "histogram": lambda p: nd.histogram(line(p), bins=20),
    "percentiles": lambda p: nd.percentile(line(p), [5, 50, 95]),
    "search": lambda p: nd.searchsorted(line(p), line(p) + 0.5),
    "sum at": lambda p: nd.add.at(line(p), nd.arange(p * EACH)[::-1].copy(), 1.0),
    "convolution": lambda p: nd.convolve(line(p), nd.ones(5), "same"),
    "percentiles of an axis": lambda p: nd.percentile(square(p), 30, axis=0),
    "random": lambda p: nd.random.default_rng(1).normal(size=p * EACH),
    "Parquet": parquet,
    "FFT": lambda p: nd.fft.fft(line(p)),
    "FFT of two axes": lambda p: nd.fft.fft2(square(p)),
    "checks": checks,
    "journal": journal,
}


WITH_ROOT = frozenset(("QR, tall", "Parquet"))


def rank_at(where: str, ranks: int) -> int:
    """A rank of a mesh that is a square, or nearly one."""
    side = math.isqrt(ranks)
    return {"corner": 0, "edge": side // 2, "inside": side * (side // 2) + side // 2}[where]


def planned(name: str, ranks: int, rank: int, traced: bool) -> tuple[float, int, str]:
    """Seconds or bytes of one rank, in a process of its own; and what went wrong."""

    def run(rank: int, broadcasts: Broadcasts, traced: bool) -> tuple[float, int]:
        detect.reset_rank_local()
        detect.current.set(CountingCommunicator(rank, ranks, broadcasts))
        with config(BACKEND="null", MIN_SHARD_BYTES=0, AT_ONCE=0):
            rt = engine.runtime()
            engine.force(nd.ones(ranks * EACH) + 1.0)
            rt.comm.barrier()
            if traced:
                tracemalloc.start()
            begin = time.perf_counter()
            result = PATHS[name](ranks)
            rt.program.run()
            seconds = time.perf_counter() - begin
            peak = tracemalloc.get_traced_memory()[1] if traced else 0
            del result
        return seconds, peak

    def work() -> tuple[float, int, str]:
        broadcasts: Broadcasts = {0: []}
        try:
            if name in WITH_ROOT and rank:  # it takes what rank 0 has broadcast
                run(0, broadcasts, False)
            return *run(rank, broadcasts, traced), ""
        except Exception as problem:  # what does not work without values is told
            return 0.0, 0, f"{type(problem).__name__}: {problem}".splitlines()[0][:70]

    return in_child(work, name, quiet=True, errors=True)


def exponent(few: float, many: float, ranks: tuple[int, int]) -> str:
    """That of the growth between two numbers of ranks."""
    return f"{math.log(many / few) / math.log(ranks[1] / ranks[0]):.2f}" if few and many else ""


def warm() -> None:
    """What is imported and kept when a function is called for the first time is none of a plan's costs."""
    write_parquet(1)
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        for program in PATHS.values():
            program(1)
        engine.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="16,256,1024,16384", help="default %(default)s")
    parser.add_argument("--where", default="inside", help="corner, edge, inside (default %(default)s)")
    parser.add_argument("--only", help="some of the ways, by name")
    given = parser.parse_args()
    atexit.register(lambda: os.path.exists(PARQUET) and os.remove(PARQUET))
    sizes = [int(n) for n in given.ranks.split(",")]
    warm()
    head = [f"{'':18}", f"{'rank':>7}", *(f"{f'{n:,} ranks':>22}" for n in sizes), "  exponents: time, memory"]
    print(*head, flush=True)
    for name in given.only.split(",") if given.only else PATHS:
        for where in given.where.split(","):
            cells, figures = [], []
            for size in sizes:
                rank = rank_at(where, size)
                if name == "Parquet":
                    write_parquet(size)
                seconds, _, problem = planned(name, size, rank, traced=False)
                _, peak, _ = planned(name, size, rank, traced=True)
                figures.append((seconds, peak))
                cells.append(f"{problem or f'{seconds * 1e3:,.1f} ms {peak / 1e6:8.2f} MB':>22}")
            grown = [exponent(a, b, (sizes[-2], sizes[-1])) for a, b in zip(*figures[-2:], strict=True)]
            print(f"{name:18}", f"{where:>7}", *cells, f"{grown[0]:>7} {grown[1]:>6}", flush=True)


if __name__ == "__main__":
    main()
