"""The kernels on disk: one file for each key, written once, shared by ranks, processes and machines.

A key is the digest of everything that a kernel depends on, so a file is never out of date. A file that says why a
kernel cannot be compiled takes the place of the kernel. Locks are files too: made by one process only, and void as
soon as that process has ended.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

SCHEMA = 2  # of the files in the cache
KERNEL, FAILURE, LOCK, TEMPORARY = ".kernel", ".failed", ".lock", ".tmp"

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_IMPORTED = re.compile(r"\bnumpy_dist\.backends\.compiled\.(\w+)")
_MAGIC = b"numpy_dist kernel\n"
_KEEP_SECONDS = 60.0  # ranks that wait for a kernel look every few milliseconds, but may be in a long computation
_TOUCH_SECONDS = 3600.0
_LOCK_SECONDS = 120.0  # of a lock whose process cannot be asked: it is on another machine
_ABANDONED_SECONDS = 3600.0


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
    digest.update("\n".join(map(str, (SCHEMA, sys.version, sys.platform, *_processor()))).encode())
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


def seal(content: bytes) -> bytes:
    """`content` as a file that tells whether it is whole."""
    return _MAGIC + hashlib.sha256(content).digest() + content


def unseal(data: bytes) -> bytes | None:
    """What was sealed, or None where the file is not whole."""
    start = len(_MAGIC) + 32
    content = data[start:]
    if data[:start] != _MAGIC + hashlib.sha256(content).digest():
        return None
    return content


def _started(pid: int) -> str:
    """When a process started, where the system tells: process numbers are used again. "ended" for a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return "?"
    return "ended" if words[0] in "ZX" else words[19]


def describe_owner(pid: int) -> str:
    """What a lock of this process says."""
    return f"{socket.gethostname()} {pid} {_started(pid)}"


def _alive(owner: str, age: float) -> bool:
    """Whether the owner of a lock of that age lives still."""
    words = owner.split()
    if len(words) != 3 or not words[1].isdecimal() or words[0] != socket.gethostname():
        return age < _LOCK_SECONDS  # another machine's, or being written just now
    pid = int(words[1])
    with contextlib.suppress(PermissionError):  # another user's
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return _started(pid) == words[2]


@dataclass(frozen=True)
class Usage:
    """What a cache holds."""

    directory: str
    kernels: int
    bytes: int
    limit: int


class Store:
    """A directory of kernels.

    Parameters
    ----------
    directory : str
        Where kernels are read and written; made when it is needed.
    limit : int
        Bytes that the kernels may take; beyond, those not used for longest are dropped.
    also : str, optional
        Another directory where kernels are only read.
    """

    def __init__(self, directory: str, limit: int, also: str | None = None) -> None:
        self.directory = directory
        self.limit = limit
        self.also = also
        self._private: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def open(cls, directory: str, limit: int) -> tuple[Store, str | None]:
        """The store of a directory, or where it cannot be written, one that ends with the process; and why."""
        store = cls(directory, limit)
        try:
            store.prepare()
        except OSError as problem:
            return cls.private(directory, limit, problem)
        return store, None

    @classmethod
    def private(cls, directory: str, limit: int, problem: OSError) -> tuple[Store, str]:
        """A store that ends with the process, in place of a directory that has a problem; and what to say about it."""
        temporary = tempfile.TemporaryDirectory(prefix="numpy_dist-", ignore_cleanup_errors=True)
        store = cls(temporary.name, limit, also=directory)
        store._private = temporary
        return store, f"compiled kernels cannot be kept in CACHE_DIR={directory!r}: {problem}"

    def prepare(self) -> None:
        """Make the directory and write to it; OSError where that fails."""
        os.makedirs(self.directory, exist_ok=True)
        handle, path = tempfile.mkstemp(TEMPORARY, "probe-", self.directory)
        os.close(handle)
        os.unlink(path)

    def _path(self, key: str, suffix: str) -> str:
        return os.path.join(self.directory, key + suffix)

    # Kernels and failures

    def has(self, key: str) -> bool:
        """Whether there is a kernel, whole or not, or a failure."""
        paths = [os.path.join(folder, key + suffix) for folder in self._folders() for suffix in (KERNEL, FAILURE)]
        return any(map(os.path.exists, paths))

    def _folders(self) -> list[str]:
        return [self.directory] if self.also is None else [self.directory, self.also]

    def read(self, key: str) -> bytes | None:
        """A kernel, or None where there is none; a file that is not whole is removed."""
        return self._read(key, KERNEL)

    def read_failure(self, key: str) -> str | None:
        """Why a kernel cannot be compiled, or None where that is not known."""
        found = self._read(key, FAILURE)
        return None if found is None else found.decode(errors="replace")

    def _read(self, key: str, suffix: str) -> bytes | None:
        for folder in self._folders():
            path = os.path.join(folder, key + suffix)
            try:
                with open(path, "rb") as file:
                    data = file.read()
                    age = time.time() - os.fstat(file.fileno()).st_mtime
            except OSError:
                continue
            content = unseal(data)
            with contextlib.suppress(OSError):  # read-only, or removed by another process
                if content is None:
                    os.unlink(path)
                elif age > _TOUCH_SECONDS:
                    os.utime(path)
            if content is not None:
                return content
        return None

    def write(self, key: str, content: bytes) -> None:
        """Keep a kernel; OSError where it cannot be written."""
        self._write(key, KERNEL, content)
        self.shrink()

    def write_failure(self, key: str, reason: str) -> None:
        """Keep the reason why a kernel cannot be compiled."""
        self._write(key, FAILURE, reason.encode())

    def _write(self, key: str, suffix: str, content: bytes) -> None:
        os.makedirs(self.directory, exist_ok=True)  # it may have been removed meanwhile
        handle, temporary = tempfile.mkstemp(TEMPORARY, key[:16] + "-", self.directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(seal(content))
            os.chmod(temporary, 0o644)
            os.replace(temporary, self._path(key, suffix))
        except BaseException:
            os.unlink(temporary)
            raise

    # Locks

    def lock(self, key: str, owner: str) -> bool:
        """Take the lock of a key for `owner`; False where another process has it. OSError where it cannot be made."""
        path = self._path(key, LOCK)
        for _ in range(3):
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileNotFoundError:  # the directory has been removed meanwhile
                os.makedirs(self.directory, exist_ok=True)
                continue
            except FileExistsError:
                if self.locked(key):
                    return False
                self._break(key)
                continue
            with os.fdopen(handle, "w") as file:
                file.write(owner)
            return True
        return False

    def _lock_state(self, key: str) -> tuple[str, float] | None:
        try:
            with open(self._path(key, LOCK)) as file:
                return file.read(), time.time() - os.fstat(file.fileno()).st_mtime
        except OSError:
            return None

    def locked(self, key: str) -> bool:
        """Whether a process that lives has the lock of a key."""
        state = self._lock_state(key)
        return state is not None and _alive(*state)

    def _break(self, key: str) -> None:
        """Remove a void lock. Another process may do the same and have a new lock already: that one is put back."""
        state = self._lock_state(key)
        aside = self._path(key, f".{os.getpid()}{TEMPORARY}")
        try:
            os.rename(self._path(key, LOCK), aside)
            with open(aside) as file:
                taken = file.read()
            if state is None or taken != state[0]:
                os.link(aside, self._path(key, LOCK))
            os.unlink(aside)
        except OSError:  # somebody was faster; then the key has a lock, or none that matters
            return

    def unlock(self, key: str, owner: str) -> None:
        """Give the lock of a key back, if `owner` has it."""
        state = self._lock_state(key)
        if state is not None and state[0] == owner:
            with contextlib.suppress(OSError):
                os.unlink(self._path(key, LOCK))

    def refresh(self, key: str, owner: str) -> None:
        """Show other machines that the owner of a lock lives."""
        state = self._lock_state(key)
        if state is not None and state[0] == owner:
            with contextlib.suppress(OSError):
                os.utime(self._path(key, LOCK))

    # The whole directory

    def _files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Key, suffix and state of each file of ours."""
        try:
            entries = list(os.scandir(self.directory))
        except OSError:
            return
        for entry in entries:
            key, suffix = os.path.splitext(entry.name)
            if suffix in (KERNEL, FAILURE, LOCK, TEMPORARY):
                with contextlib.suppress(OSError):
                    yield key, suffix, entry.stat(follow_symlinks=False)

    def usage(self) -> Usage:
        """How many kernels there are, and the bytes of all files."""
        files = list(self._files())
        kernels = sum(suffix == KERNEL for _, suffix, _ in files)
        return Usage(self.directory, kernels, sum(state.st_size for *_, state in files), self.limit)

    def shrink(self, keep_seconds: float = _KEEP_SECONDS) -> None:
        """Drop the kernels not used for longest, down to the limit; none that is locked, or just written."""
        now = time.time()
        files = sorted(self._files(), key=lambda file: file[2].st_mtime)
        total = sum(state.st_size for *_, state in files)
        for key, suffix, state in files:
            age = now - state.st_mtime
            if suffix in (LOCK, TEMPORARY):
                drop = age > _ABANDONED_SECONDS and not (suffix == LOCK and self.locked(key))
            else:
                drop = total > self.limit and age >= keep_seconds and not self.locked(key)
            if drop and self._remove(key + suffix):
                total -= state.st_size

    def _remove(self, name: str) -> bool:
        try:
            os.unlink(os.path.join(self.directory, name))
        except OSError:
            return False
        return True

    def clear(self) -> int:
        """Remove all kernels and failures, but those that are being compiled; returns how many."""
        doomed = [key + suffix for key, suffix, _ in self._files() if suffix in (KERNEL, FAILURE)]
        removed = sum(map(self._remove, doomed))
        self.shrink()
        return removed
