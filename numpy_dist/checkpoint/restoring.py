"""Restoring of checkpoints: each rank reads its parts, and all of them together compare every checksum."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.checkpoint.checksum import CHECKSUMS
from numpy_dist.checkpoint.folder import DATA, Manifest, manifests, step_path
from numpy_dist.checkpoint.saving import Folder, wait
from numpy_dist.checkpoint.tree import decode
from numpy_dist.comm.portable import on_root
from numpy_dist.dispatch.functions.array_creation_from_data import ingest
from numpy_dist.dispatch.functions.input_output_reading import read_array
from numpy_dist.errors import CheckpointError, CheckpointWarning
from numpy_dist.files.npy import ArrayInFile, array_of_npy
from numpy_dist.files.pieces import bytes_of
from numpy_dist.files.reading import Reader, agreed
from numpy_dist.frames import stack_level
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


__all__ = ["latest", "restore", "steps"]


def restore(folder: Folder, step: int | None = None) -> Any:
    """The state of a checkpoint; None if the folder has none (collective).

    Parameters
    ----------
    folder : str or path-like
        Rank 0's counts.
    step : int, optional
        Default: the newest that is not damaged.

    Returns
    -------
    object
        The state, with the same arrays, bit for bit, whatever the number of ranks. Distributed arrays are divided by
        the axis by which they were, if it was one, else in the default way.

    Raises
    ------
    CheckpointError
        On every rank: there is no checkpoint of this step, or it is damaged, or all of them are.

    Warns
    -----
    CheckpointWarning
        Of one that is damaged, when the one before it is taken.
    """
    comm = engine.runtime().comm
    wait()
    where, found = on_root(lambda: _candidates(folder, step), comm)
    problem: Exception | None = None
    for path, content in reversed(found):
        try:
            if isinstance(content, CheckpointError):
                raise content
            state = decode(content["state"], _arrays(where, content))
        except CheckpointError as error:
            if problem is not None:
                problem.add_note(f"and before it: {error}")
            problem = problem or error
            continue
        if problem is not None:
            warnings.warn(
                f"{problem}; the checkpoint of step {content['step']} ({path.name}) is taken instead",
                CheckpointWarning,
                stacklevel=stack_level(ours=True),
            )
        return state
    if problem is None and step is not None:
        problem = CheckpointError(f"{where} has no checkpoint of step {step}")
    if problem is not None:
        raise problem
    return None


def steps(folder: Folder) -> list[int]:
    """The steps of the checkpoints in a folder that can be read, the newest last (collective, one broadcast)."""

    def look() -> list[int]:
        return [what["step"] for _, what in manifests(Path(folder)) if isinstance(what, dict)]

    return on_root(look, engine.runtime().comm)


def latest(folder: Folder) -> int | None:
    """The step of the newest checkpoint in a folder; None if it has none (collective, one broadcast)."""
    found = steps(folder)
    return found[-1] if found else None


def _candidates(folder: Folder, step: int | None) -> tuple[Path, list[tuple[Path, Any]]]:
    """The checkpoints that may be meant, the best last."""
    where = Path(folder).resolve()
    found = manifests(where)
    if step is not None:
        found = [(path, what) for path, what in found if path == step_path(where, step)]
    return where, found


def _arrays(folder: Path, content: Manifest) -> list[object]:
    """The arrays of a checkpoint, in the order in which its tree names them (collective).

    Raises
    ------
    CheckpointError
        On every rank, naming the file that is damaged or not there.
    """
    comm = engine.runtime().comm
    plain = _plain(folder, content)
    found: list[object] = []
    for entry in content["arrays"]:
        path = folder / DATA / entry["file"]
        if entry["member"] is not None:
            array = plain[entry["member"]]
            found.append(ingest(array, None, None, None, None, None) if entry["distributed"] else array)
            continue
        try:
            stored = agreed(comm, path, partial(_look, path, entry.get("header")))
            if stored is None or list(stored.shape) != list(entry["shape"]):
                raise CheckpointError(f"{path} is damaged: it is no file of an array of shape {entry['shape']}")
            pieces = [(tuple(map(tuple, box)), checksum) for box, checksum in entry["pieces"]]
            checksum = CHECKSUMS[entry.get("checksum", "crc32")]  # the first version of the format names none
            found.append(read_array(_Checking(path, stored, pieces, checksum), entry["split"]))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged or not there: {error}") from error
    return found


def _look(path: Path, header: tuple[int, int] | None) -> ArrayInFile | None:
    """What the header of an array's file says, if it is as it was written: older checkpoints do not tell.

    Raises
    ------
    CheckpointError
        Or OSError, or ValueError.
    """
    if header is not None:
        with path.open("rb") as file:
            if zlib.crc32(file.read(header[0])) != header[1]:
                raise CheckpointError(f"{path} is damaged: its header is another one")
    return array_of_npy(path)


def _plain(folder: Path, content: Manifest) -> dict[str, np.ndarray]:
    """The arrays that every rank has, which rank 0 reads (collective); `zipfile` compares their checksums."""
    if content["plain"] is None:
        return {}
    path = folder / DATA / content["plain"]
    members = [entry["member"] for entry in content["arrays"] if entry["member"] is not None]

    def read() -> dict[str, tuple[np.dtype, np.ndarray]]:
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = [archive[member] for member in members]
        except MemoryError:
            raise
        except Exception as error:  # what zipfile raises for archives that are damaged is of many classes
            reason = str(error) or type(error).__name__
            raise CheckpointError(f"{path} is damaged or not there: {reason}") from None
        return {member: (x.dtype, _as_sent(x)) for member, x in zip(members, arrays, strict=True)}

    found = on_root(read, engine.runtime().comm)
    return {name: array.view(dtype) for name, (dtype, array) in found.items()}


def _as_sent(array: np.ndarray) -> np.ndarray:
    """An array as it travels to other ranks: pickled dates of another byte order would get that of this machine."""
    return array.view(np.int64) if array.dtype.kind in "mM" else array


class _Checking(Reader):
    """A reader that compares checksums: of pieces within what ranks have read, and of all others, dealt out to them."""

    def __init__(
        self,
        path: Path,
        array: ArrayInFile,
        pieces: Sequence[tuple[Box, int]],
        checksum: Callable[[memoryview], int],
    ) -> None:
        super().__init__(path, array)
        self._pieces, self._name, self._checksum = pieces, path, checksum
        self._seen: list[int] = []

    def fill(self, box: Box, block: np.ndarray) -> None:
        super().fill(box, block)
        for number, (piece, checksum) in enumerate(self._pieces):
            if all(lo <= a and b <= hi for (lo, hi), (a, b) in zip(box, piece, strict=True)):
                within: tuple = *(slice(a - lo, b - lo) for (lo, _), (a, b) in zip(box, piece, strict=True)), ...
                self._compare(block[within], piece, checksum)
                self._seen.append(number)

    def finish(self, comm: Communicator) -> None:
        seen = {number for numbers in comm.allgather(self._seen) for number in numbers}
        left = [number for number in range(len(self._pieces)) if number not in seen]
        for number in left[comm.rank :: comm.size]:
            piece, checksum = self._pieces[number]
            block = np.empty([hi - lo for lo, hi in piece], self.dtype)
            super().fill(piece, block)
            self._compare(block, piece, checksum)
        super().finish(comm)

    def _compare(self, block: np.ndarray, piece: Box, checksum: int) -> None:
        if self.failure is None and self._checksum(bytes_of(np.ascontiguousarray(block))) != checksum:
            self.failure = CheckpointError(f"{self._name}: the checksum of the elements {piece} is another one")
