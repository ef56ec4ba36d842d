"""Overrides: implementations that come from outside of numpy_dist, from a program or from another package."""

from __future__ import annotations

import contextvars
import importlib.metadata
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from numpy_dist.argument_types import Function
from numpy_dist.comm import detect
from numpy_dist.comm.divergence import fingerprint
from numpy_dist.dispatch.core import entries, guard, registry, signatures
from numpy_dist.dispatch.core.keys import Key, key_of, name_of
from numpy_dist.dispatch.core.registry import KINDS, Rule
from numpy_dist.errors import OverrideWarning

__all__ = ["Override", "Overrides", "implements", "overrides", "overriding", "withdraw"]

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

# The overrides that `overriding` has put into force around the running code.
_in_force: contextvars.ContextVar[frozenset[int] | None] = detect.rank_local(
    contextvars.ContextVar("numpy_dist_overriding", default=None)
)


@dataclass(frozen=True)
class Override:
    """One implementation from outside of numpy_dist.

    Attributes
    ----------
    function : str
        What it implements.
    implementation : str
        Its name and module.
    package : str
        The package that it belongs to, with its version where it was installed.
    plugin : str
        The plug-in that brought it; empty for what a program has registered itself.
    kind : str
        As in `implements`.
    priority : int
    condition : str
        What it asks of arguments; empty if it takes all.
    off : str
        Why it is not asked at present; empty if it is.
    """

    function: str
    implementation: str
    package: str
    plugin: str
    kind: str
    priority: int
    condition: str
    off: str


class Overrides(list[Override]):
    """A list of overrides, by function, in the order in which they are asked; it prints itself as a table."""

    def __str__(self) -> str:
        if not self:
            return "no overrides"
        rows = [("function", "override", "package", "priority", "condition")]
        for x in self:
            origin = f"{x.package} (plug-in {x.plugin})" if x.plugin else x.package
            rows.append((x.function, x.implementation, origin, str(x.priority), x.condition or "always"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        marks = [f"  [off: {x.off}]" if x.off else "" for x in self]
        return "\n".join(line + mark for line, mark in zip(lines, ["", *marks], strict=True))

    __repr__ = __str__


class OutsideRule(Rule):
    """A rule from outside, with what only these have.

    Attributes
    ----------
    implementation : callable
        The function as it was registered.
    priority : int
    plugin : object or None
        The plug-in whose loading registered it.
    lasting : bool
        Whether it stays until it is withdrawn.
    """

    __slots__ = ("implementation", "lasting", "plugin", "priority")

    implementation: Function
    lasting: bool
    plugin: object
    priority: int

    @property
    def described(self) -> str:
        """The implementation's name, module and package."""
        return f"{self.source}.{self.implementation.__qualname__} (package {package_of(self.source)})"


# The plug-in that is being loaded, and a function that tells why its rules for a key would be off.
loading: list[tuple[Any, Callable[[Any, Key], Callable[[], str | None]]]] = []


def implements(
    *functions: Function,
    method: str | None = None,
    when: Callable[..., object] | None = None,
    reason: str | None = None,
    kind: str = "native",
    priority: int = 0,
    replicated: bool = False,
    shape: Callable[..., Iterable[int]] | None = None,
    varies: tuple[str, ...] = (),
) -> Callable[[Implementation], Implementation]:
    """Register the decorated function as the implementation of others for distributed arrays.

    Every rank registers the same ones. They are asked before numpy_dist's own: those of higher `priority` first, of
    equal ones the program's before those of plug-ins, and the latest first.

    Parameters
    ----------
    *functions : callable
        Functions and ufuncs of NumPy, SciPy, Numba and others, ufunc methods (``np.add.at``), and functions of your own
        (best those decorated with `dispatchable`). The class ``np.ufunc``, with `method`, stands for every ufunc.
    method : str, optional
        A ufunc method: "reduce", "accumulate", "reduceat", "outer" or "at".
    when : callable, optional
        ``when(*args, **kwargs)`` tells whether it applies, from what all ranks share: shapes, dtypes, layouts.
    reason : str, optional
        What `when` asks for (``"needs a 1-D array"``).
    kind : str
        "elementwise" (the result has the shape to which arrays broadcast) and "reduction" (that of the first argument
        without `axis`) are checked; any other of numpy_dist's kinds only informs.
    priority : int
    replicated : bool
        Whether it is also asked where no argument is cut into shards (by default the function itself computes that).
    shape : callable, optional
        ``shape(*args, **kwargs)`` is the shape that the result must have.
    varies : tuple of str
        Parameters that not every version of the function has; they are not compared.

    Raises
    ------
    TypeError
        If the signatures differ (the message shows both), or the function cannot be overridden.

    Warns
    -----
    OverrideWarning
        If it clashes with another package's: of the same function and priority, and without a condition. If the
        signatures differ while a plug-in is loaded, which may be older or newer than the library: the function is left
        out, and what else the plug-in registers stays.
    """
    if not functions:
        raise TypeError("implements takes the functions that are implemented: @numpy_dist.implements(np.sum)")
    _check_options(kind, when, shape)
    keys = [key_of(function, method) for function in functions]
    for key in keys:
        entries.places(key)

    def register(function: Implementation) -> Implementation:
        if not callable(function):
            raise TypeError(f"implements(...) decorates a function, not {function!r}")
        # All rules are made before one is entered: a signature that is refused must leave nothing behind.
        options = (kind, when, reason, priority, replicated, shape, varies)
        try:
            rules = [(key, _rule(function, key, *options)) for key in keys]
        except signatures.SignatureError as error:
            if not loading:
                raise
            text = f"the plug-in {loading[-1][0].name!r} leaves a function out: {error}"
            warnings.warn(text, OverrideWarning, stacklevel=_level())
            return function
        for key, rule in rules:
            _enter(key, rule)
        return function

    return register


def _check_options(kind: str, when: object, shape: object) -> None:
    allowed = [name for name in KINDS if name not in ("gathered", "refused")]
    if kind not in allowed:
        raise ValueError(f"unknown kind {kind!r}; the kinds of overrides are {', '.join(allowed)}")
    for name, value in (("when", when), ("shape", shape)):
        if value is not None and not callable(value):
            raise TypeError(f"{name}= takes a function of the call's arguments, not {type(value).__name__}")


def _rule(
    function: Function,
    key: Key,
    kind: str,
    when: Callable[..., object] | None,
    reason: str | None,
    priority: int,
    replicated: bool,
    shape: Callable[..., Iterable[int]] | None,
    varies: tuple[str, ...],
) -> OutsideRule:
    rule = OutsideRule(None, kind, when, reason, function.__module__)
    rule.implementation, rule.priority, rule.lasting, rule.plugin = function, int(priority), True, None
    rule.house, rule.replicated = False, replicated
    rule.read_signature(function, key, varies)
    rule.place = (0, -rule.priority, 0, rule.place[-1] if rule.place[0] == 0 else -rule.place[-1])
    if loading:
        rule.plugin, why_off = loading[-1]
        rule.why_off = why_off(rule.plugin, key)
        rule.place = (0, -rule.priority, 1, -rule.place[-1])
    rule.function = guard.guarded(rule, key, shape)
    return rule


def _enter(key: Key, rule: OutsideRule) -> None:
    """Put a rule into the table: in place of one of the same name, and with a complaint about clashes."""
    known = [other for other_key, other in registry.outside() if other_key == key and isinstance(other, OutsideRule)]
    for other in known:
        if rule.lasting and other.lasting and _is_same(rule, other):  # a notebook's cell that is run again
            registry.remove(key, other)
    if rule.why_off is None or rule.why_off() is None:
        entries.install(key)
    registry.add(key, rule)
    _tell(rule)
    for other in known:
        if _clash(rule, other):
            first, second = sorted((rule, other), key=lambda one: one.place)
            warnings.warn(
                f"two packages override {name_of(key)}: {first.described} is asked, and {second.described} is not "
                "unless it declines; give one of them another priority, or switch one off with "
                "numpy_dist.config.PLUGINS or numpy_dist.withdraw",
                OverrideWarning,
                stacklevel=_level(),
            )


def _is_same(rule: OutsideRule, other: OutsideRule) -> bool:
    names = [(x.source, x.implementation.__qualname__, x.plugin) for x in (rule, other)]
    return names[0] == names[1] and "<lambda>" not in names[0][1] and rule.implementation is not other.implementation


def _clash(rule: OutsideRule, other: OutsideRule) -> bool:
    packages = [x.source.partition(".")[0] for x in (rule, other)]
    asked = all(x.lasting and x.when is None and (x.why_off is None or x.why_off() is None) for x in (rule, other))
    return asked and packages[0] != packages[1] and rule.priority == other.priority


def _level() -> int:
    """The stack level, counted from the caller, of the first frame outside of this package."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("numpy_dist.dispatch.core"):
        level, frame = level + 1, frame.f_back
    return level


def withdraw(implementation: Function, *functions: Function, method: str | None = None) -> None:
    """Remove an override. Every rank does.

    Parameters
    ----------
    implementation : callable
        The function that was registered with `implements`.
    *functions : callable
        Which of the functions that it implements are meant; by default all.

    Raises
    ------
    ValueError
        If it implements none of them.
    """
    wanted = [key_of(function, method) for function in functions]
    found = [
        (key, rule)
        for key, rule in registry.outside()
        if getattr(rule, "implementation", rule.function) is implementation and (not wanted or key in wanted)
    ]
    if not found:
        names = ", ".join(map(name_of, wanted)) or "anything"
        raise ValueError(f"{name_of(implementation)} is not registered as an override of {names}")
    for key, rule in found:
        _leave(key, rule)


def _leave(key: Key, rule: Rule) -> None:
    registry.remove(key, rule)
    _tell(rule)
    if not any(other == key for other, _ in registry.outside()):
        entries.uninstall(key)


@contextmanager
def overriding(function: Function, implementation: Function, **options: Any) -> Iterator[None]:
    """Within the block, and in the running context only, an implementation overrides a function.

    Every rank enters the block. It is asked before all overrides of the same priority.

    Parameters
    ----------
    function : callable
        As in `implements`.
    implementation : callable
        With the function's signature.
    **options
        `method`, `when`, `reason`, `kind`, `priority`, `replicated`, `shape` and `varies` of `implements`.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy_dist
    >>> x = numpy_dist.arange(100_000.0)
    >>> def quick(a, axis=None, dtype=None, out=None):
    ...     return "quick"
    >>> with numpy_dist.overriding(np.cumsum, quick):
    ...     np.cumsum(x)
    'quick'
    """
    key = key_of(function, options.pop("method", None))
    given = {"kind": "native", "when": None, "reason": None, "priority": 0, "replicated": False, "shape": None}
    unknown = options.keys() - given.keys() - {"varies"}
    if unknown:
        raise TypeError(f"overriding has no option {', '.join(sorted(unknown))}")
    rule = _rule(implementation, key, **{"varies": (), **given, **options})
    number = id(rule)
    rule.lasting = False
    rule.why_off = lambda: None if number in (_in_force.get() or ()) else ""
    token = _in_force.set((_in_force.get() or frozenset()) | {number})
    try:
        _enter(key, rule)
        yield
    finally:
        _in_force.reset(token)
        _leave(key, rule)


def overrides(function: Function | None = None) -> Overrides:
    """All implementations that come from outside of numpy_dist, in the order in which they are asked.

    Parameters
    ----------
    function : callable, optional
        Only those of this function, ufunc or ufunc method.
    """
    registry.load()
    wanted = None if function is None else key_of(function)
    found = Overrides()
    for key, rule in sorted(registry.outside(), key=lambda entry: (name_of(entry[0]), entry[1].place)):
        if wanted is None or key == wanted:
            found.append(_listed(key, rule))
    return found


def _listed(key: Key, rule: Rule) -> Override:
    off = rule.why_off() if rule.why_off is not None else None
    outside = isinstance(rule, OutsideRule)
    implementation = rule.implementation if outside else rule.function  # type: ignore[attr-defined]
    plugin = rule.plugin if outside else None  # type: ignore[attr-defined]
    condition = "" if rule.when is None else rule.reason or f"if {getattr(rule.when, '__qualname__', rule.when)}"
    return Override(
        name_of(key),
        f"{rule.source}.{getattr(implementation, '__qualname__', implementation)}",
        package_of(rule.source),
        "" if plugin is None else plugin.name,
        rule.kind,
        rule.priority if outside else 0,  # type: ignore[attr-defined]
        condition,
        off if off else "in force elsewhere" if off == "" else "",
    )


@cache
def package_of(module: str) -> str:
    """The package of a module, with the version of its distribution where it was installed."""
    package = module.partition(".")[0]
    for name in _distributions().get(package, ()):
        return f"{package} {importlib.metadata.version(name)}"
    return package


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


def _tell(rule: Rule) -> None:
    """After one came or went: the overrides of the program, for the comparison of the ranks in each collective."""
    if getattr(rule, "lasting", True) and getattr(rule, "plugin", None) is None:
        fingerprint.registered(f"{name}: {rules}" for name, rules in _fingerprint(plugins=False).items())


def _fingerprint(plugins: bool = True) -> dict[str, str]:
    """The lasting overrides, for the comparison of the ranks in their first collective."""
    found: dict[str, list[str]] = {}
    for key, rule in registry.outside():
        if getattr(rule, "lasting", True) and (plugins or getattr(rule, "plugin", None) is None):
            found.setdefault(f"override of {name_of(key)}", []).append(rule.described)
    return {name: ", then ".join(rules) for name, rules in sorted(found.items())}


fingerprint.PARTS.append(_fingerprint)
