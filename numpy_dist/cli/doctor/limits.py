"""Limits: of shared memory, of the shell, and of the memory that control groups give."""

from __future__ import annotations

from numpy_dist.cli.doctor.facts import LimitFacts, MemoryFacts, SharedMemoryFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good
from numpy_dist.cli.doctor.words import size

# With 20 MiB for two ranks those of MPICH 5.0.2 end with a segmentation fault, with 24 MiB they run.
SHARED_PER_RANK = 12 << 20
RANKS = 2  # as many must be able to start
# A rank tells the launcher of itself by a file of number 500 (`cli.roll_call`); some more are open at the same time.
OPEN_FILES = 512
OPEN_FILES_COMFORT, OPEN_FILES_PER_RANK = 1024, 16
# A job has the launcher and its helpers, and each core a rank with its threads, and a process that compiles.
PROCESSES, PROCESSES_PER_CORE = 16, 16
LOCKED = 64 << 20  # bytes in which an adapter holds its queues and messages that are under way
# With 100 MB Python does not get as far as NumPy. Meta arrays reserve this much, where they can, to find wrong reads.
ADDRESS_SPACE, RESERVED = 256 << 20, 64 << 30
MEMORY, MEMORY_SHARE = 256 << 20, 0.1


def shared_memory(facts: SharedMemoryFacts | None) -> list[SystemFinding]:
    """Whether ranks find enough shared memory for their messages."""
    name = "shared memory"
    if facts is None:
        return [good(name, "not a folder on this system")]
    want = f"{size(max(1 << 30, 2 * SHARED_PER_RANK * facts.cores))}".replace(".0 GiB", "g")
    larger = f"mount -o remount,rw,size={want} {facts.folder} (a container: --shm-size={want})"
    if not facts.total:
        return [bad(name, f"there is no {facts.folder}", f"mount -t tmpfs -o size={want} tmpfs {facts.folder}")]
    seen = f"{facts.folder} has {size(facts.total)}, of which {size(facts.free)} are free"
    if not facts.writable:
        return [bad(name, f"{facts.folder} cannot be written", larger)]
    if facts.free < SHARED_PER_RANK * RANKS:
        full = facts.total >= 2 * SHARED_PER_RANK * RANKS
        seen += f"; {RANKS} ranks need {size(SHARED_PER_RANK * RANKS)}"
        return [bad(name, seen, f"remove what is left in {facts.folder} (ls -l), or {larger}" if full else larger)]
    if facts.free < SHARED_PER_RANK * facts.cores:
        return [doubtful(name, f"{seen}; a rank for each of {facts.cores} cores needs more", larger)]
    return [good(name, seen)]


def open_files(facts: LimitFacts) -> list[SystemFinding]:
    """Whether a rank and the launcher may open as many files as they do."""
    name, limit, hard = "open files", facts.open_files, facts.hard_open_files
    if limit is None:
        return [good(name, "unlimited")]
    want = max(OPEN_FILES_COMFORT, OPEN_FILES_PER_RANK * facts.cores)
    mend = f"ulimit -n {want}"
    if hard is not None and hard < want:
        mend = f"'* hard nofile {want}' in /etc/security/limits.conf, then {mend}"
    if limit < OPEN_FILES:
        return [bad(name, f"at most {limit}, and ranks need {OPEN_FILES}", mend)]
    if limit < want:
        return [doubtful(name, f"at most {limit}; a rank for each of {facts.cores} cores may need {want}", mend)]
    return [good(name, f"at most {limit}")]


def processes(facts: LimitFacts) -> list[SystemFinding]:
    """Whether this user may start a job: the limit counts threads, too."""
    name, limit = "processes", facts.processes
    if limit is None:
        return [good(name, "unlimited")]
    left, want = limit - facts.processes_used, PROCESSES + PROCESSES_PER_CORE * facts.cores
    seen = f"at most {limit} with their threads, of which {facts.processes_used} are there"
    mend = f"ulimit -u {facts.processes_used + 2 * want}, or end other programs"
    if left < PROCESSES:
        return [bad(name, f"{seen}: no job can start", mend)]
    if left < want:
        return [doubtful(name, f"{seen}; a rank for each of {facts.cores} cores may need {want} more", mend)]
    return [good(name, seen)]


def locked_memory(facts: LimitFacts) -> list[SystemFinding]:
    """Whether adapters of InfiniBand get the memory that they lock."""
    name, limit = "locked memory", facts.locked
    seen = "unlimited" if limit is None else f"at most {size(limit)}"
    if not facts.infiniband:
        return [good(name, f"{seen}; there is no InfiniBand that needs it")]
    if limit is not None and limit < LOCKED:
        mend = "ulimit -l unlimited ('* - memlock unlimited' in /etc/security/limits.conf)"
        return [doubtful(name, f"{seen}: InfiniBand needs more, and MPI goes by a slower network, or fails", mend)]
    return [good(name, f"{seen}, for InfiniBand")]


def address_space(facts: LimitFacts) -> list[SystemFinding]:
    """Whether addresses last as long as memory does."""
    name, limit = "address space", facts.address_space
    if limit is None:
        return [good(name, "unlimited")]
    seen, mend = f"at most {size(limit)}", "ulimit -v unlimited"
    if limit < ADDRESS_SPACE:
        return [bad(name, f"{seen}: NumPy cannot start", mend)]
    if limit < facts.memory + RESERVED:
        return [doubtful(name, f"{seen}: it is used up before the memory of {size(facts.memory)} is", mend)]
    return [good(name, seen)]


def memory(facts: MemoryFacts) -> list[SystemFinding]:
    """Whether there is memory left, in the machine and in the control group."""
    name, seen = "memory", f"{size(facts.available)} available of {size(facts.allowed)}"
    mend = "end other programs"
    if facts.allowed < facts.machine:
        seen += f", to which a control group limits the machine's {size(facts.machine)}"
        mend = "a higher limit (a container: --memory, a job of Slurm's: --mem), or end other programs in it"
    if facts.available < MEMORY:
        return [bad(name, seen, mend)]
    if facts.available < MEMORY_SHARE * facts.allowed:
        return [doubtful(name, f"{seen}: less than a tenth", mend)]
    return [good(name, seen)]
