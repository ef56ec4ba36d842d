"""The matrices pattern: what becomes of a function of matrices.

Needs: whole matrices. Of a stack each rank has whole ones, and the library treats them there. A single matrix that
several ranks hold comes to all of them if it is small. A large one is treated by all of them together where the
function can do so (`single`), else it is gathered. On one rank the library treats it where it lies. `treatment` tells
which, for those who compute and for `explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.backends.library import compute, on_host
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.dispatch.core.policy import format_bytes
from numpy_dist.dispatch.core.registry import Outlook, decline
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.dispatch.patterns.replicate import known
from numpy_dist.dispatch.patterns.stacks import on_stacks
from numpy_dist.engine import events_reported
from numpy_dist.parallel import spectra
from numpy_dist.settings import config

SINGLE = "a single matrix"
_KNOWN = 64  # times MIN_SHARD_BYTES: a matrix that LAPACK treats faster on every rank than all ranks do together
Single = Function
Treatment = Literal["refused", "alone", "plain", "replicated", "single", "gathered", "stacks"]


def of_each(
    function: Function,
    a: object,
    *args: object,
    single: Single | None = None,
    normalize: Callable[[object], None] | None = None,
    **kwargs: object,
) -> Any:
    """A function of one matrix, for each in a stack (collective); `single` is the same of one that is sharded.

    `normalize` gives vectors that LAPACK has found the phases that `single` gives them, in place.
    """
    return of_stacks(local_of(function, *args, **kwargs), function, [as_handle(a)], [2], single, normalize)


def local_of(function: Function, *args: object, **kwargs: object) -> Function:
    """A function of a rank's own matrices, by the library of the device where they lie."""
    name = function.__name__
    return lambda *parts: compute(
        "linalg", lambda *values: function(*values, *args, **kwargs), *parts, name=name, args=args, **kwargs
    )


def of_stacks(
    local: Function,
    function: Function,
    operands: list[engine.Handle],
    items: list[int],
    single: Single | None = None,
    normalize: Callable[[object], None] | None = None,
) -> Any:
    """`local` on stacks of matrices; of several ranks, `single` on one matrix, unless it is wrong already."""
    name = function.__name__
    if normalize is not None and follows_rule_of_phases(operands):
        local = _normalized(local, normalize)
    how = treatment(operands, items, single is not None)
    if how == "refused":
        local(*(np.zeros(x.shape, x.dtype) for x in operands))  # NumPy's error
        decline("an array that is no matrix")
    if how == "stacks":
        return on_stacks(local, operands, items, name=name, library=True)
    first, *others = operands  # of which nobody may have the memory
    nothing = (np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in others)
    local(np.empty((0, *first.shape), first.dtype), *nothing)  # NumPy's errors
    if how == "alone":
        return alone(local, name, operands)
    if how == "replicated" or how == "plain" and normalize is not None and follows_rule_of_phases(operands):
        return on_every_rank(local, function, operands, chosen=single is not None)
    if single is None or how != "single":
        decline(SINGLE)
    return single(*operands)


def treatment(operands: list[engine.Handle], items: list[int], together: bool, widened: int = 1) -> Treatment:
    """What becomes of a call; `together`: all ranks can treat a matrix together. Known from metadata.

    `widened` times as large they will be.

    What comes to every rank has at most `MIN_SHARD_BYTES`, or `_KNOWN` times as many where that is only faster (not
    with ``FALLBACK="error"``).
    """
    if operands[0].ndim < 2:
        return "refused"
    if any(x.ndim > depth for x, depth in zip(operands, items, strict=True)):
        return "stacks"
    if engine.runtime().size == 1:
        return "alone"
    if not any(engine.is_sharded(x) for x in operands):
        return "plain"  # every rank has what NumPy needs
    if widened * max(x.nbytes for x in operands) <= _most_replicated(together):
        return "replicated"
    return "single" if together else "gathered"


def _most_replicated(together: bool) -> int:
    """The bytes of a matrix that comes to every rank, at most."""
    return config.MIN_SHARD_BYTES * (_KNOWN if together and config.FALLBACK != "error" else 1)


def follows_rule_of_phases(operands: list[engine.Handle]) -> bool:
    """Whether eigenvectors or singular vectors have the phases of `parallel.phases`, and not LAPACK's.

    Those of matrices that many ranks would treat together: known from metadata that are the same at any number of them.
    """
    if any(x.ndim != 2 for x in operands) or max(operands[0].shape) <= spectra.SMALL:
        return False
    return max(x.nbytes for x in operands) > _most_replicated(True)


def _normalized(local: Function, normalize: Callable[[object], None]) -> Function:
    def normalized(*parts: Any) -> object:
        made = local(*parts)
        if all(part.ndim == 2 for part in parts):  # not a stack of none, which is asked for NumPy's errors
            normalize(made)
        return made

    return normalized


def outlook_of(kind: str, operands: list[engine.Handle], items: list[int], together: bool, widened: int = 1) -> Outlook:
    """What `_of_stacks` would do, in words."""
    how = treatment(operands, items, together, widened)
    nbytes = widened * sum(x.nbytes for x in operands if engine.is_sharded(x))
    if how == "replicated":
        return Outlook("replicated", f"a small single matrix: {format_bytes(nbytes)} come to every rank", nbytes)
    if how == "single":
        return Outlook(kind, "a single matrix: redistributed, and its panels are sent to every rank, one at a time")
    if how == "alone":
        return Outlook(kind, "nothing is communicated: there is one rank")
    if how == "stacks":
        return Outlook(kind, "communicated: stacks are redistributed where a matrix is cut")
    return Outlook("gathered", SINGLE if how != "refused" else "an array that is no matrix")


def outlook_of_each(
    kind: str, together: bool = False, by_triangles: Callable[..., bool] | None = None
) -> Callable[..., Outlook]:
    """The outlook of a function of one matrix; `by_triangles` tells which calls take the way of tall matrices."""

    def outlook(a: engine.Handle, *args: object, **kwargs: object) -> Outlook:
        a = as_handle(a)
        if by_triangles is not None and by_triangles(a, *args, **kwargs):
            return outlook_of_triangles(kind, a)
        return outlook_of(kind, [a], [2], together)

    return outlook


def outlook_of_triangles(kind: str, a: engine.Handle) -> Outlook:
    n = min(a.shape)
    nbytes = n * n * np.result_type(float, a.dtype).itemsize
    return Outlook(kind, f"communicated: a triangle of each rank to every rank, {format_bytes(nbytes)} each")


def alone(function: Function, name: str, operands: list[engine.Handle]) -> Any:
    """NumPy's function on the memory of the only rank."""
    layouts = [engine.default_layout(tuple(x.shape)) for x in operands]
    held = blocks(*((engine.aligned(x, its), its) for x, its in zip(operands, layouts, strict=True)), library=True)
    with events_reported(name, names=_names_of_events(operands)):
        made = function(*held)
    return _wrapped(made)


def on_every_rank(local: Function, function: Function, operands: list[engine.Handle], chosen: bool) -> object:
    """NumPy's function on each rank, of matrices that all of them get to know (collective: an exchange for each)."""
    values = [known(x, function, "matrix", chosen) for x in operands]
    with events_reported(function.__name__, alike=True, names=_names_of_events(operands)):
        made = agreed(lambda: local(*values))
    return _wrapped(made)


def _names_of_events(operands: list[engine.Handle]) -> Mapping[str, str]:
    """By the kinds of events the function that meets them, if not the one that is called.

    Matrices of single precision are treated in double precision, and what is found is converted.
    """
    single = all(x.dtype.char in "fF" for x in operands)
    return {"overflow": "cast", "underflow": "cast"} if single else {}


def _wrapped(made: Any) -> object:
    if isinstance(made, tuple):
        return rebuild(type(made), [_wrapped(item) for item in made])
    if engine.lies_on_device(made):
        return engine.from_local(made, engine.default_layout(made.shape)) if made.ndim else on_host(made)[()]
    return engine.from_global(made) if isinstance(made, np.ndarray) else made


def agreed(compute: Callable[[], object]) -> Any:
    """What rank 0 computes, or its error: ranks that are not alike may differ in which matrix is singular."""
    try:
        made = compute()
    except np.linalg.LinAlgError as error:
        made = error
    made = engine.agreed(made)
    if isinstance(made, np.linalg.LinAlgError):
        raise made
    return made
