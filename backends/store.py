"""The kernels on disk: one file for each key, written once, shared by ranks, processes and machines.

A key is the digest of everything that a kernel depends on, so a file is never out of date. A file that says why a
kernel cannot be compiled takes the place of the kernel. Locks are files too: made by one process only, and void as
soon as that process has ended.

What is loaded is executed. So kernels are only read from folders and files that nobody but this user or root can write
(`trust`), and each file has the digest of its name and content.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from numpy_dist.backends import trust
from numpy_dist.backends.jobs import started

KERNEL, FAILURE, LOCK, TEMPORARY = ".kernel", ".failed", ".lock", ".tmp"

_MAGIC = b"numpy_dist kernel\n"
_OURS = re.compile(
    rf"(?P<key>[0-9a-f]{{64}}|leader-[^/]+)(?P<suffix>{KERNEL}|{FAILURE}|{LOCK})|(?P<left>\.[0-9a-f]{{32}}){TEMPORARY}"
)
_MOST_BYTES = 64 << 20  # of one file; kernels have some thousand
_MOST_LOCK_BYTES = 1 << 12
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KEEP_SECONDS = 60.0  # ranks that wait for a kernel look every few milliseconds, but may be in a long computation
_TOUCH_SECONDS = 3600.0
_LOCK_SECONDS = 120.0  # of a lock whose process cannot be asked: it is on another machine
_ABANDONED_SECONDS = 3600.0


def seal(content: bytes, name: str) -> bytes:
    """`content` as a file of that name, which tells whether it is whole."""
    return _MAGIC + hashlib.sha256(name.encode() + b"\n" + content).digest() + content


def unseal(data: bytes, name: str) -> bytes | None:
    """What was sealed for that name, or None where the file is not whole, or another one's."""
    content = data[len(_MAGIC) + 32 :]
    return content if data == seal(content, name) else None


@lru_cache(maxsize=1)
def this_machine() -> str:
    """A name for where numbers of processes mean the same: machines and containers may share a hostname."""
    name = socket.gethostname()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{name}-{boot[:8]}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:  # no Linux
        return name


def describe_owner(pid: int) -> str:
    """What a lock of this process says."""
    return f"{this_machine()} {pid} {started(pid)}"


def _alive(owner: str, age: float) -> bool:
    """Whether the owner of a lock of that age lives still."""
    words = owner.split()
    if len(words) != 3 or not words[1].isdecimal() or words[0] != this_machine():
        return age < _LOCK_SECONDS  # another machine's, or being written just now
    pid = int(words[1])
    with contextlib.suppress(PermissionError):  # another user's
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return started(pid) == words[2]


def _temporary_name() -> str:
    return f".{secrets.token_hex(16)}{TEMPORARY}"


def _new_file(folder: int) -> tuple[str, int]:
    """The name and the descriptor of a new file of a folder, for this user only."""
    name = _temporary_name()
    return name, os.open(name, _NEW, 0o600, dir_fd=folder)


def describe_problem(directory: str, problem: OSError) -> str:
    """What to tell a user about a directory of kernels."""
    if not isinstance(problem, trust.Untrusted):
        return f"compiled kernels cannot be kept in CACHE_DIR={directory!r}: {problem}"
    return (
        f"compiled kernels are not loaded from CACHE_DIR={directory!r}, where they might be anybody's code: {problem}; "
        "they are compiled anew by each process (set CACHE_DIR to a folder that only you can write)"
    )


@dataclass(frozen=True)
class Usage:
    """What a cache holds."""

    directory: str
    kernels: int
    bytes: int
    limit: int
    problem: str | None = None  # why it is not used


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
    ancestors : bool
        Whether the folders around the directory have to be such that nobody else can replace it.
    """

    def __init__(self, directory: str, limit: int, also: str | None = None, ancestors: bool = True) -> None:
        self.directory = directory
        self.limit = limit
        self.also = also
        self.ancestors = ancestors
        self.makes = True  # the directory, where it is not there; not for a process that is gone
        self._refused: str | None = None
        self._private: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def open(cls, directory: str, limit: int) -> tuple[Store, str | None]:
        """The store of a directory, or where it cannot be used, one that ends with the process; and why.

        Raises
        ------
        OSError
            Where there is no place for that one either.
        """
        store = cls(directory, limit)
        try:
            store.prepare()
        except OSError as problem:
            return cls.private(directory, limit, problem)
        return store, None

    @classmethod
    def private(cls, directory: str, limit: int, problem: OSError) -> tuple[Store, str]:
        """A store that ends with the process, in place of a directory that has a problem; and what to say about it."""
        said = describe_problem(directory, problem)
        try:
            temporary = tempfile.TemporaryDirectory(prefix="numpy_dist-", ignore_cleanup_errors=True)
        except OSError as another:
            raise OSError(f"{said}; nor is there a temporary folder: {another}") from another
        # Its folder is this process's own; what that lies in has been chosen by the system, and is not judged.
        also = None if isinstance(problem, trust.Untrusted) else directory
        store = cls(temporary.name, limit, also=also, ancestors=False)
        store._private = temporary
        return store, said

    def prepare(self) -> None:
        """Make the directory and write to it; OSError where that fails, or where others could write there."""
        with self._folder(make=True) as folder:
            name, handle = _new_file(folder)
            try:
                owner = os.fstat(handle).st_uid
            finally:
                os.close(handle)
                os.unlink(name, dir_fd=folder)
            if owner != os.geteuid():
                raise trust.Untrusted(f"files that are made in {self.directory} belong to user {owner}")

    @property
    def lasting(self) -> bool:
        """Whether the directory outlives this process."""
        return self._private is None

    def refusal(self) -> str | None:
        """Why a file, or the directory, was not read although it is there; said once, then None."""
        said, self._refused = self._refused, None
        return said

    @contextlib.contextmanager
    def _folder(self, directory: str | None = None, make: bool = False) -> Iterator[int]:
        """The descriptor of the directory (or another one); OSError where it is not there, or not to be trusted."""
        ancestors = self.ancestors or directory is not None
        folder = trust.open_folder(directory or self.directory, make and self.makes, ancestors)
        try:
            yield folder
        finally:
            os.close(folder)

    # Kernels and failures

    def read(self, key: str) -> bytes | None:
        """A kernel, or None where there is none; a file that is not whole is removed."""
        return self._read(key, KERNEL)

    def read_failure(self, key: str) -> str | None:
        """Why a kernel cannot be compiled, or None where that is not known."""
        found = self._read(key, FAILURE)
        return None if found is None else found.decode(errors="replace")

    def _read(self, key: str, suffix: str) -> bytes | None:
        for directory in (None, self.also) if self.also is not None else (None,):
            try:
                with self._folder(directory) as folder:
                    content = self._read_from(folder, key + suffix)
            except trust.Untrusted as problem:
                self._refused = self._refused or describe_problem(directory or self.directory, problem)
            except OSError:
                continue
            else:
                if content is not None:
                    return content
        return None

    def _read_from(self, folder: int, name: str) -> bytes | None:
        """The content of a file of ours; one that is refused is removed, so that it is made anew."""
        try:
            data, state = trust.read_file(folder, name, _MOST_BYTES)
            content = unseal(data, name)
            if content is None:
                raise trust.Untrusted(f"{name} is damaged, or was made for another name")
        except trust.Untrusted as problem:
            with contextlib.suppress(OSError):  # read-only, or removed by another process
                os.unlink(name, dir_fd=folder)
            self._refused = self._refused or (
                f"a compiled kernel is not loaded from CACHE_DIR={self.directory!r}: {problem}; it is compiled anew"
            )
            return None
        if time.time() - state.st_mtime > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(name, dir_fd=folder, follow_symlinks=False)
        return content

    def write(self, key: str, content: bytes) -> None:
        """Keep a kernel; OSError where it cannot be written."""
        self._write(key, KERNEL, content)
        self.shrink()

    def write_failure(self, key: str, reason: str) -> None:
        """Keep the reason why a kernel cannot be compiled."""
        self._write(key, FAILURE, reason.encode())

    def _write(self, key: str, suffix: str, content: bytes) -> None:
        with self._folder(make=True) as folder:  # it may have been removed meanwhile
            temporary, handle = _new_file(folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(seal(content, key + suffix))
                    os.fchmod(handle, 0o644)
                os.replace(temporary, key + suffix, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):  # gone with the folder; what stopped us is what counts
                    os.unlink(temporary, dir_fd=folder)
                raise

    # Locks

    def lock(self, key: str, owner: str) -> bool:
        """Take the lock of a key for `owner`; False where another process has it. OSError where it cannot be made."""
        for _ in range(3):
            with self._folder(make=True) as folder:
                try:
                    handle = os.open(key + LOCK, _NEW, 0o644, dir_fd=folder)
                except FileNotFoundError:  # the directory has been removed meanwhile
                    continue
                except FileExistsError:
                    if self.locked(key):
                        return False
                    self._break(key)
                    continue
                with os.fdopen(handle, "w") as file:
                    file.write(owner)
                    os.fchmod(handle, 0o644)
                return True
        return False

    def _lock_state(self, key: str) -> tuple[str, float] | None:
        try:
            with self._folder() as folder:
                said, state = trust.read_file(folder, key + LOCK, _MOST_LOCK_BYTES)
        except OSError:
            return None
        return said.decode(errors="replace"), time.time() - state.st_mtime

    def locked(self, key: str) -> bool:
        """Whether a process that lives has the lock of a key."""
        state = self._lock_state(key)
        return state is not None and _alive(*state)

    def _break(self, key: str) -> None:
        """Remove a void lock. Another process may do the same and have a new lock already: that one is put back."""
        state = self._lock_state(key)
        aside = _temporary_name()
        try:
            with self._folder() as folder:
                os.rename(key + LOCK, aside, src_dir_fd=folder, dst_dir_fd=folder)
                try:
                    taken = trust.read_file(folder, aside, _MOST_LOCK_BYTES)[0].decode(errors="replace")
                except trust.Untrusted:  # no lock of ours
                    taken = None
                if taken is not None and (state is None or taken != state[0]):
                    os.link(aside, key + LOCK, src_dir_fd=folder, dst_dir_fd=folder)
                os.unlink(aside, dir_fd=folder)
        except OSError:  # somebody was faster; then the key has a lock, or none that matters
            return

    def unlock(self, key: str, owner: str) -> None:
        """Give the lock of a key back, if `owner` has it."""
        state = self._lock_state(key)
        if state is not None and state[0] == owner:
            self._remove(key + LOCK)

    def refresh(self, key: str, owner: str) -> None:
        """Show other machines that the owner of a lock lives."""
        state = self._lock_state(key)
        if state is not None and state[0] == owner:
            with contextlib.suppress(OSError), self._folder() as folder:
                os.utime(key + LOCK, dir_fd=folder, follow_symlinks=False)

    # The whole directory

    def _files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Key, suffix and state of each file of ours: the directory may hold others, too."""
        with contextlib.suppress(OSError), self._folder() as folder, os.scandir(folder) as entries:
            for entry in entries:
                ours = _OURS.fullmatch(entry.name)
                if ours is not None:
                    with contextlib.suppress(FileNotFoundError):
                        state = entry.stat(follow_symlinks=False)
                        if not stat.S_ISDIR(state.st_mode):
                            yield ours["key"] or ours["left"], ours["suffix"] or TEMPORARY, state

    def is_empty(self) -> bool:
        """Whether there is no kernel, or none that is read."""
        return not any(suffix == KERNEL for _, suffix, _ in self._files())

    def usage(self) -> Usage:
        """How many kernels there are, and the bytes of all files."""
        files = list(self._files())
        kernels = sum(suffix == KERNEL for _, suffix, _ in files)
        return Usage(self.directory, kernels, sum(state.st_size for *_, state in files), self.limit, self._problem())

    def _problem(self) -> str | None:
        try:
            with self._folder():
                return None
        except FileNotFoundError:  # it is made when it is needed
            return None
        except OSError as problem:
            return describe_problem(self.directory, problem)

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
            with self._folder() as folder:
                os.unlink(name, dir_fd=folder)
        except OSError:
            return False
        return True

    def clear(self) -> int:
        """Remove all kernels and failures, but those that are being compiled; returns how many."""
        doomed = [key + suffix for key, suffix, _ in self._files() if suffix in (KERNEL, FAILURE)]
        removed = sum(map(self._remove, doomed))
        self.shrink()
        return removed
