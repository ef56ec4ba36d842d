"""The pages of the documentation do what they say: their code runs, in order, and prints what stands below it.

A page's ``python`` blocks are one program, on one rank. A ``text`` block right below one is what it prints, ``...``
stands for anything. What is marked ``<!-- ranks: 4 -->`` is a program of its own, which the launcher runs on 4 ranks;
with ``, fails`` it ends with 1, and what stands below is its errors.
README, and pages that are about errors or packages, have tests of their own (`tests/packaging`, `tests/comm`).
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import numpy_dist
from tests.comm.pages import matches

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PATIENCE = 120.0

# Tested elsewhere, or for developers of numpy_dist itself: fragments of its code.
OTHERS = {"backends", "conformance", "contributing", "testing-your-code", "tutorial-for-authors", "when-ranks-disagree"}
PAGES = [
    path
    for folder in (DOCS, DOCS / "guide")
    for path in sorted(folder.glob("*.md"))
    if path.stem not in OTHERS and re.search(r"^```python$", path.read_text(), re.MULTILINE)
]

# The most blocks of a page that are shown and not run (``{code-block} python``): they need what is not here.
NOT_RUN = {"scale": 1}  # a script for `numpy-dist plan`, whose arguments its command gives

BEFORE = {
    "explain-program": "import numpy as np, numpy_dist\n"
    "from stencil_functions import plate, relax\n"
    "grid = numpy_dist.asarray(plate(402))\n",
}
"""What a page takes for granted."""

# Runs the blocks that it is told of, one namespace for all; their lines are numbered as those of one file.
DRIVER = """
import contextlib, doctest, io, json, sys

blocks = json.loads(sys.stdin.read())
namespace = {"__name__": "__main__"}
printed = []
for block in blocks:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if block["code"].lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block["code"], namespace, block["file"], block["file"], 0)
            namespace = test.globs
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            if runner.run(test, clear_globs=False).failed:
                sys.exit(out.getvalue())
        else:
            code = "\\n" * block["line"] + block["code"]
            exec(compile(code, block["file"], "exec"), namespace)
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)
"""

NEEDED = {"files": ("h5py", "zarr")}
"""Packages, besides those that tests need, of pages by name."""

_BLOCKS = re.compile(
    r"(?:<!-- ranks: (\d+)(, fails)? -->\n)?^```python\n(.*?)^```$(?:\n\n?```text\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """Code of a page, the number of ranks of a program of its own, and what it prints, if the page says it."""

    ranks: int | None
    fails: bool
    code: str
    expected: str | None


def blocks_of(page: Path) -> list[Block]:
    found = _BLOCKS.findall(page.read_text(encoding="utf-8"))
    return [
        Block(int(ranks) if ranks else None, bool(fails), code, expected or None)
        for ranks, fails, code, expected in found
    ]


def run(command: list[str], folder: Path, given: str = "", fails: bool = False) -> str:
    """What a command prints; it must end with 0, or, where it fails, with 1: then its errors."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "examples"), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        command, cwd=folder, env=environment, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def as_expected(block: Block, printed: str) -> None:
    if block.expected is not None:
        assert matches(printed.strip(), block.expected.strip()), f"{block.code}\nprints\n{printed}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    for package in NEEDED.get(page.stem, ()):
        pytest.importorskip(package)  # CI runs these pages where it runs other libraries
    together = [block for block in blocks_of(page) if block.ranks is None]
    line, given = 0, []
    if page.stem in BEFORE:
        given.append({"code": BEFORE[page.stem], "file": "before.py", "line": 0})
    for block in together:
        given.append({"code": block.code, "file": f"{page.stem}.py", "line": line})
        line += block.code.count("\n")
    printed = json.loads(run([sys.executable, "-c", DRIVER], tmp_path, json.dumps(given)))
    for block, text in zip(together, printed[len(given) - len(together) :], strict=True):
        as_expected(block, text)


ON_RANKS = [(page, number) for page in PAGES for number, block in enumerate(blocks_of(page)) if block.ranks is not None]


@pytest.mark.slow
@pytest.mark.parametrize("page, number", ON_RANKS, ids=lambda value: getattr(value, "stem", value))
def test_program_of_several_ranks_prints_what_the_page_says(page: Path, number: int, tmp_path: Path) -> None:
    block = blocks_of(page)[number]
    (tmp_path / "script.py").write_text(block.code)
    command = [sys.executable, "-m", "numpy_dist", "run", "-n", str(block.ranks), "script.py"]
    as_expected(block, run(command, tmp_path, fails=block.fails))


def test_few_blocks_are_shown_and_not_run() -> None:
    shown = {
        path.stem: path.read_text().count("```{code-block} python")
        for path in (*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"))
    }
    more = {page: count for page, count in shown.items() if count > NOT_RUN.get(page, 0)}
    assert not more, "run them, or say in NOT_RUN why that cannot be"


def test_code_of_pages_is_python() -> None:
    for page in PAGES:
        for block in blocks_of(page):
            if not block.code.lstrip().startswith(">>>"):
                ast.parse(block.code, page.name)


def test_every_example_is_shown() -> None:
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"examples/(\w+\.py)", page))
    drivers = {path.name for path in (ROOT / "examples").glob("*.py") if not path.stem.endswith("_functions")}
    assert shown == drivers - {"check.py"}


def test_pictures_are_few_and_small() -> None:
    pictures = list((DOCS / "pictures").glob("*.png"))
    assert len(pictures) <= 5 and all(path.stat().st_size < 60_000 for path in pictures)


def test_reference_has_every_name_of_ours() -> None:
    reference = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    ours = {name for name in numpy_dist.public_names() if not hasattr(np, name)}
    errors = {name for name in ours if name.endswith(("Error", "Warning"))}  # by automodule
    missing = {name for name in ours - errors if not re.search(rf"\b{name}\b", reference)}
    assert not missing, f"docs/reference does not tell of {sorted(missing)}"
