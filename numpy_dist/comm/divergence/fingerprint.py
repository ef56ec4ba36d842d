"""What must be alike on all ranks besides the program: versions, the processor, plug-ins, settings, the environment."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import os
import platform
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from numpy_dist.settings import config

__all__ = [
    "Differences",
    "compare",
    "deciding",
    "digest",
    "local",
    "overrides_text",
    "registered",
]

Fingerprint = dict[str, str]

# Settings by which ranks decide what they communicate. Others may differ: threads, folders, when to compile.
_DECIDING = ("AT_ONCE", "BACKEND", "CHECK", "FALLBACK", "MIN_SHARD_BYTES", "PLUGINS", "TRANSPORT", "WEIGHTS")
# Environment variables that change what NumPy and its libraries compute.
_VARIABLES = ("NPY_", "OPENBLAS_", "MKL_", "BLIS_", "OMP_", "VECLIB_", "PYTHONHASHSEED", "PYTHONOPTIMIZE")
# Beginnings of the names of those parts by which ranks decide what they communicate.
_DECIDE = ("setting ", "plug-ins", "override ")
_GROUPS = ("numpy_dist.overrides", "numpy_dist.backends")

PARTS: list[Callable[[], Mapping[str, str]]] = []
"""Further parts, from layers above: each gives names and values."""

overrides_mark = 0  # stands for the overrides that the program has registered; it travels with collectives


def registered(names: Iterable[str]) -> None:
    """From now on these overrides, in this order, are those that the program has registered on this rank."""
    global overrides_mark
    overrides_mark = zlib.crc32("\n".join(names).encode())


def local() -> Fingerprint:
    """The calling rank's fingerprint: what, and which."""
    found = dict(_of_process())
    found.update({f"setting {name}": str(getattr(config, name)) for name in _DECIDING})
    for name in sorted(os.environ):
        if name.startswith(_VARIABLES):
            found[f"environment variable {name}"] = os.environ[name]
    for part in PARTS:
        found.update(part())
    return found


@lru_cache(maxsize=1)
def _of_process() -> tuple[tuple[str, str], ...]:
    found = {
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "BLAS": _blas(),
        "processor": platform.machine(),
        "CPU features": _features(),
        "plug-ins": _plugins(),
    }
    return tuple(found.items())


def _blas() -> str:
    """The library that NumPy was built with."""
    try:
        build = np.show_config(mode="dicts")
        blas = build["Build Dependencies"]["blas"]
        return f"{blas.get('name')} {blas.get('version')}"
    except (TypeError, KeyError, AttributeError):
        return "unknown"


def _features() -> str:
    """What NumPy's kernels use of the processor, as far as NumPy tells."""
    try:
        features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):
        return "unknown"
    return " ".join(sorted(name for name, has in features.items() if has))


def _plugins() -> str:
    points = importlib.metadata.entry_points()
    return " ".join(sorted(f"{point.name}={point.value}" for group in _GROUPS for point in points.select(group=group)))


def deciding() -> Fingerprint:
    """The parts of the calling rank's fingerprint by which it decides what it communicates."""
    return {name: value for name, value in local().items() if name.startswith(_DECIDE)}


def overrides_text() -> str:
    """The overrides of this rank, in a few words."""
    found = [f"{name}: {value}" for name, value in local().items() if name.startswith("override ")]
    return "; ".join(found) or "none"


def digest(fingerprint: Fingerprint) -> bytes:
    """Sixteen bytes that are the same for the same fingerprint."""
    return hashlib.blake2b(repr(sorted(fingerprint.items())).encode(), digest_size=16).digest()


class Differences:
    """What differs between the ranks' fingerprints.

    Attributes
    ----------
    numbers : bool
        Whether ranks may compute other numbers of the same data.
    deciding : bool
        Whether ranks may decide otherwise what to communicate.
    overrides : bool
        Whether their overrides differ.
    text : str
        All differences, one to a line.
    """

    def __init__(self, names: Sequence[str], text: str) -> None:
        self.text = text
        self.deciding = any(name.startswith(_DECIDE) for name in names)
        self.overrides = any(name.startswith("override ") for name in names)
        self.numbers = any(not name.startswith(_DECIDE) for name in names)


def compare(fingerprints: Sequence[Fingerprint] | Mapping[int, Fingerprint]) -> Differences:
    """What differs between the fingerprints of the ranks, in rank order or by rank."""
    by_rank = fingerprints if isinstance(fingerprints, Mapping) else dict(enumerate(fingerprints))
    names = sorted({name for fingerprint in by_rank.values() for name in fingerprint})
    differing, lines = [], []
    for name in names:
        by_value: dict[str, list[int]] = {}
        for rank, fingerprint in by_rank.items():
            by_value.setdefault(fingerprint.get(name, "not set"), []).append(rank)
        if len(by_value) > 1:
            differing.append(name)
            values = _shortened(list(by_value)) if name == "CPU features" else list(by_value)
            sides = zip(by_value.values(), values, strict=True)
            lines.append(f"  {name}: " + "; ".join(f"rank {_listed(ranks)}: {value}" for ranks, value in sides))
    return Differences(differing, "\n".join(lines))


def _shortened(values: list[str]) -> list[str]:
    """Lists of words without those that are in all of them."""
    common = set.intersection(*(set(value.split()) for value in values))
    return [" ".join(word for word in value.split() if word not in common) or "no more" for value in values]


def _listed(ranks: Sequence[int]) -> str:
    shown = [str(rank) for rank in ranks]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:5], "...", shown[-1]])
