"""The engine against NumPy and against code written by hand with Numba, with the goals of both.

    python benchmarks/engine.py                              # many minutes, on a quiet machine
    python benchmarks/engine.py --only stencil --threads 2
    python benchmarks/engine.py --quick                      # only to see that it runs

NumPy (one thread), numpy_dist and Numba take turns; every result exists when the clock is stopped. NumPy and numpy_dist
run the same functions (`programs`); what is written by hand (`handwritten`) has memory for its results beforehand.
"""

import argparse
import os

THREADS = 2
COSTS = ("recording", "cached_group", "warm_cache")


def _prepare(threads: int, backend: str) -> None:
    """Set what Numba and numpy_dist read when they are imported; what the user has set stays."""
    os.environ["NUMPY_DIST_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = str(threads)
    os.environ["NUMPY_DIST_BACKEND"] = backend
    os.environ.setdefault("NUMPY_DIST_COMPILE", "first")  # the warm-up is short


def measure(names: list[str], quick: bool, threads: int) -> list:
    """The rows of the cases with these names, in the order of the table."""
    import engine_costs
    from engine_cases import CASES
    from engine_cases import measure as measure_case

    unknown = sorted(set(names) - {case.name for case in CASES} - set(COSTS))
    if unknown:
        raise SystemExit(f"no case {', '.join(unknown)}; the cases are {', '.join([*(c.name for c in CASES), *COSTS])}")
    rows = []
    for case in CASES:
        if not names or case.name in names:
            rows += measure_case(case, quick, threads)
    for name in COSTS:
        if not names or name in names:
            rows += getattr(engine_costs, name)(quick)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="these cases; a wrong name lists them")
    parser.add_argument("--threads", type=int, default=THREADS, help="of numpy_dist and Numba (default %(default)s)")
    parser.add_argument("--backend", default=os.environ.get("NUMPY_DIST_BACKEND", "auto"), help="default: auto")
    # The harness sets defaults for what _prepare has not set, so it is imported after it; its options are these.
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: to see that it runs, not for figures")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--save", action="store_true", help="also write them to results/engine.json")
    options = parser.parse_args()
    _prepare(options.threads, options.backend)

    from harness import show

    rows = measure(options.only, options.quick, options.threads)
    if not options.json:
        import numba

        from numpy_dist import engine

        try:
            layer = numba.threading_layer()
        except ValueError:  # no hand-written loop has run
            layer = "no threads"
        backend = engine.runtime().backend.name
        print(f"backend {backend}, {options.threads} threads, Numba {numba.__version__} on {layer}")
    show("engine", rows, options)


if __name__ == "__main__":
    main()
