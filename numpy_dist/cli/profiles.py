"""`numpy-dist profile`, and `numpy-dist run --profile`: what becomes of the logs that ranks have written."""

from __future__ import annotations

import argparse
import os
import sys

from numpy_dist.settings import PREFIX

VARIABLE = PREFIX + "PROFILE"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="{merge}")
    merge = actions.add_parser(
        "merge",
        help="make the page and the trace of the logs in a folder",
        description="Makes profile.html and trace.json of the logs that are in a folder: after a job that was killed, "
        "or when the logs of several machines have been copied together.",
    )
    merge.add_argument("folder")


def begin(folder: str) -> None:
    """Have the ranks of a job that is about to start write their logs to a folder, where nothing old is left.

    Raises
    ------
    OSError
        If there can be no such folder.
    """
    from numpy_dist.profiling import folder as folders

    path = os.path.abspath(os.path.expanduser(folder))
    folders.prepare(path)
    os.environ[VARIABLE] = path


def end() -> None:
    """Make the page of a job that has ended, where none of its ranks could, who say where it is."""
    from numpy_dist.profiling import folder as folders

    folder = os.environ[VARIABLE]
    page = os.path.join(folder, folders.PAGE)
    if not os.path.exists(page) or os.path.getsize(page) == 0:  # the rank that was about to make it was killed
        merge(folder)


def merge(folder: str) -> int:
    """Make the page of the logs in a folder; returns the exit code."""
    from numpy_dist.profiling import folder as folders

    try:
        page = folders.write_results(os.path.abspath(folder))
    except (OSError, ValueError) as problem:
        print(f"numpy-dist: there is no profile: {problem}", file=sys.stderr)
        return 1
    print(f"numpy-dist: the profile is in {page}", file=sys.stderr)
    return 0
