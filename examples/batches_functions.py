"""Sums of rows that come in batches, joined into one table, in plain NumPy."""

import numpy as np


def summed(batches):
    """Each batch's row sums and their squares in two columns, all batches below each other; and figures."""
    tables = []
    for batch in batches:
        sums = batch.sum(axis=1)
        tables.append(np.stack([sums, sums * sums], axis=1))
    table = np.concatenate(tables)
    return {
        "table": table,
        "largest": table[:, 0].max(),
        "rows above the mean": np.mean(table[:, 0] > table[:, 0].mean()),
    }
