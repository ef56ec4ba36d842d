"""Advice while a program runs: what makes it slow, once for each line, where the setting ``ADVICE`` is on.

A rank gives advice by itself, of what it knows alone: hence nothing here raises, whatever the warning filters are.
"""

from __future__ import annotations

import sys
import warnings

from numpy_dist.errors import AdviceWarning
from numpy_dist.frames import UserLine
from numpy_dist.settings import config

__all__ = ["advise", "forget", "tell"]

_given: set[tuple[str, UserLine]] = set()


def advise(topic: str, place: UserLine, text: str, page: str) -> None:
    """Give a piece of advice as an `AdviceWarning`, once for each topic and line of the program. Not collective.

    Parameters
    ----------
    topic : str
        What it is about; one topic is told once for each place.
    place : UserLine
        The user's line.
    text : str
        What is slow there, and what would not be.
    page : str
        The page of the documentation that tells more.
    """
    if not _is_new(topic, place):
        return
    said = f"{text} ({page})"
    try:
        warnings.warn_explicit(said, AdviceWarning, *place, registry=None)
    except Exception:
        # A filter makes an error of it, or the user's `showwarning` does: other ranks would wait for this one.
        _print(said)


def tell(topic: str, place: UserLine, text: str, page: str) -> None:
    """As `advise`, as a line on standard error: for what depends on clocks, which no list of warnings should have."""
    if _is_new(topic, place):
        _print(f"{text} ({page})")


def forget() -> None:
    """Forget what was said: the next piece of advice is new."""
    _given.clear()


def _is_new(topic: str, place: UserLine) -> bool:
    if config.ADVICE == "off" or (topic, place) in _given:
        return False
    _given.add((topic, place))
    return True


def _print(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"numpy_dist: {text}; NUMPY_DIST_ADVICE=off: no advice\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # nobody reads it
