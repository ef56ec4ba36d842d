"""Plug-ins: packages whose entry points in the group ``numpy_dist.overrides`` register overrides when they load."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import FrameType

import numpy as np

from numpy_dist import settings
from numpy_dist.dispatch.core import entries, overrides, policy, registry
from numpy_dist.dispatch.core.keys import Key
from numpy_dist.errors import OverrideWarning
from numpy_dist.frames import stack_level
from numpy_dist.settings import config

GROUP = "numpy_dist.overrides"
# Those that come along. They override other packages' functions only, and import these when they are on.
COMING_ALONG = {
    "autograd": "numpy_dist.interop.autograd_boxes:register",
    "einops": "numpy_dist.interop.einops_backend:register",
    "matplotlib": "numpy_dist.importing:install",
    "pandas": "numpy_dist.importing:install",
    "scipy": "numpy_dist.interop.scipy_functions:register",
}
# Of these, those that are on unless ``PLUGINS`` says otherwise: without them `hist` reads element by element, and masks
# of frames are errors.
ON_FROM_THE_START = ("matplotlib", "pandas")


@dataclass
class Plugin:
    """An installed plug-in.

    Attributes
    ----------
    name : str
        Of its entry point; ``PLUGINS`` knows it by that.
    package : str
        The top-level package that it is in.
    distribution : str
        What was installed, with its version.
    value : str
        Where it is: ``package.module`` or ``package.module:function``.
    error : str
        Why it could not be loaded; empty otherwise.
    loaded : bool
    """

    name: str
    package: str
    distribution: str
    value: str
    error: str = ""
    loaded: bool = False

    @property
    def state(self) -> str:
        """In words: on, for its own functions only, off, or broken."""
        if self.error:
            return f"broken: {self.error}"
        permission = permission_of(self.name, config.PLUGINS)
        if permission == "own" and self.package == "numpy_dist":
            permission = "none"
        return {"all": "on", "own": "on for functions of its own package only", "none": "off"}[permission]

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution}, {self.value}): {self.state}"

    __repr__ = __str__


class Plugins(list[Plugin]):
    """A list of plug-ins; it prints itself, one to a line."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no plug-ins"

    __repr__ = __str__


_known: Plugins | None = None


def plugins() -> Plugins:
    """The installed plug-ins, in the order in which they are loaded; loads them."""
    load()
    registry.load()
    return Plugins(_known or ())


@cache
def permission_of(name: str, setting: str) -> str:
    """What a plug-in may override by the setting ``PLUGINS``: "all", "own" (its package's functions) or "none"."""
    usual = permission = "all" if name in ON_FROM_THE_START else "own"
    for word in setting.split(","):
        if word in ("all", "none"):
            permission = word
        elif word == "own":
            permission = usual
    for word in setting.split(","):
        if word == name:
            permission = "all"
        elif word == f"-{name}":
            permission = "none"
    return permission


def load() -> None:
    """Load all plug-ins that are not switched off, once, in the order of their names."""
    global _known
    if _known is None:
        points = list(importlib.metadata.entry_points(group=GROUP))
        points += [importlib.metadata.EntryPoint(name, value, GROUP) for name, value in COMING_ALONG.items()]
        found = sorted(points, key=lambda point: (point.name, point.value))
        _known = Plugins(_plugin(point) for point in found)
        _points.extend(found)
    for plugin, point in zip(_known, _points, strict=True):
        if not plugin.loaded and not plugin.error and _is_needed(plugin):
            _load(plugin, point)


def _is_needed(plugin: Plugin) -> bool:
    permission = permission_of(plugin.name, config.PLUGINS)
    if plugin.package != "numpy_dist":
        return permission != "none"
    # "all" means those whose library is there; what is named and is not there is an error.
    is_there = plugin.name in config.PLUGINS.split(",") or importlib.util.find_spec(plugin.name) is not None
    return permission == "all" and is_there


_points: list[importlib.metadata.EntryPoint] = []


def _hint(frame: FrameType) -> str:
    """Of a plug-in that comes along, is off, and is about the library that asks for an ndarray."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if package not in COMING_ALONG or permission_of(package, config.PLUGINS) == "all":
        return ""
    return (
        f"the plug-in {package!r}, which is off, has functions of {package} that work on shards "
        f"(NUMPY_DIST_PLUGINS={package} switches it on); "
    )


policy.HINTS.append(_hint)


def _plugin(point: importlib.metadata.EntryPoint) -> Plugin:
    package = point.value.partition(":")[0].partition(".")[0]
    came_along = "numpy_dist itself" if package == "numpy_dist" else "unknown"
    distribution = came_along if point.dist is None else f"{point.dist.name} {point.dist.version}"
    return Plugin(point.name, package, distribution, point.value)


def _load(plugin: Plugin, point: importlib.metadata.EntryPoint) -> None:
    """Load one plug-in. What it registers before it breaks is withdrawn, and the others are not concerned."""
    before = {id(rule) for _, rule in registry.outside()}
    overrides.loading.append((plugin, _why_off))
    try:
        found = point.load()
        if callable(found):
            found()
        plugin.loaded = True
    except Exception as error:  # somebody else's code: anything may happen
        plugin.error = f"{type(error).__name__}: {error}"
    finally:
        overrides.loading.pop()
    if plugin.error:
        for key, rule in registry.outside():
            if id(rule) not in before:
                registry.remove(key, rule)
        warnings.warn(
            f"the plug-in {plugin.name!r} of {plugin.distribution} ({plugin.value}) cannot be loaded: {plugin.error}; "
            f"its overrides are not there. NUMPY_DIST_PLUGINS=-{plugin.name} switches it off",
            OverrideWarning,
            stacklevel=stack_level(ours=True),
        )


def _why_off(plugin: Plugin, key: Key) -> Callable[[], str | None]:
    own = _owns(plugin.package, key)

    def why_off() -> str | None:
        permission = permission_of(plugin.name, config.PLUGINS)
        if permission == "all" or (own and permission == "own"):
            return None
        if permission == "none":
            return f"PLUGINS is {config.PLUGINS!r}"
        return f"the plug-in {plugin.name} does not own the function; PLUGINS={plugin.name} enables it"

    return why_off


def _owns(package: str, key: Key) -> bool:
    """Whether a function belongs to a package.

    Ufuncs do not know where they belong: its modules are searched, which may also have imported NumPy's own.
    """
    target = key[0] if isinstance(key, tuple) else key
    if isinstance(target, np.ufunc):
        if package != "numpy" and _owns("numpy", target):
            return False
        for name, module in list(sys.modules.items()):
            if name == package or name.startswith(f"{package}."):
                if any(value is target or getattr(value, "ufunc", None) is target for value in vars(module).values()):
                    return True
        return False
    return (getattr(target, "__module__", None) or "").partition(".")[0] == package


def _changed() -> None:
    """``PLUGINS`` was set: load what is on now, and let calls of other libraries' functions reach the table."""
    if _known is None and config.PLUGINS == "own":
        return
    load()
    names = [plugin.name for plugin in _known or ()]
    for word in config.PLUGINS.split(","):
        if word not in (*names, "own", "all", "none") and not word.startswith("-"):
            warnings.warn(
                f"PLUGINS names {word!r}, and there is no such plug-in; there are {', '.join(names)}",
                OverrideWarning,
                stacklevel=stack_level(ours=True),
            )
    for key, rule in registry.outside():
        if rule.why_off is not None and rule.why_off() is None:
            entries.install(key)


registry.LOADED.append(load)
settings.LISTENERS["PLUGINS"] = _changed
if config.PLUGINS != "own":
    _changed()
