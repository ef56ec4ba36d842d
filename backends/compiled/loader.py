"""From a kernel as it is kept to its address, without Numba, and for most kernels without LLVM: both load slowly."""

from __future__ import annotations

import ctypes
import functools
import json
import mmap
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy_dist.backends.compiled.elf import Image

_WORD = 8

_lock = threading.Lock()


class LoadError(RuntimeError):
    """The kernel needs functions that this process does not have, is none, or cannot be put into memory."""


def pack(symbol: str, externals: list[str], code: bytes, image: Image | None = None) -> bytes:
    """A kernel as it is kept: its symbol, the functions that it calls by name, and its image, else the object file."""
    head: dict[str, object] = {"symbol": symbol, "externals": externals}
    if image is not None:
        head["image"] = {"entry": image.entry, "words": image.words, "calls": image.calls}
        code = image.data
    return json.dumps(head).encode() + b"\n" + code


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def resolvable(name: str) -> bool:
    """Whether every process finds the function `name` (those of the C library and of libm)."""
    return hasattr(_process(), name)


def load(content: bytes) -> int:
    """The address of the kernel in what `pack` made; it stays loaded as long as the process.

    Raises
    ------
    LoadError
        Where it cannot be run here: LLVM itself would end the process.
    """
    head, _, code = content.partition(b"\n")
    try:
        description = json.loads(head)
        symbol, needed, image = description["symbol"], set(description["externals"]), description.get("image")
        if image is not None:
            entry, words, calls = image["entry"], image["words"], image["calls"]
            _check(code, entry, words, calls)
            needed |= {name for _, name, _ in calls}
        missing = sorted(name for name in needed if not resolvable(name))
    except (ValueError, KeyError, TypeError) as problem:
        raise LoadError(f"this is no kernel: {problem!r}") from problem
    if missing:
        raise LoadError(f"the kernel needs {', '.join(missing)}, which this process does not have")
    if image is not None:
        return _place(code, words, calls) + entry
    from numpy_dist.backends.compiled import linker

    with _lock:
        address = linker.link(code, symbol)
    if not address:
        raise LoadError(f"the object file has no function {symbol}")
    return address


def _check(data: bytes, entry: int, words: list[list[int]], calls: list[tuple[int, str, int]]) -> None:
    """ValueError where an image begins, writes or points outside of itself."""
    starts = [offset for offset, _ in words] + [offset for offset, _, _ in calls]
    if not all(type(start) is int and 0 <= start <= len(data) - _WORD for start in starts):
        raise ValueError("a word outside of the image")
    inside = [entry] + [target for _, target in words]
    if not all(type(place) is int and 0 <= place < len(data) for place in inside):
        raise ValueError("an address outside of the image")
    if not all(type(name) is str and type(addend) is int and abs(addend) < 1 << 31 for _, name, addend in calls):
        raise ValueError("a call of nothing")


def _place(data: bytes, words: list[list[int]], calls: list[tuple[int, str, int]]) -> int:
    """The address of an image, in memory that can be executed and no longer written.

    Python's `mmap` would give it back when the interpreter ends, and threads may run the kernel until the process does.
    """
    system = _process()
    reserve, protect = system.mmap, system.mprotect
    reserve.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    reserve.restype = ctypes.c_void_p
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = reserve(None, len(data), mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise LoadError(f"there is no memory for a kernel: error {ctypes.get_errno()}")
    filled = bytearray(data)
    for offset, target in words:
        struct.pack_into("<Q", filled, offset, address + target)
    for offset, name, addend in calls:
        function = ctypes.cast(getattr(system, name), ctypes.c_void_p).value or 0
        struct.pack_into("<Q", filled, offset, function + addend)
    ctypes.memmove(address, bytes(filled), len(filled))
    if protect(address, len(data), mmap.PROT_READ | mmap.PROT_EXEC):
        raise LoadError(f"the system does not let this process execute what it has written: error {ctypes.get_errno()}")
    return address
