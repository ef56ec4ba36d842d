"""Which communicator a program gets: that of its simulated rank, MPI's, or one rank alone."""

from __future__ import annotations

import contextvars
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy_dist.comm.base import Communicator
from numpy_dist.comm.single import SingleCommunicator
from numpy_dist.errors import LauncherError

__all__ = ["LAUNCHER_VARIABLES", "current", "find_mpiexec", "get_communicator", "launched_ranks", "rank_local"]

# What launchers tell each process about the number of ranks: MPICH's Hydra, Intel MPI, Cray, Slurm's pmi2 (PMI_SIZE);
# Open MPI; MVAPICH; IBM's jsrun; Flux; Slurm; Hydra again (ranks on this machine).
LAUNCHER_VARIABLES = (
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE",
    "FLUX_JOB_SIZE",
    "SLURM_STEP_NUM_TASKS",
    "MPI_LOCALNRANKS",
)
# Set for each rank by launchers that speak PMIx; it does not tell how many there are.
_PMIX_VARIABLE = "PMIX_RANK"

# The communicator of a simulated rank.
current: contextvars.ContextVar[Communicator | None] = contextvars.ContextVar("numpy_dist_communicator", default=None)

_process_wide: Communicator | None = None
_rank_local: list[contextvars.ContextVar[Any]] = []


def rank_local(variable: contextvars.ContextVar[Any]) -> contextvars.ContextVar[Any]:
    """Declare a context variable that a simulated rank must not inherit: it begins there with None."""
    _rank_local.append(variable)
    return variable


def reset_rank_local() -> None:
    """In the context of a new simulated rank: forget what belongs to the ranks of the surrounding program."""
    for variable in _rank_local:
        variable.set(None)


def launched_ranks(environment: Mapping[str, str] = os.environ) -> tuple[str, int] | None:
    """The launcher variable that says that there are several ranks, and how many; None if none does."""
    for variable in LAUNCHER_VARIABLES:
        text = environment.get(variable, "")
        if text.isdecimal() and int(text) > 1:
            return variable, int(text)
    return None


def find_mpiexec() -> str | None:
    """The launcher of this environment's own MPI library, else the one on PATH."""
    beside = Path(sys.prefix) / "bin" / "mpiexec"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")


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


def _make() -> Communicator:
    launched = launched_ranks()
    if launched is None and _PMIX_VARIABLE not in os.environ and not _is_mpi_running():
        return SingleCommunicator()
    try:
        from numpy_dist.comm import mpi

        ranks = mpi.world_size()
    except (ImportError, RuntimeError) as error:
        if launched is None:
            return SingleCommunicator()
        raise LauncherError(
            f"the launcher started {launched[1]} ranks ({launched[0]}={launched[1]}), but no MPI library could be "
            f"loaded: {error}. Install one (pip install 'numpy-dist[mpich]'), or start the program without a launcher"
        ) from error
    if ranks > 1:
        return mpi.MpiCommunicator()
    if launched is None:
        return SingleCommunicator()
    raise LauncherError(
        f"the launcher started {launched[1]} ranks ({launched[0]}={launched[1]}), but the MPI library "
        f"({mpi.library_version()}) sees 1 rank: launcher and library do not belong together. "
        f"Start the program with that library's own launcher (this environment's is {find_mpiexec()}), set "
        f"MPI4PY_LIBMPI to the launcher's library, or unset {launched[0]} to run each process by itself"
    )


def _is_mpi_running() -> bool:
    """Whether the program itself has started MPI with several ranks, under a launcher that we do not know."""
    if "mpi4py.MPI" not in sys.modules:
        return False
    from numpy_dist.comm import mpi

    return mpi.world_is_parallel()
