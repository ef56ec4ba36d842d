"""What it costs that ranks are compared all the time (`CHECK=off`): the same work with and without it, on two ranks."""

import statistics

from harness import HERE, Comparison, main
from ranks import Ranks

TARGETS = {"recording": ("us", "<= 0.3"), "an allgather": ("us", ""), "10": ("ms", "<= 1.02")}


def overhead(quick: bool) -> list[Comparison]:
    with Ranks(2, str(HERE / "checks_ranks.py"), quick) as ranks:
        (found,) = ranks.notes()
    noted = found["noting"]
    rows, added = [Comparison("noting a statement", None, noted, "us", noted * 1e6, "us", "<= 0.3")], 0
    for case, result in found["cases"].items():
        seconds = result["seconds"]
        unit, target = next(value for start, value in TARGETS.items() if case.startswith(start))
        # Before and after it, so that what slowly changes on the machine is in both.
        without = [(a + b) / 2 for a, b in zip(seconds["without"], seconds["again"], strict=True)]
        for name, above, below, limit in (
            (case, seconds["with"], without, target),
            ("  the same twice without", seconds["again"], seconds["without"], ""),
        ):
            meaning, figure = "us more", 1e6 * statistics.median(a - b for a, b in zip(above, below, strict=True))
            if unit == "ms":
                meaning = "x the time without"
                figure = statistics.median(a / b for a, b in zip(above, below, strict=True))
            medians = statistics.median(above), statistics.median(below)
            rows.append(Comparison(name, None, medians[0], unit, figure, meaning, limit, medians[1], "without"))
        told = result["communicated"]
        added += sum(map(abs, (a - b for a, b in zip(told["with"], told["without"], strict=True))))
    return [*rows, Comparison("messages and collectives", None, None, "us", float(added), "more", "<= 0")]


if __name__ == "__main__":
    main("checks", overhead)
