"""Which backend each rank of a job has, and what they have in common: functions of what all ranks know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy_dist.backends.base import choose_backend

__all__ = ["Backends", "backends_of"]

ON_HOSTS = ("numba", "numpy")


@dataclass(frozen=True)
class Backends:
    """The backends of a job's ranks.

    Attributes
    ----------
    names : tuple of str
        By rank; from the first one again where there are more ranks than names.
    size : int
        The number of ranks.
    """

    names: tuple[str, ...]
    size: int

    def name(self, rank: int) -> str:
        """The backend of a rank."""
        return self.names[rank % len(self.names)]

    @property
    def uneven(self) -> bool:
        """Whether some ranks have another backend than others."""
        return len(set(self.names[: self.size])) > 1

    @property
    def on_hosts(self) -> bool:
        """Whether all of them are known to keep shards in the memory of hosts; a plug-in might not."""
        return all(name in ON_HOSTS for name in self.names[: self.size])

    def number_here(self, rank: int, nodes: Sequence[int]) -> int:
        """The number of a rank among those of its machine with its backend: devices are dealt out by it.

        Parameters
        ----------
        rank : int
        nodes : sequence of int
            The machine of each rank; empty where all are on one.
        """
        mine, name = nodes[rank] if nodes else 0, self.name(rank)
        return sum((nodes[other] if nodes else 0) == mine and self.name(other) == name for other in range(rank))


def backends_of(setting: str, size: int, devices: Sequence[int], compiles: bool) -> Backends:
    """The backends that a BACKEND setting means.

    Parameters
    ----------
    setting : str
        A name, ``"auto"``, names by rank between commas, or ``"mixed"``: CuPy on each rank that has a device, the
        processors on the others.
    size : int
        The number of ranks.
    devices, compiles
        As in `base.choose_backend`; ranks may differ in the latter.
    """
    if setting == "mixed":
        host = choose_backend("auto", (), compiles)
        return Backends(tuple(["cupy" if found else host for found in devices]), size)
    if "," in setting:
        return Backends(tuple(setting.split(",")), size)
    return Backends((choose_backend(setting, devices, compiles),), size)
