"""What launchers tell the processes that they start, and how to keep it from the processes that those start."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, MutableMapping
from pathlib import Path

__all__ = [
    "END_VARIABLE",
    "LAUNCHER_VARIABLES",
    "NOW_VARIABLE",
    "PROGRESS_VARIABLE",
    "close_sockets_to_children",
    "hide_from_children",
    "launched_rank",
    "launched_ranks",
    "mark_process",
    "move_end",
    "only_pmix",
    "speaks_pmix",
]

# The number of ranks. PMI_SIZE: Hydra (MPICH), Intel MPI, Cray, Slurm's pmi2; then Open MPI, MVAPICH, IBM's jsrun,
# Flux, Slurm, and Hydra's number of ranks on this machine.
LAUNCHER_VARIABLES = (
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE",
    "FLUX_JOB_SIZE",
    "SLURM_STEP_NUM_TASKS",
    "MPI_LOCALNRANKS",
)
# The rank, of the same launchers.
_RANK_VARIABLES = (
    "PMI_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "MV2_COMM_WORLD_RANK",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
)
# PMIx tells each process its rank; the number of ranks is to be asked of MPI.
_PMIX_VARIABLE = "PMIX_RANK"
_PMI_VARIABLES = ("PMI_FD", "PMI_PORT", "PMI_RANK")

# A process that inherits these would take itself for the rank that its parent is, and die as it starts MPI.
_HIDDEN_PREFIXES = ("PMI_", "PMIX_", "PRTE_", "HYDI_", "OMPI_COMM_WORLD_", "MPI_LOCAL", "MV2_COMM_", "JSM_NAMESPACE_")
_STREAMS = 2  # the last of stdin, stdout and stderr
_PIPE_VARIABLES = ("PMI_FD", "HYDI_CONTROL_FD")

# When a job is to save and to end, in seconds since the epoch, by the clock of rank 0's machine.
END_VARIABLE = "NUMPY_DIST_END"
NOW_VARIABLE = "_NUMPY_DIST_NOW"  # what the launcher's clock said then
PROGRESS_VARIABLE = "NUMPY_DIST_PROGRESS"  # "on": bars of what takes long, on rank 0 (`progress_bars`)

# The process that is a rank, for children that it starts before the variables are hidden.
_MARK = "_NUMPY_DIST_RANK_PROCESS"


def launched_ranks(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """The launcher variable that says that there are several ranks, and how many; None if none does."""
    if _is_child_of_rank(environment):
        return None
    for variable in LAUNCHER_VARIABLES:
        text = environment.get(variable, "")
        if text.isdecimal() and int(text) > 1:
            return variable, int(text)
    return None


def launched_rank(environment: Mapping[str, str]) -> int | None:
    """The number that the launcher has given to this process; None where it does not say."""
    texts = (environment.get(name, "") for name in _RANK_VARIABLES)
    return next((int(text) for text in texts if text.isdecimal()), None)


def speaks_pmix(environment: Mapping[str, str]) -> bool:
    """Whether a launcher that speaks PMIx started this process."""
    return _PMIX_VARIABLE in environment and not _is_child_of_rank(environment)


def only_pmix(environment: Mapping[str, str]) -> bool:
    """Whether the launcher speaks PMIx and not the older protocol (PMI)."""
    return _PMIX_VARIABLE in environment and not any(name in environment for name in _PMI_VARIABLES)


def mark_process(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let children know that the launcher's variables are about this process and not about them."""
    environment[_MARK] = str(os.getpid())


def _is_child_of_rank(environment: Mapping[str, str]) -> bool:
    mark = environment.get(_MARK)
    if mark is None or mark == str(os.getpid()):
        return False
    # A rank may itself call a launcher: the processes of that one are ranks, with pipes of their own.
    return mark == str(os.getppid()) or not _has_pipe(environment)


def _has_pipe(environment: Mapping[str, str]) -> bool:
    text = environment.get("PMI_FD", "")
    if not text.isdecimal():
        return True
    try:
        os.fstat(int(text))
    except OSError:
        return False
    return True


def close_sockets_to_children(descriptors: Path = Path("/proc/self/fd")) -> None:
    """Children that do not close what they inherit (`os.system`) get no sockets: those of launchers and MPI libraries.

    Python's own are not inherited anyhow. A background process that held one would keep the launcher waiting.
    """
    try:
        numbers = [int(name) for name in os.listdir(descriptors)]
    except OSError:  # no Linux
        return
    for number in numbers:
        try:
            if number > _STREAMS and stat.S_ISSOCK(os.fstat(number).st_mode):
                os.set_inheritable(number, False)
        except OSError:  # it was the one of `listdir`
            continue


# Seconds that a rank takes to start, at most, and by how much clocks that are kept right may differ.
_LONGEST_START, _RIGHT = 600.0, 5.0


def move_end(environment: MutableMapping[str, str], now: float) -> None:
    """Have the end of the job by this machine's clock, where that is not what the launcher's clock says.

    Parameters
    ----------
    environment : mutable mapping
    now : float
        What this machine's clock says, soon after the launcher has started this process.
    """
    end, told = environment.get(END_VARIABLE), environment.pop(NOW_VARIABLE, None)
    if end is None or told is None:
        return
    ahead = now - float(told)
    if not -_RIGHT <= ahead <= _LONGEST_START:
        environment[END_VARIABLE] = repr(float(end) + ahead)


def hide_from_children(environment: MutableMapping[str, str] = os.environ) -> None:
    """Once MPI has started: children get none of the launcher's variables and pipes."""
    for variable in _PIPE_VARIABLES:
        text = environment.get(variable, "")
        if text.isdecimal() and _has_pipe({"PMI_FD": text}):
            os.set_inheritable(int(text), False)
    hidden = [v for v in environment if v.startswith(_HIDDEN_PREFIXES) or v in LAUNCHER_VARIABLES]
    for variable in hidden:
        del environment[variable]
