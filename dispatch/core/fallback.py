"""Gathered NumPy, for what has no distributed implementation: one rank runs it, all ranks get what came out.

Two ranks that computed the same thing would be wrong: eigenvectors of two LAPACK runs, stitched together, are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.dispatch.core import operands, outcome, policy, targets
from numpy_dist.dispatch.core.keys import name_of
from numpy_dist.dispatch.core.noting import Noted
from numpy_dist.dispatch.core.policy import Gathered, forget, gathered
from numpy_dist.ir import structure

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["Gathered", "announce_gather", "call", "forget", "gathered", "plain"]

ROOT = 0


def call(function: Function, args: Arguments, kwargs: Keywords, reason: str) -> Any:
    """Run a NumPy function on the values of distributed arrays.

    Collective, unless no argument is sharded (then every rank runs plain NumPy on its copies, without a warning).

    Parameters
    ----------
    function : callable
        A function, ufunc, or ufunc method such as ``np.add.at``.
    args, kwargs
        As the user gave them; our arrays may be nested in lists, tuples and dicts.
    reason : str
        Why there is no other way; the warning says it.

    Returns
    -------
    object
        What NumPy returned: arrays as distributed arrays (sharded if they are large), everything else as it is. What
        the function writes into (`out`, the target of ``np.copyto``) is written, and returned itself where NumPy does.

    Raises
    ------
    FallbackError
        If ``FALLBACK`` is "error", before anything is communicated.
    GatherError
        If the arguments have more bytes than ``MEMORY_BUDGET``.
    """
    if operands.survey(args, kwargs) != operands.SHARDED:
        return plain(function, args, kwargs)
    handles = operands.find_handles(args, kwargs)
    sharded = [x for x in handles if engine.is_sharded(x)]
    name = name_of(function)
    if targets.is_view_function(function):
        raise RuntimeError(
            f"internal error: {name} returns views and must never run on gathered copies, "
            f"but no structural rule took this call ({reason})"
        )
    unread = unread_outputs(function, args, kwargs)
    everywhere, action = calls_back(args, kwargs), "run NumPy on every rank, as it calls a function back"
    if not everywhere:
        everywhere = targets.writes_in_memory(function, args, kwargs)
        action = "run NumPy on every rank, which has a file of its own" if everywhere else "run NumPy on one rank"
    policy.permit(name, reason, gathered_bytes(sharded, unread), action)
    written = targets.writes(function, args, kwargs)
    run = _on_every_rank if everywhere else _on_one_rank
    recorder = engine.runtime().recorder
    watched = nullcontext() if recorder is None else recorder.function(name)
    with watched, Noted(args, kwargs, written, function not in targets.FILE_WRITERS):
        return run(function, args, kwargs, handles, written, unread)


def calls_back(args: Arguments, kwargs: Keywords) -> bool:
    """Whether NumPy will call a function of the user's: an argument, or what ``np.seterrcall`` has set."""
    return operands.has_callback(args, kwargs) or "call" in np.geterr().values()


def announce_gather(x: engine.Handle) -> None:
    """Apply the policy to an implicit gather (``__array__``) that is about to take place.

    Raises
    ------
    FallbackError, GatherError
        As `call` does.
    """
    policy.permit(
        "DistArray.__array__",
        "an ndarray was asked for, as by numpy.asarray(x)",
        x.nbytes,
        action="copy the whole array to every rank",
        advice="x.gather() does this without a warning, x.local is this rank's part, "
        "and numpy_dist.distribute(f) is for code that begins with numpy.asarray",
    )


def _announce_replication(x: engine.Handle, dtype: np.dtype) -> None:
    policy.permit(
        "DistArray.astype",
        f"arrays of dtype {dtype} are not distributed",
        x._array.nbytes,
        action="copy the whole array to every rank",
    )


engine.register_policy(_announce_replication)


def plain(function: Function, args: Arguments, kwargs: Keywords) -> object:
    """Run a NumPy function where no argument is sharded: plain NumPy on every rank, on its own copies.

    It writes straight into its targets; results that are views stay views; large new arrays are sharded. Files are
    written by rank 0 only, those in memory by every rank.
    """
    to_file = function in targets.FILE_WRITERS and not targets.writes_in_memory(function, args, kwargs)
    if to_file and engine.runtime().size > 1:
        return _on_one_rank(function, args, kwargs, operands.find_handles(args, kwargs), [], set())
    if operands.all_flat(args) and (not kwargs or operands.all_flat(kwargs.values())):  # nearly always
        handles = [x for x in ((*args, *kwargs.values()) if kwargs else args) if isinstance(x, engine.Handle)]
        plain_args = tuple([engine.plain(x) for x in args])
        plain_kwargs = {name: engine.plain(x) for name, x in kwargs.items()}
    else:
        handles = operands.find_handles(args, kwargs)
        inside = {id(x): engine.plain(x) for x in handles}
        plain_args, plain_kwargs = operands.substitute(args, inside), operands.substitute(kwargs, inside)
    originals: Sequence[object] = handles
    if kwargs or any([isinstance(x, np.ndarray) for x in args]):  # they may be written into, and returned
        originals = [*handles, *(x for x in targets.writes(function, args, kwargs) if isinstance(x, np.ndarray))]
    with outcome.Retold():
        result = function(*plain_args, **plain_kwargs)
    if isinstance(result, np.generic):
        return result
    return outcome.wrap(result, [engine.plain(x) for x in originals], originals)


_DTYPES = [type(np.dtype(code)) for code in "?bBhHiIlLqQfdFD"]
_SIMPLE = frozenset([int, float, bool, str, type(None), type, np.bool_, np.int64, np.float64, *_DTYPES])
_are_simple = _SIMPLE.issuperset
_LISTS = (list, tuple)
SLOW = object()
"""What `simple` returns for calls that it leaves to others."""


def simple(kind: type[engine.Handle], function: Function, args: Arguments, kwargs: Keywords) -> object:
    """`plain` for the calls that are frequent: of replicated arrays, numbers and names, which none of them holds.

    Parameters
    ----------
    kind : type
        The class of our arrays; those of other classes are left to others.
    """
    values = []
    ours = []
    for value in args:
        if type(value) is kind:
            if value._storage is not None:
                return SLOW
            ours.append(value)
            value = value._array
        elif type(value) in _LISTS:  # of arrays, or of numbers and names: nothing else is looked into
            if value and type(value[0]) is kind:
                for item in value:
                    if type(item) is not kind or item._storage is not None:
                        return SLOW
                ours += value
                value = type(value)([x._array for x in value])
            elif not _are_simple(map(type, value)):
                return SLOW
        elif type(value) not in _SIMPLE:
            return SLOW
        values.append(value)
    for value in kwargs.values():
        if type(value) not in _SIMPLE and (type(value) is not tuple or not _are_simple(map(type, value))):
            return SLOW
    if not ours or function in targets.FILE_WRITERS:
        return SLOW
    with outcome.Retold():
        result = function(*values, **kwargs)
    if isinstance(result, np.generic):
        return result
    if type(result) is np.ndarray and result.base is None and not engine.default_shard(result.nbytes):
        for x in ours:
            if x._array is result:
                return x
        return engine.replicated(result)
    rt = engine.runtime()
    shard = engine.from_numpys if rt.size == 1 and engine.has_ndarrays(rt) else engine.from_global
    return outcome.wrap(result, [x._array for x in ours], ours, shard)


def alone(
    function: Function,
    args: Arguments,
    kwargs: Keywords,
    written: Sequence[object] | None = None,
    instead: Function | None = None,
) -> object:
    """What NumPy's own function makes of arrays in the memory of the only process; `SLOW` for others.

    Parameters
    ----------
    written : sequence, optional
        Which of the arguments are written into; by default, those that `targets.writes` tells.
    instead : callable, optional
        What is called with the ndarrays in the function's place, and makes the same of them; a handle, perhaps.
    """
    rt = engine.runtime()
    if rt.size > 1 or not engine.has_ndarrays(rt):
        return SLOW
    handles = operands.find_handles(args, kwargs)
    if written is None:
        written, out = targets.writes(function, args, kwargs), targets.outputs(function, args, kwargs)
        if any(isinstance(x, np.ndarray) and all(x is not each for each in out) for x in written):
            return SLOW  # such targets are written by the fallback, which says so, with any number of ranks
    changed = {id(x) for x in written}
    engine.force(*(x for x in handles if not engine.is_at_hand(x)))  # all, before the memory of any is looked at
    inside = {}
    for x in sorted(handles, key=lambda x: id(x) not in changed):  # the first ones let all run that is pending
        array = engine.in_memory(x, id(x) in changed)
        if array is None:
            return SLOW
        inside[id(x)] = array
    with outcome.Retold():
        result = (instead or function)(*operands.substitute(args, inside), **operands.substitute(kwargs, inside))
    originals = [*handles, *(x for x in written if isinstance(x, np.ndarray))]
    return outcome.wrap(result, [inside.get(id(x), x) for x in originals], originals, engine.from_numpys)


def gathered_bytes(sharded: Iterable[engine.Handle], unread: set[int]) -> int:
    """Bytes of the arrays that one rank would get."""
    return sum(x._array.nbytes for x in sharded if id(x) not in unread)


def unread_outputs(function: Callable[..., object], args: Arguments, kwargs: Keywords) -> set[int]:
    """The ids of those arrays whose old values cannot matter: given as `out` and nowhere else, and written in full."""
    # `ufunc.accumulate` writes no more elements along its axis than the operand has; `out` may have more.
    if "where" in kwargs or getattr(function, "__name__", None) == "accumulate":
        return set()
    found = targets.outputs(function, args, kwargs)
    return {id(x) for x in found if engine.is_handle(x) and operands.occurrences([args, kwargs], x) == 1}


def _on_one_rank(
    function: Function,
    args: Arguments,
    kwargs: Keywords,
    handles: list[engine.Handle],
    written: Sequence[object],
    unread: set[int],
) -> object:
    """Rank 0 runs NumPy; its result, error and warnings go to all ranks."""
    runtime = engine.runtime()
    at_root = runtime.rank == ROOT
    inside: dict[int, Any] = {}
    for x in handles:
        values = engine.gather(x, root=ROOT) if _must_move(x, unread) else None
        if at_root:
            inside[id(x)] = _stand_in(x, values, unread)
    arrays = [x for x in written if not engine.is_handle(x)]
    large: list[np.ndarray] = []
    found = outcome.Outcome()
    if at_root:
        for array in arrays:
            # An error half-way must leave the targets alike on all ranks.
            inside[id(array)] = array if runtime.size == 1 else np.array(array, order="K")
        arguments = [inside[id(x)] for x in (*handles, *arrays)]
        with _alone(runtime):
            found = outcome.run(
                function, operands.substitute(args, inside), operands.substitute(kwargs, inside), arguments, large
            )
    if runtime.size > 1:
        payload = runtime.comm.bcast(outcome.dump(found, name_of(function)) if at_root else None, ROOT)
        found = found if at_root else outcome.load(payload)
    outcome.warn_again(found.warnings)
    if found.error is not None:
        raise found.error
    made = [engine.from_root(large[k] if at_root else None, ROOT) for k in range(found.large)]
    for target in written:
        _write_back(target, inside[id(target)] if at_root else None, runtime)
    return outcome.decode(found.tree, [*handles, *arrays], made)


def _must_move(x: engine.Handle, unread: set[int]) -> bool:
    return engine.is_sharded(x) and id(x) not in unread


def _stand_in(x: engine.Handle, values: np.ndarray | None, unread: set[int]) -> np.ndarray:
    """The ndarray that NumPy gets in place of `x`: of the same memory order, and read-only if `x` is.

    `values` are those of a sharded array. A replicated one is copied too: NumPy may be told to overwrite its input.
    """
    made = structure.like(x._array)
    if values is not None and values.strides == made.strides and values.flags.writeable:
        made = values
    elif id(x) not in unread:
        made[...] = engine.plain(x) if values is None else values
    made.flags.writeable = x._array.flags.writeable
    return made


def _write_back(target: object, value: np.ndarray | None, runtime: engine.Runtime) -> None:
    """Bring what rank 0 wrote into its stand-in to the target itself, on every rank."""
    if engine.is_sharded(target):
        engine.assign(target, engine.from_root(value, ROOT))
        return
    if runtime.size > 1:
        value = runtime.comm.bcast(value, ROOT)
    destination = engine.plain(target)
    if isinstance(destination, np.ndarray) and value is not None and destination is not value:
        np.copyto(destination, value, casting="unsafe")


def _on_every_rank(
    function: Function,
    args: Arguments,
    kwargs: Keywords,
    handles: list[engine.Handle],
    written: Sequence[object],
    unread: set[int],
) -> object:
    """All ranks run NumPy on copies of their own: a callback may do anything, also communicate."""
    inside = {id(x): _stand_in(x, engine.gather(x) if _must_move(x, unread) else None, unread) for x in handles}
    arrays = [x for x in written if not engine.is_handle(x)]
    result = function(*operands.substitute(args, inside), **operands.substitute(kwargs, inside))
    large: list[np.ndarray] = []
    tree = outcome.encode(result, [*inside.values(), *arrays], large)
    for target in written:
        if engine.is_handle(target):
            engine.assign(target, inside[id(target)])
    return outcome.decode(tree, [*handles, *arrays], [engine.from_global(array) for array in large])


class _Refusing:
    """The communicator while one rank works alone: an array that was not found in the arguments must not wait."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm

    def __getattr__(self, name: str) -> object:
        if name in ("rank", "size", "name", "node_size", "nodes"):
            return getattr(self._comm, name)
        _refuse()


def _refuse() -> NoReturn:
    raise RuntimeError(
        "a distributed array inside of an object that numpy_dist cannot look into (only lists, tuples and dicts) was "
        "read while one rank ran NumPy; pass the array itself, or x.gather()"
    )


@contextmanager
def _alone(runtime: Any) -> Iterator[None]:
    if runtime.size == 1:
        yield
        return
    comm, runtime.comm = runtime.comm, _Refusing(runtime.comm)
    try:
        yield
    finally:
        runtime.comm = comm
