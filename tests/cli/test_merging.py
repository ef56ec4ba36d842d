"""`numpy-dist run --merge-output`: equal lines of several ranks are shown once."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numpy_dist.cli.merging import LineGroups, Merger, patience
from numpy_dist.comm.divergence.ranks_in_words import ranks_in_words

NEVER = float("inf")


def told(lines: dict[int, list[str]], size: int) -> list[str]:
    """What is told of lines of ranks once all are there."""
    groups = LineGroups(size, 1.0)
    for rank, texts in lines.items():
        for text in texts:
            groups.add(rank, text.encode(), 0.0)
    return [text.decode() for text in groups.take(NEVER)]


def test_ranks_in_words() -> None:
    assert ranks_in_words([0, 1, 2, 3]) == "0, 1, 2, 3"
    assert ranks_in_words([9, *range(7)]) == "0-6, 9" and ranks_in_words([4]) == "4"


def test_what_all_ranks_say_is_told_at_once() -> None:
    groups = LineGroups(2, 5.0)
    groups.add(1, b"a", 0.0)
    assert groups.take(4.0) == []
    groups.add(0, b"a", 4.0)
    assert groups.take(4.0) == [b"[ranks 0, 1] a"]
    groups.add(1, b"b", 6.0)
    assert groups.take(10.9) == [] and groups.take(11.0) == [b"[rank 1] b"]


def test_lines_of_one_rank_do_not_part_those_of_all() -> None:
    lines = {rank: ["begin", f"I am {rank}", "end"] for rank in range(6)}
    assert told(lines, 6) == ["[ranks 0-5] begin", *(f"[rank {n}] I am {n}" for n in range(6)), "[ranks 0-5] end"]


def test_some_ranks_alike() -> None:
    same = ["Traceback:", "  line", "Error"]
    lines = {0: ["warned", *same], 1: same, 2: same, 3: ["other"]}
    assert told(lines, 4) == ["[rank 0] warned", *(f"[ranks 0, 1, 2] {line}" for line in same), "[rank 3] other"]
    assert told({0: ["a", "b"], 1: ["b", "a"]}, 2)  # no order suits both: told, and not waited for


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=4))
def test_no_line_is_lost_and_ranks_keep_their_order(lines: list[list[str]]) -> None:
    found = told(dict(enumerate(lines)), len(lines))
    for rank, texts in enumerate(lines):
        own = [line for line in found if str(rank) in line.partition("]")[0].split(" ", 1)[1].split(", ")]
        assert [line.partition("] ")[2] for line in own] == texts


def test_a_pipe_of_lines() -> None:
    target = io.BytesIO()
    merger = Merger(2, 0.0, target)
    merger.start()
    for text in (b"[rank 0] a\n[rank 1] ", b"a\nnobody's\n", b"[rank 1] cut"):
        merger.for_ranks.write(text)
        merger.for_ranks.flush()
    merger.end(20.0)
    assert not merger.is_alive()
    lines = target.getvalue().decode().splitlines()
    assert "nobody's" in lines and lines[-1] == "[rank 1] cut"
    assert [line.split("] ")[1] for line in lines if line.startswith("[")] in (["a", "cut"], ["a", "a", "cut"])


def test_patience_grows_with_ranks_that_share_cores() -> None:
    assert patience(64, 2) > 4 * patience(4, 4)


SCRIPT = """
import os, sys
print("all", file=sys.stderr)
print("own", os.environ["PMI_RANK"], file=sys.stderr)
print("printed")
import numpy_dist
raise ValueError("alike")
"""


@pytest.mark.slow
def test_a_job_of_eight_ranks(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "numpy_dist", "run", "-n", "8", "--merge-output", "--all-output", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    errors = done.stderr.splitlines()
    assert done.stdout == "[ranks 0-7] printed\n" and done.returncode == 1
    assert errors.count("[ranks 0-7] all") == 1
    assert sorted(line for line in errors if "own" in line) == [f"[rank {n}] own {n}" for n in range(8)]
    assert done.stderr.count("Traceback") == 1 and "rank 1-7: failed in the same way" in done.stderr
