"""Trust in files by their owners and modes: whether anybody but this user, or root, can have written them.

Everything is asked of open descriptors, and each name is looked up in a folder that is open already: what was checked
is what is read, whoever renames things meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import sys

if sys.platform != "win32":
    import grp
    import pwd

__all__ = ["Untrusted", "open_folder", "read_file"]

_MOST_LINKS = 40  # followed in one path, as in Linux
_WALK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe of that name does not stop the program
_ACCESS_LISTS = "system.posix_acl_access"


class Untrusted(OSError):
    """A folder or file may have been written by somebody else."""


def open_folder(path: str, make: bool = False, ancestors: bool = True) -> int:
    """The descriptor of a folder that only this user, or root, can write.

    Parameters
    ----------
    path : str
        Absolute. It may lead through links, if those are this user's or root's.
    make : bool
        Whether missing folders are made, for this user alone.
    ancestors : bool
        Whether the folders that it lies in are checked too. Who can write one of them can put another folder in its
        place; those with a sticky bit (``/tmp``) are good enough.

    Raises
    ------
    Untrusted
        Where somebody else owns, or can write, one of these folders.
    OSError
        Where it is not there, or no folder.
    """
    waiting, walked, links = path.split("/")[::-1], "", 0
    here = os.open("/", _WALK)
    try:
        while waiting:
            name = waiting.pop()
            if name in ("", "."):
                continue
            if ancestors:
                _check(here, walked or "/", _owners_above(), sticky=True)
            target = _target(here, name, f"{walked}/{name}", ancestors, make)
            if target is None:
                here, walked = _moved(here, name), f"{walked}/{name}"
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            waiting += target.split("/")[::-1]
            if target.startswith("/"):
                here, walked = _moved(here, "/"), ""
        here = _moved(here, ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _check(here, path, frozenset((0, os.geteuid())), sticky=False)
    except BaseException:
        os.close(here)
        raise
    return here


def read_file(folder: int, name: str, most: int) -> tuple[bytes, os.stat_result]:
    """The bytes of a file of an open folder, and its state.

    Raises
    ------
    Untrusted
        Where it is a link, no regular file, has more than `most` bytes, or belongs to, or can be written by, others.
    OSError
        Where it is not there, or cannot be read.
    """
    try:
        handle = os.open(name, _READ, dir_fd=folder)
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise Untrusted(f"{name} is a link or a socket") from problem
        raise
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise Untrusted(f"{name} is no regular file")
        if state.st_uid not in (0, os.geteuid()):
            raise Untrusted(f"{name} belongs to user {state.st_uid}")
        if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Untrusted(f"others can write {name} (its mode is {stat.S_IMODE(state.st_mode):o})")
        if state.st_size > most:
            raise Untrusted(f"{name} has {state.st_size} bytes")
        return file.read(state.st_size), state  # not `most`: so much memory would be asked for


def _moved(here: int, name: str, flags: int = _WALK) -> int:
    """The descriptor of a folder that lies in another one, which is closed."""
    there = os.open(name, flags, dir_fd=here)
    os.close(here)
    return there


def _target(folder: int, name: str, path: str, owners: bool, make: bool) -> str | None:
    """What a link of a folder says, None where the name is no link's; `make`: a missing folder is made.

    In a folder that only this user or root can write, or with a sticky bit, nobody else can replace their links.
    """
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if not make:
            raise
        with contextlib.suppress(FileExistsError):  # another rank was faster
            os.mkdir(name, 0o700, dir_fd=folder)
        return None
    if not stat.S_ISLNK(state.st_mode):
        return None
    if owners and state.st_uid not in _owners_above():
        raise Untrusted(f"the link {path} belongs to user {state.st_uid}")
    return os.readlink(name, dir_fd=folder)


def _check(folder: int, path: str, owners: frozenset[int], sticky: bool) -> None:
    state = os.fstat(folder)
    if state.st_uid not in owners:
        raise Untrusted(f"the folder {path} belongs to user {state.st_uid}")
    if sticky and state.st_mode & stat.S_ISVTX:
        return
    others = state.st_mode & stat.S_IWOTH or (state.st_mode & stat.S_IWGRP and not _only_ours(folder, state.st_gid))
    if others:
        raise Untrusted(f"others can write the folder {path} (its mode is {stat.S_IMODE(state.st_mode):o})")


def _only_ours(folder: int, group: int) -> bool:
    """Whether a group has this user only, as where each user has one of the same name, and no list adds anybody."""
    if os.geteuid() == 0 or not _is_private(group, os.geteuid()):
        return False
    if sys.platform == "linux":
        try:
            return not os.getxattr(f"/proc/self/fd/{folder}", _ACCESS_LISTS)
        except OSError as problem:
            return problem.errno in (errno.ENODATA, errno.ENOTSUP)
    return False


@functools.lru_cache(maxsize=16)
def _is_private(group: int, user: int) -> bool:
    try:
        entry, owner = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    return owner.pw_gid == group and entry.gr_name == owner.pw_name and set(entry.gr_mem) <= {owner.pw_name}


def _owners_above() -> frozenset[int]:
    """The users that may own what leads to a folder of ours: root, this one, and whom the system shows for root.

    In a user namespace without root (Apptainer, rootless Podman) root's folders seem to belong to nobody. What lies in
    the last folder is not judged by this.
    """
    return _unmapped_root() | {0, os.geteuid()}


@functools.cache
def _unmapped_root() -> frozenset[int]:
    try:
        with open("/proc/self/uid_map") as file:
            if any(line.split()[1] == "0" for line in file):
                return frozenset()
        with open("/proc/sys/kernel/overflowuid") as file:
            return frozenset((int(file.read()),))
    except OSError:  # not Linux
        return frozenset()
