"""One rank of a run of the suite: ``python -m numpy_dist.conformance.worker --results FILE [options of the command]``.

Rank 0 writes one line of JSON for each function, so that a run that ends early tells how far it came.
"""

from __future__ import annotations

import argparse
import json
import traceback
from collections.abc import Callable, Sequence

from numpy_dist.comm.detect import get_communicator
from numpy_dist.conformance import adapter, rank_options, selection, suite
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking.oracle import Unexpected, check, is_overridable
from numpy_dist.conformance.checking.tally import tally
from numpy_dist.conformance.rank_options import names_in
from numpy_dist.errors import RankError
from numpy_dist.spmd_testing import Agreement


def surviving(agreement: Agreement | None) -> Callable[[Case, str], list[str]]:
    """A `check` whose errors are problems like others; the ranks come together again after one."""

    def attempt(case: Case, seed: str) -> list[str]:
        problems: list[str] = []
        error: BaseException | None = None
        text = ""
        try:
            problems = check(case, seed)
        except Exception as raised:
            # A rank that waited for one that failed is not the one to be told of.
            error = raised.__cause__ if isinstance(raised.__cause__, RankError) else raised
            text = str(raised) if isinstance(raised, Unexpected) else f"{case}\n{traceback.format_exc()}"
        if agreement is None:
            return problems if error is None else [text]
        _, texts = agreement.settle("failed" if error else "passed", error, text)
        if texts:
            return [next(iter(texts.values()))]
        # Ranks that see different problems would count differently.
        return list(dict.fromkeys(problem for seen in agreement.exchange(problems) for problem in seen))

    return attempt


def seeds_of(first: str, layouts: int) -> list[str]:
    """The seeds of so many layouts."""
    return [first, *(f"{first}/{number}" for number in range(1, layouts))]


def described(case: Case) -> tuple[str, str]:
    """The kind of what a case is about, and why it is gathered; methods and attributes of arrays have none."""
    owner = suite.owner_of(case.function)
    if not is_overridable(owner) or not callable(owner):
        return "method", ""
    return adapter.current().kind_of(owner), adapter.current().reason_of(owner)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(parents=[rank_options.parser()], description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", required=True)
    options = parser.parse_args(given)
    rank_options.load(options.load)
    comm = get_communicator()
    attempt = surviving(Agreement() if comm.size > 1 else None)
    seeds = seeds_of(options.seed, options.layouts)
    under_test = rank_options.adapter_named(options.adapter)
    with under_test, open(options.results, "w" if comm.rank == 0 else "r", buffering=1) as file:
        for title, label, cases in selection.choose(names_in(options.area), names_in(options.functions)):
            if options.variants:
                from numpy_dist.conformance.variants import variants

                cases = (*cases, *variants(cases))
            found = tally(cases, seeds, attempt)
            kind, reason = described(cases[0])
            if comm.rank == 0:
                row: dict[str, object] = {"topic": title, "function": label, "kind": kind, "reason": reason}
                row |= {"cases": found.cases, "passed": found.passed, "known": found.known, "problems": found.problems}
                file.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
