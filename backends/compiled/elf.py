"""Object files (64-bit ELF, little end first): what they need from elsewhere, and what becomes of them in memory."""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_X86_64 = 62
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8  # types of sections
_WRITABLE, _LOADED = 1, 2  # flags of sections
_MOST_ALIGNMENT = 1 << 12  # of a section: a page
_ABSOLUTE = 1  # R_X86_64_64: a word is the address of a symbol, plus a constant


class FormatError(ValueError):
    """The object file has another format."""


@dataclass(frozen=True)
class Image:
    """A kernel as it lies in memory, but for words that depend on where that is.

    Attributes
    ----------
    data : bytes
    entry : int
        Where the kernel begins.
    words : list of (int, int)
        Offsets of words, and what the address of the image is to be added to there.
    calls : list of (int, str, int)
        Offsets of words, the function whose address goes there, and a constant to add.
    """

    data: bytes
    entry: int
    words: list[tuple[int, int]]
    calls: list[tuple[int, str, int]]


@dataclass(frozen=True)
class _Section:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    about: int
    alignment: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: int  # 0: it is elsewhere
    value: int


def _refusing_damage(method: Callable[P, T]) -> Callable[P, T]:
    """A method that raises FormatError where the file points outside of itself."""

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as problem:
            raise FormatError(f"the object file is damaged: {problem}") from problem

    return checked


class ObjectFile:
    """An object file.

    Raises
    ------
    FormatError
        Where the file has another format, or points outside of itself; `image` raises it, too.
    """

    @_refusing_damage
    def __init__(self, code: bytes) -> None:
        if code[:5] != b"\x7fELF\x02" or sys.byteorder != "little":
            raise FormatError("object files other than 64-bit little-endian ELF are not supported")
        self.code = code
        (self.machine,) = struct.unpack_from("<H", code, 18)
        table, size, count = struct.unpack_from("<Q", code, 40)[0], *struct.unpack_from("<HH", code, 58)
        # name, type, flags, address, offset, size, link, info, alignment, entry size
        rows = [struct.unpack_from("<IIQQQQIIQQ", code, table + index * size) for index in range(count)]
        self.sections = [_Section(*row[1:3], *row[4:9]) for row in rows]
        for section in self.sections:
            if section.kind != _NO_BITS and section.offset + section.size > len(code):
                raise FormatError("the object file is damaged: a section lies outside of it")
        self.names = [row[0] for row in rows]
        self.symbols = [s for section in self.sections if section.kind == _SYMBOLS for s in self._symbols_of(section)]

    def _symbols_of(self, section: _Section) -> list[_Symbol]:
        strings = self.sections[section.link].offset
        found = []
        for start in range(section.offset, section.offset + section.size, 24):
            name, _, _, defined_in, value, _ = struct.unpack_from("<IBBHQQ", self.code, start)
            found.append(_Symbol(self._text(strings + name), defined_in, value))
        return found

    def _text(self, start: int) -> str:
        end = self.code.find(b"\0", start)
        if end < 0:
            raise FormatError("the object file is damaged: a name without an end")
        return self.code[start:end].decode()

    def undefined(self) -> list[str]:
        """The symbols that are needed from elsewhere."""
        return sorted({symbol.name for symbol in self.symbols if symbol.name and not symbol.section})

    @_refusing_damage
    def image(self, symbol: str) -> Image | None:
        """What the file becomes in memory, with `symbol` as its entry.

        None where more than absolute addresses has to be put in (which is what LLVM's large code model leaves on
        x86-64), or where memory is written: then a linker has to load the object file.
        """
        entry = next((s for s in self.symbols if s.name == symbol and s.section), None)
        if self.machine != _X86_64 or entry is None:
            return None
        places: dict[int, int] = {}
        data = bytearray()
        for number, section in enumerate(self.sections):
            # What unwinds the stack is left out: nothing is thrown through a kernel.
            if not section.flags & _LOADED or not section.size or self._section_name(number) == ".eh_frame":
                continue
            if section.flags & _WRITABLE or section.kind == _NO_BITS:
                return None
            if section.alignment > _MOST_ALIGNMENT or len(data) > len(self.code) + _MOST_ALIGNMENT * len(places):
                raise FormatError("the object file is damaged: its sections have no place")
            data += b"\0" * (-len(data) % max(1, section.alignment))
            places[number] = len(data)
            data += self.code[section.offset : section.offset + section.size]
        if entry.section not in places:
            return None
        words: list[tuple[int, int]] = []
        calls: list[tuple[int, str, int]] = []
        for offset, kind, target, addend in self._relocations(places):
            if kind != _ABSOLUTE:
                return None
            if not 0 <= offset <= len(data) - 8:
                raise FormatError("the object file is damaged: a relocation of nothing")
            if target.section in places:
                words.append((offset, places[target.section] + target.value + addend))
            elif not target.section and target.name:
                calls.append((offset, target.name, addend))
            else:
                return None
        start = places[entry.section] + entry.value
        if not all(0 <= place < len(data) for place in (start, *(place for _, place in words))):
            raise FormatError("the object file is damaged: an address outside of its sections")
        return Image(bytes(data), start, words, calls)

    def _section_name(self, number: int) -> str:
        (index,) = struct.unpack_from("<H", self.code, 62)
        return self._text(self.sections[index].offset + self.names[number])

    def _relocations(self, places: dict[int, int]) -> list[tuple[int, int, _Symbol, int]]:
        """Offset in the image, type, symbol and constant of all that has to be put into the sections of an image."""
        found = []
        for section in self.sections:
            if section.kind == _RELOCATIONS and section.about in places:
                for start in range(section.offset, section.offset + section.size, 24):
                    offset, what, addend = struct.unpack_from("<QQq", self.code, start)
                    found.append((places[section.about] + offset, what & 0xFFFFFFFF, self.symbols[what >> 32], addend))
        return found
