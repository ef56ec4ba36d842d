"""Faults of the file system while a file is saved: the old one stays, nothing is left, and all ranks say the same.

The rows of docs/faults.md; each fault is of the kind that the system itself reports. `test_replacement.py` has every
call of the system fail in turn.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import checkpoint
from numpy_dist.conformance.faults import written_by_hand
from numpy_dist.spmd_testing import run_simulated

NEW = np.arange(30000.0).reshape(600, 50)


def save_file(folder: Path, x: Any) -> None:
    np.save(folder / "x.npy", x)


def save_checkpoint(folder: Path, x: Any) -> None:
    checkpoint.save(folder / "run", {"x": x}, step=2)


def old_file(folder: Path) -> None:
    (folder / "x.npy").write_bytes(b"old")


def old_checkpoint(folder: Path) -> None:
    checkpoint.save(folder / "run", {"x": 1.0}, step=1)


def file_is_old(folder: Path) -> bool:
    return (folder / "x.npy").read_bytes() == b"old" and len(list(folder.iterdir())) == 1


def checkpoint_is_old(folder: Path) -> bool:
    """Whether the old one is there alone; the files of the others were not named, and are gone."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return checkpoint.restore(folder / "run") == {"x": 1.0} and names == [
        "run",
        "run/data",
        "run/step-000000000001.json",
    ]


Row = tuple[Callable[[Path, Any], None], Callable[[Path], None], Callable[[Path], bool]]
WAYS: dict[str, Row] = {
    "file": (save_file, old_file, file_is_old),
    "checkpoint": (save_checkpoint, old_checkpoint, checkpoint_is_old),
}
both_ways = pytest.mark.parametrize("way", WAYS)
some_ranks = pytest.mark.parametrize("ranks", [3])  # of one, `test_replacement.py` and `test_checkpoint.py`


def told(way: str, ranks: int, folder: Path) -> set[str]:
    """What the ranks say of one save, where there was an old one."""

    def body() -> str:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            try:
                WAYS[way][0](folder, nd.asarray(NEW))
            except (OSError, nd.CheckpointError) as error:
                return f"{type(error).__name__}: {error}"
        return ""

    return set(run_simulated(ranks, body))


def faulty(call: str, number: int) -> Callable[..., Any]:
    """A call of the system that fails, always."""

    def failing(*args: Any, **kwargs: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return failing


@both_ways
@some_ranks
def test_short_writes(way: str, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system writes less than it was asked for: the rest follows."""
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, place: pwrite(descriptor, data[:4097], place))
    assert told(way, ranks, tmp_path) == {""}
    monkeypatch.undo()
    if way == "file":
        assert (np.load(tmp_path / "x.npy") == NEW).all()
    else:
        assert (np.array(checkpoint.restore(tmp_path / "run")["x"].local) == NEW).all()


FAULTS = [
    ("pwrite", errno.ENOSPC),
    ("pwrite", errno.EDQUOT),
    ("pwrite", errno.EIO),
    ("fsync", errno.EIO),
]


@both_ways
@some_ranks
@pytest.mark.parametrize(("call", "number"), FAULTS, ids=[f"{call} {errno.errorcode[n]}" for call, n in FAULTS])
def test_what_the_disk_refuses(
    way: str, ranks: int, call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WAYS[way][1](tmp_path)
    monkeypatch.setattr(os, call, faulty(call, number))
    said = told(way, ranks, tmp_path)
    monkeypatch.undo()
    assert len(said) == 1 and os.strerror(number) in said.pop()
    assert WAYS[way][2](tmp_path)


@some_ranks
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_room(ranks: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room is asked for before anything is written."""
    old_file(tmp_path)
    monkeypatch.setattr(os, "posix_fallocate", faulty("posix_fallocate", number))
    said = told("file", ranks, tmp_path)
    monkeypatch.undo()
    assert len(said) == 1 and os.strerror(number) in said.pop() and file_is_old(tmp_path)


@both_ways
@some_ranks
def test_a_folder_that_cannot_be_written(way: str, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    WAYS[way][1](tmp_path)
    opened = os.open

    def read_only(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY and str(path).startswith(str(tmp_path)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", read_only)
    said = told(way, ranks, tmp_path)
    monkeypatch.undo()
    assert len(said) == 1 and "Read-only file system" in said.pop() and WAYS[way][2](tmp_path)


SCRIPT = """
import os, resource, signal, sys
import numpy as np
import numpy_dist
from numpy_dist import checkpoint, engine
folder, way, fault = sys.argv[1:]
numpy_dist.config.MIN_SHARD_BYTES = 0
rank = engine.runtime().rank
x = numpy_dist.asarray(np.arange(300000.0), split=0)
pwrite = os.pwrite
def last(descriptor, data, place):
    if len(data) > 4096:
        pwrite(descriptor, data[:4096], place)
        os.kill(os.getpid(), signal.SIGKILL)
    return pwrite(descriptor, data, place)
if fault == "killed" and rank == 1:
    os.pwrite = last
if fault == "limit":  # the kernel's own refusal: EFBIG
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))
if way == "file":
    np.save(folder + "/x.npy", x)
else:
    checkpoint.save(folder + "/run", {"x": x}, step=2, background=True)
    checkpoint.wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "limit"])
@pytest.mark.parametrize(("way", "named"), [("file", False), ("file", True), ("checkpoint", False)])
def test_jobs(way: str, fault: str, named: bool, tmp_path: Path) -> None:
    """A rank that is killed in the middle of its part, and a limit of the kernel."""
    folder = tmp_path / "folder"
    folder.mkdir()
    WAYS[way][1](folder)
    hidden = "from numpy_dist.files import replacement\nreplacement._UNNAMED = 0\n" if named else ""
    (tmp_path / "script.py").write_text(hidden + SCRIPT)
    command = [sys.executable, "-m", "numpy_dist", "run", "-n", "2", str(tmp_path / "script.py")]
    done = subprocess.run([*command, str(folder), way, fault], capture_output=True, text=True, timeout=60, check=False)
    if fault == "killed":
        assert done.returncode == 128 + signal.SIGKILL
    else:
        assert done.returncode == 1 and "File too large" in done.stderr
    if way == "checkpoint":  # the next save removes what the killed one has left
        assert checkpoint.steps(folder / "run") == [1]
        old_checkpoint(folder)
    if named and fault == "killed":  # all ranks are gone, and nobody can remove what has a name
        left = [path for path in folder.iterdir() if path.name.startswith(".numpy-dist-")]
        assert len(left) == 1
        left[0].unlink()
    assert WAYS[way][2](folder)


def test_the_page_names_tests_that_there_are() -> None:
    root = Path(__file__).resolve().parents[2]
    page = written_by_hand((root / "docs/faults.md").read_text())
    rows = [line for line in page.splitlines() if line.startswith("| ") and "test_" in line]
    assert len(rows) > 10
    for row in rows:
        named = row.split("|")[-2]
        for file, name in re.findall(r"`(?:(tests/\S+?\.py)::)?(test_\w+)`", named):
            source = file or re.findall(r"(tests/\S+?\.py)::", named)[-1]
            assert f"def {name}(" in (root / source).read_text(), row
