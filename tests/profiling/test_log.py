"""Logs as files: what is written is read again, also when a process was killed as it wrote; and what is no log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from numpy_dist.profiling import folder as folders
from numpy_dist.profiling.log import LoopRun, read_log, to_line
from tests.profiling.hand_made import header, logs, records


def text(rank: int) -> str:
    return "".join(map(to_line, [header(rank), *records(rank)]))


def test_what_is_written_is_read_again() -> None:
    log, same = logs()[1], read_log(text(1))
    assert same is not None and same.header == log.header
    assert [list(run) for run in same.runs] == [list(run) for run in log.runs]
    assert same.lines == log.lines and same.end == log.end and same.last == log.last


def test_every_line_is_json() -> None:
    words = [json.loads(line)[0] for line in text(0).splitlines()]
    assert words[0] == "profile" and words[-1] == "end" and "notice" in words


def test_a_line_that_was_cut_off_is_left_out() -> None:
    whole = text(0)
    cut = whole[: whole.rindex('["collective"') + 20]
    log = read_log(cut)
    assert log is not None and log.end is None and not log.collectives
    assert log.runs == [LoopRun(*values) for values in logs()[0].runs]
    assert read_log("") is None and read_log('["profile", 1, 0') is None


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a log"):
        read_log('["profile", 999, 0, 1]\n')
    with pytest.raises(FileNotFoundError, match="no logs"):
        folders.read_logs(str(tmp_path))
    (tmp_path / "rank-00000.jsonl").write_text("something else\n")
    with pytest.raises(ValueError, match="rank-00000.jsonl"):
        folders.read_logs(str(tmp_path))


def test_a_folder_is_complete_when_all_logs_have_ended(tmp_path: Path) -> None:
    folder = str(tmp_path)
    Path(folders.log_path(folder, 0)).write_text(text(0))
    assert not folders.is_complete(folder, 2)
    Path(folders.log_path(folder, 1)).write_text(text(1)[:-3])
    assert not folders.is_complete(folder, 2)
    Path(folders.log_path(folder, 1)).write_text(text(1))
    assert folders.is_complete(folder, 2)


def test_logs_of_another_job_are_left_out(tmp_path: Path) -> None:
    """A job of three ranks was here before one of two, and its files were not removed."""
    folder = str(tmp_path)
    for rank in range(3):
        old = header(rank, size=3, wall=5)
        Path(folders.log_path(folder, rank)).write_text("".join(map(to_line, [old, *records(rank % 2)])))
    for rank in range(2):
        Path(folders.log_path(folder, rank)).write_text(text(rank))
    assert [log.header.size for log in folders.read_logs(folder)] == [2, 2]
    folders.prepare(folder, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rank-00000.jsonl", "rank-00001.jsonl"]
    folders.prepare(folder)
    assert not list(tmp_path.iterdir())
