"""How many messages a rank sends to move data, and how many words for a product, counted for ranks that do not exist.

One rank of the job runs with a share of its own; all others are taken to have the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Comparison

RANKS = 4, 64, 1024
SHARE, RANK = 1000, 1


def _sent(ranks: int, work: Callable[[np.ndarray, Any], object]) -> int:
    from numpy_dist.comm.counting import CountingCommunicator

    comm = CountingCommunicator(RANK, ranks, {})
    work(np.random.default_rng(1).random(SHARE), comm)
    return comm.counters.messages


def _redistribution(ranks: int) -> int:
    """Of a square array, from blocks to columns."""
    import numpy_dist
    from numpy_dist import config, engine
    from numpy_dist.layout.layout import Cut, Layout
    from numpy_dist.layout.mesh import Mesh

    columns = Layout((ranks, ranks), Mesh((ranks,)), (Cut(1, tuple(range(ranks + 1))),))
    with config(MIN_SHARD_BYTES=1):
        counts = numpy_dist.count_program(
            lambda x: engine.copy(x, layout=columns), np.broadcast_to(0.0, (ranks, ranks)), ranks=ranks
        )
    return counts.most("messages")


def _words_of_product(ranks: int) -> float:
    """What a rank sends in a product of square matrices, in matrices, times the square root of the ranks."""
    import numpy_dist
    from numpy_dist import config

    matrix = np.broadcast_to(0.0, (4 * ranks, 4 * ranks))
    with config(MIN_SHARD_BYTES=1):
        counts = numpy_dist.count_program(np.matmul, matrix, matrix, ranks=ranks, only=(0, ranks // 2))
    return float(counts.most("bytes")) / matrix.nbytes * ranks**0.5


def rows() -> list[Comparison]:
    """What a rank sends at each number of ranks, and the most that it may: one or two messages to each other rank."""
    from numpy_dist.parallel import picking, sample_sort

    made = []
    for ranks in RANKS:
        points = tuple(range(0, ranks * SHARE + 1, SHARE))
        anywhere = np.random.default_rng(2).integers(0, ranks * SHARE, SHARE // 5)
        near = np.arange(2 * SHARE, 4 * SHARE, 20)  # the rows of two ranks
        counted = {
            "blocks to columns": (_redistribution(ranks), ranks - 1),
            "sort": (_sent(ranks, lambda block, comm: sample_sort.sort(block, None, comm)), ranks - 1),
        }
        for name, wanted, partners in (("anywhere", anywhere, ranks - 1), ("at two ranks", near, 2)):
            values = np.zeros(len(wanted))

            def gather(block: np.ndarray, comm: Any, points: tuple = points, wanted: Any = wanted) -> None:
                picking.pick(block, points, wanted, comm)

            def scatter(
                block: np.ndarray, comm: Any, points: tuple = points, wanted: Any = wanted, values: Any = values
            ) -> None:
                picking.put(block, points, wanted, values, comm)

            counted[f"x[i], {name}"] = _sent(ranks, gather), 2 * partners
            counted[f"x[i] = y, {name}"] = _sent(ranks, scatter), 2 * partners
        made += [
            Comparison(f"{what}, {ranks} ranks", None, None, "s", sent, "messages of a rank", f"<= {most}")
            for what, (sent, most) in counted.items()
        ]
    return made + rows_of_products()


def rows_of_products() -> list[Comparison]:
    """The words that a rank sends in a product at each number of ranks: they fall with the root of it."""
    meaning = "matrices that a rank sends, times the root of the ranks"
    return [
        Comparison(f"a @ b, {ranks} ranks", None, None, "s", _words_of_product(ranks), meaning, "<= 2.5")
        for ranks in RANKS
    ]
