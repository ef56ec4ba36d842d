"""Ranks of one thread that work when they are told to, so that they take turns with others.

The ranks wait for their turn in a blocking read from a socket, and so take no time from whoever's turn it is.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMEOUT = 300.0
"""Seconds after which ranks that do not answer are given up."""


class Ranks:
    """A job of some ranks; `work` makes all of them do their work once.

    Parameters
    ----------
    count : int
    script : str
        What each rank runs: it does its work by `at_each_turn`, whose path is its first argument.
    *arguments
        The others.
    """

    def __init__(self, count: int, script: str, *arguments: object) -> None:
        with contextlib.ExitStack() as stack:
            self._folder = stack.enter_context(tempfile.TemporaryDirectory())
            path = os.path.join(self._folder, "turns")
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(path)
            server.listen(count)
            server.settimeout(0.5)
            launcher = [sys.executable, "-c", "from numpy_dist.cli.main import main; raise SystemExit(main())", "run"]
            command = [*launcher, "-n", str(count), script, path, *map(str, arguments)]
            names = ("NUMPY_DIST_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
            one = dict.fromkeys(names, "1")
            # What the ranks print must not come between the rows of a table.
            process = subprocess.Popen(command, env=os.environ | one, stdout=sys.stderr)
            stack.callback(self._end, process)
            self._sockets = [stack.enter_context(self._accept(server, process)) for _ in range(count)]
            self._answers()
            self._stack = stack.pop_all()

    @staticmethod
    def _accept(server: socket.socket, process: subprocess.Popen) -> socket.socket:
        """The connection of the next rank that is ready."""
        deadline = time.monotonic() + TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                connection = server.accept()[0]
                connection.settimeout(TIMEOUT)
                return connection
        raise SystemExit("the ranks have failed, or do not get ready")

    @staticmethod
    def _end(process: subprocess.Popen) -> None:
        """Wait for the job, whose sockets are closed by now: that ends the ranks."""
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait(30)

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def notes(self) -> list[Any]:
        """What the ranks have noted before they were ready (`note`), in any order."""
        return [json.loads(path.read_text()) for path in Path(self._folder).glob("*.note")]

    def work(self) -> None:
        """Work on all ranks, and return when the last of them has finished."""
        for connection in self._sockets:
            connection.sendall(b"g")
        self._answers()

    def _answers(self) -> None:
        for connection in self._sockets:
            if connection.recv(1) != b"d":
                raise SystemExit("the ranks have failed")


def note(path: str, value: Any) -> None:
    """On a rank: leave something for `Ranks.notes`."""
    Path(f"{path}.{os.getpid()}.note").write_text(json.dumps(value))


def at_each_turn(path: str, work: Callable[[], object]) -> None:
    """On a rank: say that it is ready, and work whenever it is its turn."""
    with socket.socket(socket.AF_UNIX) as turns:
        turns.connect(path)
        turns.sendall(b"d")
        while turns.recv(1):
            work()
            turns.sendall(b"d")
