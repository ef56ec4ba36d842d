"""A new folder takes the place of an old one when it is whole, and nothing is left beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from numpy_dist.files import folders
from numpy_dist.files.folders import FolderReplacement

KILLED = """
import os, sys, time
from numpy_dist.files.folders import FolderReplacement
made = FolderReplacement(sys.argv[1])
open(os.path.join(made.where, "half"), "w").write("half")
print("begun", flush=True)
time.sleep(200)
"""


def write(path: Path, text: str) -> FolderReplacement:
    made = FolderReplacement(str(path))
    os.mkdir(os.path.join(made.where, "inner"))
    Path(made.where, "inner/file").write_text(text)
    return made


@pytest.fixture(params=["exchanged", "renamed"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders change places at once, or, where the system cannot do so, one after the other."""
    if request.param == "renamed":
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)


def test_the_new_folder_takes_the_place_of_the_old_one(tmp_path: Path, ways: None) -> None:
    path = tmp_path / "x"
    for text in ("first", "second"):
        made = write(path, text)
        made.commit()
        made.discard()
        assert (path / "inner/file").read_text() == text and os.listdir(tmp_path) == ["x"]
    path.chmod(0o750)
    made = write(path, "third")
    made.commit()
    made.discard()
    assert path.stat().st_mode & 0o777 == 0o750


def test_what_is_given_up_leaves_the_old_folder(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    (path / "old").write_text("old")
    write(path, "new").discard()
    assert (path / "old").read_text() == "old" and os.listdir(tmp_path) == ["x"]


def test_what_a_link_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    made = write(tmp_path / "link", "new")
    made.commit()
    made.discard()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real/inner/file").read_text() == "new"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(NotADirectoryError):
        FolderReplacement(str(tmp_path / "x"))
    assert (tmp_path / "x").read_text() == "old" and os.listdir(tmp_path) == ["x"]
    with pytest.raises(FileNotFoundError) as caught:
        FolderReplacement(str(tmp_path / "none/x"))
    assert caught.value.filename == str(tmp_path / "none/x")


def test_the_next_writer_removes_what_a_killed_one_has_left(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        living = os.listdir(tmp_path)
        write(path, "first").discard()
        assert os.listdir(tmp_path) == living and len(living) == 1  # its writer lives
        process.kill()
        process.wait(60)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        write(path, "second").discard()
        if not os.listdir(tmp_path):
            break
        time.sleep(0.1)
    assert os.listdir(tmp_path) == []
