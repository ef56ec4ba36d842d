"""The replicate pattern: values that every rank has to know, such as edges of bins or probabilities.

Needs: few of them (`MOST_KNOWN`). All ranks get all; the user is told (`policy.replicate`), but of results on the way
(`few`). The result is an ndarray, alike on every rank.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.keys import name_of
from numpy_dist.dispatch.core.registry import Outlook, decline
from numpy_dist.dispatch.patterns.arguments import values_of
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.settings import config


def everywhere(x: object, function: Callable[..., object], reason: str, chosen: bool = False) -> np.ndarray:
    """All of an array on every rank, for NumPy's `function` (collective where it is sharded): `policy.replicate`."""
    if engine.is_sharded(x):
        policy.replicate(name_of(function), reason, x.nbytes, chosen)
    return engine.gather(x) if engine.is_handle(x) else np.asanyarray(x)


# What has to be known to every rank (values that are looked for, points between which others lie) has at most so many
# bytes.
MOST_KNOWN = 1 << 24


def most_known() -> int:
    """From how many bytes on what other ranks have is asked for, rather than known to all.

    That is slower for fewer; with ``FALLBACK="error"`` it is done wherever a replication is not native.
    """
    return min(MOST_KNOWN, policy.most_native()) if config.FALLBACK == "error" else MOST_KNOWN


def outlook_of_known(*arrays: object) -> Outlook:
    """The outlook of a function that has these arrays brought to every rank, or asked for if they are too many."""
    needed = [x for x in arrays if engine.is_sharded(x)] if engine.runtime().size > 1 else []
    nbytes = sum(x.nbytes for x in needed)
    if any(x.nbytes > most_known() for x in needed):
        return Outlook("parallel", "communicated: what is sought is sent to the ranks that hold its place in the order")
    return Outlook("parallel", f"communicated: {policy.format_bytes(nbytes)} come to every rank", nbytes)


def known(points: object, function: Callable[..., object], what: str, chosen: bool = False) -> np.ndarray:
    """Values that all ranks know from here on, as an ndarray (collective where they are sharded).

    NumPy's `function`, what they are, and whether the caller had a choice (`policy.replicate`), are for the user.
    """
    if not engine.is_sharded(points):
        return values_of(points)
    if points.nbytes > MOST_KNOWN:
        decline("there are too many sharded values for every rank to have them")
    policy.replicate(name_of(function), f"every rank needs the {what}", points.nbytes, chosen)
    return few(points)


def few(x: object) -> np.ndarray:
    """All of a small array on every rank: a result on the way, of which nobody is told (collective)."""
    if not engine.is_sharded(x):
        return values_of(x)
    layout = engine.runtime().replicated_layout(tuple(x.shape))
    return blocks((engine.copy(x, layout=layout), layout))[0]
