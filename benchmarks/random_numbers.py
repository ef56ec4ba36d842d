"""Random arrays: what splitting a call costs and brings, without communication, and what a jump of MT19937 takes.

The share of a call is timed alone, for the last of four ranks, which is the farthest from the state that is known.
"""

import statistics
import time

from harness import Comparison, main, take_turns

RANKS = 4


def shares(quick: bool) -> list[Comparison]:
    import numpy as np

    from numpy_dist.random import draws, split
    from numpy_dist.random.streams import stream_of

    double, byte, long = np.dtype("f8"), np.dtype("u1"), np.dtype("i8")
    cases = [
        ("random", draws.random(double), np.random.PCG64(1)),
        ("standard_normal", draws.standard_normal(double), np.random.PCG64(1)),
        ("integers(1000)", draws.integers(0, 1000, long, False), np.random.PCG64(1)),
        ("integers(200, dtype=uint8)", draws.integers(0, 200, byte, False), np.random.PCG64(1)),
        ("legacy rand", draws.legacy_random(), np.random.MT19937(1)),
        ("legacy randn", draws.legacy_normal(), np.random.MT19937(1)),
    ]
    total = 1 << (20 if quick else 25)
    cuts = [total * rank // RANKS for rank in range(RANKS + 1)]
    rows = []
    for name, draw, bit_generator in cases:
        stream = stream_of(bit_generator, draw.unit)
        out = np.empty(total, draw.dtype)

        def last_share(draw=draw, stream=stream, place=out[cuts[-2] :]):
            if draw.kind == "fixed":
                split.fixed_piece(draw, stream, cuts[-2], place)
                split.fixed_end(draw, stream, total)
                return
            raw = split.raw_cuts(draw, cuts)
            parsed = split.speculate(draw, stream, raw[-2], raw[-1], place)
            # As if the others had said where this segment begins; what is missing at its end is then made.
            known = [split.Anchor(0, 0), split.Anchor(parsed.summary.begin, cuts[-2])]
            anchors = split.resolve([split.Summary(0, known[1].position, known[1].sample), parsed.summary])
            split.collect(draw, stream, parsed, 1, anchors, cuts[-2], place)

        def all_of_it(draw=draw, stream=stream, out=out):
            draw.fill(draw.front(stream.at(0)), out)

        seconds = take_turns({"numpy": all_of_it, "ours": last_share}, repeats=3 if quick else 9)
        pairs = zip(seconds["numpy"], seconds["ours"], strict=True)
        figure = statistics.median(whole / share for whole, share in pairs)
        middle = {key: statistics.median(times) for key, times in seconds.items()}
        case = f"{name}, 1 of {RANKS} shares of {total:.1e}"
        rows.append(Comparison(case, middle["numpy"], middle["ours"], "s", figure, "x NumPy's speed"))
    return rows


def jumps(quick: bool) -> list[Comparison]:
    import numpy as np

    from numpy_dist.random import mersenne

    rows = []
    state = np.random.MT19937(1).state
    for case, distances in (("new", range(10**9, 10**9 + 10_000, 2000)), ("known", [10**9] * 5)):
        seconds = []
        for distance in distances:
            begin = time.perf_counter()
            mersenne.skipped(state, distance)
            seconds.append(time.perf_counter() - begin)
        middle = statistics.median(seconds)
        rows.append(Comparison(f"MT19937, jump of 1e9 words, {case} distance", None, middle, "ms", middle * 1e3, "ms"))
    count = 1 << (20 if quick else 24)
    seconds = take_turns({"draw": lambda: mersenne.copied(state).random_raw(count, output=False)}, repeats=5)["draw"]
    middle = statistics.median(seconds)
    rows.append(Comparison("MT19937, draw a word", None, middle, "ms", middle / count * 1e9, "ns a word"))
    return rows


def measure(quick: bool) -> list[Comparison]:
    return shares(quick) + jumps(quick)


if __name__ == "__main__":
    main("random_numbers", measure)
