"""LLVM's linker: loads object files of any kind. Importing llvmlite takes longer than a short script may."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm


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


def link(code: bytes, symbol: str) -> int:
    """The address of a function of an object file, 0 where it has none; it stays as long as the process.

    LLVM ends the process where a function that the file needs is not there. One thread at a time may call this.
    """
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(symbol)
