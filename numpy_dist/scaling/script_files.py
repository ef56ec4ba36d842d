"""Files of a script that is only planned: nothing of what it writes by itself comes to them.

It would lose what is there, for values that nobody has computed. What Python's functions would write is counted; where
they would move or remove a file, nothing happens. Folders are made, since libraries look for them, and removed at the
end. What would change a file in another way ends the plan, and is named.
"""

from __future__ import annotations

import builtins
import bz2
import contextlib
import errno
import io
import os
import sys
import tarfile
import tempfile
from collections.abc import Callable
from typing import Any

from numpy_dist.files.nowhere import NoFile, Told

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_NEW = os.O_EXCL | getattr(os, "O_TMPFILE", 0)  # of files that were not there before: temporary ones
_CHANGES = "rmdir remove unlink truncate chmod chown lchown utime".split()
_EVENTS = frozenset(f"os.{name}" for name in (*_CHANGES, "rename", "link", "symlink"))


class WritesNothing(PermissionError):
    """A program that is only planned wants to change a file in a way that is not left out.

    It has the number and the path of a system's error, so that functions which write to a temporary file name the one
    that the user has asked for.
    """

    def __str__(self) -> str:
        return f"{os.fsdecode(self.filename)} would be changed, and {self.strerror}"


class ScriptFiles:
    """What a script's own output becomes, in a process that only plans it, until this ends.

    Parameters
    ----------
    told : callable
        Is told how many bytes would be written.
    """

    def __init__(self, told: Told) -> None:
        self._told = told
        self._temporary: set[str] = set()  # files that were made here, which may be changed and removed
        self._folders: list[str] = []  # that were made here
        self._open, self._rmdir = builtins.open, os.rmdir

    def leave_out(self) -> None:
        """Leave all output out from now on."""
        sys.addaudithook(self._refuse)
        for module, name in ((builtins, "open"), (io, "open"), (bz2, "_builtin_open"), (tarfile, "bltn_open")):
            if getattr(module, name, None) is self._open:
                setattr(module, name, self._opened)
        source = sys.modules.get("numpy.lib._datasource")  # of `numpy.savetxt`, which looks whether the file is there
        if source is not None:
            setattr(source, "open", self._opened_by(source.open))  # noqa: B010
        for name in _CHANGES:
            if hasattr(os, name):
                setattr(os, name, self._nothing_of(getattr(os, name)))
        moves = {"rename": self._moved, "replace": self._moved, "link": self._linked, "symlink": self._linked}
        for name, function in moves.items():
            setattr(os, name, function)

    def tidy(self) -> None:
        """Remove the folders that were made."""
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):  # somebody else uses it, or has removed it
                self._rmdir(folder)

    def _opened(self, file: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> object:
        """`open`, for which files are not there."""
        if isinstance(file, int) or "opener" in kwargs or not set(mode) & set("wax+") or self._is_mine(file):
            return self._open(file, mode, buffering, *args, **kwargs)
        if "x" in mode and os.path.lexists(file):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), file)
        if "+" in mode:
            if "w" not in mode and os.path.exists(file):
                return self._open(file, mode, buffering, *args, **kwargs)  # which is refused
            return tempfile.TemporaryFile(mode, buffering, *args, **kwargs)
        raw = NoFile(self._told)
        raw.name = file  # type: ignore[attr-defined]
        if buffering == 0:
            return raw
        made = io.BufferedWriter(raw)
        return made if "b" in mode else io.TextIOWrapper(made, *args, **kwargs)

    def _opened_by(self, function: Callable[..., object]) -> Callable[..., object]:
        """NumPy's `open`, for which files to be written are not there."""

        def opened(path: object, mode: str = "r", *args: object, **kwargs: object) -> Any:
            if not set(mode) & set("wax+"):
                return function(path, mode, *args, **kwargs)
            return self._opened(path, mode, encoding=kwargs.get("encoding"), newline=kwargs.get("newline"))

        return opened

    def _nothing_of(self, function: Callable[..., object]) -> Callable[..., None]:
        """A function of one path, which is called for files that were made here only."""

        def nothing(path: object, *args: object, **kwargs: object) -> None:
            if self._is_mine(path):
                function(path, *args, **kwargs)

        return nothing

    def _moved(self, source: Any, target: object, **kwargs: object) -> None:
        """`os.rename`: a file that was made here counts as what would be written to its new place, and is gone."""
        if self._is_mine(source):
            self._told(os.stat(source).st_size)
            os.remove(source)

    def _linked(self, source: object, target: object, *args: object, **kwargs: object) -> None:
        """`os.link`, which does nothing."""

    def _is_mine(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        text = os.path.abspath(os.fsdecode(path))
        return text in self._temporary or text in self._folders or text.startswith("/dev/")

    def _refuse(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook of Python's: nothing is opened for writing, moved or removed in another way."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not (flags or 0) & _WRITES or os.path.isdir(path):  # for a file in a folder
                return
            if flags & _NEW:
                self._temporary.add(os.path.abspath(os.fsdecode(path)))
                return
        elif event == "os.mkdir":
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if not os.path.lexists(path):
                self._folders.append(path)
            return
        elif event in _EVENTS:
            path = arguments[0]
        else:
            return
        if not self._is_mine(path) or event in ("os.rename", "os.link", "os.symlink"):
            advice = "a plan writes no files: leave that out by an argument of the script's"
            raise WritesNothing(errno.EACCES, advice, path)
