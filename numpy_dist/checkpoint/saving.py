"""Saving of checkpoints: what is to be written is fixed by all ranks together, and written by a thread on each."""

from __future__ import annotations

import atexit
import contextlib
import operator
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from numpy_dist import engine
from numpy_dist.checkpoint.folder import DATA, FolderCleaner, Manifest, manifests
from numpy_dist.checkpoint.snapshot import copied, part_of
from numpy_dist.checkpoint.tree import encode
from numpy_dist.checkpoint.writer import RankPart, Writing
from numpy_dist.comm.base import Communicator
from numpy_dist.comm.portable import first_error, on_root, portable_error, restored
from numpy_dist.errors import CheckpointError
from numpy_dist.files.replacement import sync_folder

__all__ = ["Folder", "save", "wait"]

Folder = str | os.PathLike[str]
_ROOT = 0
Result = TypeVar("Result")
Told = TypeVar("Told")


class _Session:
    """What one rank has written: the checkpoint that is being written, and arrays by their stamps in the last one."""

    def __init__(self) -> None:
        self.writing: Writing | None = None
        self.memory = contextlib.ExitStack()  # of the copies that are being written; the pool's
        self.folder: Path | None = None
        self.cleaner = FolderCleaner()
        self.writes = True  # else what would be written is counted, and taken to be there
        self.sequence = 0  # of the last checkpoint in this folder; rank 0's
        self.known: dict[engine.Stamp, dict[str, Any]] = {}
        self.next: dict[engine.Stamp, dict[str, object]] = {}

    def has(self, name: str = "") -> bool:
        """Whether the folder of the checkpoints' data is there, or a file in it."""
        return self.folder is not None and (not self.writes or (self.folder / DATA / name).exists())

    def wait(self, comm: Communicator) -> None:
        """Wait for the checkpoint that is being written (collective)."""
        if self.writing is not None:
            self.finish(comm, self.tell(comm, portable_error(self.failure())), lambda: None)

    def failure(self) -> Exception | None:
        """What this rank has met as it wrote its part of the checkpoint, when that is written. Not collective."""
        return None if self.writing is None else self.writing.own_failure()

    def tell(self, comm: Communicator, mine: Told) -> Sequence[Told]:
        """What each rank has to say (collective, one allgather)."""
        try:
            return comm.allgather(mine)
        except BaseException:
            if self.writing is not None:
                self.writing.give_up("ranks have ended")
            raise

    def finish(self, comm: Communicator, told: Sequence[Any], work: Callable[[], Result]) -> Result:
        """End the checkpoint that is being written, if there is one, and then do something on rank 0 (collective).

        Parameters
        ----------
        comm : Communicator
        told : sequence
            What each rank has met as it wrote its part, as `portable_error`.
        work : callable
            For rank 0, if the checkpoint is complete. All get its result, or its exception.

        Raises
        ------
        CheckpointError
            On every rank, if the checkpoint is not complete.
        """
        writing, self.writing = self.writing, None
        known = self.known if writing is None else self.next
        self.known = {}
        with self.memory:
            mine = None if writing is None else portable_error(writing.finish(told))

            def finish() -> tuple[Any, Any, Any]:
                if mine is not None or any(error is not None for error in told):
                    return mine, None, None
                try:
                    return None, None, work()
                except Exception as error:
                    return None, portable_error(error), None

            outcome, failure, result = on_root(finish, comm)
        first = first_error((*told, outcome))  # rank 0's own look at the outcome comes last
        if first is not None:
            assert writing is not None
            rank, error = first
            failed = CheckpointError(writing.incomplete(error))
            if comm.size > 1:
                failed.add_note(f"rank {rank % comm.size} has met this")
            raise failed from error
        self.known = known
        if failure is not None:
            raise restored(failure)
        return result

    def complete(self) -> None:
        """End the checkpoint that was being written, if there is one, of which rank 0 has told that it is complete."""
        writing, self.writing = self.writing, None
        if writing is not None:
            writing.join()
            self.known = self.next
        self.memory.close()

    @property
    def latest(self) -> dict[engine.Stamp, dict[str, Any]]:
        """Arrays by their stamps in the last checkpoint, if that will be complete."""
        return self.known if self.writing is None else self.next

    def is_complete(self) -> bool:
        """Whether the last checkpoint is complete, if there is one; rank 0's own view."""
        return self.writing is None or (not self.writing.is_going_on and self.writing.own_failure() is None)

    def is_busy(self) -> bool:
        """Whether a checkpoint is still being written, by this rank."""
        return self.writing is not None and self.writing.is_going_on

    def end(self) -> None:
        if self.writing is not None:
            self.writing.end()


_sessions: WeakKeyDictionary[Communicator, _Session] = WeakKeyDictionary()


def _session(comm: Communicator) -> _Session:
    found = _sessions.get(comm)
    if found is None:
        found = _sessions[comm] = _Session()
        found.writes = comm.unwritten is None
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
        Return when this rank's parts are copied; threads write them. Where there is no memory for a copy, the rank
        writes first. The next `save`, `restore` or `wait`, or the end of the program, waits until all is written, and
        the former raise what went wrong.
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
    if keep is not None and operator.index(keep) < 1:
        raise ValueError(f"keep={keep}: at least one checkpoint is kept; keep=None keeps all")
    begun = _begun(comm, session, folder, step, state, if_busy)
    if begun is None:
        return False
    tree, arrays, stamps, unchanged, prefix = begun
    where, session.next = session.folder, {}
    assert where is not None
    entries: list[dict[str, object]] = []
    parts: list[RankPart] = []
    owners: list[object] = []  # of the memory in which the blocks of the parts lie
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
    if parts:
        engine.tell_events()
    are_copies = background and _copied(session, parts)
    content: Manifest = {
        "step": int(step),
        "sequence": session.sequence,
        "ranks": comm.size,
        "state": tree,
        "arrays": entries,
        "plain": f"{prefix}.npz" if plain else None,
        "files": sorted({entry["file"] for entry in entries}),
    }
    session.writing = Writing(comm, where, content, parts, plain, prefix, keep, are_copies, session.cleaner)
    if not background:
        session.wait(comm)
    elif not are_copies:
        session.writing.own_failure()  # before the program changes what is written
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


class _Begun(NamedTuple):
    """A checkpoint that all ranks have begun, in the folder and with the sequence number of their session.

    Attributes
    ----------
    tree : object
        Of the state.
    arrays : list
        Those of the state.
    stamps : list of (Stamp or None)
        Of the arrays.
    unchanged : list of bool
        Which of them every rank knows to be as they were in the last checkpoint, whose files are there.
    prefix : str
        The beginning of the names of new files.
    """

    tree: object
    arrays: list[Any]
    stamps: list[engine.Stamp | None]
    unchanged: list[bool]
    prefix: str


def _begun(
    comm: Communicator, session: _Session, folder: Folder, step: int, state: object, if_busy: str
) -> _Begun | None:
    """Begin a checkpoint when the last one is complete (collective).

    Each collective makes ranks wait for each other, so they tell all at once what they have to say: one allgather,
    where rank 0 sees that the last one is complete, and is in the same folder. Else rank 0 looks again, for which the
    others wait (a broadcast), and another allgather tells of a new folder.

    Returns
    -------
    _Begun or None
        None where the last one is still being written, on any rank, and is not to be waited for.

    Raises
    ------
    CheckpointError
        If the last one is not complete, or not all ranks see the folder.
    Exception
        What one rank cannot save.
    """
    tree: object = None
    arrays: list[Any] = []
    failure: Exception | None = None
    try:
        tree, arrays = encode(state)
    except Exception as error:
        failure = error
    mine = [(_is_sharded(x), x.shape, x.dtype) for x in arrays]
    busy = if_busy == "skip" and session.is_busy()
    engine.flush()  # on all ranks or on none: it may wait for them
    stamps = [engine.stamp(x) if _is_sharded(x) else None for x in arrays]
    written = None if busy else portable_error(session.failure())
    prepared = _prepared_early(session, folder, step) if comm.rank == _ROOT and not busy else None
    told = session.tell(comm, (busy, written, portable_error(failure), mine, _unchanged(session, stamps), prepared))
    if any(rank_is_busy for rank_is_busy, *_ in told):
        return None
    failed = first_error((error for _, _, error, *_ in told), comm.rank, failure)
    other = next((rank for rank, (_, _, _, theirs, _, _) in enumerate(told) if theirs != told[0][3]), None)
    early: tuple[str, int] | None = told[_ROOT][-1]
    if not comm.delivers:  # what rank 0 would tell
        early = _prepared_early(session, folder, step)
    if any(error is not None for _, error, *_ in told) or failed is not None or other is not None:
        early = None
    if early is not None:
        session.complete()
        prefix, session.sequence = early
        return _Begun(tree, arrays, stamps, _by_all([flags for *_, flags, _ in told], session.folder), prefix)

    def work() -> tuple[Path, str, int] | None:
        return None if failed is not None or other is not None else _prepared(session, folder, step)

    made = session.finish(comm, [error for _, error, *_ in told], work)
    if failed is not None:
        raise failed[1]
    if made is None:
        raise ValueError(f"the states of rank 0 and rank {other} have not the same arrays: they cannot be saved as one")
    where, prefix, session.sequence = made
    if session.folder != where:
        session.folder, session.known = where, {}
    return _Begun(tree, arrays, stamps, _by_all(comm.allgather(_unchanged(session, stamps)), where), prefix)


def _copied(session: _Session, parts: list[RankPart]) -> bool:
    """Give parts blocks that the program does not change; False where this rank has no memory for them."""
    scratch = session.memory.enter_context(engine.Scratch(announces=False))
    try:
        parts[:] = [copied(part, scratch, session.writes) for part in parts]
    except MemoryError:
        session.memory.close()
        return False
    except BaseException:
        session.memory.close()
        raise
    return True


def _prepared(session: _Session, folder: Folder, step: int) -> tuple[Path, str, int]:
    """The folder, the beginning of the names of new files, and the sequence number; of rank 0."""
    if operator.index(step) < 0:
        raise ValueError(f"step={step} is negative")
    where = Path(folder).resolve()
    if session.writes:
        _make_folder(where / DATA)
    last = session.sequence
    if session.folder != where:
        last = max((what["sequence"] for _, what in manifests(where) if isinstance(what, dict)), default=0)
    return where, _prefix(step), last + 1


def _make_folder(path: Path) -> None:
    """Make a folder, and those in which it lies, with their names on the disk."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def _prepared_early(session: _Session, folder: Folder, step: int) -> tuple[str, int] | None:
    """What `_prepared` gives, without the folder; None if that is a new one, or the last checkpoint is not complete."""
    try:
        if operator.index(step) < 0 or not session.is_complete() or session.folder != Path(folder).resolve():
            return None
    except Exception:  # of which `_prepared` tells
        return None
    return (_prefix(step), session.sequence + 1) if session.has() else None


def _prefix(step: int) -> str:
    return f"{operator.index(step):012d}-{os.urandom(4).hex()}"


def _unchanged(session: _Session, stamps: Sequence[engine.Stamp | None]) -> list[bool] | None:
    """Which arrays this rank knows to be as they were in the last checkpoint, whose files are there.

    None where this rank does not see the session's folder.
    """
    known = session.latest
    if not session.has():
        return None
    return [stamp is not None and stamp in known and session.has(known[stamp]["file"]) for stamp in stamps]


def _by_all(told: Sequence[Sequence[bool] | None], folder: Path | None) -> list[bool]:
    """Which arrays every rank knows to be unchanged, by what all have told.

    Raises
    ------
    CheckpointError
        If a rank does not see the folder.
    """
    for rank, flags in enumerate(told):
        if flags is None:
            raise CheckpointError(f"rank {rank} does not see the folder {folder}")
    return [all(flags) for flags in zip(*told, strict=True)]  # type: ignore[arg-type]
