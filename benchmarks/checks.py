"""What it costs that ranks are compared all the time (`CHECK=off`): the same work with and without it, on two ranks."""

import statistics

from harness import HERE, Row, main, median_ratio
from ranks import Ranks

TARGETS = {"recording": ("us", "<= 0.3"), "an allgather": ("us", ""), "10": ("ms", "<= 1.02")}


def overhead(quick: bool) -> list[Row]:
    with Ranks(2, str(HERE / "checks_ranks.py"), quick) as ranks:
        (found,) = ranks.notes()
    noted = found["noting"]
    rows, added = [Row("noting a statement", None, noted, "us", noted * 1e6, "us", "<= 0.3")], 0
    for case, result in found["cases"].items():
        seconds = result["seconds"]
        unit, target = next(value for start, value in TARGETS.items() if case.startswith(start))
        taken, without = statistics.median(seconds["with"]), statistics.median(seconds["without"])
        more = statistics.median(a - b for a, b in zip(seconds["with"], seconds["without"], strict=True))
        meaning, figure = "us more", more * 1e6
        if unit == "ms":
            meaning, figure = "x the time without", median_ratio(seconds, "with", "without")
        rows.append(Row(case, None, taken, unit, figure, meaning, target, without, "without"))
        told = result["communicated"]
        added += sum(map(abs, (a - b for a, b in zip(told["with"], told["without"], strict=True))))
    return [*rows, Row("messages and collectives", None, None, "us", float(added), "more", "<= 0")]


if __name__ == "__main__":
    main("checks", overhead)
