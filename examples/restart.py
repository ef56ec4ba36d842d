"""A program that goes on where it was killed: heat in a plate, with a checkpoint every ten steps.

    numpy-dist run -n 4 --restart=3 examples/restart.py --folder saved --kill 1

With --kill, a rank of the first two starts is killed at a step that is drawn, as by a machine that fails. The end is
compared with NumPy's, to the last bit. Asked to end (SIGTERM, or --max-time of the launcher), it saves where it is.
"""

import argparse
import os
import random
import signal
import sys
import tempfile

import numpy as np
from check import rank, say
from restart_functions import advance, start

import numpy_dist
from numpy_dist import checkpoint

EVERY = 10
KILLED_STARTS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=400, help="of the plate, in cells along each axis")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--folder", help="of the checkpoints (default: a new one, without a restart)")
    parser.add_argument("--kill", type=int, metavar="SEED", help="kill a rank at a step that is drawn by this seed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        plate = computed(options, numpy_dist.zeros(1).comm.bcast(options.folder or temporary))
    expected, rng = start(options.size), np.random.default_rng(7)
    for _ in range(options.steps):
        advance(expected, rng)
    if not np.array_equal(plate.gather(), expected):
        sys.exit("the plate is not NumPy's")
    say(f"{options.steps} steps on {plate.comm.size} ranks: every bit is NumPy's")


def computed(options: argparse.Namespace, folder: str) -> numpy_dist.DistArray:
    """The plate after the last step, from the newest checkpoint on."""
    state = checkpoint.restore(folder)
    if state is None:
        state = {"step": 0, "plate": numpy_dist.asarray(start(options.size), split=0), "rng": np.random.default_rng(7)}
    else:
        say(f"goes on at step {state['step']}")
    last, victim = drawn(options, state["plate"].comm.size)
    while state["step"] < options.steps and not checkpoint.should_end():
        if (state["step"], rank()) == (last, victim):
            os.kill(os.getpid(), signal.SIGKILL)
        advance(state["plate"], state["rng"])
        state["step"] += 1
        if state["step"] % EVERY == 0:
            checkpoint.save(folder, state, step=state["step"], background=True)
    if state["step"] < options.steps:
        checkpoint.save(folder, state, step=state["step"])
        say(f"saved at step {state['step']}, since the time is over")
        sys.exit()
    checkpoint.wait()
    return state["plate"]


def drawn(options: argparse.Namespace, ranks: int) -> tuple[int, int]:
    """At which step which rank is to be killed in this start of the program."""
    starts = int(os.environ.get("NUMPY_DIST_RESTART", "0"))
    if options.kill is None or starts >= KILLED_STARTS:
        return -1, -1
    numbers = random.Random(f"{options.kill} {starts}")
    return numbers.randrange(options.steps), numbers.randrange(ranks)


if __name__ == "__main__":
    main()
