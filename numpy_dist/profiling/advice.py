"""Advice: what stands out in a profile, in words, what costs most first. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

from numpy_dist.profiling.analysis import (
    COLLECTIVE,
    COMPUTING,
    LOOP,
    OUTSIDE,
    PLANNED,
    PLANNING,
    LateWait,
    Line,
    Profiled,
    line_traffic,
    meanwhile,
    ranks_text,
    waiting_matrix,
)
from numpy_dist.profiling.log import AxisUse
from numpy_dist.profiling.words import bytes_word, line_word, percent, sentence, time_word, times_word

MUCH = 0.1  # of the time: what takes less is not worth a word
_MUCH_OUTSIDE = 0.3
_UNEVEN = 1.25  # what the busiest rank computes, in parts of the mean
_MANY = 100  # collectives of one line
_LARGE, _NOT_SMALL = 1 << 24, 1 << 20  # bytes of a gather that was asked for, and of one that takes long
_MOST_OF_A_KIND = 5


class Finding(NamedTuple):
    """A piece of advice, and the time of all ranks that it is about, which orders them."""

    cost: float
    text: str


def advise(found: Profiled) -> list[str]:
    """What stands out, the most expensive first; never empty."""
    findings = [finding for look in LOOKS for finding in look(found)]
    findings.sort(key=lambda finding: -finding.cost)
    return [finding.text for finding in findings] or ["Nothing stands out."]


def _whole(found: Profiled) -> int:
    """The time of all ranks."""
    return found.length * len(found.logs)


def missing_ranks(found: Profiled) -> Iterator[Finding]:
    """Ranks that did not come to the end, or have no log: everything else is to be read with that in mind."""
    here = {log.rank: log for log in found.logs}
    without = [rank for rank in range(found.size) if rank not in here]
    if without:
        yield Finding(float("inf"), f"There is no log of {ranks_text(without)}; who waits for whom is not known.")
    cut_off = [log for log in found.logs if log.end is None]
    if len(cut_off) > _MOST_OF_A_KIND:
        ends = [log.last for log in cut_off]
        yield Finding(
            float("inf"),
            f"{sentence(ranks_text([log.rank for log in cut_off]))} did not come to the end of the profile: their logs "
            f"end after {time_word(min(ends))} to {time_word(max(ends))}, and what they were in at that moment is not "
            "in them.",
        )
    else:
        for log in cut_off:
            yield Finding(
                float("inf"),
                f"Rank {log.rank} did not come to the end of the profile: its log ends after {time_word(log.last)}, "
                "and what it was in at that moment is not in it.",
            )
    full = [(log.rank, log.end.left_out) for log in found.logs if log.end is not None and log.end.left_out]
    if len(full) > _MOST_OF_A_KIND:
        text = f"The logs of {ranks_text([rank for rank, _ in full])} are full: {sum(n for _, n in full):,} records"
        yield Finding(float("inf"), f"{text} were left out.")
    else:
        for rank, left_out in full:
            yield Finding(float("inf"), f"The log of rank {rank} is full: {left_out:,} records were left out.")


def fallbacks(found: Profiled) -> Iterator[Finding]:
    """Arrays that were gathered though nobody asked for it. Every rank tells of the same ones: the first is heard."""
    log = found.logs[0]
    total: defaultdict[tuple[Line, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for notice in log.notices:
        if notice.how == "gathered":
            text = log.lines[notice.line]
            counted = total[(text.filename, text.line), notice.function, notice.reason]
            counted[0] += notice.amount
            counted[1] += 1
    ordered = sorted(total.items(), key=lambda item: -item[1][0])[:_MOST_OF_A_KIND]
    for (line, function, reason), (nbytes, count) in ordered:
        where = line_word(line, found.folder)
        yield Finding(
            _time_of(found, line),
            f"{sentence(where)} gathers {bytes_word(nbytes)} ({function}, {times_word(count)}): {reason}.",
        )


def _time_of(found: Profiled, line: Line) -> int:
    return next((cost.total for cost in found.costs if cost.line == line), 0)


def asked_gathers(found: Profiled) -> Iterator[Finding]:
    """Large arrays that the program itself asked for."""
    log = found.logs[0]
    unasked = {notice.line for notice in log.notices if notice.how == "gathered"}
    total: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for gather in log.gathers:
        if gather.line not in unasked:
            counted = total[gather.line]
            counted[0] += gather.nbytes
            counted[1] += 1
            counted[2] |= gather.root < 0
    for number, (nbytes, count, everywhere) in sorted(total.items(), key=lambda item: -item[1][0])[:_MOST_OF_A_KIND]:
        line = log.lines[number]
        time = _time_of(found, (line.filename, line.line))
        if found.size > 1 and (nbytes >= _LARGE or (nbytes >= _NOT_SMALL and time >= MUCH * _whole(found))):
            where, place = line_word((line.filename, line.line), found.folder), "one rank"
            if everywhere:
                place = "every rank"
            advice = "; x.gather(root=0) brings it to one rank only, and numpy.save writes it without a gather"
            yield Finding(
                time,
                f"{sentence(where)} gathers {bytes_word(nbytes)} to {place} ({times_word(count)}), as it asks for"
                f"{advice if everywhere else ''}.",
            )


def element_loops(found: Profiled) -> Iterator[Finding]:
    """Loops over single elements."""
    log = found.logs[0]
    for number in dict.fromkeys(notice.line for notice in log.notices if notice.how == "elements"):
        line = log.lines[number]
        where = line_word((line.filename, line.line), found.folder)
        yield Finding(
            _time_of(found, (line.filename, line.line)),
            f"{sentence(where)} reads elements of a sharded array one by one: functions of whole arrays are faster.",
        )


def waiting(found: Profiled) -> Iterator[Finding]:
    """Ranks that wait for one that comes late, and what that one does meanwhile."""
    waiting_for: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for (rank, late), time in sorted(waiting_matrix(found).items()):
        if time >= MUCH * found.length:
            waiting_for[late][rank] = time
    ordered = sorted(waiting_for.items(), key=lambda item: -sum(item[1].values()))[:_MOST_OF_A_KIND]
    of_pair: defaultdict[tuple[int, int], list[LateWait]] = defaultdict(list)
    for wait in found.late:
        of_pair[wait.rank, wait.late].append(wait)
    for late, times in ordered:
        those = list(times)
        waits = [wait for rank in those for wait in of_pair[rank, late]]
        time = sum(times.values())
        share = percent(time, found.length * len(those))
        verb = "waits" if len(those) == 1 else "wait"
        text = f"{share} of the time {ranks_text(those)} {verb} for rank {late}"
        yield Finding(time, f"{text}{_at(found, waits)}. {_doing(found, waits, late)}")


def _at(found: Profiled, waits: list[LateWait]) -> str:
    """Where most of it is waited."""
    total: defaultdict[Line, float] = defaultdict(float)
    for wait in waits:
        for line, part in found.spans[wait.rank][wait.span].lines.items():
            total[line] += part * (wait.end - wait.begin)
    line = max(total, key=lambda line: total[line])
    return f", most of it at {line_word(line, found.folder)}"


def _doing(found: Profiled, waits: list[LateWait], late: int) -> str:
    """What the late rank does meanwhile."""
    total: defaultdict[str, float] = defaultdict(float)
    for (_, number, inside), time in meanwhile(found, waits).items():
        lines = found.spans[late][number].lines if number >= 0 else {}
        if not inside:
            after = f" after {line_word(max(lines, key=lambda x: x[1]), found.folder)}" if lines else ""
            total[f"runs code outside of numpy_dist{after}"] += time
            continue
        span = found.spans[late][number]
        if span.kind == PLANNING or not span.lines:
            total[f"is busy with {span.kind}"] += time
        for line, part in span.lines.items():
            if span.kind != PLANNING:
                verb = "computes" if span.kind in (LOOP, "function") else "communicates at"
                total[f"{verb} {line_word(line, found.folder)}"] += part * time
    what = max(total, key=lambda text: total[text])
    return f"Rank {late} meanwhile {what} ({percent(total[what], sum(total.values()))} of that time)."


def cuts(found: Profiled) -> Iterator[Finding]:
    """Arrays that are cut along an axis along which lines work, where there is one along which none does."""
    log = found.logs[0]
    traffic = line_traffic(found)
    of_axes: defaultdict[int, list[tuple[AxisUse, Line]]] = defaultdict(list)
    for use in log.uses:
        where = log.lines[use.line]
        of_axes[len(use.shape)].append((use, (where.filename, where.line)))
    for its in of_axes.values():
        largest = max((use.shape for use, _ in its), key=prod)
        alike = [(use, line) for use, line in its if 2 * prod(use.shape) >= prod(largest)]
        why = {line for use, line in alike if not set(use.along).isdisjoint(use.cut)}
        # Where elements travel for another reason than the lines' axes, nothing can be said.
        if any(not use.known and traffic.get(line) and line not in why for use, line in alike):
            continue
        worked = {axis for use, _ in alike for axis in use.along}
        free = [axis for axis, length in enumerate(largest) if axis not in worked and length >= found.size]
        bad = sorted({axis for use, line in alike if line in why for axis in use.cut if axis in worked})
        lines = sorted(line for line in why if traffic.get(line))
        nbytes = sum(traffic[line] for line in lines)
        time = sum(cost.communicating for cost in found.costs if cost.line in lines)
        if free and bad and (nbytes >= _LARGE or time >= MUCH * _whole(found)):
            words = ", ".join(line_word(line, found.folder) for line in lines[:3]) + ", ..." * (len(lines) > 3)
            cut = " and ".join(map(str, bad))
            both = any(free[0] in use.cut and not set(bad).isdisjoint(use.cut) for use, _ in alike)
            instead = f"axis {free[0]} {'only' if both else f'instead of axis {cut}'}"
            yield Finding(
                time,
                f"{sentence(words)} {'send' if len(lines) > 1 else 'sends'} {bytes_word(nbytes)} "
                f"({percent(time, _whole(found))} of the time) along axis {cut} of arrays of shape {tuple(largest)}, "
                f"which is cut, and no line works along axis {free[0]}: cut {instead} "
                f"(split={free[0]} where arrays are made, or x.redistribute(split={free[0]}) once).",
            )


def imbalance(found: Profiled) -> Iterator[Finding]:
    """A rank that computes more than the others."""
    times = {rank: its[COMPUTING] for rank, its in found.shares.items()}
    if len(times) < 2:
        return
    mean = sum(times.values()) / len(times)
    rank = max(times, key=lambda rank: times[rank])
    if times[rank] >= _UNEVEN * mean and times[rank] - mean >= MUCH * found.length:
        others = (sum(times.values()) - times[rank]) / (len(times) - 1)
        moved = {r: sum(span.nbytes for span in its if span.kind == LOOP) for r, its in found.spans.items()}
        if moved[rank] > _UNEVEN * sum(moved.values()) / len(moved):
            why = "its loops also move more bytes (x.layout and numpy_dist.show_layout tell who has what)"
        else:
            why = "its loops do not move more bytes, so it may share its processor, or run functions that others do not"
        yield Finding(
            times[rank] - others,
            f"Rank {rank} computes for {time_word(times[rank])}, the others for {time_word(others)} on average: {why}.",
        )


def interpreted(found: Profiled) -> Iterator[Finding]:
    """Lines whose loops ran without a kernel for a good part of the time, and why."""
    whole = _whole(found)
    for cost in found.costs:
        for tier, time in sorted(cost.tiers.items(), key=lambda item: -item[1]):
            if not tier.startswith("numpy: ") or time < MUCH * whole / 2:
                continue
            reason = tier.removeprefix("numpy: ")
            advice = ""
            if reason == "not yet compiled":
                advice = "; the next run finds the kernel, and so does the first after `numpy-dist cache warm`"
            where = line_word(cost.line, found.folder)
            yield Finding(
                time,
                f"The loop of {where} was interpreted for {percent(time, whole)} of the time ({time_word(time)} of all "
                f"ranks): {reason}{advice}.",
            )


def planning(found: Profiled) -> Iterator[Finding]:
    """Programs that are of another form each time."""
    time = sum(its[PLANNED] for its in found.shares.values())
    made = sum(p.what != "schedule found" for log in found.logs for p in log.plannings)
    if time >= MUCH * _whole(found):
        yield Finding(
            time,
            f"Planning takes {percent(time, _whole(found))} of the time: on all ranks together a schedule was made, or "
            f"a loop planned, {times_word(made)}. Programs of a form share them; arrays of other shapes each time, or "
            "slices at places that move, have other forms.",
        )


def outside(found: Profiled) -> Iterator[Finding]:
    """Time that is not ours."""
    time = sum(its[OUTSIDE] for its in found.shares.values())
    if time >= _MUCH_OUTSIDE * _whole(found):
        yield Finding(
            time,
            f"{percent(time, _whole(found))} of the time no array program runs: Python code, imports, recording of "
            "statements, files, and NumPy on small arrays.",
        )


def small_collectives(found: Profiled) -> Iterator[Finding]:
    """Lines that communicate again and again for a few bytes, such as those that ask for single values."""
    total: defaultdict[Line, list[int]] = defaultdict(lambda: [0, 0, 0])
    for its in found.spans.values():
        for span in its:
            if span.kind == COLLECTIVE:
                for line, part in span.lines.items():
                    if part == 1.0:
                        total[line][0] += 1
                        total[line][1] += span.nbytes
                        total[line][2] += span.own
    for line, (count, nbytes, time) in total.items():
        each = count / len(found.logs)
        if each >= _MANY and time >= MUCH * _whole(found) and nbytes < count * 4096:
            where = line_word(line, found.folder)
            yield Finding(
                time,
                f"{sentence(where)} communicates {each:,.0f} times on each rank for {bytes_word(nbytes / count)} "
                f"({percent(time, _whole(found))} of the time): ask for values more rarely, or for several at once.",
            )


def expensive_line(found: Profiled) -> Iterator[Finding]:
    """The line with the largest part of what is computed."""
    costs = found.costs
    if not costs or costs[0].total < 2 * MUCH * _whole(found):
        return
    first = costs[0]
    rate = ""
    if first.looping and first.nbytes:
        rate = f", its loops move {first.nbytes / first.looping:.2g} GB/s on each rank"
        if found.copy_speed:
            moved = percent(first.nbytes / first.looping, found.copy_speed / 1e9)
            rate += f", {moved} of what a copy does there ({found.copy_speed / 1e9:.2g} GB/s)"
    where = line_word(first.line, found.folder)
    yield Finding(
        first.total, f"{sentence(where)} takes {percent(first.total, _whole(found))} of the time of all ranks{rate}."
    )


LOOKS: tuple[Callable[[Profiled], Iterator[Finding]], ...] = (
    missing_ranks,
    fallbacks,
    asked_gathers,
    element_loops,
    waiting,
    cuts,
    imbalance,
    interpreted,
    planning,
    small_collectives,
    outside,
    expensive_line,
)
