"""`numpy-dist kernel`: notebooks whose cells run on several ranks, as kernels of Jupyter."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from numpy_dist.cli import launcher
from numpy_dist.errors import LauncherError

_LOOK_SECONDS = 1.0
_ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # by which Jupyter ends a kernel
_PARENT_VARIABLE = "JPY_PARENT_PID"  # by which a kernel knows Jupyter; the parent of a rank is another process


def add_to(parser: argparse.ArgumentParser, add_ranks: Callable[[argparse.ArgumentParser], object]) -> None:
    """Add the actions; `add_ranks` adds the option ``-n``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="{install,list,remove}")
    install = actions.add_parser("install", help="make a kernel whose cells run on N ranks")
    add_ranks(install)
    install.add_argument("--name", help="by which Jupyter knows it (default: numpy-dist-N)")
    place = install.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for this user, in all environments")
    place.add_argument(
        "--sys-prefix",
        action="store_const",
        const=sys.prefix,
        dest="prefix",
        help="for this environment (default, if it is a virtual one)",
    )
    place.add_argument("--prefix", help="for the environment in this folder")
    actions.add_parser("list", help="show the kernels that there are")
    actions.add_parser("remove", help="remove one").add_argument("name")
    start = actions.add_parser("start")  # for Jupyter
    add_ranks(start)
    start.add_argument("-f", dest="connection_file", required=True)


def run(options: argparse.Namespace) -> int:
    """Do what was asked for; returns the exit code."""
    if options.action == "start":
        return start(options.ranks, options.connection_file)
    try:
        from numpy_dist.notebook import spec
    except ImportError as error:
        print(f"numpy-dist: {error}; notebooks need ipykernel: pip install 'numpy-dist[notebook]'", file=sys.stderr)
        return 2
    try:
        if options.action == "install":
            made = spec.install(options.ranks, options.name, options.user, options.prefix)
            print(f"{made.name} is in {made.folder}")
        elif options.action == "remove":
            print(f"removed {spec.remove(options.name)}")
        else:
            for found in spec.installed():
                print(f"{found.name}  {found.ranks} ranks  {found.folder}")
    except (OSError, ValueError) as error:
        print(f"numpy-dist: {error}", file=sys.stderr)
        return 1
    return 0


def start(ranks: int, connection_file: str) -> int:
    """Start the ranks of a notebook, for Jupyter, and end with them."""
    environment = dict(os.environ)
    if ranks > 1:
        environment[_PARENT_VARIABLE] = "1"  # nobody, to a kernel
        threading.Thread(target=_end_without, args=(os.getppid(),), daemon=True).start()
    command = ("-m", "numpy_dist.notebook", "-f", connection_file)
    try:
        code = launcher.run(launcher.Job(ranks, command, survives=True, environment=environment))
    except LauncherError as problem:
        print(f"numpy-dist: {problem}", file=sys.stderr)
        return 2
    if code > 128 and code - 128 not in _ASKED:
        from numpy_dist.notebook import last_words

        last_words.publish(connection_file)
    return code


def _end_without(parent: int) -> None:
    """End the job when Jupyter has ended without a word."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
