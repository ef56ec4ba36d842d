"""Predictions: seconds of a planned job by its counts and a machine's speeds; pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf
from statistics import median

from numpy_dist.comm.base import SLOT_BYTES
from numpy_dist.scaling.counted import JobPlan, LineCounts, LoopWork, RankPlan
from numpy_dist.scaling.machine import FUNCTION_RATES, MachineSpeeds

UNEVEN = 1.25  # the busiest rank's time, in parts of the median, from which on that limits the job


@dataclass(frozen=True)
class PredictedSeconds:
    """Where the time of a rank goes.

    Attributes
    ----------
    memory : float
        Loops and other functions read and write memory.
    operations : float
        Loops whose operations take longer than their reading and writing: exponentials, for example.
    arithmetic : float
        Matrix products.
    functions : float
        Sorts, searches, Fourier transforms, random numbers, decompositions, functions along rows, arrays that are made.
    latency : float
        Messages and collectives, whatever their sizes.
    bandwidth : float
        Bytes on the network.
    interpreter : float
        Statements are recorded and scheduled, functions called, messages packed and waited for, collectives joined, and
        numbers handed to Python.
    turns : float
        Cores go from one rank to another, where there are fewer of them than ranks.
    """

    memory: float = 0.0
    operations: float = 0.0
    arithmetic: float = 0.0
    functions: float = 0.0
    latency: float = 0.0
    bandwidth: float = 0.0
    interpreter: float = 0.0
    turns: float = 0.0

    @property
    def total(self) -> float:
        """All of it: nothing is taken to happen at the same time."""
        return sum(getattr(self, part.name) for part in fields(self))

    def parts(self) -> list[tuple[str, float]]:
        """Names and seconds, the largest first."""
        found = [(part.name, getattr(self, part.name)) for part in fields(self)]
        return sorted(found, key=lambda pair: -pair[1])


@dataclass(frozen=True)
class Prediction:
    """How long a job may last.

    Attributes
    ----------
    seconds : float
        The slowest rank's.
    rank : int
        That rank.
    parts : PredictedSeconds
        Where its time goes.
    share : float
        Its time as parts of the median of the ranks that were looked at.
    limit : str
        What limits the job, in words.
    """

    seconds: float
    rank: int
    parts: PredictedSeconds
    share: float
    limit: str


def rounds(size: int) -> int:
    """Rounds of a collective among so many ranks, each of which talks to one other at a time."""
    return (size - 1).bit_length()


def predict_counts(counts: LineCounts, size: int, machine: MachineSpeeds, held: int = 0) -> PredictedSeconds:
    """Seconds of what some lines make one rank do, without the interpreter's for statements.

    Parameters
    ----------
    counts : LineCounts
    size : int
        The number of ranks.
    machine : MachineSpeeds
    held : int
        Bytes of arrays that the rank works on: what a loop reads is still in a cache only where these fit in it.

    Notes
    -----
    Of messages in both directions the larger direction counts. A collective has ``ceil(log2(size))`` rounds, and brings
    each rank what all others contribute, at least a slot of each; of a gather it brings the whole array besides what
    its messages do, which are counted anyhow. Messages are packed and unpacked: their bytes are copied once on each
    side. Ranks on one machine share its memory and cores, and not the network:
    each takes as long as all that take turns with it. A loop takes as long as its memory or its operations do,
    whichever is more. Loops and functions that are counted, but not one by one in `work`, are taken for large ones.
    """
    machine = machine.of_job(size)
    alone, threaded = machine.turns(size)
    work = _work_seconds(counts, threaded, machine, held)
    messages = max(counts.messages, counts.received_messages)
    contributed = counts.collective_bytes
    sent = counts.bytes - contributed
    # What is sent is read and brought together; what has come is read and put where it belongs.
    work["memory"] += threaded * 2 * (sent + counts.received_bytes) / machine.copy_bandwidth
    slots = counts.collectives * SLOT_BYTES
    collected = max(contributed, slots) * (size - 1) if size > 1 else 0
    interpreter = (
        max(counts.loops, counts.parts) * machine.loop_seconds
        + counts.functions * machine.function_seconds
        + counts.values * machine.value_seconds
        + counts.exchanges * machine.exchange_seconds
        + counts.spread_functions * machine.spread_seconds
        + counts.collectives * machine.collective_seconds * (size > 1)
    )
    waits = counts.exchanges + counts.collectives * rounds(size)
    return PredictedSeconds(
        **work,
        latency=machine.latency * (messages + counts.collectives * rounds(size)),
        bandwidth=(max(sent, counts.received_bytes) + collected) / machine.network_bandwidth,
        interpreter=alone * interpreter,
        turns=(alone - 1.0) * waits * machine.switch_seconds,
    )


def _work_seconds(counts: LineCounts, sharing: float, machine: MachineSpeeds, held: int) -> dict[str, float]:
    """Seconds of loops and functions, by what takes them."""
    found = dict.fromkeys(("memory", "operations", "arithmetic", "functions"), 0.0)
    loop_bytes, function_bytes, flops = counts.loop_bytes, counts.function_bytes, counts.flops
    for work, count in counts.work.items():
        if isinstance(work, LoopWork):
            loop_bytes -= count * work.nbytes
            memory = work.nbytes / machine.bandwidth(max(work.nbytes, held) * sharing)
            rates = machine.operation_rates
            operations = sum(amount / _rate(rates, name) for name, amount in work.operations)
            found["memory" if memory >= operations else "operations"] += count * max(memory, operations)
        else:
            part, rate = {
                "product": ("arithmetic", machine.product_flops(work.side) if work.kind == "product" else 0.0),
                "vector product": ("arithmetic", machine.flops),
                "tall": ("functions", machine.factor_flops),
                "rows": ("functions", machine.row_rate),
                "making": ("functions", machine.making_rate),
                "sort": ("functions", machine.sort_rate),
                "fft": ("functions", machine.transform_flops),
                "random": ("functions", machine.random_rate),
                "copy": ("memory", machine.copy_bandwidth),
            }.get(work.kind) or ("functions", machine.function_rates.get(work.kind, 0.0))
            if rate:
                function_bytes -= count * work.nbytes
                flops -= count * work.amount if part == "arithmetic" else 0
                seconds = work.amount / rate
                if work.kind == "product":
                    seconds = max(seconds, work.nbytes / machine.copy_bandwidth)
                elif work.kind == "vector product":  # memory takes longer
                    seconds = max(seconds, work.nbytes / machine.product_bandwidth)
                elif work.kind == "rows":
                    seconds += work.nbytes / machine.copy_bandwidth
                elif work.kind in FUNCTION_RATES:
                    seconds = max(seconds, work.nbytes / machine.copy_bandwidth)
                elif work.kind == "fft":  # lines are read and written, from memory and to it
                    seconds += 2 * work.nbytes / machine.copy_bandwidth
                found[part] += count * seconds
    found["memory"] += loop_bytes / machine.kernel_bandwidth + function_bytes / machine.copy_bandwidth
    found["arithmetic"] += flops / machine.flops
    return {part: sharing * seconds for part, seconds in found.items()}


_ALIKE = {
    "a reduction of rows": "a reduction",
    "a reduction of columns": "a reduction",
    "an added row": "a reduced row",
}
"""What is known of machines whose files are older."""


def _rate(rates: Mapping[str, float], name: str) -> float:
    """Results in a second of an operation, of a complex one as of real numbers where nothing else is known."""
    return rates.get(name) or rates.get(_ALIKE.get(name, name.removeprefix("complex ")), inf)


def predict_rank(rank: RankPlan, size: int, machine: MachineSpeeds) -> PredictedSeconds:
    """Seconds of a rank."""
    found = predict_counts(rank.totals, size, machine, rank.peak)
    statements = rank.statements * machine.of_job(size).statement_seconds * machine.turns(size)[0]
    return replace(found, interpreter=found.interpreter + statements)


_LIMITS = {
    "memory": "memory bandwidth",
    "operations": "arithmetic of loops",
    "arithmetic": "arithmetic of matrix products",
    "functions": "functions that are no loops: sorts, transforms, decompositions, random numbers",
    "latency": "network latency",
    "bandwidth": "network bandwidth",
    "interpreter": "the interpreter, which records statements: the arrays are small for so many ranks",
    "turns": "ranks that take turns on too few cores",
}


def predict(job: JobPlan, machine: MachineSpeeds) -> Prediction:
    """How long a job may last, and what limits it."""
    times = {rank.rank: predict_rank(rank, job.size, machine) for rank in job.ranks}
    slowest = max(times, key=lambda rank: times[rank].total)
    parts, middle = times[slowest], median([found.total for found in times.values()])
    share = parts.total / middle if middle else 1.0
    name, seconds = parts.parts()[0]
    limit = _LIMITS[name] if seconds else "nothing that is counted"
    if share > UNEVEN:
        limit = f"rank {slowest}, which has {share:.1f} times what others have (there: {limit})"
    return Prediction(parts.total, slowest, parts, share, limit)
