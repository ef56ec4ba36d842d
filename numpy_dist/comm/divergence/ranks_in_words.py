"""The numbers of ranks in a text for people."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ranks_in_words"]

_LONG = 5  # so many that follow each other are a range


def ranks_in_words(ranks: Iterable[int]) -> str:
    """Ranks as ``0, 1``, or ``0-7, 9`` where many follow each other."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    words = [[f"{run[0]}-{run[-1]}"] if len(run) >= _LONG else list(map(str, run)) for run in runs]
    return ", ".join(word for group in words for word in group)
