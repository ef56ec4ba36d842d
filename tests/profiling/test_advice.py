"""Advice in words, each kind from a log in which it is the thing to say."""

from __future__ import annotations

import pytest

from numpy_dist.profiling import advice
from numpy_dist.profiling.advice import advise
from numpy_dist.profiling.analysis import Profiled, profiled
from numpy_dist.profiling.log import (
    AxisUse,
    CollectiveRun,
    GatherRun,
    LogEnd,
    LoopDescription,
    LoopRun,
    Notice,
    PlanningRun,
    Record,
    log_of,
)
from tests.profiling.hand_made import LINES, at, header, logs, records


def job(*of_ranks: list[Record], ends: float | None = 100) -> Profiled:
    end: list[Record] = [] if ends is None else [LogEnd(at(ends), 0, 0, 0, 0, 0)]
    size = len(of_ranks)
    return profiled([log_of(header(rank, size), [*LINES, *its, *end]) for rank, its in enumerate(of_ranks)])


def loop(begin: float, end: float, tier: str = "numba") -> list[Record]:
    return [LoopDescription(0, [0], "sin", 10_000_000, 0, tier), LoopRun(at(begin), at(end), [0])]


def test_all_of_it() -> None:
    told = advise(profiled(logs()))
    assert (
        "49 % of the time rank 1 waits for rank 0, most of it at line 12 of a.py. "
        "Rank 0 meanwhile computes line 12 of a.py (53 % of that time)." in told
    )
    assert "Line 31 of a.py gathers 800 MB (numpy.unwrap, once): it has no distributed implementation." in told
    interpreted = "The loop of line 12 of a.py was interpreted for 25 % of the time (51 ms"
    assert any(text.startswith(interpreted) for text in told)
    uneven = "Rank 0 computes for 74 ms, the others for 34 ms on average: its loops do not move more bytes"
    assert any(text.startswith(uneven) for text in told)


def test_nothing_stands_out() -> None:
    lines: list[Record] = [LINES[0]._replace(number=n, line=n) for n in range(10)]  # type: ignore[call-arg]
    loops: list[Record] = [LoopDescription(n, [n], "sin", 0, 0, "numba") for n in range(10)]
    runs: list[Record] = [LoopRun(at(n), at(n + 1), [n]) for n in range(10)]
    assert advise(job([*lines, *loops, *runs], ends=10)) == ["Nothing stands out."]


def test_several_ranks_wait_for_one() -> None:
    def call(begin: float) -> list[Record]:
        return [CollectiveRun(at(begin), at(90), "barrier", -1, 0, 1)]

    (text,) = [t for t in advise(job([*loop(0, 80), *call(82)], call(20), call(20), call(20))) if "wait" in t]
    assert text.startswith("62 % of the time ranks 1 to 3 wait for rank 0, most of it at line 31 of a.py. ")
    assert text.endswith("Rank 0 meanwhile computes line 12 of a.py (97 % of that time).")


def test_a_rank_that_has_more_to_do() -> None:
    more: list[Record] = [*loop(0, 45), LoopRun(at(45), at(90), [0])]
    (text,) = [t for t in advise(job(more, loop(0, 45))) if "average" in t]
    assert text.startswith("Rank 0 computes for 90 ms, the others for 45 ms on average: its loops also move more bytes")


def test_what_a_late_rank_does_outside() -> None:
    one: list[Record] = [*loop(0, 10), CollectiveRun(at(80), at(90), "barrier", -1, 0, 1)]
    other: list[Record] = [*loop(0, 10), CollectiveRun(at(10), at(90), "barrier", -1, 0, 1)]
    (text,) = [t for t in advise(job(one, other)) if "wait" in t]
    assert text.endswith("Rank 0 meanwhile runs code outside of numpy_dist after line 12 of a.py (100 % of that time).")


def test_ranks_that_did_not_come_to_the_end() -> None:
    found = profiled([logs()[0], log_of(header(1), records(1)[:7])])
    text = advise(found)[0]
    assert text.startswith("Rank 1 did not come to the end of the profile: its log ends after 20 ms")
    assert advise(profiled([logs()[1]]))[0] == "There is no log of rank 0; who waits for whom is not known."
    full = log_of(header(0, 1), [LogEnd(at(1), 0, 0, 0, 0, 1234)])
    assert advise(profiled([full]))[0] == "The log of rank 0 is full: 1,234 records were left out."


def test_gathers_that_were_asked_for() -> None:
    gathers: list[Record] = [GatherRun(at(n), at(n + 1), 60_000_000, -1, 1) for n in (1, 5)]
    (text,) = [t for t in advise(job(gathers, gathers)) if "gathers" in t]
    assert text.startswith("Line 31 of a.py gathers 120 MB to every rank (2 times), as it asks for; x.gather(root=0)")
    to_one: list[Record] = [GatherRun(at(1), at(2), 60_000_000, 0, 1)]
    (text,) = [t for t in advise(job(to_one, to_one)) if "gathers" in t]
    assert text == "Line 31 of a.py gathers 60 MB to one rank (once), as it asks for."
    assert not [t for t in advise(job([GatherRun(at(1), at(2), 999, 0, 1)], [])) if "gathers" in t]


def test_elements_one_by_one() -> None:
    notices: list[Record] = [Notice(at(1), "elements", "a loop", "why", 1000, 2)] * 2
    assert [t for t in advise(job(notices)) if "one by one" in t] == [
        "Line 7 of B<.py reads elements of a sharded array one by one: functions of whole arrays are faster."
    ]


@pytest.mark.parametrize(
    ("tier", "why"),
    [
        ("numpy: COMPILE is 'never'", "COMPILE is 'never'."),
        ("numpy: not yet compiled", "not yet compiled; the next run finds the kernel, and so does"),
    ],
)
def test_interpreted_loops_and_why(tier: str, why: str) -> None:
    (text,) = [t for t in advise(job(loop(0, 40, tier))) if "interpreted" in t]
    assert text.startswith("The loop of line 12 of a.py was interpreted for 40 % of the time (40 ms of all ranks): ")
    assert text.partition("): ")[2].startswith(why)
    assert not [t for t in advise(job(loop(0, 40))) if "interpreted" in t]


def test_planning() -> None:
    plannings: list[Record] = [PlanningRun(at(n), at(n + 2), "schedule made", 3) for n in range(0, 60, 3)]
    (text,) = [t for t in advise(job(plannings)) if "Planning" in t]
    assert text.startswith("Planning takes 40 % of the time:") and "20 times" in text


def test_many_small_collectives() -> None:
    calls: list[Record] = [CollectiveRun(at(n / 4), at((n + 0.9) / 4), "allgather", -1, 8, 2) for n in range(200)]
    (text,) = [t for t in advise(job(calls, calls)) if "communicates" in t]
    assert text.startswith("Line 7 of B<.py communicates 200 times on each rank for 8 bytes (45 % of the time)")


def test_what_is_outside_and_the_most_expensive_line() -> None:
    told = advise(job(loop(0, 30)))
    assert told[0].startswith("70 % of the time no array program runs")
    assert told[1] == "Line 12 of a.py takes 30 % of the time of all ranks, its loops move 0.33 GB/s on each rank."


def test_every_look_is_listed() -> None:
    looks = {name for name, value in vars(advice).items() if getattr(value, "__module__", "") == advice.__name__}
    listed = {look.__name__ for look in advice.LOOKS}
    assert {name for name in looks if not name.startswith("_")} - {"advise", "Finding"} == listed


def uses(*others: Record, cut: tuple[int, ...] = (1,), sent: int = 1 << 24) -> list[str]:
    """What is told of cuts where line 12 of two ranks sends bytes along axis 1, and others do what they do."""
    its: list[Record] = [
        CollectiveRun(at(1), at(20), "alltoall", -1, sent, 0),
        AxisUse((600, 500), cut, (1,), True, 0),
        AxisUse((600, 499), cut, (), True, 0),
        *others,
    ]
    return [text for text in advise(job(its, its)) if "is cut" in text]


def test_another_axis_to_cut() -> None:
    assert uses() == [
        "Line 12 of a.py sends 34 MB (19 % of the time) along axis 1 of arrays of shape (600, 500), which is cut, and "
        "no line works along axis 0: cut axis 0 instead of axis 1 (split=0 where arrays are made, or "
        "x.redistribute(split=0) once)."
    ]
    (text,) = uses(cut=(0, 1))
    assert "no line works along axis 0: cut axis 0 only (split=0" in text
    assert not uses(AxisUse((600, 500), (1,), (0,), True, 1))  # then the other line would send
    assert not uses(AxisUse((599, 500), (1,), (0, 1), True, 1))
    assert not uses(cut=(0,))
    assert uses(AxisUse((600, 500), (1,), (), False, 1))  # whatever it does, it sends nothing
    sends = CollectiveRun(at(30), at(31), "alltoall", -1, 800, 1)
    assert not uses(AxisUse((600, 500), (1,), (), False, 1), sends)
    assert uses(AxisUse((500,), (0,), (0,), True, 1), sends)  # of another kind
    assert uses(AxisUse((600, 1), (0,), (0,), True, 1), sends)
    small: list[Record] = [*loop(0, 90), CollectiveRun(at(95), at(96), "alltoall", -1, 50, 0)]
    small.append(AxisUse((600, 500), (1,), (1,), True, 0))
    assert not [text for text in advise(job(small, small)) if "is cut" in text]
