"""Which communicator a program gets: that of its simulated rank, MPI's, or one rank alone."""

from __future__ import annotations

import contextvars
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from numpy_dist.comm import launchers
from numpy_dist.comm.base import Communicator
from numpy_dist.comm.single import SingleCommunicator
from numpy_dist.comm.supervision.exits import ExitGuard
from numpy_dist.errors import LauncherError

__all__ = [
    "current",
    "find_mpiexec",
    "get_communicator",
    "on_rank_zero",
    "rank_local",
    "run_guarded",
    "started",
    "watch_exits",
]

Result = TypeVar("Result")

# The communicator of a simulated rank.
current: contextvars.ContextVar[Communicator | None] = contextvars.ContextVar("numpy_dist_communicator", default=None)

_process_wide: Communicator | None = None
_guard: ExitGuard | None = None
_rank_local: list[contextvars.ContextVar[Any]] = []


def get_communicator() -> Communicator:
    """The communicator of the running context; the first call may start MPI, and is then collective.

    Raises
    ------
    LauncherError
        A launcher started several ranks, but the MPI library is missing, or sees one rank only.
    """
    communicator = current.get()
    if communicator is not None:
        return communicator
    global _process_wide
    if _process_wide is None:
        _process_wide = _make()
    return _process_wide


def started() -> Communicator | None:
    """The communicator of the running context, if there is one already; not collective."""
    return current.get() or _process_wide


def on_rank_zero() -> bool:
    """Whether this is rank 0, or the only rank: for what is to be shown or logged once.

    Not collective, and loads no MPI library; but where the launcher does not tell its processes their ranks, the first
    call starts MPI, as the first array does. What communicates must stay outside of a branch on it: the other ranks
    would be waited for.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy_dist
    >>> total = float(numpy_dist.ones(1000).sum())  # on every rank
    >>> if numpy_dist.on_rank_zero():
    ...     print(total)
    1000.0
    """
    communicator = started()
    if communicator is None:
        launched = launchers.launched_ranks(os.environ) is not None or launchers.speaks_pmix(os.environ)
        rank = launchers.launched_rank(os.environ) if launched else None
        if rank is not None:
            return rank == 0
        communicator = get_communicator()
    return communicator.rank == 0


def _make() -> Communicator:
    launched = launchers.launched_ranks(os.environ)
    if launched is None and not launchers.speaks_pmix(os.environ) and not _is_mpi_running():
        return SingleCommunicator()
    try:
        from numpy_dist.comm import mpi
    except (ImportError, RuntimeError) as error:
        if launched is None:
            return SingleCommunicator()
        raise LauncherError(
            f"the launcher started {launched[1]} ranks ({launched[0]}={launched[1]}), but no MPI library could be "
            f"loaded: {error}. Install one (pip install 'numpy-dist[mpich]'), or start the program without a launcher"
        ) from error
    ranks = mpi.start() if mpi.can_start(os.environ) else 1
    if ranks > 1:
        guard = watch_exits(unconditionally=True)
        assert guard is not None
        communicator = mpi.MpiCommunicator(guard)
        mpi.at_finalize(guard.finalizing)
        launchers.hide_from_children()
        launchers.close_sockets_to_children()
        return communicator
    if launched is None:
        return SingleCommunicator()
    raise LauncherError(
        f"the launcher started {launched[1]} ranks ({launched[0]}={launched[1]}), but the MPI library "
        f"({mpi.library_version()}) sees 1 rank: launcher and library do not belong together. "
        f"Start the program with that library's own launcher (this environment's is {find_mpiexec()}; under Slurm, "
        f"srun --mpi=pmi2 for MPICH, --mpi=pmix for Open MPI), set MPI4PY_LIBMPI to the launcher's library, "
        f"or unset {launched[0]} to run each process by itself"
    )


def renew() -> Communicator:
    """Replace MPI's communicator by a new one, for tests; collective.

    After an error on one rank only, the old one may hold operations that the other ranks have never joined. Arrays that
    live on the old one are lost.
    """
    global _process_wide
    old = get_communicator()
    renewed = getattr(old, "renewed", None)
    if renewed is None:
        return old
    _process_wide = renewed()
    reset_rank_local()
    return get_communicator()


def _is_mpi_running() -> bool:
    """Whether the program itself has started MPI with several ranks, under a launcher that we do not know."""
    if "mpi4py.MPI" not in sys.modules:
        return False
    from numpy_dist.comm import mpi

    return mpi.world_is_parallel()


def find_mpiexec(environment: Mapping[str, str] = os.environ) -> str | None:
    """The launcher of this environment's own MPI library, else the one on PATH."""
    beside = Path(sys.prefix) / "bin" / "mpiexec"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec", path=environment.get("PATH"))


# -- the ends of ranks -----------------------------------------------------------------------------------------------


def watch_exits(unconditionally: bool = False) -> ExitGuard | None:
    """Watch how this process ends, if it is one of several ranks; call it when the package is imported.

    Not collective, and loads no MPI library: a program that fails before its first array has to be noticed by the other
    ranks too.
    """
    global _guard
    if _guard is None and (unconditionally or launchers.launched_ranks(os.environ) is not None):
        launchers.mark_process()
        _guard = ExitGuard(_join)
        _guard.install()
    return _guard


def _join() -> Any:
    """At the end of a program that has never communicated: the others may wait for this rank to start MPI."""
    try:
        communicator = get_communicator()
    except LauncherError:
        return None
    return communicator if communicator.name == "mpi" else None


def run_guarded(function: Callable[..., Result], *args: object, **kwargs: object) -> Result:
    """Call the main program, for launchers: a SystemExit that leaves it is noted for the other ranks."""
    _launcher_frame = True  # tracebacks begin below the frame that has it
    try:
        return function(*args, **kwargs)
    except SystemExit as error:
        if _guard is not None:
            _guard.note_exit(error)
        raise


# -- simulated ranks -------------------------------------------------------------------------------------------------


def rank_local(variable: contextvars.ContextVar[Result]) -> contextvars.ContextVar[Result]:
    """Declare a context variable that a simulated rank must not inherit: it begins there with None."""
    _rank_local.append(variable)
    return variable


def reset_rank_local() -> None:
    """In the context of a new simulated rank: forget what belongs to the ranks of the surrounding program."""
    for variable in _rank_local:
        variable.set(None)
