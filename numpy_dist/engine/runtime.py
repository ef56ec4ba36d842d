"""The runtime of one rank: its communicator, backend, pool, counters and pending program."""

from __future__ import annotations

import contextvars
import importlib
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy_dist.advice import tell
from numpy_dist.backends.base import has_numba, make_backend
from numpy_dist.backends.by_rank import backends_of
from numpy_dist.backends.transport import ByHost, Transport
from numpy_dist.comm import detect
from numpy_dist.comm.base import dealt_out
from numpy_dist.engine.events.reporting import EventReports
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.engine.scheduling.counters import EngineCounters
from numpy_dist.engine.scheduling.program import Program
from numpy_dist.frames import UserLine
from numpy_dist.layout.default import default_layout as plan_default_layout
from numpy_dist.layout.layout import Layout, replicated_layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.weights import speed_weights
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.backends.library import Library
    from numpy_dist.comm.base import Communicator
    from numpy_dist.engine.scheduling.execution import Execution
    from numpy_dist.engine.scheduling.schedule import GroupObserver

current: contextvars.ContextVar[Runtime | None] = detect.rank_local(
    contextvars.ContextVar("numpy_dist_runtime", default=None)
)
_process: Runtime | None = None

_DEALT_OUT = (
    "ranks were dealt out to the hosts one by one, so that neighbouring parts of arrays are on different hosts: start "
    "them in blocks (srun --distribution=block), or set NUMPY_DIST_RANK_ORDER=node, which numbers them host by host"
)

_NOT_ON_ALL = "some ranks have a device and others have none, so messages are staged in the memory of hosts"

STARTED: list[Callable[[Runtime], None]] = []
"""What is called with each new runtime."""


class Runtime:
    """Everything that one rank keeps between calls.

    Parameters
    ----------
    comm : Communicator

    Attributes
    ----------
    comm, backend, pool, counters
    rank, size : int
        The communicator's.
    program : Program
        Statements that were recorded and not yet executed.
    events : EventReports
        Floating-point events that were not yet reported.
    uneven : bool
        Whether some ranks have another backend than others. What leads to messages then goes by what all of them can.
    on_host : bool
        Whether the shards of all ranks lie in the memory of hosts.
    computes : bool
        Whether the backend computes values, and does not only count.
    handed_out : bool
        Whether memory of some storage was ever handed out (`x.local`).
    budgets : dict
        Of the memory budget, by the setting of this rank, what all ranks have agreed on (`engine.memory.budget`).
    ledger : Ledger or None
        What this rank has gathered and told the user, kept by `dispatch.core.policy`.
    listings : list of GroupObserver
        What is told of every group that is executed.
    execution : Execution or None
        How far the execution has come that is in progress.
    recorder : Recorder or None
        What is told of executions (a `ProgramRecorder`), gathers and functions while there is a profile
        (`profiling.recorder`), or a plan of a job is made (`scaling.observer`).
    activities : list of Activity
        What takes long and goes on, the outermost first (`engine.data.activities`).
    """

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size
        wanted = config.BACKEND
        devices = comm.devices if wanted in ("auto", "mixed") else ()
        every = backends_of(wanted, comm.size, devices, has_numba())
        self.uneven = every.uneven
        here = every.number_here(comm.rank, comm.nodes) if self.uneven else comm.node_rank
        self.backend = make_backend(every.name(comm.rank), comm.node_size, here)
        self.on_host: bool = every.on_hosts if self.uneven else self.backend.memory.on_host
        self.computes: bool = getattr(self.backend, "computes", True)
        self.pool = Pool(room=self.backend.memory.room, failed=comm.fail, memory=self.backend.memory)
        self.counters = EngineCounters()
        self.events = EventReports(self)
        self.program = Program(self)
        self.handed_out = False
        self.execution: Execution | None = None
        self.listings: list[GroupObserver] = []
        self.recorder: Any = None
        self.activities: list[Any] = []
        self.thread = threading.get_ident()
        self.budgets: dict[int, int] = {}
        self.ledger: Any = None
        self._transport: Transport | None = None
        self._measured: tuple[float, ...] | None = None
        self._prepare: Callable[[], None] | None = getattr(self.backend, "prepare", None)
        for listener in STARTED:
            listener(self)
        if config.PROFILE:  # by name: profiles are no lower layer
            importlib.import_module("numpy_dist.profiling.session").begin(self)

    @property
    def transport(self) -> Transport:
        """How shards' messages travel. The first use may be collective, where the ranks have to agree."""
        if self._transport is None:
            make = getattr(self.backend, "transport", None)  # of devices only
            attempt, memory = self.pool.attempt, self.backend.memory
            if self.uneven and not self.on_host:
                if config.TRANSPORT not in ("auto", "host"):
                    raise ValueError(f"TRANSPORT={config.TRANSPORT!r}: {_NOT_ON_ALL}")
                self._transport = ByHost(memory, self.comm, attempt, _NOT_ON_ALL)
            else:
                self._transport = ByHost(memory, self.comm, attempt) if make is None else make(self.comm, attempt)
        return self._transport

    @property
    def library(self) -> Library | None:
        """What computes on shards where they lie, if all ranks have the same; None where NumPy does so on hosts."""
        return None if self.uneven else self.backend.memory.library

    @property
    def weights(self) -> tuple[float, ...]:
        """How much each rank gets of new arrays; where that is to be measured, the first use is collective."""
        given = config.WEIGHTS
        if isinstance(given, tuple):
            return given
        return self.measure_weights() if self._measured is None else self._measured

    def measure_weights(self) -> tuple[float, ...]:
        """Measure how fast the ranks are now, and make weights of that (see `parallel.rank_speeds`). Collective.

        There are none for a rank that computes nothing, and rank 0 tells of what is found.
        """
        self._measured = ()
        if self.computes and self.size > 1:
            from numpy_dist.parallel.rank_speeds import rank_speeds  # where somebody asks for it

            speeds = rank_speeds(self.comm, self.backend.memory, getattr(self.backend, "threads", 1), self.library)
            self._measured = speed_weights(speeds)
            if self.rank == 0:
                found = ",".join(f"{weight:g}" for weight in self._measured) or "all ranks are equally fast"
                print(f"numpy-dist: weights as measured: {found}", file=sys.stderr)
        return self._measured

    @property
    def flat_mesh(self) -> Mesh:
        """All ranks in a row."""
        return Mesh((self.size,))

    def replicated_layout(self, shape: tuple[int, ...]) -> Layout:
        """The layout of arrays that every rank has."""
        return replicated_layout(tuple(shape), self.size)

    def default_layout(self, shape: tuple[int, ...], **choice: Any) -> Layout:
        """The layout of new arrays of this shape (see `layout.default`)."""
        if self._prepare is not None:
            prepare, self._prepare = self._prepare, None  # loops are to be expected
            prepare()
        if "weights" not in choice:
            choice["weights"] = self.weights
        return plan_default_layout(
            tuple(shape),
            self.size,
            allow_empty=config.MIN_SHARD_BYTES == 0,
            **{"nodes": self.comm.nodes, **choice},
        )


def runtime() -> Runtime:
    """The runtime of the calling rank; made at first use (not a collective, but it may start MPI).

    Raises
    ------
    RuntimeError
        When a second thread tries to use a runtime: only one thread of a rank records.
    """
    found = current.get()
    if found is None or found.thread != threading.get_ident():
        found = _make()
    return found


def _make() -> Runtime:
    global _process
    comm = detect.get_communicator()
    if comm.name == "simulated":
        made = Runtime(comm)
    else:
        if _process is None or _process.comm is not comm:
            _process = Runtime(comm)
            if comm.rank == 0 and dealt_out(comm.nodes):
                tell("the order of ranks", UserLine("", 0), _DEALT_OUT, "docs/hosts.md")
        elif _process.thread != threading.get_ident():
            raise RuntimeError(
                "numpy_dist was used from a second thread: one thread of a rank records and executes; "
                "hand the arrays' values over with x.gather() or x.local, and write files with numpy_dist.save"
            )
        made = _process
    current.set(made)
    return made
