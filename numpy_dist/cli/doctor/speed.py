"""Speed: messages between two ranks, and a stencil beside a copy."""

from __future__ import annotations

from numpy_dist.cli.doctor.facts import PingFacts, StencilFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good
from numpy_dist.cli.doctor.words import speed
from numpy_dist.cli.library import GET_ONE

# Ranks of one machine need some ten microseconds: a thousand mean that they wait for a core, or that messages go by a
# network. That one has 10 Gbit/s and more, memory ten times as much.
LATENCY, BANDWIDTH = 1e-3, 0.5e9
# A copy may write past the caches, which makes two streams of memory of the stencil's three: two thirds, and half of
# that for what else a machine does. One array operation after the other takes 13 streams, and so less than a sixth.
SHARE = 1 / 3
# Programs for each core, of which the doctor's are one: from here on what needs a second may take ten.
CROWDED = 2.0
_LATE = "no answer within "  # as `children` says it


def _crowded(name: str, problem: str, load: float) -> list[SystemFinding]:
    """Not an installation's fault: whoever gives no answer in time, where others have the cores."""
    if not problem.startswith(_LATE) or load < CROWDED:
        return []
    mend = "run it again with less on the cores; uptime shows the load"
    return [doubtful(name, f"{problem}, while {load:.0f} programs wanted each core", mend)]


def ping(facts: PingFacts) -> list[SystemFinding]:
    """Whether two ranks start, and how fast their messages are."""
    name = "two ranks"
    if facts.problem is not None and (found := _crowded(name, facts.problem, facts.load)):
        return found
    if facts.problem is not None:
        mend = "what is bad above; python -m numpy_dist run -n 2 -m numpy_dist.cli.doctor.ping shows all messages"
        return [bad(name, facts.problem.removesuffix(GET_ONE).rstrip(". "), mend)]
    seen = f"a message takes {facts.latency * 1e6:.1f} us, long ones go at {speed(facts.bandwidth)}"
    if facts.latency > LATENCY:
        mend = "end other programs, or give the ranks a core each (CPU affinity, CPU quota)"
        return [doubtful(name, f"{seen}: ranks wait for a core", mend)]
    if facts.bandwidth < BANDWIDTH:
        mend = "more shared memory, or end other programs; unset variables that choose MPI's network (UCX_TLS, FI_*)"
        return [doubtful(name, f"{seen}: slower than a network", mend)]
    return [good(name, seen)]


def stencil(facts: StencilFacts) -> list[SystemFinding]:
    """Whether a loop that does little more than read and write is about as fast as a copy."""
    name = "stencil"
    if facts.problem is not None and (found := _crowded(name, facts.problem, facts.load)):
        return found
    if facts.problem is not None:
        mend = "numpy-dist cache clear; python -m numpy_dist.cli.doctor.stencil shows all messages"
        return [bad(name, facts.problem, mend)]
    share = facts.stencil / facts.copy
    seen = (
        f"{speed(facts.stencil)}, {share:.0%} of a copy's {speed(facts.copy)} "
        f"({facts.threads} thread{'s' * (facts.threads != 1)}, {facts.backend})"
    )
    if share < SHARE:
        mend = "run it again with nothing else on the cores; unset NUMPY_DIST_NUM_THREADS; pip install numba"
        return [doubtful(name, seen, mend)]
    return [good(name, seen)]
