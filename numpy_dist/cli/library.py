"""Which MPI library mpi4py will load, and the `mpiexec` that belongs to it.

The question is asked in a child process with a time limit: loading an MPI library can hang on a login node, and a
process that has loaded one can no longer load another.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from numpy_dist.comm import launchers
from numpy_dist.errors import LauncherError

GET_ONE = (
    "Install one beside it (pip install 'numpy-dist[mpich]'), or load your cluster's MPI (for example `module load "
    "mpich`); `numpy-dist info` shows what is found."
)

# Printed by the child: loading the library, but not initialising MPI.
_ASK = """
import json, mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
try:
    maps = open("/proc/self/maps").read().split()
except OSError:
    maps = []
files = sorted({word for word in maps if word.startswith("/") and "libmpi" in word.rsplit("/", 1)[-1]})
print(json.dumps([MPI.Get_library_version(), MPI.Get_version(), files]))
"""


@dataclass(frozen=True)
class MPILibrary:
    """An MPI library: its name with version, the family whose launchers can start it, and its files."""

    name: str
    family: str | None
    standard: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launcher:
    """An `mpiexec`: its path, how it calls itself, and the family of libraries that it can start."""

    path: str
    name: str
    family: str | None


def family_of(text: str) -> str | None:
    """`"mpich"` for MPICH and its relatives, `"openmpi"`, or None where `text` does not say."""
    text = text.lower()
    if any(word in text for word in ("open mpi", "openrte", "prrte", "prterun")):
        return "openmpi"
    if any(word in text for word in ("mpich", "hydra", "mvapich", "intel(r) mpi")):
        return "mpich"
    return None


def outside_jobs(environment: dict[str, str]) -> dict[str, str]:
    """A copy of `environment` without the variables by which a launcher tells a process its rank."""
    environment = dict(environment)
    launchers.hide_from_children(environment)
    return environment


def find_library(timeout: float = 20.0) -> MPILibrary:
    """The MPI library that mpi4py loads in this environment.

    Raises
    ------
    LauncherError
        Where there is none, or where it could not be loaded within `timeout` seconds; the message says what to do.
    """
    command = [sys.executable, "-c", _ASK]
    environment = outside_jobs(dict(os.environ))
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise LauncherError(
            f"loading the MPI library took more than {timeout:g} s: on some clusters it only works inside a job "
            "(srun, salloc)"
        ) from None
    if answer.returncode:
        reason = (answer.stderr.strip() or f"exit code {answer.returncode}").splitlines()[-1]
        raise LauncherError(f"mpi4py found no usable MPI library ({reason}). {GET_ONE}")
    version, standard, files = json.loads(answer.stdout)
    name = " ".join(version.replace("\0", " ").splitlines()[0].replace("Version:", " ").rstrip(",").split())
    return MPILibrary(name.split(", package")[0], family_of(version), ".".join(map(str, standard)), tuple(files))


def _describe(path: str) -> Launcher:
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL
        )
        text = answer.stdout + answer.stderr
    except (OSError, subprocess.TimeoutExpired) as problem:
        text = f"unusable: {problem}"
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["says nothing about itself"]
    name = lines[0]
    if name.startswith("HYDRA"):
        name = " ".join(["Hydra", *lines[1].split()[1:]])
    return Launcher(path, name, family_of(text))


def find_launchers() -> list[Launcher]:
    """Every `mpiexec` at hand: of the environment, beside the interpreter, then along the PATH."""
    folders = [os.path.join(sys.prefix, "bin"), os.path.dirname(sys.executable)]
    folders += os.environ.get("PATH", "").split(os.pathsep)
    found: dict[str, str] = {}
    for folder in folders:
        for name in ("mpiexec", "mpirun"):
            path = shutil.which(name, path=folder) if folder else None
            if path and found.setdefault(os.path.realpath(path), path) == path:
                break
    return [_describe(path) for path in found.values()]


def matching_launcher(library: MPILibrary, found: list[Launcher]) -> Launcher:
    """The first launcher of `found` that can start programs that load `library`.

    Raises
    ------
    LauncherError
        Where none can: a job whose launcher and library differ is as many jobs of one rank each.
    """
    for launcher in found:
        if library.family is None or launcher.family in (None, library.family):
            return launcher
    if not found:
        raise LauncherError(f"mpi4py loads {library.name}, but there is no mpiexec in the environment or on the PATH")
    others = "; ".join(f"{launcher.path} ({launcher.name})" for launcher in found)
    raise LauncherError(
        f"mpi4py loads {library.name} ({', '.join(library.files) or 'file unknown'}), but every mpiexec found "
        f"belongs to another MPI: {others}. {GET_ONE}"
    )
