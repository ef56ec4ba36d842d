"""Findings: what a diagnosis has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["good", "doubtful", "bad"]


@dataclass(frozen=True)
class SystemFinding:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        What it is.
    state : "good", "doubtful" or "bad"
        "bad": something fails. "doubtful": it works, but slower or with less than there is, or may fail later.
    seen : str
        What was found.
    mend : str
        A command or a setting that makes it good; empty where it is.
    """

    name: str
    state: State
    seen: str
    mend: str = ""

    def __str__(self) -> str:
        text = f"{self.state:<9} {self.name:<18} {self.seen}"
        return " ".join(f"{text}; mend: {self.mend}".splitlines()) if self.mend else " ".join(text.splitlines())


def good(name: str, seen: str) -> SystemFinding:
    """A finding that needs nothing."""
    return SystemFinding(name, "good", seen)


def doubtful(name: str, seen: str, mend: str) -> SystemFinding:
    """A finding that costs speed, or room, or may fail later."""
    return SystemFinding(name, "doubtful", seen, mend)


def bad(name: str, seen: str, mend: str) -> SystemFinding:
    """A finding that makes something fail."""
    return SystemFinding(name, "bad", seen, mend)
