"""What each function of NumPy is here: ``python -m numpy_dist.conformance.status`` writes docs/api-status.md.

Options: ``--output FILE`` (``-``: print it), ``--check`` (write nothing; exit with 1 if the file is out of date).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import numpy_dist
from numpy_dist.argument_types import Function
from numpy_dist.conformance import coverage, report
from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.selection import topic_of
from numpy_dist.conformance.suite import cases_by_function, label
from numpy_dist.dispatch.core import catalogue, registry
from numpy_dist.dispatch.core.keys import METHODS
from numpy_dist.distarray.interface import GATHERING, NEEDS_MEMORY, REFUSED

DEFAULT = Path(numpy_dist.__file__).parent.parent / "docs" / "api-status.md"
_HEAD = """# What each function does

Made by `python -m numpy_dist.conformance.status` from the table of implementations and the conformance cases, with
NumPy {version}. The kinds are those of the first rule; a rule may decline a call that it cannot do, which then runs on
gathered NumPy with a `FallbackWarning`. The last column says why a function is gathered or, after "gathered:", which of
its calls are, in words of the warning; the suite checks these. `numpy_dist.explain(function, *args)` tells what a
certain call would do.

{share}
"""


def function_tables() -> Iterator[str]:
    """A table for each topic."""
    titles, counts = topic_of(), {function: len(its) for function, its in cases_by_function().items()}
    by_topic: dict[str, list[Function]] = {}
    for function in coverage.functions():
        by_topic.setdefault(titles[function], []).append(function)
    for title in sorted(by_topic):
        rows = sorted(by_topic[title], key=label)
        yield f"\n## {title}\n\n| function | kind | cases | |\n|---|---|---|---|"
        for function in rows:
            kind = catalogue.kind_of(function)
            yield f"| `{label(function)}` | {kind} | {counts[function]} | {current().reason_of(function)} |"


def ufunc_table() -> Iterator[str]:
    """One row for each ufunc, one column for each method."""
    yield "\n## Universal functions\n"
    yield f"| ufunc | {' | '.join(METHODS)} | cases |\n|---|{'---|' * (len(METHODS) + 1)}"
    counts = Counter(name for function, its in cases_by_function().items() for name in [_owner(function)] * len(its))
    for ufunc in catalogue.overridable_ufuncs():
        kinds = [catalogue.kind_of(ufunc, None if method == "__call__" else method) for method in METHODS]
        yield f"| `{label(ufunc).removesuffix(' (ufunc)')}` | {' | '.join(kinds)} | {counts[_owner(ufunc)]} |"


def array_table() -> Iterator[str]:
    """What ndarray has, and which of that gathers, needs memory, or is refused."""
    yield "\n## Attributes of the array\n\nThose that do not stand here are native.\n\n| attribute | | |\n|---|---|---|"
    kinds = {"gathers": GATHERING, "replicated arrays only": NEEDS_MEMORY, "refused": REFUSED}
    for kind, table in kinds.items():
        for name in sorted(table):
            yield f"| `numpy.ndarray.{name}` | {kind} | {table[name]} |"


def _owner(function: object) -> int:
    return id(getattr(function, "__self__", function))


def differences_text() -> Iterator[str]:
    """Known differences from NumPy, with their reasons."""
    yield "\n## Known differences from NumPy\n"
    for names, reason in report.known():
        yield f"- {', '.join(f'`{name}`' for name in names.split(', '))}: {reason}"


def text() -> str:
    """The whole page."""
    functions = coverage.functions()
    lines = [
        _HEAD.format(
            version=".".join(np.__version__.split(".")[:2]),
            share=coverage.share_text(),
        ).rstrip()
    ]
    lines += ["\n| kind | functions |\n|---|---|"]
    kinds = Counter(catalogue.kind_of(function) for function in functions)
    lines += [f"| {kind} | {kinds[kind]} |" for kind in registry.KINDS if kinds[kind]]
    return "\n".join([*lines, *function_tables(), *ufunc_table(), *array_table(), *differences_text()]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", default=str(DEFAULT))
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is out of date")
    options = parser.parse_args(arguments)
    made = text()
    if options.output == "-":
        print(made, end="")
    elif options.check:
        path = Path(options.output)
        if not path.exists() or path.read_text(encoding="utf-8") != made:
            print(f"{path} is out of date: run `python -m numpy_dist.conformance.status`")
            return 1
    else:
        Path(options.output).write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
