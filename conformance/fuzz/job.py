"""Jobs of ranks that run one program after the other, and are started anew after a crash or a hang."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy_dist.cli import processes
from numpy_dist.conformance.fuzz.comparison import Problem
from numpy_dist.conformance.fuzz.program import RandomProgram
from numpy_dist.conformance.fuzz.worker import POLL, write

__all__ = ["CRASH", "HANG", "FuzzJob"]

CRASH, HANG, PARTED = "crash", "hang", "ranks"
STARTING = 120.0  # seconds that a job may take to start
_BEHIND = 8.0  # seconds that ranks may take once another has told a problem


class FuzzJob:
    """Ranks that run programs; started when the first one comes.

    Parameters
    ----------
    ranks : int
    environment : mapping
        Settings of the ranks, as environment variables.
    patience : float
        Seconds after which a program hangs.
    words : sequence of str
        Options for the workers.
    """

    def __init__(self, ranks: int, environment: Mapping[str, str], patience: float, words: Sequence[str] = ()) -> None:
        self.ranks, self.environment, self.patience, self.words = ranks, environment, patience, list(words)
        self.process: subprocess.Popen | None = None
        self.number = 0
        self.starts = 0

    def __enter__(self) -> FuzzJob:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def attempt(self, program: RandomProgram) -> Problem | None:
        """Run a program on all ranks: what was found, or None. After a problem the next one runs in a new job."""
        if self.process is None:
            self._start()
        write(self.folder / f"{self.number}.task", program.as_dict())
        problem = self._wait()
        self.number += 1
        if problem is not None and (problem.kind in (CRASH, HANG, PARTED) or problem.kind.startswith("error")):
            self.stop()
        return problem

    def stop(self) -> None:
        """End the ranks."""
        if self.process is None:
            return
        processes.send([*processes.descendants(self.process.pid), self.process.pid], signal.SIGKILL)
        self.process.wait()
        self.process = None
        self._errors.close()
        self._temporary.cleanup()

    def _start(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="numpy_dist-fuzz-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self._errors = open(self.folder / "errors", "w+")
        command = [sys.executable, "-m", "numpy_dist", "run", "-n", str(self.ranks)]
        command += ["-m", "numpy_dist.conformance.fuzz.worker", "--folder", str(self.folder), *self.words]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
        )
        self.number = 0
        self.starts += 1
        deadline = time.monotonic() + STARTING
        while not all(self._pid(rank) for rank in range(self.ranks)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = (self.folder / "errors").read_text()[-2000:]
                self.stop()
                raise RuntimeError(f"the job of {self.ranks} ranks did not start:\n{said}")
            time.sleep(0.02)

    def _pid(self, rank: int) -> int:
        path = self.folder / f"{rank}.pid"
        return json.loads(path.read_text()) if path.exists() else 0

    def _wait(self) -> Problem | None:
        """What the ranks answer, once all have, or what has become of them."""
        assert self.process is not None
        begun = time.monotonic()
        told_at: float | None = None
        paths = [self.folder / f"{self.number}.{rank}.answer" for rank in range(self.ranks)]
        while not all(path.exists() for path in paths):
            if self.process.poll() is not None:
                return Problem(CRASH, -1, f"exit code {self.process.returncode}\n{self._said()}")
            now = time.monotonic()
            if told_at is None and any(self._answer(path) for path in paths):
                told_at = now
            if now - begun > self.patience or told_at is not None and now - told_at > _BEHIND:
                return self._hung(paths, now - begun)
            time.sleep(POLL)
        answers = [self._answer(path) for path in paths]
        for path in (*paths, self.folder / f"{self.number}.task"):
            path.unlink()
        if len({answer and answer[:2] for answer in answers}) > 1:
            return Problem(PARTED, -1, "\n".join(f"rank {rank}: {answer}" for rank, answer in enumerate(answers)))
        return answers[0]

    def _answer(self, path: Path) -> Problem | None:
        found = json.loads(path.read_text()) if path.exists() else None
        return None if found is None else Problem(*found)

    def _hung(self, paths: list[Path], seconds: float) -> Problem:
        """The stacks of all ranks of a program that does not end, and what those that have ended it say."""
        waiting = [rank for rank, path in enumerate(paths) if not path.exists()]
        processes.send([self._pid(rank) for rank in waiting], signal.SIGUSR1)
        deadline = time.monotonic() + STARTING
        while not all(self._stacks(rank) for rank in waiting) and time.monotonic() < deadline:
            time.sleep(POLL)
        time.sleep(0.5)  # until they are whole
        told = [f"rank {rank}: {self._answer(path)}" for rank, path in enumerate(paths) if path.exists()]
        return Problem(HANG, -1, "\n".join([f"ranks {waiting} hang after {seconds:.0f} s", *told, self._said()]))

    def _stacks(self, rank: int) -> str:
        return (self.folder / f"{rank}.stacks").read_text()

    def _said(self) -> str:
        """What the ranks have printed last, and their stacks."""
        texts = [(self.folder / "errors").read_text()[-3000:]]
        for rank in range(self.ranks):
            stacks = self._stacks(rank)
            texts += [f"stacks of rank {rank}:\n{stacks[:3000]}"] if stacks else []
        return "\n".join(text for text in texts if text)
