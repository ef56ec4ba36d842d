"""`numpy-dist plan`: scripts without data, machine files, values, and what it says where a script cannot be planned."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.cli import planning
from numpy_dist.cli.main import split_command

SCRIPT = """
import argparse
import numpy_dist as np

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=100)
parser.add_argument("--tolerance", type=float, default=0.0)
options = parser.parse_args()
grid = np.zeros((options.size, options.size))
grid[0] = 100.0
for step in range(10):
    new = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
    if options.tolerance:
        error = abs(new - grid[1:-1, 1:-1]).max()
        if error < options.tolerance:
            break
    grid[1:-1, 1:-1] = new
print("after", step, "steps", flush=True)
edge = grid[:, 0].gather()
"""


def plan(folder: Path, *arguments: str, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    (folder / "heat.py").write_text(script)
    command = [sys.executable, "-m", "numpy_dist", "plan", *arguments]
    return subprocess.run(command, text=True, capture_output=True, timeout=120, cwd=folder)


def test_a_plan(tmp_path: Path) -> None:
    done = plan(tmp_path, "-n", "1,64", "--only", "0", "heat.py", "--size", "100000")
    assert done.returncode == 0 and not done.stderr, done.stderr
    parts = done.stdout.split("Plan for ")
    assert parts[1].startswith("1 rank\n") and parts[2].startswith("64 ranks, 1 of them run without data: 0\n")
    # 100 thousand squared on 64 ranks, of 8 bytes: 1.25 GB an array.
    assert re.search(r"\d GB +(\d x )?float64 \(99998, 99998\) +heat\.py:12  new = ", parts[2])
    assert "MORE THAN THERE IS" not in parts[2]
    assert re.search(r"^ +20 +2\.0 MB +0 +0 +heat\.py:12  new = ", parts[2], re.MULTILINE)  # two neighbours, ten steps
    assert re.search(r"1 \(800\.0 kB\)  heat\.py:19  edge = grid", parts[2])
    assert "limited by memory bandwidth" in parts[2] and "after" not in done.stdout
    assert [row.split()[0] for row in done.stdout.splitlines()[-3:]] == ["ranks", "1", "64"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "no script given"),
        (["none.py"], "no such script: none.py"),
        (["-n", "0", "heat.py"], "0 is no list of numbers of ranks"),
        (["-n", "4,8", "--only", "4", "heat.py"], "there is no rank 4 of 4"),
        (["--machine", "heat.py", "heat.py"], "heat.py is no machine file"),
    ],
)
def test_usage(arguments: list[str], words: str, tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "heat.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        planning.main(*split_command(arguments, planning.OPTIONS_WITH_VALUE))
    assert ended.value.code == 2 and words in capsys.readouterr().err


@pytest.mark.slow
def test_values_that_steer(tmp_path: Path) -> None:
    done = plan(tmp_path, "-n", "4", "--output", "--only", "0", "heat.py", "--size", "1000", "--tolerance", "5")
    assert done.returncode == 0 and done.stdout.startswith("after 0 steps") is False
    assert "after 0 steps" in done.stdout  # an error of 0 is less than any tolerance
    assert re.search(r"1 value that nobody .* went to Python", done.stdout)
    assert "1  heat.py:14  error = abs" in done.stdout and "--values" in done.stdout
    given = "--values=--size 50 --tolerance 5"
    done = plan(tmp_path, "-n", "4", "--output", "--only", "0", given, "heat.py", "--size", "1000", "--tolerance", "5")
    told = re.findall(r"after (\d+) steps", done.stdout)
    assert len(told) == 2 and told[0] == told[1] != "0"  # the small run's, and the plan's
    assert f"{int(told[0]) + 1} values came from the small run" in done.stdout and "nobody" not in done.stdout


@pytest.mark.slow
def test_a_script_that_ends_early_or_writes(tmp_path: Path) -> None:
    (tmp_path / "kept.npy").write_text("worth something")
    script = "import numpy_dist as np\nx = np.ones(10**6) + 1\nnp.save('kept.npy', x)\nprint((x * 2).sum())\n"
    done = plan(tmp_path, "-n", "3", "heat.py", script=script)
    assert done.returncode == 0 and re.search(r"written +2\.7 MB.*\n +2\.7 MB +heat\.py:3  np\.save", done.stdout)
    assert "heat.py:4  print" in done.stdout
    script = script.replace("np.save('kept.npy', x)", "np.memmap('kept.npy', mode='r+')")
    done = plan(tmp_path, "-n", "3", "heat.py", script=script)
    told = "heat.py:3 (np.memmap('kept.npy', mode='r+')): WritesNothing: kept.npy would be changed"
    assert done.returncode == 1 and told in done.stdout
    assert (tmp_path / "kept.npy").read_text() == "worth something"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heat.py", "kept.npy"]
    script = "import os, numpy_dist as np\nx = np.ones(10**6) + 1\nos._exit(7)\n"
    done = plan(tmp_path, "-n", "3", "heat.py", script=script)
    assert done.returncode == 2 and "rank 0 of 3 has ended with exit code 7" in done.stderr


@pytest.mark.slow
def test_plain_numpy_and_modules(tmp_path: Path) -> None:
    script = "import numpy as np\nx = np.ones(10**8)\ny = x[1:] + x[:-1]\n"
    done = plan(tmp_path, "-n", "16", "--patch", "heat.py", script=script)
    assert done.returncode == 0 and re.search(r"1 +8 B +0 +0 +heat\.py:3", done.stdout), done.stdout
    done = plan(tmp_path, "-n", "16", "--patch", "-m", "heat", script=script)
    assert done.returncode == 0 and re.search(r"1 +8 B +0 +0 +heat\.py:3", done.stdout), done.stdout


@pytest.mark.slow
def test_measuring(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "numpy_dist", "doctor", "--measure", "machine.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "machine.json").read_text())
    assert found["copy_bandwidth"] > 1e7 and 0 < found["latency"] < 10 and found["statement_seconds"] < 1
    assert len(found["bandwidths"]) > 2 and found["operation_rates"]["exp"] < found["operation_rates"]["add"]
    done = plan(tmp_path, "-n", "2", "--machine", "machine.json", "--per-machine", "2", "heat.py")
    assert done.returncode == 0 and f"speeds of machine {found['name']!r}" in done.stdout
