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
from pathlib import Path
from typing import Any

from numpy_dist.errors import CheckpointError
from numpy_dist.files.replacement import replacing

__all__ = ["DATA", "Manifest", "clean", "manifests", "read_manifest", "step_path", "write_manifest"]

DATA = "data"
Manifest = dict[str, Any]
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
    for path in sorted(folder.glob("step-*.json")):
        try:
            readable.append((path, read_manifest(path)))
        except CheckpointError as error:
            damaged.append((path, error))
    readable.sort(key=lambda pair: pair[1]["sequence"])
    return [*readable, *damaged]


def clean(folder: Path, keep: int | None) -> None:
    """Remove all checkpoints but the newest, those that cannot be read first, and files of none.

    Parameters
    ----------
    folder : Path
    keep : int or None
        How many stay; None for all.
    """
    found = sorted(manifests(folder), key=lambda pair: isinstance(pair[1], dict))
    gone = found[:-keep] if keep else []
    for path, _ in gone:
        path.unlink(missing_ok=True)
    kept = found[len(gone) :]
    if any(not isinstance(what, dict) for _, what in kept):
        return  # who knows what a damaged one names
    named = {name for _, what in kept if isinstance(what, dict) for name in what["files"]}
    for file in (folder / DATA).iterdir():
        if file.name not in named:
            with contextlib.suppress(OSError):  # left for the next time
                os.unlink(file)


def _packed(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
