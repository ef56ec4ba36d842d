"""`numpy-dist kernel`: what tells Jupyter of notebooks on several ranks is written, listed and removed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from numpy_dist.cli import kernels
from numpy_dist.cli.main import main

pytest.importorskip("ipykernel", reason="notebooks need ipykernel")


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of which Jupyter knows."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    return tmp_path


def test_a_kernel_is_installed_listed_and_removed(prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = prefix / "share" / "jupyter" / "kernels"
    assert main(["kernel", "install", "-n", "4", "--prefix", str(prefix)]) == 0
    assert main(["kernel", "install", "-n", "2", "--name", "two", "--prefix", str(prefix)]) == 0
    assert f"numpy-dist-4 is in {folder / 'numpy-dist-4'}" in capsys.readouterr().out
    told = json.loads((folder / "numpy-dist-4" / "kernel.json").read_text())
    assert told["argv"][0] == sys.executable
    assert told["argv"][-4:] == ["-n", "4", "-f", "{connection_file}"]
    assert told["display_name"] == "NumPy on 4 ranks"
    assert main(["kernel", "list"]) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if str(prefix) in line]
    assert [line.split()[:3] for line in listed] == [["numpy-dist-4", "4", "ranks"], ["two", "2", "ranks"]]
    assert main(["kernel", "remove", "two"]) == 0
    assert not (folder / "two").exists()
    assert (folder / "numpy-dist-4").exists()


def test_what_is_not_ours_is_not_removed(prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = prefix / "share" / "jupyter" / "kernels" / "other"
    other.mkdir(parents=True)
    (other / "kernel.json").write_text(json.dumps({"argv": ["other"], "display_name": "other", "language": "python"}))
    assert main(["kernel", "remove", "other"]) == 1
    assert "there is no kernel 'other' of numpy-dist" in capsys.readouterr().err
    assert other.exists()


def test_a_name_that_jupyter_would_not_take(prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "install", "--name", "two words", "--prefix", str(prefix)]) == 1
    assert "'two words' is no name of a kernel" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["kernel", "install", "-n", "0"])


def test_without_ipykernel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "numpy_dist.notebook.spec", None)
    monkeypatch.delattr("numpy_dist.notebook.spec", raising=False)
    assert main(["kernel", "list"]) == 2
    assert "pip install 'numpy-dist[notebook]'" in capsys.readouterr().err


def test_a_job_ends_when_jupyter_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    parents, sent = iter([7, 7, 1]), []
    monkeypatch.setattr(kernels.os, "getppid", lambda: next(parents))
    monkeypatch.setattr(kernels.os, "kill", lambda pid, number: sent.append(number))
    monkeypatch.setattr(kernels.time, "sleep", lambda seconds: None)
    kernels._end_without(7)
    assert sent == [kernels.signal.SIGTERM]
