"""Clocks: of the day, of waiting, and of files."""

from __future__ import annotations

import datetime

from numpy_dist.cli.doctor.facts import ClockFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good

_MEND = "timedatectl set-ntp true (or chronyc makestep)"
_OLDEST = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()  # numpy_dist is younger
# A lock of another machine is void after 120 s, and a kernel may be dropped that is a minute old (`backends.store`).
_FILES_BAD, _FILES_DOUBTFUL = 60.0, 1.0
_STEP = 0.5  # seconds by which the time of day moves away from the monotonic clock in a twentieth of a second


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clocks(facts: ClockFacts) -> list[SystemFinding]:
    """Whether the time of day can be true, and goes as the monotonic clock does."""
    name = "clock"
    if facts.monotonic <= 0:
        return [bad(name, f"the monotonic clock went on by {facts.monotonic:g} s in a sleep", "restart the machine")]
    if facts.before < _OLDEST:
        return [bad(name, f"it is said to be {_date(facts.before)}: certificates and locks will fail", _MEND)]
    ahead = facts.wall - facts.monotonic
    if abs(ahead) > _STEP:
        return [doubtful(name, f"the time of day has been set by {ahead:+.1f} s just now", _MEND)]
    return [good(name, _date(facts.before))]


def files(facts: ClockFacts) -> list[SystemFinding]:
    """Whether new files have the time that this machine has."""
    name = "clock of files"
    late = max(0.0, facts.written - facts.after) - max(0.0, facts.before - facts.written)
    if abs(late) <= _FILES_DOUBTFUL:
        return [good(name, f"that of this machine, in {facts.folder}")]
    seen = f"a new file in {facts.folder} is {abs(late):.1f} s {'ahead of' if late > 0 else 'behind'} this machine"
    mend = f"{_MEND} here and on the file server"
    if abs(late) > _FILES_BAD:
        return [bad(name, f"{seen}: locks and kernels in the cache are taken for old ones", mend)]
    return [doubtful(name, seen, mend)]
