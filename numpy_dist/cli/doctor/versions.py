"""Versions of the interpreter and of the packages that numpy_dist cannot be without."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable

from numpy_dist.cli.doctor.facts import PackageFacts, VersionFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, good

Release = tuple[int, ...]

_COMPARE: dict[str, Callable[[Release, Release], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*v?(\d+(?:\.\d+)*)(\.\*)?")


def _release(version: str) -> Release:
    """The numbers that a version begins with: of ``2.5.0rc1`` these are 2, 5 and 0."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _padded(one: Release, other: Release) -> tuple[Release, Release]:
    pairs = list(itertools.zip_longest(one, other, fillvalue=0))
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def satisfies(version: str, specifier: str) -> bool:
    """Whether a version is one that is wanted, by the numbers of both; what is not understood is no reason against it.

    Parameters
    ----------
    version : str
        Such as ``"2.4.6"``.
    specifier : str
        Clauses between commas, such as ``"<2.6,>=1.22"``.
    """
    own = _release(version)
    for sign, text, prefix in _CLAUSE.findall(specifier):
        wanted = _release(text)
        there, limit = _padded(own, wanted)
        begins = own[: len(wanted)] == wanted
        if sign in _COMPARE:
            fits = _COMPARE[sign](there, limit)
        elif sign == "~=":
            fits = there >= limit and own[: len(wanted) - 1] == wanted[:-1]
        else:
            fits = (begins if prefix else there == limit) is (sign == "==")
        if not fits:
            return False
    return True


def _judged(package: PackageFacts, mend: str) -> SystemFinding:
    wanted = ", ".join(f"{who} wants {specifier}" for who, specifier in package.wanted if specifier)
    if package.version is None:
        return bad(package.name, f"not installed; {wanted}", mend)
    unmet = [f"{who} wants {spec}" for who, spec in package.wanted if not satisfies(package.version, spec)]
    if unmet:
        return bad(package.name, f"{package.version}, but {', '.join(unmet)}", mend)
    return good(package.name, f"{package.version} ({wanted})" if wanted else package.version)


def interpreter(facts: VersionFacts) -> list[SystemFinding]:
    """Whether this Python is a supported one."""
    wanted = facts.python.wanted[0][1]
    return [_judged(facts.python, f"a virtual environment of a Python {wanted}, and numpy-dist installed there")]


def packages(facts: VersionFacts) -> list[SystemFinding]:
    """Whether each package has a version that all who use it can use."""
    found = []
    for package in facts.packages:
        specifier = ",".join(spec for _, spec in package.wanted)
        found.append(_judged(package, f"pip install '{package.name}{specifier}'"))
    return found
