"""Cores: those that this process may use, and the threads of libraries on them."""

from __future__ import annotations

import math

from numpy_dist.cli.doctor.facts import BlasFacts, CoreFacts, ThreadFacts
from numpy_dist.cli.doctor.finding import SystemFinding, doubtful, good
from numpy_dist.cli.doctor.words import cores

_SLOW_LIBRARIES = ("", "none", "blas", "cblas", "lapack", "refblas", "netlib")


def blas(facts: BlasFacts) -> list[SystemFinding]:
    """Which BLAS library NumPy has, and whether it has a thread for each core."""
    name, seen = "BLAS", " ".join(filter(None, (facts.name or "none", facts.version)))
    if facts.name.lower() in _SLOW_LIBRARIES:
        mend = "pip install --force-reinstall numpy (its wheels bring OpenBLAS)"
        return [doubtful(name, f"{seen}: a library without fast products of matrices", mend)]
    if facts.threads is None:
        return [good(name, f"{seen}, which does not tell its number of threads")]
    seen += f", {facts.threads} threads on {cores(facts.cores)}"
    if facts.threads > facts.cores:
        return [doubtful(name, f"{seen}: they wait for each other", f"export OPENBLAS_NUM_THREADS={facts.cores}")]
    if facts.threads < facts.cores and not facts.variables:
        ranks = math.ceil(facts.cores / facts.threads)
        return [doubtful(name, f"{seen}: a single rank leaves cores idle", f"numpy-dist run -n {ranks} script.py")]
    return [good(name, f"{seen} ({', '.join(facts.variables)} set)" if facts.variables else seen)]


def thread_settings(facts: ThreadFacts) -> list[SystemFinding]:
    """Whether variables ask for more threads than there are cores; the launcher leaves those that are set."""
    name, found = "thread settings", []
    for variable, text in facts.variables.items():
        first = text.split(",")[0].strip()  # OpenMP has one number for each level of nesting
        if not first.isdecimal():
            found.append(doubtful(name, f"{variable}={text} is no number of threads", f"unset {variable}"))
        elif int(first) > facts.cores:
            seen = f"{variable}={text} on {cores(facts.cores)}, for each rank: threads wait for each other"
            found.append(doubtful(name, seen, f"unset {variable}, and the launcher divides the cores"))
    if found:
        return found
    said = ", ".join(f"{variable}={text}" for variable, text in facts.variables.items())
    return [good(name, said or "none: the launcher divides the cores among the ranks")]


def affinity(facts: CoreFacts) -> list[SystemFinding]:
    """Whether the process may run on all cores that it could have."""
    name, own = "CPU affinity", facts.machine if facts.group is None else min(facts.group, facts.machine)
    seen = f"{facts.allowed} of {cores(facts.machine)}"
    if facts.group is not None and facts.group < facts.machine:
        seen += f"; the control group has {facts.group}"
    if facts.allowed >= own:
        return [good(name, seen)]
    if facts.bound is not None:
        return [good(name, f"{seen}: this rank is bound to {facts.bound} (--bind=auto)")]
    if facts.scheduler is not None:
        return [good(name, f"{seen}, as a scheduler gave them ({facts.scheduler} is set)")]
    return [doubtful(name, f"{seen}: all ranks share these", f"taskset -cp 0-{facts.machine - 1} $$ (in this shell)")]


def quota(facts: CoreFacts) -> list[SystemFinding]:
    """Whether control groups give the process the time of all its cores."""
    name = "CPU quota"
    if facts.quota is None:
        return [good(name, "none")]
    seen = f"time of {cores(round(facts.quota, 2))} for {cores(facts.allowed)}"
    if facts.quota >= facts.allowed:
        return [good(name, seen)]
    mend = f"a container with --cpus={facts.allowed}, or --cpuset-cpus instead of --cpus; else OMP_NUM_THREADS="
    return [doubtful(name, f"{seen}: threads are stopped when it is used up", f"{mend}{max(1, int(facts.quota))}")]
