"""Plans as text: tables by the user's lines, and sentences."""

from __future__ import annotations

import os
from collections.abc import Sequence

from numpy_dist.frames import UserLine
from numpy_dist.scaling.counted import AssumedValue, HeldArray, JobPlan, LineCounts
from numpy_dist.scaling.machine import MachineSpeeds
from numpy_dist.scaling.prediction import Prediction, predict, predict_counts

MOST_LINES, MOST_HELD = 12, 6

_PARTS = {
    "memory": "memory",
    "operations": "operations",
    "arithmetic": "matrix products",
    "functions": "sorts and transforms",
    "latency": "network latency",
    "bandwidth": "network bandwidth",
    "interpreter": "interpreter",
    "turns": "turns of ranks",
}


def size_text(nbytes: float) -> str:
    """Bytes in the unit that suits them: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if nbytes < 1000 or unit == "TB":
            return f"{nbytes:,.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    raise AssertionError


def seconds_text(seconds: float) -> str:
    """Seconds in the unit that suits them: 12 ms."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def line_text(line: UserLine) -> str:
    """A line's place, relative to where the user stands if it lies below."""
    path = os.path.relpath(line.filename) if os.path.isabs(line.filename) else line.filename
    return f"{line.filename if path.startswith('..') else path}:{line.line}"


def table(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Rows in columns, the numbers to the right; columns from `left` on, counted from the last, to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = len(widths) - left
    return [
        "  ".join(
            text.rjust(width) if number < aligned else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def job_lines(job: JobPlan, machine: MachineSpeeds) -> list[str]:
    """Everything about a job of one number of ranks."""
    prediction = predict(job, machine)
    lines = [_header(job), "", *_memory_lines(job, machine)]
    for more in (
        _traffic_lines(job),
        _written_lines(job),
        _time_lines(job, machine, prediction),
        _value_lines(job),
        _expected_lines(job),
        _ending_lines(job),
    ):
        if more:
            lines += ["", *more]
    return lines


def _header(job: JobPlan) -> str:
    ranks = f"{job.size:,} rank{'s' * (job.size != 1)}"
    if len(job.ranks) == job.size:
        return f"Plan for {ranks}" + (", each of them run without data" if job.size > 1 else "")
    numbers = [rank.rank for rank in job.ranks]
    shown = ", ".join(map(str, numbers if len(numbers) <= 8 else [*numbers[:7], "...", numbers[-1]]))
    return f"Plan for {ranks}, {len(numbers)} of them run without data: {shown}"


def _memory_lines(job: JobPlan, machine: MachineSpeeds) -> list[str]:
    fullest = job.fullest
    least = min(rank.peak for rank in job.ranks)
    lines = [f"memory     {size_text(fullest.peak)} of arrays at the peak of rank {fullest.rank}, the fullest"]
    if least < fullest.peak:
        lines[0] += f" ({size_text(least)} on the emptiest)"
    room = machine.rank_memory(job.size)
    if fullest.peak > room:
        lines.append(f"           MORE THAN THERE IS: a rank has {size_text(room)} on machine {machine.name!r}")
    exchange = max(rank.largest_exchange for rank in job.ranks)
    gather = max(rank.largest_gather for rank in job.ranks)
    if exchange:
        lines.append(f"           besides them, {size_text(exchange)} of messages at once")
    if gather:
        lines.append(f"           besides them, {size_text(gather)} of a gathered array")
    shown = fullest.held[:MOST_HELD]
    lines += [f"           {row}" for row in table([_held_row(held) for held in shown], left=2)] if shown else []
    if len(fullest.held) > len(shown):
        rest = sum(held.nbytes for held in fullest.held[MOST_HELD:])
        lines.append(f"           and {size_text(rest)} more, of {len(fullest.held) - len(shown)} lines")
    return lines


def _held_row(held: HeldArray) -> list[str]:
    what = held.what if held.count == 1 else f"{held.count} x {held.what}"
    return [size_text(held.nbytes), what, f"{line_text(held.line)}  {held.text}"]


def _traffic_lines(job: JobPlan) -> list[str]:
    most = {name: max(getattr(rank, name) for rank in job.ranks) for name in ("messages", "bytes", "collectives")}
    gathers = max(rank.totals.gathers for rank in job.ranks)
    lines = [
        f"sent       {most['messages']:,} messages, {size_text(most['bytes'])}, {most['collectives']:,} collectives, "
        f"{gathers:,} gathers: the most of any rank"
    ]
    by_line = {
        line: counts
        for line, counts in job.most_by_line().items()
        if counts.messages or counts.collectives or counts.gathers or counts.received_messages
    }
    if not by_line:
        return lines
    texts = job.texts
    rows = [["messages", "bytes", "collectives", "gathers", "line"]]
    ordered = sorted(by_line.items(), key=lambda pair: (-pair[1].bytes, -pair[1].collectives, -pair[1].messages))
    rows += [[*_counted(counts), f"{line_text(line)}  {texts[line]}"] for line, counts in ordered[:MOST_LINES]]
    lines += [f"           {row}" for row in table(rows, left=1)]
    if len(ordered) > MOST_LINES:
        lines.append(f"           and {len(ordered) - MOST_LINES} lines more, which send less")
    return lines


def _counted(counts: LineCounts) -> list[str]:
    gathers = f"{counts.gathers:,}" + (f" ({size_text(counts.gathered_bytes)})" if counts.gathers else "")
    return [f"{counts.messages:,}", size_text(counts.bytes), f"{counts.collectives:,}", gathers]


def _written_lines(job: JobPlan) -> list[str]:
    """What the ranks would write to files."""
    most, root = max(rank.totals.written for rank in job.ranks), job.ranks[0]
    by_line = {line: counts.written for line, counts in job.most_by_line().items() if counts.written}
    if not by_line:
        return []
    of_root = f" ({size_text(root.totals.written)} by rank 0)" if not root.rank and root.totals.written < most else ""
    lines = [f"written    {size_text(most)} to files, which a plan leaves alone: the most of any rank{of_root}"]
    ordered = sorted(by_line.items(), key=lambda pair: -pair[1])
    rows = [[size_text(nbytes), f"{line_text(line)}  {job.texts[line]}"] for line, nbytes in ordered[:MOST_LINES]]
    lines += [f"           {row}" for row in table(rows, left=1)]
    if len(ordered) > MOST_LINES:
        lines.append(f"           and {len(ordered) - MOST_LINES} lines more, which write less")
    return lines


def _time_lines(job: JobPlan, machine: MachineSpeeds, prediction: Prediction) -> list[str]:
    parts = [(name, seconds) for name, seconds in prediction.parts.parts() if seconds >= 0.005 * prediction.seconds > 0]
    where = ", ".join(f"{_PARTS[name]} {seconds / prediction.seconds:.0%}" for name, seconds in parts)
    slowest = f"{seconds_text(prediction.seconds)} on rank {prediction.rank}, the slowest"
    lines = [f"predicted  {slowest}: {where or 'nothing that is counted'}"]
    if (sharing := machine.share(job.size)) > machine.cores:
        lines.append(f"           {sharing:,} ranks on {machine.cores:,} cores, which they use in turn")
    rank = next(rank for rank in job.ranks if rank.rank == prediction.rank)
    costs = {line: predict_counts(counts, job.size, machine, rank.peak) for line, counts in rank.lines.items()}
    ordered = sorted(costs.items(), key=lambda pair: -pair[1].total)[:MOST_HELD]
    rows = [
        [seconds_text(cost.total), _PARTS[cost.parts()[0][0]], f"{line_text(line)}  {rank.texts[line]}"]
        for line, cost in ordered
        if cost.total
    ]
    lines += [f"           {row}" for row in table(rows, left=2)] if rows else []
    lines.append(f"limited by {prediction.limit}")
    if missing := rank.not_modelled:
        calls = ", ".join(f"{name} ({count:,})" for name, count in missing.most_common(MOST_HELD))
        calls += f", and {len(missing) - MOST_HELD} more" if len(missing) > MOST_HELD else ""
        lines.append(f"not modelled: {calls}: only the reading of their arguments is in the time")
    return lines


def _value_lines(job: JobPlan) -> list[str]:
    return value_lines(job.ranks[0].values)


def value_lines(values: Sequence[AssumedValue]) -> list[str]:
    """Which values the program has got that nobody has computed, and what to do about it."""
    assumed = [value for value in values if value.assumed]
    taken = sum(value.taken for value in values)
    lines = [f"values     {taken:,} values came from the small run"] if taken else []
    if not assumed:
        return lines
    count = sum(value.assumed for value in assumed)
    what = "1 value that nobody has computed" if count == 1 else f"{count:,} values that nobody has computed"
    lines.append(f"{'           ' if lines else 'values     '}{what} went to Python, as --value says (0 without it):")
    rows = [[f"{value.assumed:,}", f"{line_text(value.line)}  {value.text}"] for value in assumed[:MOST_LINES]]
    lines += [f"           {row}" for row in table(rows, left=1)]
    lines.append(
        "           If one of them steers the program (a test, a number of steps), give the script a fixed number of "
        "steps by its own arguments, or --values 'ARGUMENTS OF A SMALL RUN'"
    )
    return lines


def _expected_lines(job: JobPlan) -> list[str]:
    told = dict.fromkeys(each for rank in job.ranks for each in rank.expected)
    rows = [[each.what, f"{line_text(each.line)}  {each.text}"] for each in told]
    if not rows:
        return []
    lines = ["expected   counts of arrays that nobody has computed, whose elements decide what is selected and sent:"]
    lines += [f"           {row}" for row in table(rows[:MOST_LINES], left=2)]
    return lines + ([f"           and {len(rows) - MOST_LINES} lines more"] if len(rows) > MOST_LINES else [])


def _ending_lines(job: JobPlan) -> list[str]:
    ended = [rank for rank in job.ranks if rank.ending]
    if not ended:
        return []
    first = ended[0]
    others = sum(rank.ending != first.ending for rank in ended)
    who = f"{'each rank' if len(ended) == len(job.ranks) else f'{len(ended)} of the ranks'}, before the script's end"
    lines = [f"ended      {who}: {first.ending.splitlines()[0]}" + (f" (rank {first.rank})" if others else "")]
    if first.ending.partition(": ")[2].startswith("WritesNothing"):
        place = first.ending.partition(" (")[0]
        lines.append(
            "           What stands above was done until then. For a plan of the rest, make the script leave out "
            f"what it writes at {place}: by an argument of its own, say"
        )
    elif ": FileNotFoundError: " in first.ending:
        lines.append(
            "           What stands above was done until then. A plan writes no files: what the script has written "
            "before is not there to be read"
        )
    else:
        advice = "; other ones than 0: --value 1" if ": ZeroDivisionError: " in first.ending else ""
        lines.append(
            f"           What stands above was done until then. The script had values that nobody has computed{advice}"
        )
    return lines


def summary_lines(jobs: Sequence[JobPlan], machine: MachineSpeeds) -> list[str]:
    """A row for each number of ranks."""
    rows = [["ranks", "memory a rank", "messages", "bytes", "collectives", "gathers", "predicted", "limited by"]]
    for job in jobs:
        prediction = predict(job, machine)
        most = {name: max(getattr(rank, name) for rank in job.ranks) for name in ("messages", "bytes", "collectives")}
        rows.append(
            [
                f"{job.size:,}",
                size_text(job.fullest.peak),
                f"{most['messages']:,}",
                size_text(most["bytes"]),
                f"{most['collectives']:,}",
                f"{max(rank.totals.gathers for rank in job.ranks):,}",
                seconds_text(prediction.seconds),
                prediction.limit.partition(":")[0].partition(",")[0],
            ]
        )
    return table(rows, left=1)
