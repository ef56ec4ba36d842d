"""The command `numpy-dist doctor`: every diagnosis in turn, and what it found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from numpy_dist.cli.doctor import cache, clock, gathering, gpu, limits, mpi, processors, speed, variables, versions
from numpy_dist.cli.doctor.finding import SystemFinding, bad


@dataclass(frozen=True)
class Diagnosis:
    """One kind of facts, and those who judge them.

    Attributes
    ----------
    name : str
        Of what is looked at.
    gather : callable
        ``gather()`` looks at the machine.
    judges : tuple of callables
        ``judge(facts)`` returns findings, and looks at nothing else.
    slow : bool
        Whether it may take more than a second.
    """

    name: str
    gather: Callable[[], Any]
    judges: tuple[Callable[[Any], list[SystemFinding]], ...]
    slow: bool = False


DIAGNOSES = (
    Diagnosis("versions", gathering.versions, (versions.interpreter, versions.packages)),
    Diagnosis("settings", gathering.settings, (variables.settings,)),
    Diagnosis("BLAS", gathering.blas, (processors.blas,)),
    Diagnosis("thread settings", gathering.threads, (processors.thread_settings,)),
    Diagnosis("cores", gathering.cores, (processors.affinity, processors.quota)),
    Diagnosis("memory", gathering.memory, (limits.memory,)),
    Diagnosis("shared memory", gathering.shared_memory, (limits.shared_memory,)),
    Diagnosis(
        "limits",
        gathering.limits,
        (limits.open_files, limits.processes, limits.locked_memory, limits.address_space),
    ),
    Diagnosis("GPU", gathering.gpu, (gpu.device, gpu.driver, gpu.peers, gpu.nccl)),
    Diagnosis("cache", gathering.cache, (cache.folder, cache.space)),
    Diagnosis("clock", gathering.clock, (clock.clocks, clock.files)),
    Diagnosis("MPI", gathering.mpi, (mpi.library, mpi.launcher, mpi.on_path)),
    Diagnosis("two ranks", gathering.ping, (speed.ping,), slow=True),
    Diagnosis("stencil", gathering.stencil, (speed.stencil,), slow=True),
)


def _failed(name: str, error: Exception) -> SystemFinding:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return bad(name, f"could not be examined: {text}", "please report it, with the output of numpy-dist info")


def examine(diagnoses: Iterable[Diagnosis] = DIAGNOSES, quick: bool = False) -> Iterator[SystemFinding]:
    """The findings of each diagnosis, as soon as they are there; one that fails is a finding, too.

    Parameters
    ----------
    diagnoses : iterable of Diagnosis
    quick : bool
        Whether those are left out that may take more than a second.
    """
    for diagnosis in diagnoses:
        if quick and diagnosis.slow:
            continue
        try:
            facts = diagnosis.gather()
        except Exception as error:  # of any kind: a machine that is broken in a new way is what this is for
            yield _failed(diagnosis.name, error)
            continue
        for judge in diagnosis.judges:
            try:
                found = judge(facts)
            except Exception as error:  # as above; the other judges have their say
                found = [_failed(diagnosis.name, error)]
            yield from found


def show(as_json: bool = False, quick: bool = False, diagnoses: Iterable[Diagnosis] = DIAGNOSES) -> int:
    """Print the findings; returns the exit code: 1 where something is bad, otherwise 0.

    Parameters
    ----------
    as_json, quick : bool
        JSON instead of lines; without what may take more than a second.
    diagnoses : iterable of Diagnosis
    """
    found = []
    for finding in examine(diagnoses, quick):
        found.append(finding)
        if not as_json:
            print(finding, flush=True)
    count = Counter(finding.state for finding in found)
    states = {state: count[state] for state in ("good", "doubtful", "bad")}
    if as_json:
        print(json.dumps(states | {"findings": [asdict(finding) for finding in found]}, indent=2))
    else:
        print(", ".join(f"{number} {state}" for state, number in states.items()))
    return 1 if states["bad"] else 0
