"""The tutorial for authors: its files are those of the example package, its commands run in an empty environment."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial-for-authors.md").read_text()
FENCE = r"```\w+\n(.*?)```"
FILES = dict(re.findall(rf"<!-- file: (\S+) -->\n{FENCE}", PAGE, re.DOTALL))
STEPS = re.findall(rf"<!-- (file: \S+|run) -->\n{FENCE}", PAGE, re.DOTALL)
PACKAGE = ROOT / "examples/softfocus"


def test_the_files_are_those_of_the_example():
    names = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml")}
    assert names == FILES.keys() - {"program.py", "rows.py"}
    for name in names:
        assert FILES[name] == (PACKAGE / name).read_text(), name


@pytest.mark.slow
@pytest.mark.packaging
def test_it_can_be_followed(source, tmp_path):
    printed = ""
    for kind, text in STEPS:
        if kind != "run":
            (tmp_path / kind.removeprefix("file: ")).write_text(text)
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=tmp_path,
            env={**os.environ, "NUMPY_DIST": str(source), "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{text}: {done.stdout}{done.stderr}"
        printed += done.stdout + done.stderr
    assert "3 passed" in printed
    assert "elementwise rule softfocus.distributed.register.<locals>.local_contrast" in printed
    assert "0 calls gathered" in printed and printed.rstrip().endswith("True")
