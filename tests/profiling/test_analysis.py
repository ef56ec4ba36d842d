"""What follows from logs: spans that nest, whose time is whose, who waits for whom, and bytes from rank to rank."""

from __future__ import annotations

from itertools import pairwise

import pytest

from numpy_dist.profiling.analysis import (
    COMPUTING,
    OUTSIDE,
    PLANNED,
    SENDING,
    WAITING,
    Profiled,
    meanwhile,
    own_pieces,
    profiled,
    ranks_text,
    sent_bytes,
    waiting_matrix,
)
from numpy_dist.profiling.log import CollectiveRun, RankLog, log_of
from tests.profiling.hand_made import MS, START, A, B, at, header, logs, records, without


@pytest.fixture
def found() -> Profiled:
    return profiled(logs())


def test_spans_nest_and_their_own_times_add_up(found: Profiled) -> None:
    for log in found.logs:
        spans = found.spans[log.rank]
        assert all(before.begin <= after.begin for before, after in pairwise(spans))
        for span in spans:
            if span.within >= 0:
                around = spans[span.within]
                assert around.begin <= span.begin and span.end <= around.end
        outermost = sum(span.end - span.begin for span in spans if span.within < 0)
        assert sum(span.own for span in spans) == outermost
        pieces = own_pieces(spans)
        assert all(before[1] <= after[0] for before, after in pairwise(pieces))
        assert sum(end - begin for begin, end, _ in pieces) == outermost


def test_a_wait_within_a_loop_belongs_to_its_lines(found: Profiled) -> None:
    (wait,) = [span for span in found.spans[1] if span.kind == "messages"]
    assert found.spans[1][wait.within].kind == "loop" and wait.lines == {(A, 12): 1.0}
    assert wait.name == "messages with rank 0" and wait.nbytes == 800


def test_who_waits_for_whom(found: Profiled) -> None:
    """Rank 0 starts its messages 39 ms after rank 1 began to wait, and comes 10 ms later to the collective."""
    assert waiting_matrix(found) == {(1, 0): 49 * MS}
    assert {found.spans[1][wait.span].kind for wait in found.late} == {"messages", "collective"}


def test_what_the_late_rank_did_meanwhile(found: Profiled) -> None:
    done = {
        (found.spans[rank][number].name, inside): time
        for (rank, number, inside), time in meanwhile(found, found.late).items()
    }
    assert done == {("sin, less, add", True): 39 * MS, ("numpy.unwrap", False): 10 * MS}


def test_shares_add_up_to_the_whole_time(found: Profiled) -> None:
    assert found.length == 100 * MS
    assert found.shares[0] == {COMPUTING: 74 * MS, WAITING: 0, SENDING: 8 * MS, PLANNED: 2 * MS, OUTSIDE: 16 * MS}
    assert found.shares[1] == {COMPUTING: 34 * MS, WAITING: 49 * MS, SENDING: 9 * MS, PLANNED: 2 * MS, OUTSIDE: 6 * MS}
    assert all(sum(its.values()) == found.length for its in found.shares.values())


def test_what_lines_cost(found: Profiled) -> None:
    costs = {cost.line: cost for cost in found.costs}
    assert [cost.total for cost in found.costs] == sorted((cost.total for cost in found.costs), reverse=True)
    first = costs[A, 12]
    assert first.text == "y = f(x) < 1"
    # Two of three statements of the first loop; and the second, but for the wait in it on rank 1.
    assert first.busy == pytest.approx((58 + 18) * 2 / 3 * MS + 10 * MS + 10 * MS, abs=2)
    assert first.communicating == 40 * MS
    assert first.nbytes == pytest.approx(2 * (4_500_000 * 2 / 3 + 1_500_000))
    assert first.tiers.keys() == {"numpy: not yet compiled", "numba"}
    assert costs[A, 31].communicating == 6 * MS  # gathers
    assert costs[B, 7].total == 5 * MS + 15 * MS


def test_bytes_from_rank_to_rank(found: Profiled) -> None:
    assert sent_bytes(found) == {(0, 1): 850, (1, 0): 850}


@pytest.mark.parametrize(
    ("kind", "root", "sent", "told"),
    [
        ("allgather", -1, (5, 7, 9), {(0, 1): 5, (0, 2): 5, (1, 0): 7, (1, 2): 7, (2, 0): 9, (2, 1): 9}),
        ("bcast", 1, (0, 8, 0), {(1, 0): 8, (1, 2): 8}),
        ("gather", 2, (5, 7, 9), {(0, 2): 5, (1, 2): 7}),
        ("scatter", 0, (40, 0, 0), {(0, 1): 20, (0, 2): 20}),
    ],
)
def test_bytes_of_collectives(kind: str, root: int, sent: tuple[int, ...], told: dict[tuple[int, int], int]) -> None:
    def log(rank: int) -> RankLog:
        call = CollectiveRun(at(0), at(1), kind, root, sent[rank], 0)
        return log_of(header(rank, 3), [*records(0)[:1], call])

    assert sent_bytes(profiled([log(rank) for rank in range(3)])) == told


def test_collectives_that_differ_tell_nothing() -> None:
    one, other = logs()
    other = log_of(other.header, [r._replace(kind="bcast") if isinstance(r, CollectiveRun) else r for r in records(1)])
    late = profiled([one, other]).late
    assert [found.end - found.begin for found in late] == [39 * MS]  # the messages are still known


def test_a_rank_without_a_log() -> None:
    found = profiled([logs()[1]])
    assert found.size == 2 and not found.late and found.shares[1][SENDING] == 58 * MS


def test_clocks_of_two_machines() -> None:
    """By the time of day: the other machine's clock began 2 s later, and both logs begin at the same moment."""
    moved = [
        record._replace(
            **{name: getattr(record, name) - 2_000 * MS for name in ("at", "begin", "end") if name in record._fields}
        )
        if set(record._fields) & {"at", "begin", "end"}
        else record
        for record in records(1)
    ]
    other = log_of(header(1, clock=START - 2_000 * MS, machine="two"), moved)
    assert waiting_matrix(profiled([logs()[0], other])) == {(1, 0): 49 * MS}
    assert profiled([logs()[0], other]).length == 100 * MS


def test_a_log_that_ends_early() -> None:
    cut = log_of(header(1), without((CollectiveRun,), records(1))[:-1])
    found = profiled([logs()[0], cut])
    assert waiting_matrix(found) == {(1, 0): 39 * MS}


def test_ranks_in_words() -> None:
    told = [ranks_text(ranks) for ranks in ([3], [0, 2], [1, 2], [1, 2, 3])]
    assert told == ["rank 3", "ranks 0, 2", "ranks 1, 2", "ranks 1 to 3"]
