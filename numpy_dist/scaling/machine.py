"""Machines as a few numbers: what predictions of time are made from, read from a file or the default."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields

FORMAT = 1


@dataclass(frozen=True)
class MachineSpeeds:
    """The speeds of a machine of the job, in bytes a second and seconds.

    The default is a machine that does not exist: one of the size that clusters have, in round numbers. Measure yours.

    Attributes
    ----------
    name : str
    copy_bandwidth : float
        Bytes that a copy reads and writes in a second, on all cores of the machine.
    kernel_bandwidth : float
        Bytes that an element-wise loop reads and writes in a second, on all cores.
    flops : float
        Floating-point operations of a matrix product in a second, on all cores.
    latency : float
        Seconds of a short message between two ranks.
    network_bandwidth : float
        Bytes of a long message in a second.
    statement_seconds : float
        Seconds that the interpreter takes to record and to schedule a statement, whatever its size.
    memory : float
        Bytes of a machine. The engine executes sooner, and refuses gathers, where memory is short.
    ranks_per_machine : int
        How many ranks share these cores, where the job has as many.
    """

    name: str = "default"
    copy_bandwidth: float = 100e9
    kernel_bandwidth: float = 80e9
    flops: float = 1e12
    latency: float = 2e-6
    network_bandwidth: float = 12.5e9
    statement_seconds: float = 10e-6
    memory: float = 256e9
    ranks_per_machine: int = 1

    def share(self, size: int) -> int:
        """How many ranks of a job of this size share a machine."""
        return max(1, min(size, self.ranks_per_machine))

    def rank_memory(self, size: int) -> int:
        """Bytes of memory for each rank of a job of this size."""
        return int(self.memory) // self.share(size)


def save_speeds(machine: MachineSpeeds, path: str | os.PathLike[str]) -> None:
    """Write a machine file.

    Raises
    ------
    OSError
    """
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"machine": FORMAT} | asdict(machine), file, indent=1)
        file.write("\n")


def load_speeds(path: str | os.PathLike[str]) -> MachineSpeeds:
    """The machine in a file.

    Raises
    ------
    OSError
    ValueError
        If the file is no machine file, or has numbers that no machine has.
    """
    with open(path, encoding="utf-8") as file:
        try:
            found = json.load(file)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)} is no machine file: {error}") from None
    if not isinstance(found, dict) or found.pop("machine", None) != FORMAT:
        raise ValueError(f"{os.fspath(path)} is no machine file of format {FORMAT}")
    names = {each.name for each in fields(MachineSpeeds)}
    if unknown := sorted(set(found) - names):
        raise ValueError(f"{os.fspath(path)}: {unknown[0]} is none of a machine's speeds, which are {sorted(names)}")
    for name, value in found.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if name != "name" and not (number and 0 < value < float("inf")):
            raise ValueError(f"{os.fspath(path)}: {name} is {value!r}, and must be a number above 0")
    if "ranks_per_machine" in found:
        found["ranks_per_machine"] = int(found["ranks_per_machine"])
    return MachineSpeeds(**found)
