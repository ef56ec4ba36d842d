"""Machines as a few numbers: what predictions of time are made from, read from a file or the default."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import log
from typing import Any

FORMAT = 1

FUNCTION_RATES = {
    "normal": 1e9,
    "exponential": 1e9,
    "integers": 2e9,
    "distribution": 5e7,
    "histogram": 2e9,
    "selection": 2e9,
    "search": 1e10,
    "scan": 4e9,
    "selecting": 4e9,
    "extremes": 8e9,
    "picking": 1e9,
    "convolution": 2e10,
    "factorisation": 5e11,
    "spectrum": 5e10,
}
"""Of the default machine, `MachineSpeeds.function_rates`."""


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
        Bytes that an element-wise loop reads and writes in a second, on all cores, if it is larger than all caches.
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
    cores, threads : int
        Cores of the machine, and how many of them the process had that was measured. Speeds "on all cores" are those on
        its cores: where ranks have fewer threads than there are cores, as many of them run at a time as fit.
    sort_rate, transform_flops, random_rate : float
        Of a sort on all cores, comparisons in a second, counted as ``n log2 n``; of Fourier transforms, operations,
        counted as ``5 n log2 n``, without what reading and writing the lines takes; random numbers.
    product_bandwidth : float
        Bytes in a second that a product of a matrix of few columns and a vector reads, where no cache holds the matrix.
    factor_flops : float
        Operations in a second of decompositions of matrices with many rows and few columns, counted as twice the rows
        times the square of the columns, without vectors.
    making_rate : float
        Elements in a second of arrays that are made of their indices, as `linspace` does.
    row_rate : float
        Rows in a second of functions along short rows that are no loops, as `argmin`.
    collective_seconds, exchange_seconds : float
        Seconds of Python for a collective, and for messages that are sent and received together, beside their latency:
        packing, comparing what the ranks do, looking whether they are there.
    spread_seconds : float
        Seconds of Python for a call of a function that is no loop, beyond `function_seconds`, where it sends messages.
    switch_seconds : float
        Seconds that a core takes for an exchange or a round of a collective more than its ranks do, where they take
        turns: it goes from one to the other.
    loop_seconds, value_seconds, function_seconds : float
        Seconds of Python for a loop in one box, beside its statements; for a number that goes to Python; for a call of
        a function that is no loop, whatever its size.
    bandwidths : sequence of (float, float)
        Bytes that a loop reads and writes, ascending, and how many it does in a second, on all cores: small ones stay
        in caches. Between them it is interpolated; beyond the last one, and where there are none, it is
        `kernel_bandwidth`.
    operation_rates : dict of str to float
        By NumPy's names, results of 8 bytes in a second, on all cores, where nothing but the operation counts.
        Operations that are not in it take no time beside what they read and write. Those of complex numbers are named
        "complex add" and so on; where they are not there, a result of 8 bytes takes as long as a real one.
    function_rates : dict of str to float
        In a second, on all cores, by the names of `FUNCTION_RATES`: random numbers (distribution: those of which each
        rank has to make all); elements of histograms, order statistics (selection), running values (scan), masks
        (selecting), places of extremes and picked elements; comparisons of a search (``n log2 m``), products of a
        convolution; operations of decompositions of square matrices without iterations (factorisation), and with them
        (spectrum). Functions of which it has none take the time of reading their arguments.
    product_rates : sequence of (float, float)
        The least side of the matrices of a product, ascending, and floating-point operations in a second. Between them
        it is interpolated; where there are none, it is `flops`.
    busy : dict of str to object
        By name, those of these speeds that are others where all cores of the machine run ranks: they share caches,
        memory, and maybe the units that compute.
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
    cores: int = 64
    threads: int = 64
    sort_rate: float = 2e9
    transform_flops: float = 20e9
    random_rate: float = 2e9
    product_bandwidth: float = 60e9
    factor_flops: float = 20e9
    making_rate: float = 4e9
    row_rate: float = 2e9
    collective_seconds: float = 50e-6
    exchange_seconds: float = 50e-6
    spread_seconds: float = 150e-6
    switch_seconds: float = 10e-6
    loop_seconds: float = 5e-6
    value_seconds: float = 50e-6
    function_seconds: float = 100e-6
    bandwidths: Sequence[tuple[float, float]] = ()
    operation_rates: Mapping[str, float] = field(default_factory=dict)
    function_rates: Mapping[str, float] = field(default_factory=lambda: dict(FUNCTION_RATES))
    product_rates: Sequence[tuple[float, float]] = ()
    busy: Mapping[str, Any] = field(default_factory=dict)

    def bandwidth(self, nbytes: float) -> float:
        """Bytes in a second of loops on all cores that read and write so many together."""
        curve = self.bandwidths
        return self.kernel_bandwidth if not curve or nbytes > curve[-1][0] else _between(curve, nbytes)

    def product_flops(self, side: float) -> float:
        """Operations in a second of products of matrices whose least side is this one; 0: it is not known."""
        return _between(self.product_rates, side) if self.product_rates and side else self.flops

    def of_job(self, size: int) -> MachineSpeeds:
        """The speeds that a rank has in a job of this size: those of busy machines where it is not alone on its own."""
        return replace(self, **self.busy, busy={}) if self.busy and self.share(size) > 1 else self

    def turns(self, size: int) -> tuple[float, float]:
        """For how many processes in turn a core works: those of ranks, and those with all threads of ranks."""
        sharing = self.share(size)
        return max(1.0, sharing / self.cores), max(1.0, sharing * self.threads / self.cores)

    def share(self, size: int) -> int:
        """How many ranks of a job of this size share a machine."""
        return max(1, min(size, self.ranks_per_machine))

    def nodes(self, size: int) -> tuple[int, ...]:
        """The number of the machine of each rank, where they fill machines in their order; empty where none share one.

        It is empty, too, where all are on one machine: in both cases no rank is nearer than another.
        """
        sharing = self.share(size)
        return tuple(rank // sharing for rank in range(size)) if 1 < sharing < size else ()

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
    return speeds_of(found, os.fspath(path))


def speeds_of(found: dict[str, Any], source: str) -> MachineSpeeds:
    """The machine of which these numbers are told, by name; `source` is told in errors.

    Raises
    ------
    ValueError
    """
    names = {each.name for each in fields(MachineSpeeds)}
    if unknown := sorted(set(found) - names):
        raise ValueError(f"{source}: {unknown[0]} is none of a machine's speeds, which are {sorted(names)}")
    for name, value in found.items():
        if name in _READERS:
            try:
                found[name] = _READERS[name](value)
            except (AttributeError, TypeError, ValueError):
                raise ValueError(f"{source}: {name} is {value!r}, and must be {_WANTED[name]}") from None
        elif name != "name" and not _is_speed(value):
            raise ValueError(f"{source}: {name} is {value!r}, and must be a number above 0")
    for name in _WHOLE & found.keys():
        found[name] = int(found[name])
    return MachineSpeeds(**found)


def _is_speed(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


def _curve(value: Iterable[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    found = tuple((nbytes, speed) for nbytes, speed in value)
    if not all(_is_speed(number) for pair in found for number in pair) or list(found) != sorted(dict(found).items()):
        raise ValueError
    return found


def _between(curve: Sequence[tuple[float, float]], place: float) -> float:
    """The speed at a place of a curve, straight between two of its points where both are logarithms."""
    position = bisect_left(curve, (place, 0.0))
    if position in (0, len(curve)):
        return curve[min(position, len(curve) - 1)][1]
    (low, slow), (high, fast) = curve[position - 1], curve[position]
    return slow * (fast / slow) ** (log(place / low) / log(high / low))


def _rates(value: Mapping[str, float]) -> dict[str, float]:
    if not all(isinstance(name, str) and _is_speed(rate) for name, rate in value.items()):
        raise ValueError
    return dict(value)


def _busy(value: Mapping[str, object]) -> dict[str, object]:
    if {"busy", "name", *_WHOLE} & value.keys():
        raise ValueError
    speeds_of(dict(value), "busy")
    return {name: _READERS.get(name, float)(speed) for name, speed in value.items()}


_WHOLE = {"ranks_per_machine", "cores", "threads"}
_READERS: dict[str, Callable[[Any], Any]] = {
    "bandwidths": _curve,
    "product_rates": _curve,
    "operation_rates": _rates,
    "function_rates": _rates,
    "busy": _busy,
}
_WANTED = {
    "bandwidths": "pairs of bytes and bytes a second, ascending",
    "product_rates": "pairs of sides and operations a second, ascending",
    "operation_rates": "numbers above 0 by names of operations",
    "function_rates": "numbers above 0 by names of kinds of functions",
    "busy": "speeds by their names",
}
