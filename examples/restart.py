"""A program that goes on where it was killed, with a checkpoint every ten steps: heat, Conway's game, random walks.

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
from typing import Any

import numpy as np
from check import rank, ranks, say
from restart_functions import PROGRAMS

import numpy_dist
from numpy_dist import checkpoint

EVERY = 10
KILLED_STARTS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", choices=PROGRAMS, default="heat")
    parser.add_argument("--size", type=int, default=400, help="of the plate, say, in cells along each axis")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--folder", help="of the checkpoints (default: a new one, without a restart)")
    parser.add_argument("--kill", type=int, metavar="SEED", help="kill a rank at a step that is drawn by this seed")
    options = parser.parse_args()
    program = PROGRAMS[options.program]
    with tempfile.TemporaryDirectory() as temporary:
        folder = numpy_dist.zeros(1).comm.bcast(options.folder or temporary)
        found = computed(program, options, folder)
    rng = np.random.default_rng(7)
    expected = program.start(options.size, rng)
    for _ in range(options.steps):
        program.advance(expected, rng)
    for name, array in expected.items():
        if not np.array_equal(found[name].gather(), array):
            sys.exit(f"{name} are not NumPy's")
    say(f"{options.program}: {options.steps} steps on {ranks()} ranks: every bit is NumPy's")


def computed(program: Any, options: argparse.Namespace, folder: str) -> dict[str, Any]:
    """The arrays after the last step, from the newest checkpoint on."""
    state = checkpoint.restore(folder)
    if state is None:
        rng = np.random.default_rng(7)
        arrays = program.start(options.size, rng)
        state = {"step": 0, "rng": rng, **{name: numpy_dist.asarray(x, split=0) for name, x in arrays.items()}}
    else:
        say(f"goes on at step {state['step']}")
    last, victim = drawn(options)
    while state["step"] < options.steps and not checkpoint.should_end():
        if (state["step"], rank()) == (last, victim):
            os.kill(os.getpid(), signal.SIGKILL)
        program.advance(state, state["rng"])
        state["step"] += 1
        if state["step"] % EVERY == 0:
            checkpoint.save(folder, state, step=state["step"], background=True)
    if state["step"] < options.steps:
        checkpoint.save(folder, state, step=state["step"])
        say(f"saved at step {state['step']}, since the time is over")
        sys.exit()
    checkpoint.wait()
    return state


def drawn(options: argparse.Namespace) -> tuple[int, int]:
    """At which step which rank is to be killed in this start of the program."""
    starts = int(os.environ.get("NUMPY_DIST_RESTART", "0"))
    if options.kill is None or starts >= KILLED_STARTS:
        return -1, -1
    numbers = random.Random(f"{options.kill} {starts}")
    return numbers.randrange(options.steps), numbers.randrange(ranks())


if __name__ == "__main__":
    main()
