"""All benchmarks, each in a process of its own, in one table.

python benchmarks/run_all.py            # half an hour on a quiet machine
python benchmarks/run_all.py --quick    # only to see that they run
"""

import argparse
import json
import subprocess
import sys

from harness import AS_STARTED, HERE, Comparison, environment, save, table

BENCHMARKS = (
    "startup",
    "small_arrays",
    "steps",
    "stencil",
    "chains",
    "engine",
    "moving",
    "random_numbers",
    "memory",
    "weak_scaling",
    "checks",
)

TIMEOUT = 3600
"""Seconds that one benchmark may take."""


def run(name: str, quick: bool) -> list[Comparison]:
    """The rows of one benchmark; it ends this process if it fails."""
    command = [sys.executable, str(HERE / f"{name}.py"), "--json", *(["--quick"] if quick else [])]
    done = subprocess.run(command, env=AS_STARTED, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise SystemExit(f"benchmarks/{name}.py failed with exit code {done.returncode}")
    return [Comparison(**row) for row in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: to see that they run, not for figures")
    names = {"nargs": "+", "choices": BENCHMARKS, "default": BENCHMARKS, "metavar": "NAME"}
    parser.add_argument("--only", **names, help="of " + ", ".join(BENCHMARKS))
    parser.add_argument("--save", metavar="NAME", help="also write the table to results/NAME.json")
    options = parser.parse_args()
    rows = [row for name in options.only for row in run(name, options.quick)]
    where = environment()
    machine = f"{where['processor']}, {where['cores']} cores, load {where['load']:.1f}"
    print(f"{machine}, Python {where['python']}, NumPy {where['numpy']}")
    print(table(rows))
    if options.save:
        print(f"wrote {save(options.save, rows)}")


if __name__ == "__main__":
    main()
