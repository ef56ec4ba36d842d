"""Replacements: new contents of a file that take its place when all is written, whole or not at all.

Where the file system can, a replacement has no name while it is written (``O_TMPFILE``), so that nothing of it is left
whoever is killed; elsewhere it has one of its own beside the file. It is written to disk before it gets the file's name
by one renaming. What a link names is replaced, not the link; the file's permissions stay; a pipe or a device is no file
to be replaced, and is written as it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import IO, Any

from numpy_dist.files.nowhere import Told, Unwritten

__all__ = ["Replacement", "named_as", "replacing", "sync_folder"]

_UNNAMED = getattr(os, "O_TMPFILE", 0)
# What file systems that have no such files, and kernels that do not know the flag, say.
_UNKNOWN = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT})


def named_as(error: OSError, path: str | bytes | os.PathLike[str]) -> OSError:
    """An error of the system as NumPy's caller would see it: of the file that was asked for."""
    if error.errno is None:
        return error
    return type(error)(error.errno, error.strerror, path)


class Replacement:
    """The new contents of a file.

    Parameters
    ----------
    path : str, bytes or path-like
        Of the file, which need not exist.
    named : bool
        Whether the new contents need a name, by which other machines find them.

    Attributes
    ----------
    path : str or bytes
        As given.
    descriptor : int
        Of the new contents, open for reading and writing.
    where : str
        A name by which other processes can open them.
    in_place : bool
        Whether the file itself is written: it is a pipe, a device or the like.

    Raises
    ------
    OSError
        As `open` would for writing, if there is no such folder, or no file may be written there.
    """

    def __init__(self, path: str | bytes | os.PathLike[str], named: bool = False) -> None:
        self.path = os.fspath(path)
        text = os.fsdecode(self.path)
        if not os.path.basename(text):
            open(self.path, "wb").close()  # no name of a file: the system's error
        self._target = os.path.realpath(text)
        self._folder = os.path.dirname(self._target)
        self._name = ""
        try:
            found = os.stat(self._target)
        except FileNotFoundError:
            self._mode = None
        except OSError as error:
            raise named_as(error, self.path) from None
        else:
            self._mode = stat.S_IMODE(found.st_mode)
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
            if not os.access(self._target, os.W_OK):
                try:  # which says why not
                    os.close(os.open(self._target, os.O_WRONLY | os.O_CLOEXEC))
                except OSError as error:
                    raise named_as(error, self.path) from None
            if not stat.S_ISREG(found.st_mode):
                self.in_place, self.where = True, self._target
                self.descriptor = os.open(self._target, os.O_WRONLY | os.O_CLOEXEC)
                return
        self.in_place = False
        try:
            self.descriptor = self._new(named)
        except OSError as error:
            raise named_as(error, self.path) from None
        self.where = self._name or f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def _new(self, named: bool) -> int:
        if _UNNAMED and not named:
            try:
                return os.open(self._folder, _UNNAMED | os.O_RDWR | os.O_CLOEXEC, 0o666)
            except OSError as error:
                if error.errno not in _UNKNOWN:
                    raise
        name = self._beside()
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._name = name
        return descriptor

    def _beside(self) -> str:
        return os.path.join(self._folder, f".numpy-dist-{os.urandom(8).hex()}")

    def reserve(self, nbytes: int) -> None:
        """Have room on the disk for so many bytes, or raise OSError (ENOSPC, EDQUOT); the size of the file is set."""
        try:
            if nbytes and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.descriptor, 0, nbytes)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        os.ftruncate(self.descriptor, nbytes)

    def open(self) -> IO[bytes]:
        """A file object of the new contents, for one writer, who closes it."""
        return os.fdopen(os.dup(self.descriptor), "wb")

    def commit(self) -> None:
        """Put the new contents, which are all written, on the disk and in the place of the old ones."""
        try:
            if not self.in_place:
                if self._mode is not None:
                    os.fchmod(self.descriptor, self._mode)
                os.fsync(self.descriptor)
                with _opened(self._folder) as folder:
                    if not self._name:
                        # With a folder's descriptor Python follows the link to what it names.
                        name = self._beside()
                        os.link(f"/proc/self/fd/{self.descriptor}", name, src_dir_fd=folder)
                        self._name = name
                    os.replace(self._name, self._target)
                    self._name = ""
                    _sync(folder)
        except OSError as error:
            raise named_as(error, self.path) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Give the new contents up; nothing is left of them. To be called by whoever has made this, in any case."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)
        if self._name:
            name, self._name = self._name, ""
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Put the names of a folder's files on the disk."""
    with _opened(path) as folder:
        _sync(folder)


@contextlib.contextmanager
def _opened(folder: str | os.PathLike[str]) -> Iterator[int]:
    """The descriptor of a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # network file systems that do so by themselves
            raise


@contextlib.contextmanager
def replacing(
    path: str | bytes | os.PathLike[str],
    opened: Callable[[IO[bytes]], Any] | None = None,
    unwritten: Told | None = None,
) -> Iterator[Any]:
    """A file object of the new contents of a file, which has them when the context is left, not by an exception.

    Parameters
    ----------
    path : str, bytes or path-like
    opened : callable, optional
        What makes the writer's file object of a binary one, as `gzip.open` does.
    unwritten : callable, optional
        As of a `Communicator`.
    """
    replacement = Replacement(path) if unwritten is None else Unwritten(path, unwritten)
    try:
        with replacement.open() as binary:
            if opened is None:
                yield binary
            else:
                with opened(binary) as file:
                    yield file
        replacement.commit()
    except OSError as error:
        if error.filename is not None:
            raise
        raise named_as(error, replacement.path) from error
    finally:
        replacement.discard()
