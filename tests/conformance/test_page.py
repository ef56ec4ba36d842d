"""docs/conformance.md and docs/backends.md do what they say: their modules are judged by their commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "conformance.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
LOAD, ADAPTER = re.findall(r"<!-- run -->\n```sh\nnumpy-dist (.*)\n```", PAGE)
BACKEND = re.search(r"```python\n(.*?)```", (DOCS / "backends.md").read_text(encoding="utf-8"), re.DOTALL)


def run(folder: Path, words: str, changes: tuple[str, str] = ("", ""), **variables: str) -> tuple[int, str]:
    """Exit code and output of `numpy-dist` in a folder with the files of the page, one of them changed."""
    for name, text in FILES.items():
        assert changes[0] in "".join(FILES.values())
        (folder / name).write_text(text.replace(*changes))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMPY_DIST_", "PMI", "MPI", "OMPI"))}
    environment |= variables
    # As the script does it, the folder is not on the path of the command.
    start = "import sys; sys.path[0] = sys.prefix; from numpy_dist.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *words.split()]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_functions_of_authors(tmp_path: Path) -> None:
    code, output = run(tmp_path, LOAD)
    assert code == 0 and "3 ranks: 5 of 5 cases of 1 function passed, 1 of them with known " in output, output
    code, output = run(tmp_path, LOAD.replace("1,3", "2"), ("** 0.5, floor)", "** 0.5, floor) + (signal.size == 3)"))
    assert code == 1 and "loudness(a(3, <f8, of (3.0, 4.0, -5.0)))" in output and "; 1 problem\n" in output, output
    code, output = run(tmp_path, LOAD.replace("1,3", "1"), ("warnings are []", "something else"))
    assert code == 1 and "the known difference 'something else' did not appear" in output, output


@pytest.mark.slow
def test_arrays_of_another_library(tmp_path: Path) -> None:
    code, output = run(tmp_path, ADAPTER)
    assert code == 0, output
    page = (tmp_path / "frozen.html").read_text()
    assert "Conformance of frozen:FrozenArrays" in page and "numpy.linalg.solve" in page
    assert "without gathering" not in page and "numpy.poly" not in page  # that is about numpy_dist
    code, output = run(tmp_path, ADAPTER, ("x.values.copy()", "x.values[::-1].copy()"))
    assert code == 1 and "values of result differ" in output, output


@pytest.mark.slow
def test_a_backend_of_somebody_else(tmp_path: Path) -> None:
    assert BACKEND is not None
    (tmp_path / "loud_backend.py").write_text(BACKEND[1])
    info = tmp_path / "loud-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[numpy_dist.backends]\nloud = loud_backend\n")
    code, output = run(tmp_path, "conformance --backend loud --functions square --ranks 2", PYTHONPATH=str(tmp_path))
    assert code == 0 and "loop over" in output, output
