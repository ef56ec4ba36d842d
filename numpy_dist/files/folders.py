"""Replacements of folders: a new one that takes the place of an old one when all is written, whole or not at all.

It is written beside the old one, under a name of its own, and locked as long as its writer lives; what writers that
were killed have left is removed by the next. The two change places by one call of the system where it has that.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from functools import cache
from typing import Any

from numpy_dist.files.replacement import named_as, sync_folder

__all__ = ["FolderReplacement", "name_beside"]

_PREFIX = ".numpy-dist-"

_EXCHANGE = 2  # RENAME_EXCHANGE
_AT_CWD = -100  # AT_FDCWD


class FolderReplacement:
    """A new folder for the place of an old one.

    Parameters
    ----------
    path : str
        Of the folder, which need not exist.

    Attributes
    ----------
    where : str
        Where the new one is until then; an empty folder at first.

    Raises
    ------
    OSError
        If no folder can be made there, or `path` is a file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._target = os.path.realpath(path)
        if os.path.lexists(self._target) and not os.path.isdir(self._target):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        parent, name = os.path.split(self._target)
        prefix = f"{_PREFIX}{name}-"
        try:
            for left in _abandoned(parent, prefix):
                shutil.rmtree(left)
            number = os.urandom(8).hex()
            new = os.path.join(parent, f"{_PREFIX}{number}")
            os.mkdir(new)
            if os.path.isdir(self._target):
                os.chmod(new, stat.S_IMODE(os.stat(self._target).st_mode))
            self._lock = os.open(new, os.O_RDONLY | os.O_CLOEXEC)
            _lock(self._lock)
            self.where = name_beside(self._target, number)  # from now on others may ask for the lock
            os.rename(new, self.where)
        except OSError as error:
            raise named_as(error, path) from None

    def commit(self) -> None:
        """Put the new folder, in which all is written, on the disk and in the place of the old one."""
        try:
            for folder, _, files in os.walk(self.where):
                for file in files:
                    _sync(os.path.join(folder, file))
                sync_folder(folder)
            if os.path.isdir(self._target):
                if not _exchange(self.where, self._target):
                    aside = self.where + "-old"
                    os.rename(self._target, aside)
                    os.rename(self.where, self._target)
                    self.where = aside
            else:
                os.rename(self.where, self._target)
            sync_folder(os.path.dirname(self._target))
        except OSError as error:
            raise named_as(error, self._path) from error

    def discard(self) -> None:
        """Remove what is not in the place: the old folder after `commit`, the new one without. To be called always."""
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.where)
            os.close(lock)


def name_beside(path: str, number: str) -> str:
    """The name of a new folder, until it takes the place of an old one."""
    parent, name = os.path.split(os.path.realpath(path))
    return os.path.join(parent, f"{_PREFIX}{name}-{number}")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take the lock of a folder; False if another process has it, or the file system has none."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _abandoned(parent: str, prefix: str) -> Iterator[str]:
    """The folders of writers that live no more."""
    for name in os.listdir(parent):
        if name.startswith(prefix):
            path = os.path.join(parent, name)
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    if _lock(descriptor):
                        yield path
                finally:
                    os.close(descriptor)


@cache
def _renameat2() -> Any:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _exchange(one: str, other: str) -> bool:
    """Let two folders change their names at once; False where the system cannot."""
    rename = _renameat2()
    if rename is None or rename(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _EXCHANGE):
        return False
    return True
