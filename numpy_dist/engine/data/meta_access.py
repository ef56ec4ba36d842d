"""Message of an access to a meta array's pages: which function, at which line, which array; then the process ends.

Whoever only wants to show a meta array goes on: pytest, debuggers and recorders of errors print the local variables of
our functions, too. NumPy's code for printing finds zeros, and a `WithoutElements` is raised in it.

Another access is an error of ours (see `ir.structure`), and the signal would end the process without a word. A
handler of the signal that is written in Python would never run, since Python calls it between two instructions of its
own, and the instruction that reads a meta array is never left. So there is a handler in machine code, for one kind of
processor: it looks whether the address is a meta array's, and calls Python only then, at a safe place in NumPy's loops,
on the stack that was interrupted (an alternative one is small). Another access goes to whoever had the signal before.
Where there is no such handler, `faulthandler` tells the line, unless somebody has enabled it already.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import platform
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from numpy_dist.comm.divergence.positions import called_function, line_of
from numpy_dist.engine.memory.handle import Handle, is_sharded
from numpy_dist.engine.runtime import STARTED, Runtime, current
from numpy_dist.frames import user_call
from numpy_dist.ir.meta_arrays import anchored

_SIGINFO, _ONSTACK, _NODEFER = 0x4, 0x08000000, 0x40000000  # of Linux: SA_SIGINFO, SA_ONSTACK, SA_NODEFER
_NO_ACCESS = 0  # PROT_NONE
_MOST_NAMED = 3
_PRINTING = "numpy._core.arrayprint"
_kept: list[Any] = []  # what the handler needs, as long as the process lives
_readers: list[int] = []  # the thread for which meta arrays can be read, while they can


class WithoutElements(RuntimeError):
    """A meta array, which stands for a sharded array within the package, was asked for its elements to be printed."""

    def __str__(self) -> str:
        return "the array stands for a sharded one, and has no elements; x.gather() gives an ordinary array"


class _Action(ctypes.Structure):
    """``struct sigaction`` of Linux on 64-bit processors."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def install(_: Runtime | None = None) -> None:
    """Have accesses to meta arrays told from now on, in this process. Nothing the second time."""
    if _kept:
        return
    known = sys.platform == "linux" and platform.machine() == "x86_64" and sys.implementation.name == "cpython"
    if known and _install_handler():
        return
    if not faulthandler.is_enabled() and sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
    _kept.append(None)


def _install_handler() -> bool:
    """Whether the handler is there; it is not where the system lets nobody execute what he has written."""
    library = ctypes.CDLL(None)
    told = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(_tell)
    shut = _Shut()
    before, ours = _Action(), _Action()
    address = _page(library)
    if address is None or library.sigaction(signal.SIGSEGV, None, ctypes.byref(before)):
        return False
    kept = address + mmap.PAGESIZE - ctypes.sizeof(_Action)  # of what was there before, as long as the code
    code = _machine_code(library, anchored(), told, shut, before, kept)
    ctypes.memmove(address, code, len(code))
    ctypes.memmove(kept, ctypes.addressof(before), ctypes.sizeof(_Action))
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if library.mprotect(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
        return False
    ours.handler, ours.flags, ours.mask = address, _SIGINFO | _ONSTACK | before.flags & _NODEFER, before.mask
    if library.sigaction(signal.SIGSEGV, ctypes.byref(ours), None):
        return False
    _kept.extend((library, told, before, shut))
    return True


def _page(library: ctypes.CDLL) -> int | None:
    """A page of memory that nobody gives back: a signal may come when the interpreter has ended."""
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    library.mmap.restype = ctypes.c_void_p
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = library.mmap(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
    return None if address == ctypes.c_void_p(-1).value else address


def _machine_code(
    library: ctypes.CDLL, pages: tuple[int, int], told: object, shut: _Shut, before: _Action, kept: int
) -> bytes:
    """The handler: ``if (info->address - start < length) told(...) on the interrupted stack; else before(...)``.

    Where `told` returns true, Python takes the truth value of `shut` as soon as the signal has been handled.
    """

    def word(value: int) -> bytes:
        return struct.pack("<Q", value)

    def address_of(function: Any) -> bytes:
        return word(ctypes.cast(function, ctypes.c_void_p).value or 0)

    python = ctypes.pythonapi
    asking = (
        b"\x48\xbf" + address_of(python.PyObject_IsTrue) + b"\x48\xbe" + word(id(shut))  # mov rdi, ...; mov rsi, shut
        + b"\x48\xb8" + address_of(python.Py_AddPendingCall) + b"\xff\xd0"  # mov rax, ...; call rax
    )
    telling = (
        b"\x53"  # push rbx
        b"\x48\x89\xe3"  # mov rbx, rsp
        b"\x48\x8b\x82\xa0\x00\x00\x00"  # mov rax, [rdx + 0xa0]: the interrupted stack, of ucontext_t
        b"\x48\x89\xc1\x48\x29\xe1"  # mov rcx, rax; sub rcx, rsp
        b"\x48\x81\xf9\x00\x00\x01\x00\x72\x0a"  # cmp rcx, 64 KiB; jb over the next two: it is this stack
        b"\x48\x89\xc4\x48\x81\xec\x00\x02\x00\x00"  # mov rsp, rax; sub rsp, 512: beyond its red zone
        b"\x48\x83\xe4\xf0"  # and rsp, -16
        b"\x48\xb8" + address_of(told) + b"\xff\xd0"  # mov rax, told; call rax
        b"\x85\xc0\x74" + bytes([len(asking)]) + asking +  # test eax, eax; jz over what asks
        b"\x48\x89\xdc"  # mov rsp, rbx
        b"\x5b\xc3"  # pop rbx; ret
    )
    if before.handler and before.handler != int(signal.SIG_IGN):
        rest = b"\x48\xb8" + word(before.handler) + b"\xff\xe0"  # mov rax, before; jmp rax
    else:  # sigaction(SIGSEGV, &before, NULL); raise(SIGSEGV)
        rest = (
            b"\x48\x83\xec\x08"  # sub rsp, 8
            b"\xbf" + struct.pack("<I", signal.SIGSEGV) + b"\x48\xbe" + word(kept) + b"\x31\xd2"
            b"\x48\xb8" + address_of(library.sigaction) + b"\xff\xd0"
            b"\xbf" + struct.pack("<I", signal.SIGSEGV) + b"\x48\xb8" + address_of(library["raise"]) + b"\xff\xd0"
            b"\x48\x83\xc4\x08\xc3"  # add rsp, 8; ret
        )
    return (
        b"\x48\x8b\x46\x10"  # mov rax, [rsi + 16]: the address, of siginfo_t
        b"\x48\xb9" + word(pages[0]) + b"\x48\x29\xc8"  # mov rcx, start; sub rax, rcx
        b"\x48\xb9" + word(pages[1]) + b"\x48\x39\xc8"  # mov rcx, length; cmp rax, rcx
        b"\x73" + bytes([len(telling)]) + telling + rest  # jae over what tells
    )


def _tell(number: int, info: int, context: int) -> bool:
    """Let meta arrays be read, for now, by who prints them; else write the message, and give the signal back.

    The instruction runs again in both cases; in the second one it ends the process.
    """
    library, _, before, _ = _kept
    frame = sys._getframe(1)
    if _is_printing(frame) and not _readers and not library.mprotect(*anchored(), mmap.PROT_READ):
        _readers.append(threading.get_ident())
        return True
    library.sigaction(number, ctypes.byref(before), None)
    address = ctypes.c_uint64.from_address(info + 16).value
    os.write(2, message(frame, address).encode(errors="replace"))
    return False


def _is_printing(frame: FrameType | None) -> bool:
    """Whether the innermost frames are NumPy's, which print an array."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module == _PRINTING:
            return True
        if module.partition(".")[0] != "numpy":
            return False
        frame = frame.f_back
    return False


class _Shut:
    """What Python is to take for a truth value at its next instruction: meta arrays cannot be read any more."""

    def __bool__(self) -> bool:
        address, length = anchored()
        _kept[0].mprotect(address, length, _NO_ACCESS)
        by_main_thread = _readers[0] == threading.main_thread().ident  # which is the one that asks
        _readers.clear()
        if by_main_thread:
            raise WithoutElements
        return False


def message(frame: FrameType, address: int) -> str:
    """What is said of an access to this address from a frame."""
    user, called = user_call(frame)
    known = current.get()
    rank = "" if known is None else f" on rank {known.rank} of {known.size}"
    lines = [
        f"numpy_dist: internal error{rank}: the elements of a sharded array were accessed where there are none, "
        f"by {called_function(called)} at {line_of(user.f_code, user.f_lasti)}; the process ends here\n"
    ]
    seen: list[np.ndarray] = []
    for name, array in _arrays(frame):
        if len(seen) < _MOST_NAMED and _covers(array, address) and not any(array is other for other in seen):
            seen.append(array)
            lines.append(f"  {name}: shape {array.shape}, dtype {array.dtype}, strides {array.strides}\n")
    inner = line_of(frame.f_code, frame.f_lasti)
    return "".join([*lines, f"  in {inner}; x.gather() gives an ordinary array\n"])


def _arrays(frame: FrameType | None) -> Iterator[tuple[str, np.ndarray]]:
    """Names and ndarrays of the local variables of a frame and its callers, innermost first."""
    while frame is not None:
        for name, value in frame.f_locals.items():
            for item in value if type(value) in (list, tuple) else (value,):
                if isinstance(item, Handle) and is_sharded(item):
                    yield name, item._array
                elif type(item) is np.ndarray:
                    yield name, item
        frame = frame.f_back


def _covers(array: np.ndarray, address: int) -> bool:
    """Whether an address is within the bounds of an array."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return low <= address < high


STARTED.append(install)
