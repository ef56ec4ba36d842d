"""The outcome of a run as text and as one HTML page: a table for each topic of NumPy's documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from numpy_dist.conformance import adapter, known_differences
from numpy_dist.dispatch.core.keys import name_of

Row = Mapping[str, Any]
Runs = Mapping[int, Sequence[Row]]

_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; } td, th { border-bottom: 1px solid #ddd; padding: .2em .6em; }
th { text-align: left; } td.n { text-align: right; white-space: nowrap; } td.bad { background: #fdd; }
pre { white-space: pre-wrap; margin: .3em 0; } code { font-size: 95%; }
"""


def counted(number: int, what: str) -> str:
    """ "1 rank", "2 ranks"."""
    return f"{number} {what}{'s' * (number != 1)}"


def totals(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Cases, those that passed (known differences among them), and those with known differences."""
    return tuple(sum(row[name] for row in rows) for name in ("cases", "passed", "known"))  # type: ignore[return-value]


def summary(runs: Runs) -> Iterator[str]:
    """One line for each number of ranks."""
    for number, rows in runs.items():
        cases, passed, known = totals(rows)
        problems = sum(len(row["problems"]) for row in rows)
        text = f"{counted(number, 'rank')}: {passed} of {cases} cases of {counted(len(rows), 'function')} passed"
        yield f"{text}, {known} of them with known differences; {counted(problems, 'problem')}"


def html(runs: Runs, share: str, differences: Sequence[tuple[str, str]], title: str) -> str:
    """The page.

    Parameters
    ----------
    runs : mapping
        The rows of a run for each number of ranks.
    share : str
        How much runs without gathering.
    differences : sequence of tuple of str
        Known differences: functions, and the reason.
    title : str
    """
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"]
    parts += [f"<h1>{escape(title)}</h1><p>{escape(share)}</p><ul>"]
    parts += [f"<li>{escape(line)}</li>" for line in summary(runs)]
    parts += ["</ul>", *_tables(runs), "<h2>Known differences</h2><ul>"]
    parts += [f"<li><code>{escape(names)}</code>: {escape(reason)}</li>" for names, reason in differences]
    return "\n".join([*parts, "</ul></html>", ""])


def _tables(runs: Runs) -> Iterator[str]:
    found: dict[str, dict[str, dict[int, Row]]] = {}
    for ranks, rows in runs.items():
        for row in rows:
            found.setdefault(row["topic"], {}).setdefault(row["function"], {})[ranks] = row
    heads = "".join(f"<th>{counted(n, 'rank')}</th>" for n in runs)
    for topic in sorted(found):
        yield f"<h2>{escape(topic)}</h2><table><tr><th>function</th><th>kind</th><th>reason</th>{heads}</tr>"
        for function in sorted(found[topic]):
            yield _line(function, found[topic][function], list(runs))
        yield "</table>"


def _line(function: str, by_ranks: Mapping[int, Row], ranks: Sequence[int]) -> str:
    first = next(iter(by_ranks.values()))
    cells = []
    for n in ranks:
        row = by_ranks.get(n)
        if row is None:
            cells.append("<td class='n bad'>not run</td>")
            continue
        known = f" ({row['known']} known)" if row["known"] else ""
        bad = " bad" if row["problems"] else ""
        cells.append(f"<td class='n{bad}'>{row['passed']} / {row['cases']}{known}</td>")
    problems = [f"{counted(n, 'rank')}: {text}" for n, row in by_ranks.items() for text in row["problems"]]
    shown = f"<details><summary>{counted(len(problems), 'problem')}</summary>" if problems else ""
    shown += "".join(f"<pre>{escape(text)}</pre>" for text in problems) + ("</details>" if problems else "")
    head = f"<td><code>{escape(function)}</code>{shown}</td><td>{escape(first['kind'])}</td>"
    return f"<tr>{head}<td>{escape(first['reason'])}</td>{''.join(cells)}</tr>"


def known() -> Iterator[tuple[str, str]]:
    """Known differences: the functions, and the reason."""
    by_reason: dict[str, list[str]] = {}
    for entry in known_differences.STRIDE_DEPENDENT:
        by_reason.setdefault(entry.reason, []).append(name_of(entry.function))
    for reason, names in by_reason.items():
        yield ", ".join(names), f"{reason}. Ours is what NumPy has for contiguous arguments that do not overlap."
    told = (
        (name_of(entry.function) if entry.function else "any function", f"{entry.reason}.")
        for entry in adapter.current().differences()
    )
    yield from dict.fromkeys(told)
