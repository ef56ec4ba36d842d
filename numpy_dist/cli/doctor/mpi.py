"""MPI: the library that mpi4py loads, and the launcher that belongs to it."""

from __future__ import annotations

import os
import re

from numpy_dist.cli.doctor.facts import MPIFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good
from numpy_dist.cli.library import GET_ONE, Launcher, matching_launcher
from numpy_dist.errors import LauncherError

_INSTALL = "pip install 'numpy-dist[mpich]', or load the cluster's MPI (module load)"
# The major versions of libraries and launchers that are released together.
_LIBRARY_VERSION = re.compile(r"(?:MPICH|Open MPI)\D*(\d+)")
_LAUNCHER_VERSION = re.compile(r"(?:Hydra|MPICH|Open MPI|OpenRTE)\D*(\d+)")


def library(facts: MPIFacts) -> list[SystemFinding]:
    """Whether mpi4py loads an MPI library."""
    name = "MPI library"
    if facts.library is None:
        return [bad(name, (facts.library_problem or "none").removesuffix(GET_ONE).rstrip(". "), _INSTALL)]
    seen = f"{facts.library.name}, MPI {facts.library.standard}"
    return [good(name, " ".join([seen, *facts.library.files]))]


def _chosen(facts: MPIFacts) -> Launcher | None:
    """The launcher that `numpy-dist run` takes; None where it finds none."""
    if facts.library is None:
        return None
    try:
        return matching_launcher(facts.library, list(facts.launchers))
    except LauncherError:
        return None


def _described(launchers: tuple[Launcher, ...]) -> str:
    return "; ".join(f"{one.path} ({one.name})" for one in launchers)


def launcher(facts: MPIFacts) -> list[SystemFinding]:
    """Whether there is a launcher that can start programs that load the library."""
    name = "MPI launcher"
    if not facts.launchers:
        if facts.problem is not None and facts.on_path:
            seen = f"a launcher does not tell its version: {facts.problem}"
            return [bad(name, seen, f"take the folder of {facts.on_path} from PATH")]
        return [bad(name, "no mpiexec beside the interpreter or on PATH", _INSTALL)]
    if facts.library is None:
        return [doubtful(name, f"without a library to start: {_described(facts.launchers)}", _INSTALL)]
    chosen = _chosen(facts)
    if chosen is None:
        seen = f"mpi4py loads {facts.library.name}, but each belongs to another MPI: {_described(facts.launchers)}"
        own = f"pip install 'numpy-dist[{facts.library.family or 'mpich'}]', or load the cluster's MPI (module load)"
        return [bad(name, seen, f"{own}, or set MPI4PY_LIBMPI to the library of the launcher")]
    if chosen.family is None:
        seen = f"{chosen.path} ({chosen.name}), which may belong to another MPI than {facts.library.name}"
        return [doubtful(name, seen, f"put the folder of the mpiexec of {facts.library.name} first on PATH")]
    seen = f"{chosen.path} ({chosen.name})"
    versions = _LIBRARY_VERSION.match(facts.library.name), _LAUNCHER_VERSION.search(chosen.name)
    if all(versions) and len({version[1] for version in versions if version}) > 1:
        mend = f"put the folder of the mpiexec of {facts.library.name} first on PATH"
        return [doubtful(name, f"{seen} is another version than the library, {facts.library.name}", mend)]
    return [good(name, seen)]


def on_path(facts: MPIFacts) -> list[SystemFinding]:
    """Whether a plain `mpiexec` is the launcher that `numpy-dist run` takes."""
    name, chosen = "mpiexec on PATH", _chosen(facts)
    if facts.on_path is None:
        return [good(name, "none: numpy-dist run finds the one beside the interpreter" if chosen else "none")]
    first = os.path.realpath(facts.on_path)
    said = next((one.name for one in facts.launchers if os.path.realpath(one.path) == first), "version unknown")
    seen = f"{facts.on_path} ({said})"
    others = tuple(one for one in facts.launchers if os.path.realpath(one.path) != first and one is not chosen)
    if others:
        seen += f", beside {_described(others)},"
    if chosen is None or os.path.realpath(chosen.path) == first:
        return [good(name, seen.rstrip(","))]
    mend = f"export PATH={os.path.dirname(chosen.path)}:$PATH, or numpy-dist run instead of mpiexec"
    return [doubtful(name, f"{seen} comes before {chosen.path} ({chosen.name}), to which the library belongs", mend)]
