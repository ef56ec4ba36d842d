"""Arguments of a call: which types we know, which arrays of ours they hold, and what stands in for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Keywords
from numpy_dist.ir.array_type import ndarray

_SCALARS = (np.bool_, np.integer, np.floating, np.complexfloating, np.datetime64, np.timedelta64, np.str_, np.bytes_)


def _leaves(kinds: Iterable[type]) -> Iterator[type]:
    for kind in kinds:
        yield kind
        yield from _leaves(kind.__subclasses__())


# Types whose values the engine takes as they are. Array classes of ours are added at first sight.
PLAIN: set[type] = {np.ndarray, int, float, complex, bool, *_leaves(_SCALARS)}
# Types that were seen to be convertible by np.asarray, or to belong to somebody else.
_CONVERTIBLE: set[type] = {list, tuple, str, bytes, type(None)}
_FOREIGN: set[type] = set()
_MOST_TYPES = 1024  # programs that make types without end must not fill memory


def is_foreign(kind: type) -> bool:
    """Whether arrays of this type have rules of their own, which plain NumPy on their values would break.

    Subclasses of ndarray are foreign (masked arrays, matrices, quantities), but for memory maps and the namespace's own
    `ndarray`; so is what overrides NumPy's protocols without being ours.
    """
    if kind in PLAIN or kind in _CONVERTIBLE:
        return False
    if kind in _FOREIGN:
        return True
    if issubclass(kind, engine.Handle):
        PLAIN.add(kind)
        return False
    if issubclass(kind, np.ndarray):
        foreign = not issubclass(kind, np.memmap) and kind is not ndarray
    else:
        foreign = hasattr(kind, "__array_function__") or hasattr(kind, "__array_ufunc__")
        # NumPy's scalars override nothing, whatever their class has.
        foreign = foreign and not issubclass(kind, np.generic)
    known = _FOREIGN if foreign else _CONVERTIBLE
    if len(known) < _MOST_TYPES:
        known.add(kind)
    return foreign


def as_operand(value: object) -> engine.Handle | np.ndarray:
    """An input of a ufunc as an array, if it is neither an array nor a number: lists, tuples, buffers."""
    if isinstance(value, engine.Handle):
        return value
    if isinstance(value, np.memmap) or type(value) is ndarray:
        return value.view(np.ndarray)
    if isinstance(value, list | tuple) and any(_holds_handle(item) for item in value):
        return np.stack([as_operand(item) for item in value])
    return np.asarray(value)


def _holds_handle(value: object) -> bool:
    if isinstance(value, engine.Handle):
        return True
    return isinstance(value, list | tuple) and any(_holds_handle(item) for item in value)


# What arguments hold, see `survey`.
NOTHING, REPLICATED, SHARDED = 0, 1, 2

# Types of arguments that hold no arrays of ours, besides `PLAIN`.
_ATOMS = frozenset({str, bytes, type(None), type, bool, type(np._NoValue), type(Ellipsis), np.ufunc})


def survey(args: Iterable[object], kwargs: Keywords) -> int:
    """Whether the arguments hold a sharded array of ours (SHARDED), only replicated ones (REPLICATED), or NOTHING."""
    found = NOTHING
    for value in args if not kwargs else (*args, *kwargs.values()):
        if isinstance(value, engine.Handle):
            if engine.is_at_hand(value) or value._storage is not None:
                return SHARDED
            found = REPLICATED
        elif type(value) not in PLAIN and type(value) not in _ATOMS:
            for x in find_handles(value):
                if engine.is_at_hand(x) or x._storage is not None:
                    return SHARDED
                found = REPLICATED
    return found


def any_sharded(args: Iterable[object], kwargs: Keywords) -> bool:
    """Whether an argument is a sharded array, or nested containers hold one."""
    return survey(args, kwargs) == SHARDED


def all_flat(values: Iterable[object]) -> bool:
    """Whether arrays of ours are among these values themselves, if anywhere, and not inside of containers."""
    for value in values:
        if type(value) not in PLAIN and type(value) not in _ATOMS and not isinstance(value, (engine.Handle, np.dtype)):
            return False
    return True


def find_handles(*containers: object) -> list[engine.Handle]:
    """Our arrays in nested lists, tuples and dicts, each once, in order of appearance."""
    found: dict[int, engine.Handle] = {}
    for value in containers:
        _find(value, found)
    return list(found.values())


def _find(value: object, found: dict[int, engine.Handle]) -> None:
    if isinstance(value, engine.Handle):
        found.setdefault(id(value), value)
    elif isinstance(value, list | tuple):
        for item in value:
            _find(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _find(item, found)
    elif isinstance(value, slice):
        _find((value.start, value.stop, value.step), found)


def substitute(value: object, inside: Mapping[int, object]) -> Any:
    """`value` with each object whose id is in `inside` replaced; containers that hold none are kept as they are."""
    if id(value) in inside:
        return inside[id(value)]
    if isinstance(value, list | tuple):
        items = [substitute(item, inside) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return rebuild(type(value), items)
    if isinstance(value, dict):
        changed = {key: substitute(item, inside) for key, item in value.items()}
        return value if all(changed[key] is value[key] for key in value) else changed
    if isinstance(value, slice):
        old = (value.start, value.stop, value.step)
        parts = [substitute(part, inside) for part in old]
        return value if all(new is part for new, part in zip(parts, old, strict=True)) else slice(*parts)
    return value


def occurrences(value: object, wanted: object) -> int:
    """How often an object occurs in nested containers."""
    if value is wanted:
        return 1
    if isinstance(value, list | tuple):
        return sum(occurrences(item, wanted) for item in value)
    if isinstance(value, dict):
        return sum(occurrences(item, wanted) for item in value.values())
    return 0


def rebuild(kind: type, items: Sequence[object]) -> Any:
    """A list, tuple or named tuple of these items."""
    if hasattr(kind, "_make"):
        return kind._make(items)
    return tuple(items) if issubclass(kind, tuple) else list(items)


def has_callback(args: Iterable[object], kwargs: Keywords) -> bool:
    """Whether an argument is a function that NumPy would call back; types are dtypes or harmless."""
    return any(_is_callback(value) for value in args) or any(_is_callback(value) for value in kwargs.values())


def _is_callback(value: object) -> bool:
    if type(value) in PLAIN or isinstance(value, type | np.ndarray | np.dtype | engine.Handle):
        return False
    if isinstance(value, list | tuple):
        return any(_is_callback(item) for item in value)
    if isinstance(value, dict):
        return any(_is_callback(item) for item in value.values())
    return callable(value)
