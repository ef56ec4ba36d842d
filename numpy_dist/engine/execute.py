"""Execution of one group: bring what it reads, give it memory to write to, run its loop, combine its reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.engine import floating
from numpy_dist.engine.combine import combine
from numpy_dist.engine.fuse import Group, disjoint
from numpy_dist.engine.storage import Storage
from numpy_dist.engine.transfer import Wanted, fetch_array, start_halo
from numpy_dist.engine.views import local_view
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.alignment import FETCH, HALO, Access, is_empty, plan_access
from numpy_dist.layout.regions import Region


def execute(runtime: Any, group: Group, later: set[int]) -> None:
    """Execute a group of statements.

    Parameters
    ----------
    runtime : Runtime
    group : Group
    later : set of int
        Ids of storages that statements still pending read or write: these must be stored.
    """
    work = _Work(runtime, group, later)
    work.bring()
    box = group.space.box(runtime.rank)
    partials: dict[int, np.ndarray] = {}
    if box is not None and not is_empty(box):
        work.run(box, partials)
    for storage in work.written.values():
        storage.fresh = ()
    for statement in group.statements:
        if isinstance(statement, Reduction):
            combine(runtime, statement, partials.get(statement.serial))


class _Work:
    """The state of one group's execution on this rank."""

    def __init__(self, runtime: Any, group: Group, later: set[int]) -> None:
        self.runtime, self.group, self.later = runtime, group, later
        self.accesses: dict[tuple, tuple[Ref, Access]] = {}
        self.fetched: dict[tuple, tuple[np.ndarray | None, Region | None]] = {}
        self.written: dict[int, Storage] = {}
        self.operands: dict[tuple, Any] = {}  # by view: the local array or temporary with its present value
        self.copies: list[tuple[np.ndarray, np.ndarray]] = []  # (target, source) after the loop
        self.stored: set[tuple] = set()  # views that the loop has an array for
        self.temps = 0

    # -- communication ----------------------------------------------------------------------------------------------

    def bring(self) -> None:
        """Refresh halos and fetch what is not aligned: all messages are posted before any is waited for."""
        made: set[tuple] = set()
        for statement in self.group.statements:
            for ref in statement.reads():
                key = ref.key
                if key not in made and key not in self.accesses:
                    self.accesses[key] = (ref, plan_access(ref.storage.layout, ref.vmap, self.group.space))
            if not isinstance(statement, Reduction):
                for out in statement.outputs:
                    self.written[id(out.storage)] = out.storage
                    made.add(out.key)
        waits: list[Callable[[], None]] = []
        halos: dict[int, list[tuple[Ref, Access]]] = {}
        for key, (ref, access) in self.accesses.items():
            if access.mode == FETCH or (access.mode == HALO and ref.storage.pinned):
                waits.append(self._fetch(key, ref, access))
            elif access.mode == HALO:
                halos.setdefault(id(ref.storage), []).append((ref, access))
        for reads in halos.values():
            started = start_halo(self.runtime, reads[0][0].storage, tuple(access for _, access in reads))
            if started is not None:
                waits.append(started)
        for wait in waits:
            wait()

    def _fetch(self, key: tuple, ref: Ref, access: Access) -> Callable[[], None]:
        regions = access.regions
        if ref.vmap.merged:  # merged axes need whole rows to be addressed as one
            cut = ref.storage.layout.cut_axes
            regions = tuple(
                None
                if r is None
                else tuple(
                    range(x.start, x.stop) if a in cut or a == 0 else range(n)
                    for a, (x, n) in enumerate(zip(r, ref.storage.shape, strict=True))
                )
                for r in regions
            )
        wanted: Wanted = tuple(() if r is None else (r,) for r in regions)
        array, finish = fetch_array(self.runtime, ref.storage, wanted)
        self.fetched[key] = (array, regions[self.runtime.rank])
        return finish

    # -- the loop ---------------------------------------------------------------------------------------------------

    def run(self, box: Any, partials: dict[int, np.ndarray]) -> None:
        """Build the local loop and hand it to the backend."""
        counters = self.runtime.counters
        self.box = box
        shape = tuple(hi - lo for lo, hi in box)
        for key, (ref, _) in self.accesses.items():
            self.operands[key] = self._source(key, ref)
        counters.loops += 1
        counters.reads += len({id(ref.storage) for ref, _ in self.accesses.values()})
        versions = self._versions()
        steps: list[Step | ReduceStep] = []
        for statement in self.group.statements:
            if isinstance(statement, Reduction):
                steps.append(self._reduce_step(statement, shape, partials))
                continue
            inputs = tuple(self._operand(x) for x in statement.inputs)
            where = None if statement.where is None else self._operand(statement.where)
            assert isinstance(statement, Elementwise)
            outputs = tuple(
                self._target(statement, out, new, versions)
                for out, new in zip(statement.outputs, statement.creates, strict=True)
            )
            steps.append(Step(statement.op, inputs, outputs, where, statement.options, statement.serial))
        labels = {s.serial: s for s in self.group.statements}

        def report(label: int, kind: str) -> None:
            statement = labels[label]
            name = "reduce" if isinstance(statement, Reduction) else statement.op.name
            met = floating.event(label, kind, name, statement.errstate, statement.site)
            if met is not None:
                self.runtime.flags.add(met)

        watched = frozenset(k for s in self.group.statements for k, action in s.errstate.items() if action != "ignore")
        self.runtime.backend.run(Loop(shape, steps, report, watched))
        for target, source in self.copies:
            np.copyto(target, source)

    def _operand(self, x: Any) -> Any:
        return self.operands[x.key] if type(x) is Ref else x

    def _source(self, key: tuple, ref: Ref) -> np.ndarray:
        storage = ref.storage
        found = self.fetched.get(key)
        if found is not None:
            array, region = found
            assert array is not None and region is not None
            low, steps = tuple(r.start for r in region), tuple(r.step for r in region)
            memory = array.base if array.base is not None else array
            return local_view(
                memory, storage.dtype.itemsize, low, array.shape, steps, ref.vmap, self.box, ref.array.dtype
            )
        if storage.memory is None:
            storage.allocate(storage.layout.box(self.runtime.rank))
        return self._window(storage, ref, storage.memory)

    def _window(self, storage: Storage, ref: Ref, memory: np.ndarray) -> np.ndarray:
        return local_view(
            memory, storage.dtype.itemsize, storage.low, storage.extent, None, ref.vmap, self.box, ref.array.dtype
        )

    def _reduce_step(self, statement: Reduction, shape: tuple[int, ...], partials: dict[int, np.ndarray]) -> ReduceStep:
        kept = tuple(1 if axis in statement.axes else n for axis, n in enumerate(shape))
        partial = partials[statement.serial] = np.empty(kept, statement.dtype)
        where = None if statement.where is None else self._operand(statement.where)
        source = self._operand(statement.inputs[0])
        return ReduceStep(statement.op, source, partial, statement.axes, where, statement.serial)

    # -- what is written --------------------------------------------------------------------------------------------

    def _versions(self) -> dict[int, str]:
        """For each written storage: write "through", to a new "version", or by way of an "aside" array."""
        verdict: dict[int, str] = {}
        targets: dict[int, set[tuple]] = {}
        for statement in self.group.statements:
            for out in () if isinstance(statement, Reduction) else statement.outputs:
                number, key = id(out.storage), out.key
                if key not in targets.setdefault(number, set()):
                    targets[number].add(key)
                    verdict[number] = max(verdict.get(number, "through"), self._verdict(out, key), key=_HOW.index)
        for number, storage in self.written.items():
            if verdict[number] == "version":
                self._new_version(storage, targets[number])
            elif storage.spare is not None and targets[number] != {(number, *storage.spare[1])}:
                spare = storage.spare[0]
                storage.spare = None
                storage.pool.give(spare)
        return verdict

    def _verdict(self, out: Ref, key: tuple) -> str:
        storage = out.storage
        conflict = any(
            ref.storage is storage and other != key and other not in self.fetched and not disjoint(ref, out)
            for other, (ref, _) in self.accesses.items()
        )
        if not conflict:
            return "through"
        small = 2 * _volume(self.box) * out.array.itemsize < storage.memory.size
        return "aside" if small or storage.pinned else "version"

    def _new_version(self, storage: Storage, targets: set[tuple]) -> None:
        """Swap in another allocation; cells outside the write are carried over, unless the spare has them."""
        region = next(iter(targets))[1:] if len(targets) == 1 else None
        old, spare = storage.memory, storage.spare
        self.runtime.counters.versions += 1
        if spare is not None and spare[1] == region:
            storage.memory, storage.spare = spare[0], (old, region)
            return
        self.runtime.counters.carried += 1
        new = storage.pool.take(old.size)
        np.copyto(new, old)
        storage.memory, storage.spare = new, (old, region)
        if spare is not None:
            discarded = spare[0]
            del spare
            storage.pool.give(discarded)

    def _target(self, statement: Statement, out: Ref, creates: bool, versions: dict[int, str]) -> Any:
        """Where a statement writes: a temporary, or an array over the storage's memory."""
        key, storage, counters = out.key, out.storage, self.runtime.counters
        present = self.operands.get(key)
        if key in self.stored:
            return present
        self.stored.add(key)
        if creates and self._contractible(storage):
            counters.contracted += 1
            temp = self.operands[key] = Temp(self.temps, out.array.dtype)
            self.temps += 1
            return temp
        counters.writes += 1
        if creates and not storage.alive:
            counters.stored_temporaries += 1
        if storage.memory is None:
            storage.allocate(storage.layout.box(self.runtime.rank))
        window = self._window(storage, out, storage.memory)
        how = versions[id(storage)]
        if how == "aside":
            aside = np.empty(window.shape, window.dtype)
            if statement.where is not None:
                np.copyto(aside, window)
            self.copies.append((window, aside))
            window = aside
        elif how == "version" and statement.where is not None:
            np.copyto(window, self._window(storage, out, storage.spare[0]))
        self.operands[key] = window
        return window

    def _contractible(self, storage: Storage) -> bool:
        return not storage.alive and id(storage) not in self.group.shared and id(storage) not in self.later


_HOW = ("through", "version", "aside")


def _volume(box: Any) -> int:
    count = 1
    for lo, hi in box:
        count *= hi - lo
    return count
