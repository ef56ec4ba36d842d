"""`numpy-dist completion`: scripts for shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.cli import main

WORDS = ("numpy-dist", "run", "conformance", "doctor", "--all-output")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab", minversion="1.9")
    assert main.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word.removeprefix("--") in script for word in WORDS)
    if shell == "zsh":
        assert script.startswith("#compdef numpy-dist")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("numpy-dist ru", ["run"]),
        ("numpy-dist run --all", ["--all-output"]),
        ("numpy-dist run -n 4 --deb", ["--debug"]),
        ("numpy-dist run --wei", ["--weights"]),
        ("numpy-dist run --mer", ["--merge-output"]),
        ("numpy-dist run --bind au", ["auto"]),
        ("numpy-dist cache wa", ["warm"]),
        ("numpy-dist completion fi", ["fish"]),
        ("numpy-dist run scr", ["script.py"]),
        ("numpy-dist plan --per", ["--per-machine"]),
        ("numpy-dist plan -n 64 scr", ["script.py"]),
        ("numpy-dist plan --machine scr", ["script.py"]),
        ("numpy-dist conformance --at", ["--at-least"]),
        ("numpy-dist conformance --fu", ["--functions", "--fuzz"]),
        ("numpy-dist conformance --tiers ne", ["never"]),
        ("numpy-dist conformance --report scr", ["script.py"]),
    ],
)
def test_bash_completes(line: str, found: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    assert main.main(["completion", "bash"]) == 0
    (tmp_path / "completion.sh").write_text(capsys.readouterr().out)
    (tmp_path / "script.py").write_text("")
    ask = (
        f"source ./completion.sh; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        "name=$(complete -p numpy-dist | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $name; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run([bash, "-c", ask], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
    assert sorted(done.stdout.split()) == found, done.stderr


def test_without_the_package_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main.main(["completion", "bash"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "pip install 'numpy-dist[completion]'" in shown.err


def test_a_shell_that_the_package_does_not_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shtab = pytest.importorskip("shtab")
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash"])
    assert main.main(["completion", "fish"]) == 2
    assert "is too old for fish" in capsys.readouterr().err
