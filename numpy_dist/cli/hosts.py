"""The hosts that a job was asked to run on: `--hosts` and `--hostfile`, and which of them gets how many ranks."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from numpy_dist.errors import LauncherError

__all__ = ["Place", "divided", "is_here", "parse_hostfile", "parse_hosts", "written"]

_SLOTS = r":(?P<short>\d+)|\s+slots\s*=\s*(?P<long>\d+)(?:\s+max[-_]slots\s*=\s*\d+)?"
_HOST = re.compile(rf"(?P<name>[^\s:,=]+)(?:{_SLOTS})?")


class Place(NamedTuple):
    """A host, and how many ranks it takes; None where that was not said."""

    name: str
    slots: int | None = None


def parse_hosts(text: str) -> list[Place]:
    """The hosts of a list such as ``"a,b:2"``.

    Raises
    ------
    ValueError
    """
    return [_parsed(word.strip()) for word in text.split(",")]


def parse_hostfile(path: Path) -> list[Place]:
    """The hosts of a file, one a line: ``a``, ``a:2`` (as MPICH writes it) or ``a slots=2`` (as Open MPI does).

    Raises
    ------
    ValueError
        With the number of the line.
    OSError
    """
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.partition("#")[0].strip()
        if words:
            try:
                found.append(_parsed(words))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
    if not found:
        raise ValueError(f"{path} names no host")
    return found


def _parsed(words: str) -> Place:
    match = _HOST.fullmatch(words)
    slots = match and (match["short"] or match["long"])
    if match is None or (slots and not int(slots)):
        raise ValueError(f"{words!r} is not a host (as in host, host:2 or, in a file, host slots=2)")
    return Place(match["name"], int(slots) if slots else None)


def divided(places: Sequence[Place], ranks: int) -> list[Place]:
    """How many ranks each host gets: its slots are filled in the order of the hosts, so that neighbours share one.

    Where no slots were given, all hosts get equally many; a host that is named again has so many slots more.

    Raises
    ------
    LauncherError
        If there are more ranks than slots.
    """
    slots: dict[str, int | None] = {}
    for name, more in places:
        slots[name] = more if name not in slots else (slots[name] or 1) + (more or 1)
    if all(count is None for count in slots.values()):
        # The first ones get one more.
        shares = [ranks // len(slots) + (number < ranks % len(slots)) for number in range(len(slots))]
        return [Place(name, share) for name, share in zip(slots, shares, strict=True) if share]
    room = [Place(name, 1 if count is None else count) for name, count in slots.items()]
    total = sum(count or 0 for _, count in room)
    if ranks > total:
        raise LauncherError(f"{ranks} ranks are asked for, and the hosts have {total} slots ({written(room)})")
    found, left = [], ranks
    for name, count in room:
        share = min(left, count or 0)
        left -= share
        if share:
            found.append(Place(name, share))
    return found


def written(places: Sequence[Place]) -> str:
    """Hosts as launchers of MPICH and Open MPI read them."""
    return ",".join(name if slots is None else f"{name}:{slots}" for name, slots in places)


def is_here(name: str) -> bool:
    """Whether a host is this machine: whether one of its addresses is this one's."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as tried:
            try:
                tried.bind(address)
            except OSError:  # another machine's
                continue
        return True
    return False
