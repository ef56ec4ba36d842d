"""`numpy-dist completion`: a script by which a shell completes the command's options, made by the package shtab."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping

__all__ = ["SHELLS", "show"]

SHELLS = ("bash", "zsh", "fish")
_GET = "pip install 'numpy-dist[completion]'"
_FILES = ("--hostfile", "--machine", "--measure", "--report")
_FOLDERS = ("--profile", "--prefix", "--results")


def show(
    shell: str,
    parser: argparse.ArgumentParser,
    of_scripts: Iterable[argparse.ArgumentParser] = (),
    elsewhere: Mapping[str, argparse.ArgumentParser] | None = None,
) -> int:
    """Print the script for a shell; returns the exit code.

    Parameters
    ----------
    shell : str
        One of `SHELLS`.
    parser : argparse.ArgumentParser
        That of the command. It must not be used any more: what files complete is added to it.
    of_scripts : iterable of argparse.ArgumentParser
        Its parsers that are followed by a script.
    elsewhere : mapping of str to argparse.ArgumentParser, optional
        The parsers of commands that the command's own knows by name only, since they parse their words themselves.
    """
    try:
        import shtab
    except ModuleNotFoundError:
        print(f"numpy-dist: completion needs the package shtab: {_GET}", file=sys.stderr)
        return 2
    if shell not in shtab.SUPPORTED_SHELLS:
        print(f"numpy-dist: shtab {shtab.__version__} is too old for {shell}: {_GET}", file=sys.stderr)
        return 2
    for each in of_scripts:
        each.add_argument("script", nargs="?", help="script")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            action.choices.update(elsewhere or {})
    for action in _actions(parser):
        if action.dest == "script" or set(_FILES) & set(action.option_strings):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif set(_FOLDERS) & set(action.option_strings):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    """The options and arguments of a parser, and of those of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
