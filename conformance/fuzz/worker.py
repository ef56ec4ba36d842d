"""One rank of a job that runs programs as the driver writes them: ``python -m numpy_dist.conformance.fuzz.worker``.

Tasks and answers are files of one folder: ``N.task`` is the N-th program, ``N.R.answer`` what rank R found in it.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from numpy_dist.comm.detect import get_communicator
from numpy_dist.conformance import rank_options
from numpy_dist.conformance.fuzz.interpreter import judge
from numpy_dist.conformance.fuzz.program import RandomProgram

__all__ = ["POLL", "main", "write"]

POLL = 0.002  # seconds between two looks for a file
IDLE = 600.0  # seconds after which a rank that gets no task ends


def write(path: Path, value: object) -> None:
    """Write JSON to a file that appears whole."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(value))
    part.rename(path)


def main(given: Sequence[str] | None = None) -> int:
    """Run programs until there is a task that is none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--load", action="append", default=[])
    parser.add_argument("--adapter")
    options = parser.parse_args(given)
    rank = get_communicator().rank
    with open(options.folder / f"{rank}.stacks", "w") as stacks, rank_options.adapter_named(options.adapter):
        faulthandler.enable(stacks)
        faulthandler.register(signal.SIGUSR1, stacks, all_threads=True)
        rank_options.load(options.load)
        write(options.folder / f"{rank}.pid", os.getpid())
        for number in itertools.count():
            task = _task(options.folder / f"{number}.task")
            if task is None:
                return 0
            problem = judge(RandomProgram.from_dict(task))
            write(options.folder / f"{number}.{rank}.answer", problem)
    return 0


def _task(path: Path) -> dict | None:
    """The next program, or None at the end."""
    deadline = time.monotonic() + IDLE
    while not path.exists():
        if time.monotonic() > deadline:
            return None
        time.sleep(POLL)
    return json.loads(path.read_text())


if __name__ == "__main__":
    raise SystemExit(main())
