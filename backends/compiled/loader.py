"""From an object file to a function's address, by llvmlite alone: importing Numba takes longer than a script may."""

from __future__ import annotations

import ctypes
import functools
import json
import threading

import llvmlite.binding as llvm

_lock = threading.Lock()


class LoadError(RuntimeError):
    """The object file needs functions that this process does not have, or lacks the kernel."""


def pack(symbol: str, externals: list[str], code: bytes) -> bytes:
    """A kernel as it is kept: its symbol, the functions that it calls by name, and the object file."""
    return json.dumps({"symbol": symbol, "externals": externals}).encode() + b"\n" + code


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def resolvable(name: str) -> bool:
    """Whether every process finds the function `name` (those of the C library and of libm)."""
    return hasattr(_process(), name)


def target_machine() -> llvm.TargetMachine:
    """Code for this processor, to be put at any address."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)


@functools.cache
def _engine() -> llvm.ExecutionEngine:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


def load(content: bytes) -> int:
    """The address of the kernel in what `pack` made; it stays loaded as long as the process.

    Raises
    ------
    LoadError
        Where it cannot be run here: LLVM itself would end the process.
    """
    head, _, code = content.partition(b"\n")
    description = json.loads(head)
    missing = [name for name in description["externals"] if not resolvable(name)]
    if missing:
        raise LoadError(f"the kernel needs {', '.join(missing)}, which this process does not have")
    with _lock:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address(description["symbol"])
    if not address:
        raise LoadError(f"the object file has no function {description['symbol']}")
    return address
