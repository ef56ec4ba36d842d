"""Binds one rank to its share of the machine's processors, and becomes the rank: `numpy-dist run --bind=auto`.

``python -I -S binder.py [--most=THREADS] [--variables=A,B] -- program argument ...``: a script that imports nothing of
the package, since libraries start their threads when NumPy is imported, and threads stay where they were started.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SYSTEM = Path("/sys/devices/system")
BOUND = "NUMPY_DIST_BOUND"  # tells which processors a rank was bound to, as 0-3,8
# The number of a process among those of its machine, and how many these are: MPICH, Open MPI.
LOCAL = (("MPI_LOCALRANKID", "MPI_LOCALNRANKS"), ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"))


def parsed(text: str) -> set[int]:
    """The numbers of a list such as ``0-3,8``."""
    found: set[int] = set()
    for word in text.strip().split(","):
        first, _, last = word.partition("-")
        if first.isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found


def written(numbers: Iterable[int]) -> str:
    """Numbers as a list such as ``0-3,8``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _text(path: Path) -> str:
    """What a small system file says; nothing where there is none."""
    try:
        return path.read_text()
    except OSError:
        return ""


def domains(allowed: set[int], system: Path = SYSTEM) -> list[list[set[int]]]:
    """The cores of each part of the machine that has memory of its own; of each socket, where that is not told.

    A core is the set of its processors, those that share it (hyper-threads), as far as they are allowed.
    """
    parts = [parsed(_text(path)) & allowed for path in sorted(system.glob("node/node[0-9]*/cpulist"))]
    if sum(map(len, parts)) != len(allowed):
        sockets: dict[str, set[int]] = {}
        for cpu in sorted(allowed):
            socket = _text(system / f"cpu/cpu{cpu}/topology/physical_package_id").strip()
            sockets.setdefault(socket, set()).add(cpu)
        parts = list(sockets.values())
    found = []
    for part in sorted((part for part in parts if part), key=min):
        cores, left = [], sorted(part)
        while left:
            core = {left[0]} | (parsed(_text(system / f"cpu/cpu{left[0]}/topology/thread_siblings_list")) & part)
            cores.append(core)
            left = [cpu for cpu in left if cpu not in core]
        found.append(cores)
    return found


def share(machine: list[list[set[int]]], rank: int, ranks: int) -> set[int]:
    """The processors of a rank of so many on this machine.

    A rank has whole domains, or a part of one; what it has is next to what its neighbours have. Ranks share a core only
    where a domain has fewer cores than ranks.
    """
    if ranks <= len(machine):
        own = machine[len(machine) * rank // ranks : len(machine) * (rank + 1) // ranks]
        return {cpu for cores in own for core in cores for cpu in core}
    total, before, first = sum(map(len, machine)), 0, 0
    for place, cores in enumerate(machine):
        before += len(cores)
        last = (2 * ranks * before + total) // (2 * total)  # so many ranks up to here, by the number of cores
        last = min(max(last, first + 1), ranks - (len(machine) - place - 1))
        if rank < last:
            count, number = last - first, rank - first
            start = len(cores) * number // count
            return {cpu for core in cores[start : max(start + 1, len(cores) * (number + 1) // count)] for cpu in core}
        first = last
    raise ValueError(f"there is no rank {rank} of {ranks}")


def place_among_locals(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The number of this process among those of its machine, and how many there are; None where nobody tells."""
    for rank, size in LOCAL:
        if rank in environment and size in environment:
            return int(environment[rank]), int(environment[size])
    return None


def bind(most: int, variables: Iterable[str]) -> None:
    """Bind this process, and tell libraries how many threads they may have, `most` at most."""
    place = place_among_locals(os.environ)
    if place is None:
        sys.stderr.write("numpy-dist: --bind=auto: the launcher does not number the ranks of a machine: not bound\n")
        return
    rank, ranks = place
    machine = domains(os.sched_getaffinity(0))
    cpus = share(machine, rank, ranks)
    # What libraries compute may depend on their threads, so that all ranks give them as many.
    fewest = min(len(share(machine, other, ranks)) for other in range(ranks))
    os.sched_setaffinity(0, cpus)
    os.environ[BOUND] = written(cpus)
    for name in variables:
        os.environ.setdefault(name, str(min(len(cpus) if name.startswith("NUMPY_DIST_") else fewest, most)))


def main(arguments: list[str]) -> None:
    """Bind this process, and become the program."""
    position = arguments.index("--")
    options = dict(word[2:].split("=", 1) for word in arguments[:position])
    command = arguments[position + 1 :]
    bind(int(options["most"]), options["variables"].split(","))
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
