"""A statement's path from the user's line to the kernel: the modules that it enters, and its stations in the docs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
MOST_STATIONS = 12

# Prints the modules of the package whose functions are entered from one line to the end of its execution. The functions
# are those that stand in a file: constructors that `dataclass` writes are none.
SCRIPT = """
import sys
import numpy as np
import numpy_dist
from numpy_dist import engine
from numpy_dist.dispatch.core import registry
from numpy_dist.engine.scheduling import program

times, itself = int(sys.argv[1]), sys.argv[2] == "itself"
registry.load()
d = numpy_dist.arange(100_000.0)
engine.force(d)
engine.flush()
if itself:
    program.MOST_STATEMENTS = 1  # so that the statement is the one at which the program is executed

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.endswith(".py"):
        entered.add(frame.f_globals.get("__name__", ""))

for _ in range(times):
    entered = set()
    sys.setprofile(note)
    y = np.sin(d)
    if not itself:
        engine.force(y)
    sys.setprofile(None)
assert engine.runtime().backend.counts[sys.argv[3]] == times
print("\\n".join(sorted(name for name in entered if name.startswith("numpy_dist."))))
"""


def entered(times: int, ends: str, compile_when: str, cache: Path) -> set[str]:
    """The modules that the last of so many equal statements enters, without the name of the package."""
    settings = {"CACHE_DIR": str(cache), "COMPILE": compile_when, "MIN_SHARD_BYTES": "0", "NUM_THREADS": "1"}
    environment = os.environ | {f"NUMPY_DIST_{name}": value for name, value in settings.items()}
    environment.pop("NUMPY_DIST_BACKEND", None)
    tier = "numpy" if compile_when == "never" else "numba"
    command = [sys.executable, "-c", SCRIPT, str(times), ends, tier]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return {name.removeprefix("numpy_dist.") for name in done.stdout.split()}


def cold(cache: Path, ends: str = "itself") -> set[str]:
    """The modules of the first statement of its form, which the interpreter computes."""
    return entered(1, ends, "never", cache)


def warm(cache: Path, ends: str = "itself") -> set[str]:
    """The modules of the third statement of a form, which has a kernel."""
    return entered(3, ends, "first", cache)


# A limit is what was reached. It may be lowered, and is raised for a good reason only.
@pytest.mark.parametrize("ends, most_cold, most_warm", [("itself", 42, 15), ("force", 44, 19)])
def test_a_statement_enters_few_modules(ends: str, most_cold: int, most_warm: int, kernel_cache: str) -> None:
    found = cold(Path(kernel_cache), ends)
    assert len(found) <= most_cold, sorted(found)
    found = warm(Path(kernel_cache), ends)
    assert len(found) <= most_warm, sorted(found)


def stations() -> list[tuple[set[str], set[str]]]:
    """The modules of each station of the table in the docs, cold and warm."""
    section = PAGE.read_text(encoding="utf-8").partition("## The path of a statement")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \d+ \| [^|]+ \|([^|]*)\|([^|]*)\|$", section, re.MULTILINE)
    return [tuple(set(re.findall(r"`([a-z_.]+)`", cell)) for cell in row) for row in rows]  # type: ignore[misc]


def test_the_stations_of_the_docs(kernel_cache: str) -> None:
    found = stations()
    assert 8 <= len(found) <= MOST_STATIONS
    for number, modules in enumerate((cold(Path(kernel_cache)), warm(Path(kernel_cache)))):
        assert set().union(*(station[number] for station in found)) <= modules
