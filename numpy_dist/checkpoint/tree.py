"""Trees: the state of a program as JSON, with its arrays taken out and listed.

JSON has lists, texts, truth values, whole numbers, finite floats and None by itself. All else is an object of one item,
whose name says what it is. Code is never stored: a class is looked for, by its name, among the modules that the program
has imported, NumPy's and ours.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import importlib
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from numpy_dist import engine

__all__ = ["Unsaveable", "decode", "encode"]

_PLAIN = (type(None), bool, int, str)
_GROUPS: dict[str, Callable[[list], object]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_BYTES: dict[str, Callable[[bytes], object]] = {"bytes": bytes, "bytearray": bytearray}
_LONG = 1 << 13  # bits of an integer that is written as hexadecimal digits: Python limits decimal ones
# A dataclass that is one of these has more than its fields.
_VALUES = (dict, list, set, frozenset, tuple, str, bytes, bytearray, int, float, complex)


class Unsaveable(TypeError):
    """A value that is of no kind that checkpoints can have."""


def encode(state: object) -> tuple[object, list[object]]:
    """The tree of a state, and its arrays, each once: ndarrays and distributed arrays.

    Raises
    ------
    Unsaveable
        Naming the place and the type of what cannot be saved.
    """
    coder = _Encoder()
    try:
        return coder.tree(state, "state"), coder.arrays
    except RecursionError:
        raise Unsaveable("state is nested too deeply to be saved") from None


def decode(tree: object, arrays: list[object]) -> Any:
    """The state again, of a tree and its arrays.

    Raises
    ------
    ValueError
        If a class cannot be found, or the tree is none.
    """
    return _Decoder(arrays).value(tree)


class _Encoder:
    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._sources: dict[int, tuple[int, object]] = {}  # of random bits, which keeps their identities taken
        self._bits: dict[int, object] = {}  # sources by the identities of their bit generators
        self._around: set[int] = set()  # what the value lies in that is being encoded, by identity

    def tree(self, value: Any, place: str) -> Any:
        kind = type(value)
        if kind is int and value.bit_length() > _LONG:
            return {"int": hex(value)}
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if id(value) in self._around:
            raise Unsaveable(f"{place} lies within itself: a checkpoint has no cycles")
        self._around.add(id(value))
        found: object
        if kind is list:
            found = self._items(value, place)
        elif kind is dict:
            pairs = [[self.tree(k, f"{place}'s keys"), self.tree(v, f"{place}[{k!r}]")] for k, v in value.items()]
            found = {"dict": pairs}
        elif kind is complex:
            found = {"complex": self._items([value.real, value.imag], place)}
        elif kind.__name__ in _GROUPS and kind is _GROUPS[kind.__name__]:
            found = {kind.__name__: self._items(value, place)}
        elif kind.__name__ in _BYTES and kind is _BYTES[kind.__name__]:
            found = {kind.__name__: base64.b64encode(value).decode()}
        else:
            found = self._object(value, kind, place)
        self._around.discard(id(value))
        return found

    def _items(self, values: Any, place: str) -> list[object]:
        return [self.tree(value, f"{place}[{i}]") for i, value in enumerate(values)]

    def _object(self, value: object, kind: type, place: str) -> object:
        if isinstance(value, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
            source = value.bit_generator if isinstance(value, np.random.Generator) else value
            _refuse_unless_found(kind, place)
            self._refuse_other_bits(source, place)
            if id(source) in self._sources:
                return {"random": [_name(kind), self._sources[id(source)][0]]}
            self._sources[id(source)] = len(self._sources), source
            return {"random": [_name(kind), self.tree(_random_state(value), place)]}
        if isinstance(value, enum.Enum):
            _refuse_unless_found(kind, place)
            if value.name not in type(value).__members__:  # several flags, or none
                return {"flags": [_name(kind), self.tree(value.value, place)]}
            return {"enum": [_name(kind), value.name]}
        if dataclasses.is_dataclass(value) and not isinstance(value, (type, *_VALUES)):
            _refuse_unless_found(kind, place)
            fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
            names = dict.fromkeys((*fields, *getattr(value, "__dict__", ())))  # what methods have set, too
            pairs = [[name, self.tree(getattr(value, name), f"{place}.{name}")] for name in names]
            return {"dataclass": [_name(kind), pairs]}
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            _refuse_unless_found(kind, place)
            return {"namedtuple": [_name(kind), self._items(value, place)]}
        if isinstance(value, np.generic) and not isinstance(value, np.object_):
            return {"scalar": self._numbered(np.asarray(value), place)}
        if engine.is_handle(value) or kind is np.ndarray:
            return {"distributed" if engine.is_handle(value) else "array": self._numbered(value, place)}
        raise Unsaveable(
            f"{place} is a {kind.__module__}.{kind.__qualname__}. A checkpoint can have None, numbers, texts, bytes, "
            "lists, tuples, sets, dicts, dataclasses, named tuples, enumerations, NumPy's scalars, arrays and random "
            "generators"
        )

    def _refuse_other_bits(self, source: object, place: str) -> None:
        """Refuse bit generators that are not NumPy's, and a RandomState that shares its bits with something else.

        Raises
        ------
        Unsaveable
        """
        bits = source._bit_generator if isinstance(source, np.random.RandomState) else source
        if getattr(np.random, type(bits).__name__, None) is not type(bits):
            raise Unsaveable(f"{place} draws from a {_name(type(bits))}: a checkpoint can have NumPy's bit generators")
        if self._bits.setdefault(id(bits), source) is not source:
            raise Unsaveable(f"{place} and what came before it draw from the same bits, one of them as a RandomState")

    def _numbered(self, value: Any, place: str) -> int:
        if not engine.shardable(value.dtype) and value.dtype.itemsize:
            raise Unsaveable(f"{place} is an array of {value.dtype}, whose values have no fixed width")
        if value.dtype.names is not None:
            try:
                value.dtype.descr  # noqa: B018  # what the headers of files have
            except ValueError as error:
                raise Unsaveable(f"{place} is an array of {value.dtype}, which files cannot have: {error}") from None
        number = self._numbers.setdefault(id(value), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(value)  # which keeps its identity taken
        return number


class _Decoder:
    def __init__(self, arrays: list[object]) -> None:
        self._arrays = arrays
        self._sources: list[dict[object, object]] = []  # of random bits: what draws from them, by its class

    def value(self, tree: Any) -> Any:
        if type(tree) in _PLAIN or type(tree) is float:
            return tree
        if type(tree) is list:
            return [self.value(item) for item in tree]
        name, content = next(iter(tree.items()))
        if name == "float":
            return float(content)
        if name == "int":
            return int(content, 16)
        if name == "complex":
            return complex(*map(self.value, content))
        if name == "dict":
            return {self.value(key): self.value(value) for key, value in content}
        if name in _GROUPS:
            return _GROUPS[name](self.value(content))
        if name in _BYTES:
            return _BYTES[name](base64.b64decode(content))
        if name == "scalar":
            return self._arrays[content][()]
        if name in ("array", "distributed"):
            return self._arrays[content]
        return self._object(name, _found(content[0]), content[1])

    def _object(self, name: str, kind: Any, content: Any) -> object:
        if name == "random":
            return self._random(kind, self.value(content))
        if name == "enum":
            return kind[content]
        if name == "flags":
            return kind(self.value(content))
        if name == "namedtuple":
            return kind._make(self.value(content))
        if name == "dataclass":
            made = kind.__new__(kind)
            for field, value in content:
                object.__setattr__(made, field, self.value(value))
            return made
        raise ValueError(f"a checkpoint has a value of the kind {name!r}, which this version does not know")

    def _random(self, kind: Any, state: object) -> object:
        """A generator of a state, or of the source of bits of this number, which another one draws from, too."""
        if not isinstance(state, int):
            made = _random_again(kind, state)
            self._sources.append({kind: made})
            return made
        drawing = self._sources[state]
        if kind not in drawing:
            first = next(iter(drawing.values()))
            bits = first.bit_generator if isinstance(first, np.random.Generator) else first
            drawing[kind] = kind(bits) if issubclass(kind, np.random.Generator) else bits
        return drawing[kind]


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _refuse_unless_found(kind: type, place: str) -> None:
    """Refuse what could not be restored.

    Raises
    ------
    Unsaveable
    """
    try:
        found = _found(_name(kind)) is kind
    except ValueError:
        found = False
    if not found:
        raise Unsaveable(
            f"{place} is a {kind.__module__}.{kind.__qualname__}, and no class is found by this name: it could not be "
            "restored. Define it at the top level of a module"
        )


def _found(name: str) -> object:
    """A class by its name; its module must have been imported by the program, lest a file decide which code runs."""
    module, _, path = name.partition(":")
    if module.partition(".")[0] in ("numpy", "numpy_dist"):
        importlib.import_module(module)
    found: object = sys.modules.get(module)
    if found is None:
        raise ValueError(f"a checkpoint has a {path} of the module {module}, which has not been imported")
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise ValueError(f"a checkpoint has a {path}, which the module {module} does not have")
    return found


def _random_state(generator: Any) -> dict[str, object]:
    """All that decides what a generator will draw, and what its `spawn` makes."""
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)  # type: ignore[return-value]
    bit_generator = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
    seeds = bit_generator.seed_seq
    state = {"state": bit_generator.state, "seeds": None}
    if isinstance(seeds, np.random.SeedSequence):
        state["seeds"] = {**seeds.state, "n_children_spawned": seeds.n_children_spawned}
    return state


def _random_again(kind: type, state: Any) -> object:
    if issubclass(kind, np.random.RandomState):
        name = state["bit_generator"]
        made = kind(0 if name == "MT19937" else getattr(np.random, name)(0))
        made.set_state(state)
        return made
    seeds = None if state["seeds"] is None else np.random.SeedSequence(**state["seeds"])
    bit_generator = getattr(np.random, state["state"]["bit_generator"])(seeds)
    bit_generator.state = state["state"]
    return kind(bit_generator) if issubclass(kind, np.random.Generator) else bit_generator
