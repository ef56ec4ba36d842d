"""Notes of calls: arguments that must be the same on all ranks, in words, which are compared where ranks meet next."""

from __future__ import annotations

import datetime
import decimal
import fractions
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType, EllipsisType

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Keywords
from numpy_dist.dispatch.core.operands import find_handles
from numpy_dist.ir.samples import MOST_SAMPLED, sample_of, step_of, text_of

_MOST_SHOWN = 8  # elements
_LONGEST = 64  # characters
_NUMBERS = (bool, int, float, complex, np.generic, np.dtype, decimal.Decimal, fractions.Fraction)
_TIMES = (datetime.date, datetime.time, datetime.timedelta)


class Noted:
    """A context: a call of something that all ranks run alike, whose arguments are compared where ranks meet next.

    What is called within it is part of it: its arguments may be those of one rank.

    Parameters
    ----------
    args, kwargs
        Of the call.
    written : sequence
        The arrays among them that the call writes to: they may hold anything before, on each rank something else.
    texts : bool
        Whether texts are compared; not if they may be names of files, of which each rank may have its own.
    """

    __slots__ = ("_args", "_checks", "_kwargs", "_texts", "_written")

    def __init__(
        self, args: Arguments, kwargs: Keywords, written: Sequence[object] = (), texts: bool = True
    ) -> None:
        self._args, self._kwargs, self._written, self._texts = args, kwargs, written, texts
        self._checks = engine.runtime().comm.checks

    def __enter__(self) -> None:
        checks = self._checks
        if checks is None:
            return
        engine.note_reads(find_handles(self._args, self._kwargs))
        if checks.within:
            self._checks = None
            return
        words = words_of(self._args, self._kwargs, self._written, self._texts)
        checks.within = True
        checks.called(words)

    def __exit__(self, *_: object) -> None:
        if self._checks is not None:
            self._checks.within = False


class NotedIfRecorded:
    """A context: a call of what is composed of other functions, noted when it has recorded or communicated something.

    What only asks for metadata or makes views may be called by one rank alone.

    Parameters
    ----------
    args, kwargs, texts
        As in `Noted`.
    written : callable
        Gives the arrays that the call writes to.
    """

    __slots__ = ("_args", "_checks", "_come", "_kwargs", "_texts", "_written")

    def __init__(
        self, args: Arguments, kwargs: Keywords, written: Callable[[], Sequence[object]], texts: bool
    ) -> None:
        self._args, self._kwargs, self._written, self._texts = args, kwargs, written, texts
        self._checks = engine.runtime().comm.checks

    def __enter__(self) -> None:
        if self._checks is not None:
            self._come = self._checks.journal.come

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        checks = self._checks
        if kind is None and checks is not None and not checks.within and checks.journal.come != self._come:
            checks.called(words_of(self._args, self._kwargs, self._written(), self._texts))


def words_of(args: Arguments, kwargs: Keywords, written: Sequence[object], texts: bool) -> list[str]:
    """The arguments of a call in words, but for sharded arrays, whose views are noted, and for what is written to."""
    words: list[str] = []
    unknown = set(map(id, written))
    for value in args:
        if id(value) not in unknown:
            _describe(value, words, texts)
    for name in sorted(kwargs):
        if name != "out" and id(kwargs[name]) not in unknown:
            told: list[str] = []
            _describe(kwargs[name], told, texts)
            words.append(f"{name}={' '.join(told)}")
    return words


def _describe(value: object, words: list[str], texts: bool = True) -> None:
    """Add words for an argument's values, as far as these must be the same on all ranks.

    Of functions their code is known and what they are called, not what they see; of other objects nothing.
    """
    if isinstance(value, engine.Handle):
        if value._storage is not None:
            return  # its view is noted
        value = value._array
    if isinstance(value, np.ndarray):
        words.append(_array_words(value))
    elif isinstance(value, (str, bytes)):
        if texts:
            words.append(_text_words(value))
    elif isinstance(value, _NUMBERS):
        words.append(text_of(value))
    elif isinstance(value, list | tuple | dict):
        items: Sequence[object] = list(value.values()) if isinstance(value, dict) else value
        if len(items) > MOST_SAMPLED:
            words.append(f"{len(items)} items")
            items = items[:: step_of(len(items))]
        for item in items:
            _describe(item, words, texts)
    elif isinstance(value, slice):
        bounds = []
        for bound in (value.start, value.stop, value.step):
            told: list[str] = []
            _describe(bound, told, texts)
            bounds.append(" ".join(told) or type(bound).__name__)  # the text of an object may be its address
        words.append(f"slice({', '.join(bounds)})")
    elif isinstance(value, (EllipsisType, type(None))):
        words.append(str(value))
    elif isinstance(value, _TIMES):
        words.append(repr(value))
    elif isinstance(value, partial):
        _describe((value.func, value.args, dict(sorted(value.keywords.items()))), words, texts)
    elif callable(value):
        words.append(_callable_words(value))


def _array_words(array: np.ndarray) -> str:
    kind = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    if array.size <= _MOST_SHOWN and array.dtype.kind in "biufcSU":
        return f"{kind} {array.tolist()}"
    return f"{kind} of checksum {zlib.crc32(sample_of(array)):08x}"


def _text_words(text: str | bytes) -> str:
    if len(text) <= _LONGEST:
        return repr(text)
    data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    return f"{text[:_LONGEST]!r}... ({len(text)}, of checksum {zlib.crc32(data):08x})"


def _callable_words(function: object) -> str:
    """The name of a function or class, and a checksum of its code; of other objects that can be called their class."""
    function = getattr(function, "__func__", function)
    named = function if hasattr(function, "__qualname__") or isinstance(function, np.ufunc) else type(function)
    name = f"{getattr(named, '__module__', None) or 'numpy'}.{getattr(named, '__qualname__', named.__name__)}"  # type: ignore[attr-defined]
    code = getattr(function, "__code__", None)
    return name if code is None else f"{name} of checksum {_checksum(code):08x}"


def _checksum(code: CodeType) -> int:
    """A checksum of what a function's code does, wherever it stands."""
    constants = [x for x in code.co_consts if isinstance(x, (int, float, complex, str, bytes, type(None)))]
    found = zlib.crc32(repr((constants, code.co_names, code.co_varnames)).encode(), zlib.crc32(code.co_code))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found = zlib.crc32(_checksum(inner).to_bytes(4, "little"), found)
    return found
