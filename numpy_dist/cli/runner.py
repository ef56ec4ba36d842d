"""One rank of a job that `numpy-dist run` started: runs the user's script as `python script.py` would.

``python -m numpy_dist.cli.runner [--all-output] [--patch] [--debug=RANK] -- script.py [argument ...]``, or ``-- -m
module [argument ...]``.
"""

from __future__ import annotations

import argparse
import builtins
import faulthandler
import io
import os
import random
import runpy
import sys
import time
import types
from collections.abc import Sequence

import numpy

from numpy_dist.argument_types import Function
from numpy_dist.cli.streams import set_output
from numpy_dist.comm import detect, launchers
from numpy_dist.comm.supervision import tracebacks

# How the launchers of MPICH, Open MPI and their relatives tell a process its rank and the number of ranks.
RANK_VARIABLES = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
# Tracebacks begin below the frames that have such a local variable: those above are not the user's.
_launcher_frame = True


def rank_and_size() -> tuple[int, int]:
    """The rank of this process and the number of ranks, as the launcher told them."""
    for rank, size in RANK_VARIABLES:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def _script(path: str, names: types.ModuleType) -> tuple[Function, *tuple[object, ...]]:
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        return runpy.run_path, path, {"__builtins__": names}, "__main__"  # it sets sys.path itself
    _launcher_frame = True  # above a SyntaxError of the script
    with io.open_code(os.path.abspath(path)) as file:
        code = compile(file.read(), path, "exec")
    # A module of its own, which stays: `__main__` of runpy is gone when atexit functions run.
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=names)
    sys.modules["__main__"] = main
    if not os.environ.get("PYTHONSAFEPATH"):
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    return exec, code, main.__dict__


def prepare(command: Sequence[str], patch: bool = False) -> tuple[Function, *tuple[object, ...]]:
    """Set `sys.argv`, `sys.path` and `__main__` as Python does for `command`; returns the function
    that runs it, and its arguments.

    With `patch` the NumPy that the user's own modules import is `numpy_dist` (see `patching`).
    """
    names = builtins
    if command[0] == "-m":
        sys.argv = list(command[1:])
        if not os.environ.get("PYTHONSAFEPATH"):
            sys.path.insert(0, os.getcwd())
    else:
        sys.argv = list(command)
    if patch:
        from numpy_dist.cli import patching

        names = patching.begin(command)
    if command[0] == "-m":
        return runpy.run_module, command[1], {"__builtins__": names}, "__main__", True
    return _script(command[0], names)


def _seed_alike(entropy: str) -> None:
    """Begin the global generators of Python and of NumPy, which differ from process to process, alike on every rank."""
    number = int(entropy, 16)
    random.seed(number)
    numpy.random.seed([number >> shift & 0xFFFFFFFF for shift in range(0, 4 * len(entropy), 32)])


def _set_breakpoint(rank: int, debugged: int) -> None:
    """Have `breakpoint()` debug one rank of several (see `debugger`)."""

    def enter(*arguments: object, **keywords: object) -> object:
        from numpy_dist.cli import debugger

        return debugger.enter(sys._getframe(1), rank, debugged, arguments, keywords)

    sys.breakpointhook = enter


def main(arguments: Sequence[str]) -> None:
    """Run one rank; `arguments` are those after the module's name on the command line."""
    parser = argparse.ArgumentParser(prog="numpy_dist.cli.runner")
    parser.add_argument("--all-output", action="store_true")
    parser.add_argument("--streams")
    parser.add_argument("--patch", action="store_true")
    parser.add_argument("--debug", type=int, default=0)
    parser.add_argument("--entropy", help="hexadecimal digits, the same for all ranks of a job")
    position = list(arguments).index("--")
    options = parser.parse_args(arguments[:position])
    launchers.move_end(os.environ, time.time())
    rank, size = rank_and_size()
    leave = set_output(rank, size, options.all_output, options.streams, options.debug)
    if size > 1:
        _set_breakpoint(rank, options.debug)
    if options.entropy:
        _seed_alike(options.entropy)
    if not faulthandler.is_enabled():  # a rank on another host tells the launcher where it crashes
        faulthandler.enable()
    guard = detect.watch_exits() if size > 1 else None
    if guard is not None:
        guard.at_last = guard.at_kill = leave
    else:
        sys.excepthook = tracebacks.show
    detect.run_guarded(*prepare(arguments[position + 1 :], options.patch))


if __name__ == "__main__":
    main(sys.argv[1:])
