"""Saving of checkpoints: what is to be written is fixed by all ranks together, and written by a thread on each."""

from __future__ import annotations

import atexit
import contextlib
import operator
import os
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from numpy_dist import engine
from numpy_dist.checkpoint.folder import DATA, Manifest, manifests
from numpy_dist.checkpoint.snapshot import copied, part_of
from numpy_dist.checkpoint.tree import encode
from numpy_dist.checkpoint.writer import RankPart, Writing
from numpy_dist.comm.base import Communicator
from numpy_dist.comm.portable import agree, on_root
from numpy_dist.errors import CheckpointError

__all__ = ["Folder", "save", "wait"]

Folder = str | os.PathLike[str]


class _Session:
    """What one rank has written: the checkpoint that is being written, and arrays by their stamps in the last one."""

    def __init__(self) -> None:
        self.writing: Writing | None = None
        self.memory = contextlib.ExitStack()  # of the copies that are being written; the pool's
        self.folder: Path | None = None
        self.known: dict[engine.Stamp, dict[str, Any]] = {}
        self.next: dict[engine.Stamp, dict[str, Any]] = {}

    def wait(self, comm: Communicator) -> None:
        """Wait for the checkpoint that is being written (collective)."""
        writing, self.writing = self.writing, None
        if writing is not None:
            self.known, known = {}, self.next
            with self.memory:
                writing.wait(comm)
            self.known = known

    def is_busy(self, comm: Communicator) -> bool:
        """Whether a checkpoint is still being written, on any rank (collective, one allgather)."""
        return any(comm.allgather(self.writing is not None and self.writing.is_going_on))

    def end(self) -> None:
        if self.writing is not None:
            self.writing.end()


_sessions: WeakKeyDictionary[Communicator, _Session] = WeakKeyDictionary()


def _session(comm: Communicator) -> _Session:
    found = _sessions.get(comm)
    if found is None:
        found = _sessions[comm] = _Session()
        if comm.name != "simulated":
            atexit.register(found.end)
    return found


def save(
    folder: Folder,
    state: object,
    *,
    step: int,
    keep: int | None = 3,
    background: bool = False,
    if_busy: Literal["wait", "skip"] = "wait",
) -> bool:
    """Save a checkpoint: all of it, or, whatever happens, nothing (collective).

    Each rank writes its parts of distributed arrays. An array that has not been written to since the last checkpoint in
    this folder is not written again.

    Parameters
    ----------
    folder : str or path-like
        Of checkpoints of one program, which all ranks see; it is made if need be. Rank 0's counts.
    state : object
        Any nesting of lists, tuples, sets, dicts, dataclasses, named tuples and enumerations, with None, numbers,
        texts, bytes, NumPy's scalars, arrays and random generators, and distributed arrays. Alike on all ranks; rank
        0's counts, but for distributed arrays.
    step : int
        The number of the checkpoint, not negative. One of the same number is replaced.
    keep : int or None
        How many checkpoints stay, the newest; None for all.
    background : bool
        Return when this rank's parts are copied; threads write them. The next `save`, `restore` or `wait`, or the end
        of the program, waits until they have, and the former raise what went wrong.
    if_busy : {"wait", "skip"}
        What to do while the last checkpoint in the background is still being written: wait for it, or save nothing.

    Returns
    -------
    bool
        Whether the state is saved, or being saved; False, on every rank, where ``if_busy="skip"`` has skipped it.

    Raises
    ------
    CheckpointError
        On every rank, if a rank could not write, or the last checkpoint in the background could not be completed.
    TypeError
        If the state has what cannot be saved; the place is named.
    """
    comm = engine.runtime().comm
    session = _session(comm)
    if if_busy not in ("wait", "skip"):
        raise ValueError(f"if_busy={if_busy!r} is neither 'wait' nor 'skip'")
    if if_busy == "skip" and session.is_busy(comm):
        return False
    session.wait(comm)
    if keep is not None and keep < 1:
        raise ValueError(f"keep={keep}: at least one checkpoint is kept; keep=None keeps all")
    tree, arrays = _encoded(comm, state)
    where, prefix, sequence = _prepared(comm, folder, step)
    if session.folder != where:
        session.folder, session.known = where, {}
    engine.flush()
    stamps = [engine.stamp(x) if _is_sharded(x) else None for x in arrays]
    unchanged = _unchanged(comm, session, stamps, where)
    session.next = {}
    entries: list[dict[str, Any]] = []
    parts: list[RankPart] = []
    owners: list[Any] = []  # of the memory in which the blocks of the parts lie
    plain: list[np.ndarray] = []
    for number, (x, stamp) in enumerate(zip(arrays, stamps, strict=True)):
        if not _is_sharded(x):
            entry = {"file": f"{prefix}.npz", "member": f"arr_{len(plain)}", "distributed": engine.is_handle(x)}
            entries.append(entry)
            plain.append(np.array(engine.plain(x)))
            continue
        if unchanged[number]:
            entry = session.known[stamp]  # type: ignore[index]
        else:
            part, entry, owner = part_of(x, f"{prefix}-{number}.npy")
            parts.append(part)
            owners.append(owner)
        entries.append(entry)
        if stamp is not None and engine.stamp(x) == stamp:
            session.next[stamp] = entry
    if background:
        parts = _copied(comm, session, parts)
    content: Manifest = {
        "step": int(step),
        "sequence": sequence,
        "ranks": comm.size,
        "state": tree,
        "arrays": entries,
        "plain": f"{prefix}.npz" if plain else None,
        "files": sorted({entry["file"] for entry in entries}),
    }
    session.writing = Writing(comm, where, content, parts, plain, prefix, keep, background)
    if not background:
        session.wait(comm)
    return True


def wait() -> None:
    """Wait until the checkpoint that is being written in the background is complete (collective).

    Raises
    ------
    CheckpointError
        On every rank, if it cannot be.
    """
    comm = engine.runtime().comm
    _session(comm).wait(comm)


def _is_sharded(x: object) -> bool:
    return engine.is_handle(x) and engine.is_sharded(x)


def _encoded(comm: Communicator, state: object) -> tuple[Any, list[Any]]:
    """The tree of a state and its arrays; what one rank cannot save is told on all (collective)."""
    found: tuple[Any, list[Any]] = None, []
    failure: Exception | None = None
    try:
        found = encode(state)
    except Exception as error:
        failure = error
    agree(failure, comm)
    mine = [(_is_sharded(x), x.shape, x.dtype) for x in found[1]]
    told = comm.allgather(mine)
    other = next((rank for rank, theirs in enumerate(told) if theirs != told[0]), None)
    if other is not None:
        raise ValueError(f"the states of rank 0 and rank {other} have not the same arrays: they cannot be saved as one")
    return found


def _copied(comm: Communicator, session: _Session, parts: list[RankPart]) -> list[RankPart]:
    """The parts with blocks that the program does not change; what one rank has no memory for is told on all."""
    failure: Exception | None = None
    scratch = session.memory.enter_context(engine.Scratch())
    try:
        parts = [copied(part, scratch) for part in parts]
    except MemoryError as error:
        failure = error
    try:
        agree(failure, comm)
    except BaseException:
        parts = []
        session.memory.close()
        raise
    return parts


def _prepared(comm: Communicator, folder: Folder, step: int) -> tuple[Path, str, int]:
    """The folder, the beginning of the names of new files, and the sequence number (collective).

    Raises
    ------
    CheckpointError
        If not all ranks see the folder.
    """

    def prepare() -> tuple[Path, str, int]:
        if operator.index(step) < 0:
            raise ValueError(f"step={step} is negative")
        where = Path(folder).resolve()
        (where / DATA).mkdir(parents=True, exist_ok=True)
        sequence = 1 + max((what["sequence"] for _, what in manifests(where) if isinstance(what, dict)), default=0)
        return where, f"{operator.index(step):012d}-{os.urandom(4).hex()}", sequence

    made = on_root(prepare, comm)
    seen = (made[0] / DATA).is_dir()
    agree(None if seen else CheckpointError(f"rank {comm.rank} does not see the folder {made[0]}"), comm)
    return made


def _unchanged(comm: Communicator, session: _Session, stamps: list[Any], folder: Path) -> list[bool]:
    """Which arrays every rank knows to be as they were in the last checkpoint, whose files are there (collective)."""
    mine = [
        stamp is not None and stamp in session.known and (folder / DATA / session.known[stamp]["file"]).exists()
        for stamp in stamps
    ]
    return [all(told) for told in zip(*comm.allgather(mine), strict=True)]
