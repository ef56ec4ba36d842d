"""The README does what it says: its snippets run, on one rank and on two, and nothing in them is gathered."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PATIENCE = 120.0


def test_the_commands_of_the_readme_are_marked() -> None:
    commands = dict(re.findall(r"<!-- command: (.*?) -->\n```sh\n(.*?)\n```", README))
    assert set(commands) == {"main job", "tests"}
    set_up = {command.rsplit(" && ", 1)[0] for command in commands.values()}
    assert len(set_up) == 1, "both commands set up the same environment"


def test_links_lead_somewhere() -> None:
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippets_run(number: int, ranks: int, tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPETS[number])
    command = [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks), "snippet.py"]
    environment = {**os.environ, "NUMPY_DIST_FALLBACK": "error"}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 and not done.stderr
