"""A profile as one HTML page that needs nothing else: no network, no files beside it. Pure functions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from numpy_dist.profiling.analysis import (
    KINDS,
    LOOP,
    SHARES,
    LineCost,
    Profiled,
    ProfileSpan,
    sent_bytes,
    thread_work,
    waiting_matrix,
)
from numpy_dist.profiling.groups import MOST_ROWS, drawn_together, neighbours, rows_of, standing_out
from numpy_dist.profiling.timeline import SCRIPT
from numpy_dist.profiling.words import bytes_word, file_word, line_word, percent, time_word

MOST_LINES = 10
TRACE = "trace.json"  # beside the page
_MOST_TIERS = 3  # of one line
MOST_DRAWN = 60_000  # spans in the page: of more, those that are too short to be seen are drawn together
_COLOURS = {
    "loop": "#3b7dd8",
    "function": "#7a5bc4",
    "gather": "#c2185b",
    "planning": "#e0a100",
    "collective": "#d9534f",
    "messages": "#e8833a",
    "thread": "#7fb2ee",
    "other work": "#8a9a8f",
}
_THREAD_KINDS = ("thread", "other work")
_SHARE_COLOURS = dict(zip(SHARES, ("#3b7dd8", "#d9534f", "#e8833a", "#e0a100", "#d8d8d8"), strict=True))
_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5em auto; max-width: 78em; padding: 0 1em; color: #222; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 2em; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid #ddd; padding: .2em .7em; text-align: left; }
th, td.n { white-space: nowrap; } td.n, th.n { text-align: right; } code { font-size: 93%; white-space: pre-wrap; }
canvas { width: 100%; display: block; border: 1px solid #ccc; cursor: crosshair; }
#told { min-height: 4.5em; background: #f6f6f6; padding: .5em .8em; white-space: pre-wrap; }
#told { position: sticky; bottom: 0; border-top: 1px solid #ccc; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
.bar { display: flex; height: 1.3em; width: 100%; min-width: 24em; }
.bar span { display: block; height: 100%; }
.small { color: #666; font-size: 90%; } svg { width: 100%; height: 12em; border: 1px solid #ccc; }
"""


def page_of(found: Profiled, advice: Sequence[str]) -> str:
    """The page.

    Parameters
    ----------
    found : Profiled
    advice : sequence of str
        Its first section.
    """
    head = found.logs[0].header
    title = f"Profile of {head.command or 'a program'}"
    ranks = f"{found.size} rank{'s' * (found.size != 1)}"
    parts = [
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{ranks}, backend {escape(head.backend)}, {time_word(found.length)} from the first record to the last.</p>",
        "<h2>Advice</h2><ul id=advice>",
        *(f"<li>{escape(text)}</li>" for text in advice),
        "</ul>",
        *_timeline(found),
        *_lines(found),
        *_imbalance(found),
        *_threads(found),
        *_matrix(found, "Bytes from rank to rank", _sent(found), bytes_word, _SENT_NOTE),
        *_matrix(found, "Waiting for ranks that came later", waiting_matrix(found), time_word, _WAIT_NOTE),
        *_memory(found),
        *_script(found),
        "</body></html>\n",
    ]
    return "\n".join(parts)


# -- the timeline -----------------------------------------------------------------------------------------------------


def _timeline(found: Profiled) -> Iterator[str]:
    yield "<h2>Timeline</h2><p>"
    yield "<button id=in>zoom in</button> <button id=out>zoom out</button> <button id=all>all</button>"
    kinds = (*KINDS, *_THREAD_KINDS) if any(found.threads.values()) else KINDS
    yield "".join(f"<span class=key style='background:{_COLOURS[kind]}'></span>{kind}" for kind in kinds)
    yield "</p><canvas id=timeline></canvas>"
    yield "<p id=told>The wheel zooms, dragging moves, a click tells what was done there.</p>"
    if found.size > MOST_ROWS:
        yield "<p class=small>First the ranks that stand out: those that compute most and least, wait most, are waited "
        yield "for most, or did not come to the end. Then all ranks in groups: a stretch has the colour of what took "
        yield f"most of their time. All single ranks are in {TRACE}.</p>"


def thinned(spans: Sequence[ProfileSpan], shortest: int) -> list[tuple[int, int, int, int, int]]:
    """What is drawn of a rank: begin, end, depth, the kind's number and the span's, which is -1 for several together.

    Neighbours of one kind and depth that are shorter than `shortest`, and no further apart, become one.
    """
    depths: list[int] = []
    drawn: list[tuple[int, int, int, int, int]] = []
    latest: dict[tuple[int, int], int] = {}  # what was drawn last of each depth and kind
    for number, span in enumerate(spans):
        depth = 0 if span.within < 0 else depths[span.within] + 1
        depths.append(depth)
        kind = KINDS.index(span.kind)
        if span.end - span.begin < shortest:
            place = latest.get((depth, kind))
            if place is not None and span.begin - drawn[place][1] < shortest:
                begin, end, *_ = drawn[place]
                drawn[place] = begin, max(end, span.end), depth, kind, -1
                continue
            latest[depth, kind] = len(drawn)
        drawn.append((span.begin, span.end, depth, kind, number))
    return drawn


def _script(found: Profiled) -> Iterator[str]:
    """What is drawn, as data, and what draws it."""
    count = sum(map(len, found.spans.values()))
    shown = rows_of(found)
    alone = {row.ranks[0]: found.spans[row.ranks[0]] for row in shown if row.is_single}
    shortest, drawn = 0, {rank: thinned(spans, 0) for rank, spans in alone.items()}
    while sum(map(len, drawn.values())) > MOST_DRAWN and shortest < found.length:
        shortest = max(2 * shortest, found.length // 20_000, 1)
        drawn = {rank: thinned(spans, shortest) for rank, spans in alone.items()}
    late = {(wait.rank, wait.span): wait for wait in found.late}
    names: dict[str, int] = {}
    rows = []
    with_threads = sum(len(drawn_threads(found, rank)) for rank in alone) <= MOST_THREADS
    for group in shown:
        row: list[list[int]] = []
        rows.append({"name": group.name, "label": group.name if group.is_single else group.label, "spans": row})
        if group.is_single:
            most = None if with_threads else 0
            rows += _thread_rows(found, group.ranks[0], names, most)
        if not group.is_single:
            for begin, end, kind, text in drawn_together(found, group.ranks):
                row.append([begin, end - begin, 0, kind, names.setdefault(text, len(names))])
            continue
        rank = group.ranks[0]
        spans = found.spans[rank]
        for begin, end, depth, kind, number in drawn[rank]:
            text = "several, each too short to be seen"
            if number >= 0:
                wait = late.get((rank, number))
                waits = "" if wait is None else f"; of this {time_word(wait.end - wait.begin)} for rank {wait.late}"
                text = _described(spans[number], found) + waits
            row.append([begin, end - begin, depth, kind, names.setdefault(text, len(names))])
    data: dict[str, object] = {
        "length": found.length,
        "kinds": [*KINDS, *_THREAD_KINDS],
        "colours": [_COLOURS[kind] for kind in (*KINDS, *_THREAD_KINDS)],
        "texts": list(names),
        "ranks": rows,
        "count": count,
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    yield f"<script type='application/json' id=data>{text}</script>"
    yield f"<script>{SCRIPT}</script>"


MOST_THREADS = 64  # rows of other threads; of more ranks the table below has to do
_MOST_WORKERS = 8  # rows of one rank's; of more, those that were busiest and least busy
_MOST_RUNS = 5_000  # of one thread: of more, those that are short are drawn together


def drawn_threads(found: Profiled, rank: int) -> list[str]:
    """The names of a rank's threads that have a row."""
    names = found.threads[rank]
    workers = [name for name in names if name.startswith("worker ")]
    if len(workers) <= _MOST_WORKERS:
        return list(names)
    busy = {name: sum(run.busy for run in names[name]) for name in workers}
    shown = {max(workers, key=lambda name: busy[name]), min(workers, key=lambda name: busy[name])}
    return [name for name in names if name not in busy or name in shown]


def _thread_rows(found: Profiled, rank: int, names: dict[str, int], most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of a rank's other threads, below its own."""
    log = next(log for log in found.logs if log.rank == rank)
    for thread in drawn_threads(found, rank)[:most]:
        drawn: list[list[int]] = []
        runs = found.threads[rank][thread]
        shortest = found.length // 2_000 if len(runs) > _MOST_RUNS else 0
        kind = len(KINDS) + (thread.partition(" ")[0] not in ("worker", "helper"))
        for run in runs:
            if shortest and drawn and run.end - run.begin < shortest:
                last = drawn[-1]
                if run.begin - last[0] - last[1] < shortest and last[1] < 4 * shortest:
                    last[1] = max(last[1], run.end - last[0])
                    last[4] = names.setdefault("several, each too short to be seen", len(names))
                    continue
            text = thread_work(log, run)
            if run.line >= 0:
                source = log.lines[run.line]
                text += " | " + line_word((source.filename, source.line), found.folder)
            if run.ranges:
                text += f" | {run.ranges} ranges, busy for {time_word(run.busy)}"
            drawn.append([run.begin, run.end - run.begin, 0, kind, names.setdefault(text, len(names))])
        yield {"name": f"rank {rank}, {thread}", "label": thread, "spans": drawn}


def _described(span: ProfileSpan, found: Profiled) -> str:
    text = span.name
    if span.lines:
        text += " | " + ", ".join(line_word(line, found.folder) for line in span.lines)
    if span.nbytes:
        text += f" | {bytes_word(span.nbytes)}"
    if span.detail and span.detail not in span.name:
        text += f" | {span.detail}"
    return text


# -- tables -----------------------------------------------------------------------------------------------------------


def _lines(found: Profiled) -> Iterator[str]:
    whole = found.length * len(found.logs)
    yield f"<h2>The {MOST_LINES} most expensive lines</h2>"
    yield "<table id=lines><tr><th>line<th><th class=n>time<th class=n>share<th class=n>communication"
    yield "<th class=n>runs<th class=n>bytes<th class=n>GB/s<th class=n>of a copy<th>by</tr>"
    for cost in found.costs[:MOST_LINES]:
        yield "<tr>" + _line_row(cost, found, whole) + "</tr>"
    yield "</table><p class=small>Time of all ranks together: in loops and functions, and in communication (waits "
    yield "included). Statements of several lines that run as one loop share its time and its bytes by their number. "
    copy = (
        f", and how much that is of what a copy reads and writes on a rank, {found.copy_speed / 1e9:.1f} GB/s "
        "(measured before the profile began; more than all of it comes from caches)"
    )
    yield "Bytes are those that loops read and write, each cell once a loop; GB/s of one rank while they "
    yield f"run{copy if found.copy_speed else ''}.</p>"


def _line_row(cost: LineCost, found: Profiled, whole: int) -> str:
    name, number = cost.line
    rate = f"{cost.nbytes / cost.looping:.2f}" if cost.looping and cost.nbytes else ""
    tiers = sorted(cost.tiers.items(), key=lambda item: -item[1])
    words = [word for tier, _ in tiers for word in tier.split("; ") if not word.startswith("nothing: ")]
    by = "; ".join(list(dict.fromkeys(words))[:_MOST_TIERS])
    numbers = (
        time_word(cost.total),
        percent(cost.total, whole),
        time_word(cost.communicating) if cost.communicating else "",
        f"{cost.runs:,}",
        bytes_word(cost.nbytes) if cost.nbytes else "",
        rate,
        percent(cost.nbytes / cost.looping, found.copy_speed / 1e9) if rate and found.copy_speed else "",
    )
    cells = "".join(f"<td class=n>{text}" for text in numbers)
    place = escape(f"{file_word(name, found.folder)}:{number}")
    return f"<td>{place}<td><code>{escape(cost.text)}</code>{cells}<td>{escape(by)}"


def _imbalance(found: Profiled) -> Iterator[str]:
    yield "<h2>What each rank was busy with</h2><p>"
    yield "".join(f"<span class=key style='background:{_SHARE_COLOURS[name]}'></span>{name}" for name in SHARES)
    yield "</p><table id=shares><tr><th>rank<th style='width:40%'>"
    yield "".join(f"<th class=n>{name}" for name in SHARES) + "</tr>"
    for row in rows_of(found):
        its = {name: sum(found.shares[rank][name] for rank in row.ranks) / len(row.ranks) for name in SHARES}
        pieces = [(name, 100 * its[name] / found.length) for name in SHARES]
        bar = "".join(
            f"<span style='width:{part:.3f}%;background:{_SHARE_COLOURS[name]}'></span>" for name, part in pieces
        )
        numbers = "".join(f"<td class=n>{time_word(its[name])} ({percent(its[name], found.length)})" for name in SHARES)
        yield f"<tr><td>{row.label}<td><div class=bar>{bar}</div>{numbers}</tr>"
    yield "</table><p class=small>Waiting: for a rank that had not come yet. Communicating: the rest of collectives, "
    yield "messages and gathers. Outside: no array program runs on the rank, but Python, files, or small arrays."
    yield f"{' Several ranks: the mean.' if found.size > MOST_ROWS else ''}</p>"


_MOST_THREAD_LINES = 40


def _threads(found: Profiled) -> Iterator[str]:
    """The table of other threads, the busiest first."""
    rows = []
    for rank, threads in found.threads.items():
        # A worker takes part in loops: how much of their time it worked.
        loops = sum(span.end - span.begin for span in found.spans[rank] if span.kind == LOOP)
        for name, runs in threads.items():
            busy = sum(run.busy for run in runs)
            share = percent(busy, loops) if loops and name.startswith("worker ") else ""
            rows.append((busy, rank, name, len(runs), share))
    if not rows:
        return
    yield "<h2>Other threads</h2><table id=threads><tr><th>rank<th>thread<th class=n>busy<th class=n>of the profile"
    yield "<th class=n>of the rank's loops<th class=n>times</tr>"
    for busy, rank, name, times, share in sorted(rows, key=lambda row: -row[0])[:_MOST_THREAD_LINES]:
        cells = "".join(f"<td class=n>{text}" for text in (time_word(busy), percent(busy, found.length), share, times))
        yield f"<tr><td>{rank}<td>{escape(name)}{cells}</tr>"
    yield "</table><p class=small>Workers compute ranges of loops beside the rank's own thread, helpers parts of "
    yield "functions; a compiler is a process that compiles the rank's kernels. Threads of NumPy's libraries (BLAS), "
    yield "and those that only wait, are not seen."
    if len(rows) > _MOST_THREAD_LINES:
        yield f" These are the {_MOST_THREAD_LINES} busiest of {len(rows)}; all are in {TRACE}."
    yield "</p>"


_SENT_NOTE = "Rows send, columns receive. What a rank gives to a collective counts for each rank that gets it."
_WAIT_NOTE = (
    "Rows wait, columns are waited for: the part of each wait in which the other rank had not begun its side. "
    "The rest of a wait is the transfer."
)


_GROUPS_NOTE = " Ranks are put together in groups: a cell is the sum, and what a group does within itself is in it."


def _sent(found: Profiled) -> dict[tuple[int, int], int]:
    return sent_bytes(found)


def _matrix(
    found: Profiled, title: str, matrix: dict[tuple[int, int], int], word: Callable[[int], str], note: str
) -> Iterator[str]:
    if found.size == 1 or not matrix:
        return
    groups = neighbours(found.size)
    place = {rank: number for number, group in enumerate(groups) for rank in group.ranks}
    total: defaultdict[tuple[int, int], int] = defaultdict(int)
    for (rank, other), value in matrix.items():
        total[place[rank], place[other]] += value
    most = max(total.values())
    names = title.split()[0].lower()
    yield f"<h2>{title}</h2><table id={names}><tr><th>"
    yield "".join(f"<th class=n>{group.label}" for group in groups) + "</tr>"
    for number, group in enumerate(groups):
        cells = []
        for other in range(len(groups)):
            value = total.get((number, other), 0)
            shade = f" style='background:rgba(59,125,216,{0.55 * value / most:.2f})'" if value else ""
            cells.append(f"<td class=n{shade}>{word(value) if value else ''}")
        yield f"<tr><th>{group.label}{''.join(cells)}</tr>"
    yield f"</table><p class=small>{note}{_GROUPS_NOTE if found.size > MOST_ROWS else ''}</p>"


def _memory(found: Profiled) -> Iterator[str]:
    logs = [log for log in found.logs if log.memory]
    if not logs:
        return
    most = max(max(use.held + use.free for use in log.memory) for log in logs) or 1
    if len(logs) > MOST_ROWS:  # those that stand out, and that hold most and least
        by_peak = sorted(logs, key=lambda log: max(use.held for use in log.memory))
        chosen = {*standing_out(found), *(log.rank for log in (*by_peak[:2], *by_peak[-4:]))}
        logs = [log for log in logs if log.rank in chosen]
    yield "<h2>Memory</h2><p>"
    yield "".join(
        f"<span class=key style='background:{_hue(n, len(logs))}'></span>rank {log.rank}" for n, log in enumerate(logs)
    )
    yield "</p><svg id=memory viewBox='0 0 1000 200' preserveAspectRatio=none>"
    for number, log in enumerate(logs):
        points = " ".join(_steps([(use.at, use.held) for use in log.memory], found.length, most))
        colour = _hue(number, len(logs))
        yield f"<polyline fill=none vector-effect=non-scaling-stroke stroke='{colour}' points='{points}'>"
        yield f"<title>rank {log.rank}</title></polyline>"
    peaks = ", ".join(f"rank {log.rank}: {bytes_word(max(use.held for use in log.memory))}" for log in logs)
    yield f"</svg><p class=small>Bytes that arrays hold on each rank over time; the top is {bytes_word(most)}, the "
    yield f"most together with what is kept for reuse. The most that was seen: {peaks}.</p>"


def _hue(number: int, count: int) -> str:
    """A colour of its own for each rank."""
    return f"hsl({(210 + 360 * number // count) % 360} 65% 45%)"


_MOST_STEPS = 2000


def _steps(uses: Sequence[tuple[int, int]], length: int, most: int) -> Iterator[str]:
    """Points of a curve in steps; of very many, the highest of each stretch."""
    stretch = max(1, -(-len(uses) // _MOST_STEPS))
    height = 0
    for first in range(0, len(uses), stretch):
        at, held = max(uses[first : first + stretch], key=lambda use: use[1])
        x = 1000 * at / length
        yield f"{x:.2f},{200 - 195 * height / most:.1f}"
        height = held
        yield f"{x:.2f},{200 - 195 * height / most:.1f}"
    yield f"1000,{200 - 195 * height / most:.1f}"
