"""Predictions: seconds of a planned job by its counts and a machine's speeds; pure functions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from statistics import median

from numpy_dist.comm.base import SLOT_BYTES
from numpy_dist.scaling.counted import JobPlan, LineCounts, RankPlan
from numpy_dist.scaling.machine import MachineSpeeds

UNEVEN = 1.25  # the busiest rank's time, in parts of the median, from which on that limits the job


@dataclass(frozen=True)
class PredictedSeconds:
    """Where the time of a rank goes.

    Attributes
    ----------
    memory : float
        Loops and other functions read and write memory.
    arithmetic : float
        Matrix products.
    latency : float
        Messages and collectives, whatever their sizes.
    bandwidth : float
        Bytes on the network.
    interpreter : float
        Statements are recorded and scheduled.
    """

    memory: float = 0.0
    arithmetic: float = 0.0
    latency: float = 0.0
    bandwidth: float = 0.0
    interpreter: float = 0.0

    @property
    def total(self) -> float:
        """All of it: nothing is taken to happen at the same time."""
        return self.memory + self.arithmetic + self.latency + self.bandwidth + self.interpreter

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


def predict_counts(counts: LineCounts, size: int, machine: MachineSpeeds) -> PredictedSeconds:
    """Seconds of what some lines make one rank do, without the interpreter's.

    Parameters
    ----------
    counts : LineCounts
    size : int
        The number of ranks.
    machine : MachineSpeeds

    Notes
    -----
    Of messages in both directions the larger direction counts. A collective has ``ceil(log2(size))`` rounds, and brings
    each rank what all others contribute, at least a slot of each; of a gather it brings the whole array besides what
    its messages do, which are counted anyhow. Ranks on one machine share its memory and cores, and not the network.
    """
    sharing = machine.share(size)
    memory = counts.loop_bytes / machine.kernel_bandwidth + counts.function_bytes / machine.copy_bandwidth
    messages = max(counts.messages, counts.received_messages)
    contributed = counts.collective_bytes
    sent = counts.bytes - contributed
    slots = counts.collectives * SLOT_BYTES
    collected = max(contributed, slots) * (size - 1) if size > 1 else 0
    return PredictedSeconds(
        memory=sharing * memory,
        arithmetic=sharing * counts.flops / machine.flops,
        latency=machine.latency * (messages + counts.collectives * rounds(size)),
        bandwidth=(max(sent, counts.received_bytes) + collected) / machine.network_bandwidth,
    )


def predict_rank(rank: RankPlan, size: int, machine: MachineSpeeds) -> PredictedSeconds:
    """Seconds of a rank."""
    found = predict_counts(rank.totals, size, machine)
    return PredictedSeconds(
        found.memory, found.arithmetic, found.latency, found.bandwidth, rank.statements * machine.statement_seconds
    )


_LIMITS = {
    "memory": "memory bandwidth",
    "arithmetic": "arithmetic of matrix products",
    "latency": "network latency",
    "bandwidth": "network bandwidth",
    "interpreter": "the interpreter, which records statements: the arrays are small for so many ranks",
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
