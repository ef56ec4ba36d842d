"""The report: what ran natively and what was gathered, how often, and at which lines.

Gathers and replications are always counted. What runs natively is counted with ``REPORT=on`` only, so that it costs
nothing otherwise: calls of rules by `protocol.apply`, statements by a wrapper around the program's `append`.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy_dist import engine, settings
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.policy import format_bytes
from numpy_dist.engine.events.sites import resolve
from numpy_dist.engine.runtime import STARTED, current
from numpy_dist.frames import UserLine, call_site
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.ir.statements import Statement

__all__ = ["Line", "Report", "report"]

active = False
"""Whether calls of rules are counted."""

_TOLD = ("gathered", "replicated")  # always counted, with their bytes


@dataclass(frozen=True)
class Line:
    """What was called at one line.

    Attributes
    ----------
    function : str
    how : str
        "gathered", "replicated" (an algorithm needed a sharded array on every rank), or how it ran: a kind of rule,
        "elementwise" or "reduction".
    calls : int
    bytes : int
        Bytes of the arrays that were gathered or replicated, in all.
    site : UserLine
        File and line of the user's call.
    reason : str
        Why it was gathered or replicated; empty otherwise.
    """

    function: str
    how: str
    calls: int
    bytes: int
    site: UserLine
    reason: str = ""


class Report(list[Line]):
    """The lines of a report, the most bytes first; it prints itself as a table.

    Attributes
    ----------
    counted : bool
        Whether it also says what ran natively.
    """

    def __init__(self, lines: list[Line], counted: bool) -> None:
        super().__init__(sorted(lines, key=lambda line: (-line.bytes, line.how != "gathered", -line.calls)))
        self.counted = counted

    def __str__(self) -> str:
        heading = f"numpy_dist: {self._total('gathered')}"
        if any(line.how == "replicated" for line in self):
            heading += f", {self._total('replicated')}"
        native = sum(line.calls for line in self if line.how not in _TOLD)
        if self.counted:
            heading += f", {native} ran natively"
        else:
            heading += "; what ran natively is counted with NUMPY_DIST_REPORT=1"
        if not self:
            return heading
        rows = [("function", "how", "calls", "bytes", "line")]
        rows += [
            (x.function, x.how, f"{x.calls:,}", format_bytes(x.bytes) if x.how in _TOLD else "", str(x.site))
            for x in self
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            [heading, *("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows)]
        )

    __repr__ = __str__

    def _total(self, how: str) -> str:
        lines = [line for line in self if line.how == how]
        return f"{sum(x.calls for x in lines)} calls {how} {format_bytes(sum(x.bytes for x in lines))}"


def report() -> Report:
    """What this rank has run so far, by function and line (not collective).

    Gathers that nobody asked for are always in it, and whole arrays that algorithms brought to every rank. What ran
    natively is counted while ``config.REPORT`` is "on"; with ``NUMPY_DIST_REPORT=1`` in the environment rank 0 also
    prints the report when the program ends.

    Returns
    -------
    Report
        A list of `Line`, sorted by their bytes.
    """
    lines = [Line(x.function, "gathered", x.count, x.bytes, x.site, x.reason) for x in policy.gathered()]
    lines += [Line(x.function, "replicated", x.count, x.bytes, x.site, x.reason) for x in policy.replicated()]
    counts: dict[tuple[str, str, UserLine], int] = {}
    for (name, how, where), calls in policy.ledger().native.items():
        if not isinstance(where, UserLine):
            found = resolve(where)
            where = UserLine(found.filename, found.line)
        counts[name, how, where] = counts.get((name, how, where), 0) + calls
    lines += [Line(name, how, calls, 0, site) for (name, how, site), calls in counts.items()]
    return Report(lines, active or bool(counts))


def note(name: str, how: str) -> None:
    """Count a call of a rule."""
    counts = policy.ledger().native
    key = name, how, call_site()
    counts[key] = counts.get(key, 0) + 1


def _count_statements(rt: engine.Runtime) -> None:
    """Count what is recorded in a runtime's program from now on."""
    program: Any = rt.program
    if hasattr(program.append, "counts"):
        return
    append: Callable[..., None] = program.append
    counts = policy.ledger_of(rt).native

    def counting(statement: Statement, now: bool = False, depth: int = 1) -> None:
        append(statement, now, depth + 1)
        if active:
            reduces = not hasattr(statement, "creates")
            key = (statement.op.name, "reduction" if reduces else "elementwise", statement.site)
            counts[key] = counts.get(key, 0) + 1

    counting.counts = True  # type: ignore[attr-defined]
    program.append = counting


def _switched() -> None:
    """``REPORT`` was set."""
    global active
    active = active or config.REPORT == "on"
    if active:
        STARTED.append(_count_statements)
        found = current.get()
        if found is not None:
            _count_statements(found)


def _print_at_exit() -> None:
    comm = engine.runtime().comm
    if comm.rank == 0:
        print(report(), file=sys.stderr)


settings.LISTENERS["REPORT"] = _switched
if config.REPORT == "on":
    _switched()
    atexit.register(_print_at_exit)
