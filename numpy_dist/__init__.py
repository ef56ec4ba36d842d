"""NumPy on distributed arrays: ``import numpy_dist as np``, or ``x = numpy_dist.asarray(x)`` and plain NumPy.

Creation functions and `random` are ours; every other public name is NumPy's own, whose functions dispatch to ours when
they are given a `DistArray`. See docs/architecture.md.
"""

from __future__ import annotations

import importlib
import os as _os
from contextlib import suppress as _suppress
from typing import TYPE_CHECKING, Any

from numpy_dist import importing as _importing
from numpy_dist import submodules as _submodules
from numpy_dist.comm import launchers as _launchers
from numpy_dist.comm.supervision import tracebacks as _tracebacks

if TYPE_CHECKING:  # where editors find docstrings; the types are in __init__.pyi
    from numpy import *  # noqa: F403

    from numpy_dist.creation import *  # noqa: F403

__version__ = "0.1.0"

_CREATION = (
    "arange array asanyarray asarray ascontiguousarray asfortranarray bartlett blackman c_ copy diag diag_indices "
    "diagflat empty empty_like eye from_dlpack from_local frombuffer fromfile fromfunction fromiter fromregex "
    "fromstring full full_like genfromtxt geomspace hamming hanning identity indices kaiser linspace load loadtxt "
    "logspace mask_indices meshgrid mgrid ogrid ones ones_like r_ require tri tril tril_indices triu triu_indices "
    "vander zeros zeros_like"
)
_ERRORS = (
    "AdviceWarning CheckpointError CheckpointWarning DivergenceError FallbackError FallbackWarning GatherError "
    "LauncherError OverrideError OverrideWarning RankError SettingWarning UnsupportedError"
)
_AUTHORING = "axis_local elementwise map_blocks map_overlap reduction"
_OVERRIDES = "implements overrides overriding withdraw"

_MODULES = ("checkpoint", "fft", "random")

# Where our own names are; they are imported when they are first used.
_OWN: dict[str, str] = {
    **dict.fromkeys(_CREATION.split(), "numpy_dist.creation"),
    **dict.fromkeys(_ERRORS.split(), "numpy_dist.errors"),
    "DistArray": "numpy_dist.distarray",
    "memmap": "numpy_dist.files.memory_maps",
    "ndarray": "numpy_dist.ir.array_type",
    "Layout": "numpy_dist.layout.layout",
    "Mesh": "numpy_dist.layout.mesh",
    "count_program": "numpy_dist.counting",
    "config": "numpy_dist.settings",
    "distribute": "numpy_dist.binding",
    "explain": "numpy_dist.dispatch.core.explain",
    "explain_program": "numpy_dist.engine.explaining.listing",
    **dict.fromkeys(_AUTHORING.split(), "numpy_dist.authoring"),
    **dict.fromkeys(_OVERRIDES.split(), "numpy_dist.dispatch.core.overrides"),
    "decline": "numpy_dist.dispatch.core.registry",
    "dispatchable": "numpy_dist.dispatch.core.entries",
    **dict.fromkeys(("StoredArray", "StoredArrays", "open", "save"), "numpy_dist.formats"),
    **dict.fromkeys(("from_dask", "from_xarray", "to_dask", "to_xarray"), "numpy_dist.interop.lazy_arrays"),
    "on_rank_zero": "numpy_dist.comm.detect",
    "plugins": "numpy_dist.dispatch.core.plugins",
    "profile": "numpy_dist.profiling.session",
    "progress": "numpy_dist.progress_bars",
    "rebalance": "numpy_dist.rebalancing",
    "report": "numpy_dist.dispatch.core.report",
    "show_layout": "numpy_dist.distarray.pictures",
    "wait": "numpy_dist.waiting",
    "__array_api_version__": "numpy",
    "__array_namespace_info__": "numpy_dist.standard",
}


_submodules.install()
_importing.install()

if _launchers.launched_ranks(_os.environ) is not None:
    # A rank that fails before its first array must not leave the others waiting for it.
    from numpy_dist.comm import detect as _detect

    _detect.watch_exits()
_tracebacks.shorten_shown()

if _os.environ.get(_launchers.PROGRESS_VARIABLE):
    from numpy_dist import progress_bars as _progress_bars  # noqa: F401 - it begins with the first array


def __getattr__(name: str) -> Any:
    if name in _OWN:
        value = getattr(importlib.import_module(_OWN[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    elif name == "__all__":
        return sorted(public_names() - {"open"})  # with a star, Python's own stays
    elif name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        try:
            value = getattr(importlib.import_module("numpy"), name)
        except AttributeError as error:
            raise AttributeError(f"neither numpy_dist nor numpy has an attribute {name!r}: {error}") from None
    globals()[name] = value
    return value


def public_names() -> set[str]:
    """All names that the namespace offers: NumPy's and our own."""
    return {name for name in (*importlib.import_module("numpy").__all__, *_OWN, *_MODULES) if not name.startswith("_")}


def __dir__() -> list[str]:
    return sorted(public_names() | {name for name in globals() if name.startswith("__")})


if _os.environ.get("NUMPY_DIST_PLUGINS", "own") != "own":  # before others import single functions of other libraries
    from numpy_dist.errors import SettingError as _SettingError

    with _suppress(_SettingError):  # which the first array meets again
        importlib.import_module("numpy_dist.distarray")
