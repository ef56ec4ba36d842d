"""Folders of checkpoints: what lies where, which of them are complete, and what nobody needs any more.

``step-<step>.json`` is a checkpoint: its *manifest*, which gets its name when all that it names is on the disk. Arrays
lie in ``data``, distributed ones each in an ``.npy`` file, all others of a checkpoint together in an ``.npz`` file. A
file in ``data`` that no manifest names is of a checkpoint that was not completed, or is not kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from numpy_dist.errors import CheckpointError
from numpy_dist.files.replacement import replacing

__all__ = ["DATA", "FolderCleaner", "Manifest", "manifests", "read_manifest", "step_path", "write_manifest"]

DATA = "data"
Manifest = dict[str, Any]
_ALL = "step-*.json"
_FORMAT = "numpy_dist checkpoint, version 2"
_READ = (_FORMAT, "numpy_dist checkpoint, version 1")  # which names no checksums of arrays: they are CRC-32


def step_path(folder: Path, step: int) -> Path:
    """The manifest's path of a step."""
    return folder / f"step-{step:012d}.json"


def write_manifest(folder: Path, content: Manifest) -> None:
    """Complete a checkpoint, all other files of which are on the disk.

    `content` has the step, the sequence number (of checkpoints in the order in which they were made), the state as a
    tree, the arrays, and the names of all files.
    """
    data = _packed(content)
    with replacing(step_path(folder, content["step"])) as file:
        file.write(_packed({"format": _FORMAT, "crc32": zlib.crc32(data), "content": content}))


def read_manifest(path: Path) -> Manifest:
    """The content of a manifest.

    Raises
    ------
    CheckpointError
        If it cannot be read, or is not as it was written.
    """
    try:
        found = json.loads(path.read_bytes())
        content = found["content"]
        if found["format"] not in _READ:
            raise CheckpointError(f"{path} is of another version: {found['format']!r}")
        if zlib.crc32(_packed(content)) != found["crc32"]:
            raise CheckpointError(f"{path} is damaged: its checksum is another one")
    except CheckpointError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged or cannot be read: {error}") from error
    return content


def manifests(folder: Path) -> list[tuple[Path, Manifest | CheckpointError]]:
    """All checkpoints of a folder, or why they cannot be read: those last, since one may be the newest."""
    readable: list[tuple[Path, Manifest]] = []
    damaged: list[tuple[Path, CheckpointError]] = []
    for path in sorted(folder.glob(_ALL)):
        try:
            readable.append((path, read_manifest(path)))
        except CheckpointError as error:
            damaged.append((path, error))
    readable.sort(key=lambda pair: pair[1]["sequence"])
    return [*readable, *damaged]


class FolderCleaner:
    """What removes from a folder the checkpoints that are not kept, and files of none.

    What it has left there it need not read again, as long as the names, sizes and times of the manifests are the same.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._left: dict[str, _Left] = {}

    def clean(self, folder: Path, keep: int | None, new: Manifest | None = None) -> None:
        """Remove all checkpoints but the newest, those that cannot be read first, and files of none.

        Parameters
        ----------
        folder : Path
        keep : int or None
            How many stay; None for all.
        new : Manifest, optional
            That of the checkpoint that was completed just now, after which nothing else can have been left; the newest.
        """
        left, known = self._left, self._folder == folder
        self._folder, self._left = None, {}
        looks = _looks(folder)
        name = "" if new is None else step_path(folder, new["step"]).name
        if new is None or not known or _others(looks, name) != _others({k: v.look for k, v in left.items()}, name):
            kept = _clean(folder, keep)
            if kept is None:
                return
            self._left = kept
        else:
            left.pop(name, None)
            left[name] = _Left(looks[name], frozenset(new["files"]))
            for other in list(left)[:-keep] if keep else []:
                (folder / other).unlink(missing_ok=True)
                del left[other]
            _remove_others(folder, left)
            self._left = left
        self._folder = folder


class _Left(NamedTuple):
    """A checkpoint that was left in a folder.

    Attributes
    ----------
    look : tuple of int
        What tells that its manifest is the same.
    files : frozenset of str
        Those that it names.
    """

    look: tuple[int, int, int]
    files: frozenset[str]


def _looks(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What there is to see of each manifest of a folder, by name."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.stat()) for entry in entries if fnmatch(entry.name, _ALL)]
    return {name: (seen.st_ino, seen.st_size, seen.st_mtime_ns) for name, seen in found}


def _others(looks: dict[str, tuple[int, int, int]], name: str) -> dict[str, tuple[int, int, int]]:
    return {other: look for other, look in looks.items() if other != name}


def _clean(folder: Path, keep: int | None) -> dict[str, _Left] | None:
    """Clean a folder of which nothing is known; what is left, the newest last; None where one cannot be read."""
    found = sorted(manifests(folder), key=lambda pair: isinstance(pair[1], dict))
    gone = found[:-keep] if keep else []
    for path, _ in gone:
        path.unlink(missing_ok=True)
    kept = found[len(gone) :]
    looks = _looks(folder)
    left = {path.name: _Left(looks[path.name], frozenset(what["files"])) for path, what in kept if type(what) is dict}
    if len(left) < len(kept):
        return None  # who knows what a damaged one names
    _remove_others(folder, left)
    return left


def _remove_others(folder: Path, left: Mapping[str, _Left]) -> None:
    """Remove the files that no checkpoint names."""
    named = frozenset[str]().union(*(each.files for each in left.values()))
    for file in os.listdir(folder / DATA):
        if file not in named:
            with contextlib.suppress(OSError):  # left for the next time
                os.unlink(folder / DATA / file)


def _packed(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
