"""`breakpoint()` in a job: one rank debugs at the terminal, the others go on."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest

from numpy_dist.cli import main
from numpy_dist.comm.supervision.debugging import DEBUG_TAG, OpenDebuggers
from tests.cli.test_jobs import Run, environment, mpi, run  # noqa: F401 - fixtures

PATIENCE = 120.0
SCRIPT = """
import numpy_dist as np

x = np.asarray(range(100_000), split=0)
total = float(x.sum())
y = x + 1
breakpoint()
print(f"rank {x.comm.rank} difference {float(y.sum()) - total}")
breakpoint()
"""
PROMPT = "(Pdb) "
# What other ranks write, a line or its end at a time, between the characters of a prompt, which readline writes singly.
_OTHERS = r"((?:\[rank \d\] breakpoint[^\n]*\n|rank \d difference [\d.]+|\r?\n)*)"
_TORN_PROMPT = re.compile(_OTHERS.join(map(re.escape, PROMPT)))


def with_whole_prompts(seen: str) -> str:
    """What is seen at a terminal, with what other ranks wrote into a prompt before it."""
    return _TORN_PROMPT.sub(lambda torn: "".join(torn.groups()) + PROMPT, seen)


def at_terminal(
    folder: Path,
    environment: dict[str, str],  # noqa: F811
    options: str,
    *answers: str | float,
    others: tuple[int, ...],
    script: str = SCRIPT,
) -> tuple[str, int]:
    """Run the script at a terminal, with answers to prompts (lines, or seconds to wait): what is seen, and the code.

    The first answer is given when the `others` have said that they pass over the breakpoint.
    """
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "numpy_dist", "run", *options.split(), "script.py"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, cwd=folder, env=environment | {"TERM": "dumb"}, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen, prompts, left = "", 0, deque(answers)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and process.poll() is None or select.select([ours], [], [], 0)[0]:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                seen = with_whole_prompts(seen + os.read(ours, 1 << 16).decode())
            except OSError:  # the last process has closed the terminal
                break
            if not all(f"[rank {rank}] breakpoint() at " in seen for rank in others):
                continue
            while seen.count(PROMPT) > prompts and left:
                answer = left.popleft()
                if isinstance(answer, float):
                    time.sleep(answer)
                    continue
                prompts += 1
                os.write(ours, f"{answer}\n".encode())
        os.close(ours)
        if process.poll() is None and time.monotonic() >= end:
            process.kill()
            pytest.fail(f"the job does not end:\n{seen}")
        return seen.replace("\r\n", "\n"), process.wait()


@pytest.mark.slow
def test_rank_0_debugs_for_as_long_as_the_user_likes(mpi: None, tmp_path: Path, environment: dict[str, str]) -> None:  # noqa: F811
    # From here on: the ranks of a busy machine start late.
    limit = "; np.config.TIMEOUT = 2; np.config.ON_TIMEOUT = 'end'"
    hasty = SCRIPT.replace("total = float(x.sum())", "total = float(x.sum())" + limit)
    seen, code = at_terminal(
        tmp_path,
        environment,
        "-n 3",
        "p x.shape",
        3.0,
        "p [x, 3]",
        "p x + 1",
        "!z = np.ones(10**6)",
        "part x",
        "w",
        "c",
        "c",
        others=(1, 2),
        script=hasty,
    )
    assert code == 0, seen
    assert "Where every rank is" not in seen
    answers = dict(zip(("shape", "repr", "statement", "array", "part", "where"), seen.split(PROMPT)[1:], strict=False))
    assert "(100000,)" in answers["shape"]
    assert "[<DistArray of shape (100000,), int64, Layout(" in answers["repr"]
    for refused in ("statement", "array"):
        assert "*** RuntimeError: the other ranks are not at this prompt" in answers[refused]
    assert "shape=(33333,)" in answers["part"] or "shape=(33334,)" in answers["part"]
    assert "script.py(8)<module>()" in answers["where"] and "runner" not in answers["where"]
    assert seen.count("rank 0 difference 100000.0") == 1
    for rank in (1, 2):  # of two that they pass over
        assert seen.count(f"[rank {rank}] breakpoint() at ") == 1


@pytest.mark.slow
def test_another_rank_debugs(mpi: None, tmp_path: Path, environment: dict[str, str]) -> None:  # noqa: F811
    answers = "print('here is', x.comm.rank)", "n", "n", "n", "n"
    seen, code = at_terminal(tmp_path, environment, "-n 2 --debug=1", *answers, others=(0,))
    assert code == 0, seen
    assert "\nhere is 1\n" in seen and "rank 0 difference 100000.0" in seen
    assert "rank 1 difference" not in seen  # what a rank prints outside of the prompt is shown of rank 0 only
    assert "numpy-dist run --debug=0 debugs this one" in seen
    assert "numpy_dist/" not in seen  # not even when the program has ended


def test_a_prompt_that_is_torn_is_read() -> None:
    assert with_whole_prompts("a\n(Pdbrank 0 difference 1.0\r\n) n\r\n") == "a\nrank 0 difference 1.0\r\n(Pdb) n\r\n"
    assert with_whole_prompts("([rank 0] breakpoint() at x:1\nPdb) ") == "[rank 0] breakpoint() at x:1\n(Pdb) "
    assert with_whole_prompts("(P d b) (Pdb)") == "(P d b) (Pdb)"


@pytest.mark.slow
def test_without_a_terminal_it_is_passed_over(mpi: None, run: Run) -> None:  # noqa: F811
    job = run("-n 2", SCRIPT, text="c\nc\n")
    assert job.returncode == 0, job.stderr
    assert job.stdout == "rank 0 difference 100000.0\n"
    assert job.stderr.count("[rank 0] breakpoint() at ") == 1
    assert "the debugger needs a terminal, and standard input and output of this job is none" in job.stderr


@pytest.mark.slow
def test_closed_standard_input_is_none_either(mpi: None, tmp_path: Path, environment: dict[str, str]) -> None:  # noqa: F811
    (tmp_path / "script.py").write_text(SCRIPT)
    words = f"exec {sys.executable} -m numpy_dist run -n 2 script.py <&-"
    job = subprocess.run(
        ["sh", "-c", words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (job.returncode, job.stdout) == (0, "rank 0 difference 100000.0\n"), job.stderr
    assert "the debugger needs a terminal" in job.stderr


@pytest.mark.parametrize(
    ("option", "complaint"),
    [("--debug=2", "there is no rank 2 of 2"), ("--debug=-1", "-1 is not the number of a rank")],
)
def test_a_rank_that_is_none_is_refused(option: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(["run", "-n", "2", option, __file__])
    assert complaint in capsys.readouterr().err


class Mail:
    """The messages of one rank of two."""

    def __init__(self) -> None:
        self.rank, self.size = 0, 2
        self.sent: list[tuple[int, int, bytes]] = []
        self.come: deque[tuple[int, bytes]] = deque()

    def post(self, rank: int, tag: int, message: bytes) -> None:
        self.sent.append((rank, tag, message))

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        assert tag == DEBUG_TAG
        return self.come.popleft() if self.come else None


def test_time_at_a_prompt_is_no_waiting() -> None:
    mail = Mail()
    debuggers = OpenDebuggers(mail)
    long_ago = time.monotonic() - 100
    assert debuggers.waited(long_ago) >= 100
    mail.come.append((1, b"\1"))
    assert debuggers.waited(long_ago) == 0.0
    mail.come.append((1, b"\0"))
    assert debuggers.waited(long_ago) < 50  # from the end of the debugging on
    debuggers.tell(True)
    assert mail.sent == [(1, DEBUG_TAG, b"\1")]
