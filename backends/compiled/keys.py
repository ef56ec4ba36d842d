"""The keys of kernels: digests of all that decides what a kernel compiles to."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import struct
import sys

import numpy as np

SCHEMA = 3  # of the files in the cache

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_IMPORTED = re.compile(r"\bnumpy_dist\.backends\.compiled\.(\w+)")


@functools.cache
def environment_digest() -> bytes:
    """The digest of all that decides what a kernel compiles to, but its source and what that imports of this folder."""
    digest = hashlib.sha256()
    paths = [os.path.join(_FOLDER, name) for name in ("worker.py", "linker.py", "elf.py")]
    for name in ("numba", "llvmlite"):  # their versions, without importing them
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"{name} is not installed")
        paths.append(os.path.join(os.path.dirname(found.origin), "_version.py"))
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    versions = sys.version, np.__version__, sys.platform, os.uname().machine, struct.calcsize("P")
    digest.update("\n".join(map(str, (SCHEMA, *versions, *_processor()))).encode())
    return digest.digest()


def _processor(path: str = "/proc/cpuinfo") -> tuple[str, ...]:
    """What tells processors apart that need other code."""
    found = _described(path) if os.uname().machine == "x86_64" else None
    if found is not None:
        return found
    import llvmlite.binding as llvm  # knows, too, but is loaded in a tenth of a second

    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _described(path: str) -> tuple[str, ...] | None:
    """What Linux says of the first processor, and which Linux: others may know of fewer features. None elsewhere."""
    text = b""
    try:
        with open(path, "rb", buffering=0) as file:
            while b"\n\n" not in text and (part := file.read(4096)):
                text += part
    except OSError:
        return None
    lines = [line.partition(":") for line in text.decode(errors="replace").partition("\n\n")[0].splitlines()]
    values = {name.strip(): value.strip() for name, _, value in lines}
    wanted = [values.get(name) for name in ("vendor_id", "cpu family", "model", "stepping", "flags")]
    if any(value is None for value in wanted):
        return None
    return os.uname().release, *map(str, wanted)


@functools.cache
def _imports_digest(names: frozenset[str]) -> bytes:
    """The digest of modules of this folder, and of those that they import."""
    texts: dict[str, bytes] = {}
    waiting = list(names)
    for name in waiting:  # the list grows while it is read
        if name not in texts:
            try:
                with open(os.path.join(_FOLDER, name + ".py"), "rb") as file:
                    texts[name] = file.read()
            except FileNotFoundError:  # compiling the kernel will say so
                texts[name] = b""
            waiting += _IMPORTED.findall(texts[name].decode())
    return b"".join(hashlib.sha256(texts[name]).digest() for name in sorted(texts))


def kernel_key(source: str) -> str:
    """The key of a kernel: 64 hexadecimal digits."""
    imported = _imports_digest(frozenset(_IMPORTED.findall(source)))
    return hashlib.sha256(environment_digest() + imported + source.encode()).hexdigest()
