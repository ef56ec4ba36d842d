"""What one rank's run of a NumPy function gave, and how the other ranks get it: result, error and warnings."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.comm.portable import portable_error, restored
from numpy_dist.dispatch.core import aliases
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.frames import user_frame
from numpy_dist.ir.meta_arrays import as_strided

# -- the parts of a result, as they travel ---------------------------------------------------------------------------


@dataclass
class Sharded:
    """A large array that follows by itself: its number, and the order of its axes in memory."""

    number: int
    axes: tuple[int, ...]


@dataclass
class Replicated:
    """A small array, which every rank gets."""

    array: np.ndarray


@dataclass
class Argument:
    """One of the arguments themselves (`out`, or what a function returns as it is)."""

    number: int


@dataclass
class Several:
    """A list, tuple or named tuple."""

    kind: type
    items: list[aliases.Alias | Argument | Mapping | Replicated | Several | Sharded | Value]


@dataclass
class Mapping:
    """A dict."""

    items: dict[object, aliases.Alias | Argument | Mapping | Replicated | Several | Sharded | Value]


@dataclass
class Value:
    """Anything else: scalars, None, strings, dtypes; it is the same for the caller as for NumPy's."""

    value: object


def is_sharded_when_made(array: np.ndarray) -> bool:
    """Whether a new array like this one is sharded."""
    return array.ndim > 0 and engine.shardable(array.dtype) and engine.default_shard(array.nbytes)


def encode(
    result: Any, arguments: Sequence[object], large: list[np.ndarray]
) -> aliases.Alias | Argument | Mapping | Replicated | Several | Sharded | Value:
    """Describe a result; arrays that are to be sharded are appended to `large`.

    Parameters
    ----------
    result : object
        What NumPy returned.
    arguments : list of ndarray
        What stood in for our arrays and for the targets; a result that *is* one of them means the original.
    large : list of ndarray
        Filled.
    """
    number = _position(result, arguments)
    if number is not None:
        return Argument(number)
    if type(result) in _ARRAYS:
        alias = aliases.find(result, arguments)
        if alias is not None:
            return alias
        if not is_sharded_when_made(result):
            return Replicated(np.asarray(result))
        axes = memory_axes(result)
        large.append(np.ascontiguousarray(result.transpose(axes)))
        return Sharded(len(large) - 1, axes)
    if _is_sequence(result):
        return Several(type(result), [encode(item, arguments, large) for item in result])
    if type(result) is dict:
        return Mapping({key: encode(item, arguments, large) for key, item in result.items()})
    return Value(result)


def decode(
    tree: aliases.Alias | Argument | Mapping | Replicated | Several | Sharded | Value,
    originals: Sequence[object],
    large: Sequence[engine.Handle],
) -> object:
    """The result that `encode` described, with our arrays in place of NumPy's."""
    if isinstance(tree, Argument):
        return originals[tree.number]
    if isinstance(tree, aliases.Alias):
        return _alias_of(originals[tree.number], tree)
    if isinstance(tree, Sharded):
        back = tuple(tree.axes.index(axis) for axis in range(len(tree.axes)))
        return large[tree.number]._view(np.ndarray.transpose, back)
    if isinstance(tree, Replicated):
        return engine.replicated(tree.array)
    if isinstance(tree, Several):
        return rebuild(tree.kind, [decode(item, originals, large) for item in tree.items])
    if isinstance(tree, Mapping):
        return {key: decode(item, originals, large) for key, item in tree.items.items()}
    return tree.value


def _alias_of(original: Any, alias: aliases.Alias) -> engine.Handle | np.ndarray:
    array = alias.of(original._array if engine.is_handle(original) else original)
    return original._seen_as(array) if engine.is_handle(original) else array


def wrap(
    result: Any,
    arguments: Sequence[object],
    originals: Sequence[object],
    shard: Callable[[np.ndarray], Any] = engine.from_global,
) -> object:
    """A result that every rank has, with our arrays in place of NumPy's.

    Views of the arguments stay views, new large arrays are sharded by `shard`.
    """
    number = _position(result, arguments)
    if number is not None:
        return originals[number]
    if type(result) in _ARRAYS:
        result = np.asarray(result)
        if not is_sharded_when_made(result):
            return engine.replicated(result)
        is_view = not result.flags.writeable or any(np.may_share_memory(result, argument) for argument in arguments)
        if is_view:  # one of nothing shares no memory, and may be read-only
            return engine.replicated(result)
        base = result.base
        if type(base) is np.ndarray and base.base is None and (base.dtype, base.size) == (result.dtype, result.size):
            whole = shard(base)  # of which NumPy returns another view of all of it
            return whole._owned(whole._view(as_strided, result.shape, result.strides))
        return shard(result)
    if _is_sequence(result):
        return rebuild(type(result), [wrap(item, arguments, originals, shard) for item in result])
    if type(result) is dict:
        return {key: wrap(item, arguments, originals, shard) for key, item in result.items()}
    return result


_ARRAYS = (np.ndarray, np.memmap)


def _position(result: object, arguments: Sequence[object]) -> int | None:
    if isinstance(result, np.ndarray):
        for number, argument in enumerate(arguments):
            if result is argument:
                return number
    return None


def _is_sequence(result: object) -> bool:
    return type(result) in (list, tuple) or hasattr(type(result), "_make")


def memory_axes(array: np.ndarray) -> tuple[int, ...]:
    """The axes from outermost to innermost in memory."""
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))


# -- running ---------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What a run gave: a described result and how many arrays follow it, or an error; and the warnings on the way."""

    tree: Any = None
    large: int = 0
    error: Any = None
    warnings: list[tuple[type[Warning], Warning | str]] = field(default_factory=list)


def run(
    function: Function,
    args: Arguments,
    kwargs: Keywords,
    arguments: Sequence[object],
    large: list[np.ndarray],
) -> Outcome:
    """Call a NumPy function; its result, error and warnings are returned."""
    outcome = Outcome()
    with Recorded(outcome.warnings):
        try:
            outcome.tree = encode(function(*args, **kwargs), arguments, large)
        except Exception as error:  # every error is raised again on every rank
            outcome.error = error
    outcome.large = 0 if outcome.error is not None else len(large)
    return outcome


class Recorded:
    """A block in which all warnings are appended to `log`, as (category, message), in place of being shown.

    `warnings.catch_warnings` would make Python forget which warnings it has shown already, at each call.
    """

    __slots__ = ("_before", "_log")

    def __init__(self, log: list[tuple[type[Warning], Warning | str]]) -> None:
        self._log = log

    def __enter__(self) -> None:
        self._before = warnings.filters, warnings.showwarning
        warnings.filters = [("always", None, Warning, None, 0)]
        warnings.showwarning = self._note

    def __exit__(self, *error: object) -> None:
        warnings.filters, warnings.showwarning = self._before

    def _note(self, message: Warning | str, category: type[Warning], *rest: object, **options: object) -> None:
        self._log.append((category, message))


class Retold(Recorded):
    """A block whose warnings are issued at the user's line, under the user's filters: those may make errors of them.

    NumPy raises such an error before it writes.
    """

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def _note(self, message: Warning | str, category: type[Warning], *rest: object, **options: object) -> None:
        inside = warnings.filters, warnings.showwarning
        warnings.filters, warnings.showwarning = self._before
        try:
            warn_again([(category, message)])
        finally:
            warnings.filters, warnings.showwarning = inside


def warn_again(log: Sequence[tuple[type[Warning], Warning | str]]) -> None:
    """Issue recorded warnings at the user's line, under the user's filters."""
    if not log:
        return
    frame = user_frame()
    for category, message in log:
        warnings.warn_explicit(
            message,
            category,
            frame.f_code.co_filename,
            frame.f_lineno,
            module=frame.f_globals.get("__name__") or "<unknown>",
            registry=frame.f_globals.setdefault("__warningregistry__", {}),
        )


# -- travelling ------------------------------------------------------------------------------------------------------


def dump(outcome: Outcome, name: str) -> bytes:
    """An outcome as bytes. What cannot be pickled becomes an error on all ranks, rather than on one."""
    log = [(kind, _portable_warning(message)) for kind, message in outcome.warnings]
    travelling = Outcome(outcome.tree, outcome.large, outcome.error, log)
    if isinstance(outcome.error, Exception):
        travelling.error = portable_error(outcome.error)
    try:
        return pickle.dumps(travelling, 5)
    except Exception as error:  # pickling may fail in any way
        kind = type(outcome.tree.value).__name__ if isinstance(outcome.tree, Value) else "result"
        outcome.tree, outcome.large = None, 0
        outcome.error = TypeError(
            f"the {kind} that {name} returned on rank 0 cannot be sent to the other ranks: {error}"
        )
        return pickle.dumps(Outcome(error=outcome.error), 5)


def load(payload: bytes) -> Outcome:
    """The outcome from `dump`."""
    outcome: Outcome = pickle.loads(payload)
    if outcome.error is not None:
        outcome.error = restored(outcome.error)
    return outcome


def _portable_warning(message: Warning | str) -> Warning | str:
    try:
        return message if str(pickle.loads(pickle.dumps(message, 5))) == str(message) else str(message)
    except Exception:  # the text is what matters
        return str(message)
