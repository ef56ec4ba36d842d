"""The examples of docs/when-ranks-disagree.md, on two ranks: they end as the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.comm import detect
from tests.comm.pages import Example, examples, matches, outcome, settings_of

PAGE = Path(__file__).parents[2] / "docs" / "when-ranks-disagree.md"
EXAMPLES = examples(PAGE.read_text())


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 10 and sum(not example.expected for example in EXAMPLES) == 2


HANGING = [example for example in EXAMPLES if "NUMPY_DIST_TIMEOUT" in settings_of(example.code)]
ENDING = [example for example in EXAMPLES if example not in HANGING]


@pytest.mark.parametrize("example", ENDING, ids=range(len(ENDING)))
def test_an_example_ends_as_the_page_says(example: Example) -> None:
    assert outcome(example.code) == example.expected


def _run(example: Example, folder: Path, *command: str) -> subprocess.CompletedProcess:
    """Run an example by mpiexec: `command` is the rest of the line, with ``script.py``."""
    mpiexec = detect.find_mpiexec()
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    (folder / "script.py").write_text(example.code)
    environment = {**os.environ, **settings_of(example.code)}
    if "NUMPY_DIST_TIMEOUT" in environment:
        environment["NUMPY_DIST_TIMEOUT"] = "4"  # the ranks of a busy machine start late
    line = [mpiexec, *command]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("example", HANGING, ids=range(len(HANGING)))
def test_an_example_that_hangs_is_reported_as_the_page_says(example: Example, tmp_path: Path) -> None:
    done = _run(example, tmp_path, "-n", "2", sys.executable, "script.py")
    assert done.returncode != 0
    text = done.stderr.replace(f"{tmp_path}{os.sep}", "")
    assert matches(text[: text.rindex("=end)") + 5], example.expected), text


# How often a loop goes round until a clock has come so far is chance, and perhaps the same on both ranks.
CERTAIN = [example for example in ENDING if "while time" not in example.code]


@pytest.mark.long
@pytest.mark.parametrize("example", CERTAIN, ids=range(len(CERTAIN)))
def test_an_example_on_real_ranks(example: Example, tmp_path: Path) -> None:
    """Numbers and the names of waits are others there."""
    program = [sys.executable, "-W", "ignore", "script.py"]
    orders = [["-n", "1", "-env", "PYTHONHASHSEED", seed, *program] for seed in ("1", "2")]  # sets in two orders
    done = _run(example, tmp_path, *orders[0], ":", *orders[1])
    assert (done.returncode == 0) == (not example.expected), done
    assert example.expected.partition(":")[0] in done.stderr, done.stderr
    *_, advice = example.expected.splitlines() or [""]
    assert advice.split(". ")[0] in done.stderr, done.stderr
