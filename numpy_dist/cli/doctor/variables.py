"""Environment variables that set numpy_dist's settings."""

from __future__ import annotations

from numpy_dist.cli.doctor.facts import SettingFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good


def settings(facts: SettingFacts) -> list[SystemFinding]:
    """Whether the variables say what can be done."""
    name = "settings"
    found = [bad(name, f"{variable}: {text}", f"unset {variable}") for variable, text in facts.set_aside.items()]
    if facts.missing is not None:
        seen = f"NUMPY_DIST_BACKEND={facts.given['NUMPY_DIST_BACKEND']}, and {facts.missing} is not installed"
        found.append(bad(name, seen, "unset NUMPY_DIST_BACKEND, or pip install what it needs (numpy-dist info)"))
    for variable, meant in facts.misspelt.items():
        mend = f"unset {variable}; export {meant}=... in its place"
        found.append(doubtful(name, f"{variable} is read by nobody: there is {meant}", mend))
    if found:
        return found
    return [good(name, " ".join(f"{variable}={text}" for variable, text in facts.given.items()) or "as they come")]
