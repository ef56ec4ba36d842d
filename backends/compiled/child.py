"""The side of the compiling process (`worker`) that its parent sees."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from numpy_dist.backends import jobs
from numpy_dist.backends.store import Store, describe_owner

_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
# All that the child gets of the environment: so none of a launcher's variables, whatever the launcher, and no
# settings of Numba's (NUMBA_DISABLE_JIT).
_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


_PIPE_BYTES = 1 << 20  # what an unprivileged process may have: all that is asked for at the end has to fit


class Child:
    """A process that compiles for this one. Nothing here waits for it, but `close`.

    Parameters
    ----------
    store : Store
        Where kernels go to.
    after : float
        For how many seconds it goes on compiling what was asked for when this process has ended. It is then of a
        session of its own, so that neither a terminal nor a launcher takes it along; but within a scheduler's job it
        stays where the scheduler finds it, and ends with the job.

    Raises
    ------
    OSError
        Where no process can be started.
    """

    def __init__(self, store: Store, after: float = 0.0) -> None:
        named = jobs.in_job()
        job = None if named is None else jobs.root_of_job(named)
        if not store.lasting or (named is not None and job is None):
            after = 0.0
        environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ} | _ONE_THREAD
        self.parent = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
            start_new_session=after > 0 and named is None,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._answers = self._process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):  # this user has as many large pipes as a user may have
                fcntl.fcntl(self._requests, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._unsent = bytearray()
        self._unread = b""
        self._garbled = False
        self.pid = self._process.pid
        self.owner = describe_owner(self.pid)
        self.answered = time.monotonic()  # when it was last heard of, or got something to do
        self._send(
            {
                "path": [os.path.abspath(p) for p in sys.path],
                "directory": store.directory,
                "limit": store.limit,
                "ancestors": store.ancestors,
                "after": after,
                "job": job,
            }
        )

    def _send(self, message: dict) -> None:
        self._unsent += json.dumps(message).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # the rest goes later; or it is dead: see `alive`
            while self._unsent:
                del self._unsent[: os.write(self._requests, self._unsent)]

    def compile(self, key: str, source: str, gain: float) -> None:
        """Ask for a kernel; those of larger gain come first."""
        self._send({"key": key, "source": source, "gain": gain})

    def weigh(self, key: str, gain: float) -> None:
        """Say what a kernel gains that was asked for before."""
        self._send({"key": key, "gain": gain})

    def answers(self) -> Iterator[dict[str, str]]:
        """What the child has said since: dictionaries with `key`, `status` and `reason`."""
        self._flush()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._answers, 1 << 16):
                self._unread += data
        *lines, self._unread = self._unread.split(b"\n")
        if lines:
            self.answered = time.monotonic()
        for line in lines:
            try:
                answer = json.loads(line)
                sound = {"key", "status"} <= answer.keys() and all(type(value) is str for value in answer.values())
            except (ValueError, AttributeError):
                sound = False
            if not sound:
                self._garbled = True
                return
            yield answer

    def alive(self) -> bool:
        """Whether the child runs, and is understood."""
        return self._process.poll() is None and not self._garbled

    def fate(self) -> str:
        """How the child ended."""
        if self._garbled:
            return "answered what is no answer"
        code = self._process.poll()
        return f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"

    def abandon(self) -> None:
        """Close this process's ends of the pipes, after a fork: the child belongs to the other process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0  # it is not ours to wait for

    def close(self, patience: float = 2.0) -> None:
        """End the child: politely, after `patience` seconds by force."""
        self._send({"end": True})
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
