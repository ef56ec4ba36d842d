"""Writing of checkpoints: each rank its parts, by itself, and rank 0 the manifest when all have.

The ranks write into files that have their final size and that no manifest names yet. A rank that has its parts on the
disk says so in a file, its *report*, with the checksums; so that nobody has to communicate, and all of it can be done
by threads while the program goes on.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpy_dist.checkpoint.checksum import CHECKSUMS
from numpy_dist.checkpoint.folder import DATA, FolderCleaner, Manifest, write_manifest
from numpy_dist.errors import CheckpointError
from numpy_dist.files.direct import open_direct, write_direct
from numpy_dist.files.nowhere import Told
from numpy_dist.files.pieces import write_all, write_box
from numpy_dist.files.replacement import replacing, sync_folder
from numpy_dist.layout.regions import Box
from numpy_dist.parallel.threads import watched

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["CHECKSUM", "RankPart", "Writing"]

CHECKSUM = "sums"
"""What new checkpoints have, of `CHECKSUMS`."""

_FIRST_PAUSE, _PAUSE = 0.0005, 0.01  # seconds between two looks for reports
_PATIENCE = 10.0  # seconds for which a program that ends waits for reports


class RankPart(NamedTuple):
    """What this rank writes of a distributed array.

    Attributes
    ----------
    name : str
        Of the file in ``data``.
    header : bytes
        What stands before the elements.
    shape : tuple of int
        Of the array whose C order the file has.
    dtype : dtype
    box : box or None
        Of this rank; None if it has nothing to write.
    block : ndarray
        The elements of the box.
    checksums : dict
        Of the pieces of the block that have them already.
    """

    name: str
    header: bytes
    shape: tuple[int, ...]
    dtype: np.dtype
    box: Box | None
    block: np.ndarray
    checksums: Mapping[Box, int] = MappingProxyType({})


class Writing:
    """A checkpoint that is being written; its thread begins at once, where files are written at all.

    Parameters
    ----------
    comm : Communicator
    folder : Path
    content : dict
        The manifest, without the checksums of arrays whose ``pieces`` are None, which are those of `parts`, in order.
    parts : list of RankPart
    plain : list of ndarray
        Arrays that every rank has: rank 0 writes them.
    prefix : str
        Of the names of its files.
    keep : int or None
        As for `FolderCleaner.clean`.
    are_copies : bool
        Whether the blocks are copies that nobody changes, and the program goes on meanwhile, which is to have the
        processor.
    cleaner : FolderCleaner
        Rank 0's is used.
    """

    def __init__(
        self,
        comm: Communicator,
        folder: Path,
        content: Manifest,
        parts: list[RankPart],
        plain: list[np.ndarray],
        prefix: str,
        keep: int | None,
        are_copies: bool,
        cleaner: FolderCleaner,
    ) -> None:
        self.content, self.folder = content, folder
        self._rank, self._size = comm.rank, comm.size
        self._parts, self._plain, self._prefix, self._keep = parts, plain, prefix, keep
        self._are_copies, self._cleaner = are_copies, cleaner
        self._error: Exception | None = None
        self._written = threading.Event()  # this rank's parts are on the disk, or cannot be
        # Why there is nothing to wait for any more.
        alone = not comm.delivers and comm.unwritten is None
        self._given_up = "ranks are counted one by one, and no other one is there" if alone else ""
        self._deadline = float("inf")
        self._thread: threading.Thread | None = None
        if comm.unwritten is not None:
            self._count(comm.unwritten)
            return
        work = watched("checkpoint", f"writing of step {content['step']}", self._run)
        self._thread = threading.Thread(target=work, name="numpy_dist checkpoint", daemon=True)
        self._thread.start()

    @property
    def is_going_on(self) -> bool:
        """Whether this rank still writes, or rank 0 has not yet completed the checkpoint; this rank's own view."""
        return self._thread is not None and self._thread.is_alive()

    def own_failure(self) -> Exception | None:
        """What this rank has met as it wrote its part; returns when that is on the disk, or cannot be."""
        self._written.wait()
        return self._error

    def give_up(self, reason: str) -> None:
        """Wait for the reports of other ranks no longer."""
        self._given_up = reason

    def finish(self, told: Sequence[object]) -> Exception | None:
        """End the thread; what has kept this rank, or on rank 0 all of them, from being done.

        Parameters
        ----------
        told : sequence
            What each rank's `own_failure` was, None for none: rank 0 does not wait for those that have failed.
        """
        for rank, error in enumerate(told):
            if error is not None:
                self.give_up(f"rank {rank} could not write its part")
        self.join()
        if self._given_up and self._rank == 0:
            self._cleaner.clean(self.folder, None)  # other ranks may have made files after rank 0 had looked for them
        return self._error

    def join(self) -> None:
        """End the thread, of a checkpoint that is complete."""
        if self._thread is not None:
            self._thread.join()

    def incomplete(self, reason: Exception) -> str:
        """What to say of a checkpoint that is not complete, for a reason."""
        return f"the checkpoint of step {self.content['step']} in {self.folder} is not complete: {reason}"

    def end(self) -> None:
        """Let the thread complete the checkpoint as the program ends; ranks that have ended are not waited for long."""
        self._deadline = time.monotonic() + _PATIENCE
        self.join()
        if self._error is not None:
            print(f"numpy_dist: {self.incomplete(self._error)}", file=sys.stderr)

    def _run(self) -> None:
        try:
            try:
                mine = [self._write(part) for part in self._parts]
                if self._rank == 0:
                    self._write_plain()
                else:
                    self._report(mine)
            except Exception as error:
                self._error = error
            finally:
                self._parts, self._plain = [], []
                self._written.set()
            if self._rank == 0:
                self._complete(mine if self._error is None else [])
        except Exception as error:
            self._error = self._error or error

    def _count(self, unwritten: Told) -> None:
        """Count what this rank would write, without its report."""
        for part in self._parts:
            unwritten(len(part.header) * (self._rank == 0) + part.block.nbytes * (part.box is not None))
        if self._rank == 0:
            unwritten(sum(array.nbytes for array in self._plain))
        self._parts, self._plain = [], []
        self._written.set()

    def _write(self, part: RankPart) -> list[tuple[Box, int]]:
        """Write this rank's part of an array; the checksums of its pieces."""
        found: list[tuple[Box, int]] = []

        def seen(box: Box, data: memoryview) -> None:
            known = part.checksums.get(box)
            found.append((box, CHECKSUMS[CHECKSUM](data) if known is None else known))

        path = self.folder / DATA / part.name
        descriptor, direct = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), -1
        try:
            os.ftruncate(descriptor, len(part.header) + prod(part.shape) * part.dtype.itemsize)
            if self._rank == 0:
                write_all(descriptor, part.header, 0)
            if part.box is not None:
                direct = open_direct(path) if self._are_copies else -1
                write_box(
                    descriptor,
                    len(part.header),
                    part.shape,
                    part.box,
                    part.block,
                    seen,
                    functools.partial(write_direct, direct),
                )
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            if direct >= 0:
                os.close(direct)
        return found

    def _write_plain(self) -> None:
        if self._plain:
            with replacing(self.folder / DATA / f"{self._prefix}.npz") as file:
                np.savez(file, *self._plain)

    def _report_path(self, rank: int) -> Path:
        return self.folder / DATA / f"{self._prefix}.rank-{rank}.json"

    def _report(self, pieces: list[list[tuple[Box, int]]]) -> None:
        path = self._report_path(self._rank)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(pieces))  # a message: it need not outlive the machine
        os.replace(new, path)

    def _complete(self, mine: list[list[tuple[Box, int]]]) -> None:
        """Write the manifest when all ranks have reported; without it nothing is left."""
        complete = False
        try:
            if self._error is None:
                distributed = [entry for entry in self.content["arrays"] if entry["member"] is None]
                arrays = [entry for entry in distributed if entry["pieces"] is None]
                for entry, pieces in zip(arrays, mine, strict=True):
                    entry["pieces"] = list(pieces)
                for rank in range(1, self._size):
                    for entry, pieces in zip(arrays, self._reported(rank), strict=True):
                        entry["pieces"] += pieces
                sync_folder(self.folder / DATA)
                write_manifest(self.folder, self.content)
                complete = True
        finally:
            for rank in range(1, self._size):
                with contextlib.suppress(OSError):
                    self._report_path(rank).unlink(missing_ok=True)
            keep = None if self._error is not None else self._keep
            self._cleaner.clean(self.folder, keep, self.content if complete else None)

    def _reported(self, rank: int) -> list[Any]:
        path, pause = self._report_path(rank), _FIRST_PAUSE
        while not path.exists():
            if self._given_up or time.monotonic() > self._deadline:
                raise CheckpointError(self._given_up or f"rank {rank} has not written its part")
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE)
        return json.loads(path.read_bytes())
