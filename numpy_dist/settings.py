"""The settings: ``numpy_dist.config.NAME``, ``with numpy_dist.config(NAME=...)``, environment ``NUMPY_DIST_NAME``.

`MIN_SHARD_BYTES` and `FALLBACK` are read on hot paths, so a read is one context variable and one dict look-up.
"""

from __future__ import annotations

import contextvars
import importlib.metadata
import math
import os
import re
import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar, overload

from numpy_dist.argument_types import Keywords
from numpy_dist.errors import SettingError, SettingWarning

__all__ = ["Settings", "config"]

PREFIX = "NUMPY_DIST_"
_UNITS = {"": 0, "B": 0, "K": 10, "KIB": 10, "M": 20, "MIB": 20, "G": 30, "GIB": 30, "T": 40, "TIB": 40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")

# What the `with config(...)` blocks around the running code have set, innermost merged over outer; None outside of all.
_nested: contextvars.ContextVar[Keywords | None] = contextvars.ContextVar("numpy_dist_config", default=None)

MEASURED = "measured"
_BACKENDS = ("auto", "mixed", "numpy", "numba", "cupy", "null", "fake")
_FOR_ALL = ("auto", "mixed", "null")  # are no backend of a single rank


def _plugins_asked_for() -> None:
    """Import the arrays, and with them plug-ins: later imports of single functions find those of the plug-ins."""
    importlib.import_module("numpy_dist.distarray")


LISTENERS: dict[str, Callable[[], None]] = {"PLUGINS": _plugins_asked_for}
"""By the name of a setting: what is called when it was set, or a block that sets it was entered."""

MIRRORS: dict[str, Callable[[], None]] = {}
"""By the name of a setting: what keeps a copy of its value, called when it may have another one."""

T = TypeVar("T")


def _refuse(name: str, value: object, allowed: str) -> NoReturn:
    raise ValueError(f"{name}={value!r} is not allowed; {name} is {allowed}")


def _one_of(*words: str) -> Callable[[str, object], str]:
    """A parser for a setting that takes one of some words."""

    def parse(name: str, value: object) -> str:
        if "on" in words and (isinstance(value, bool) or value in ("0", "1")):
            return "on" if value in (True, "1") else "off"
        if not isinstance(value, str) or value.strip().lower() not in words:
            _refuse(name, value, "one of " + ", ".join(words))
        return value.strip().lower()

    return parse


def _count(name: str, value: object) -> int:
    """A parser for a number of things, where 0 stands for "auto"."""
    allowed = "an integer >= 0, or 'auto' (the same as 0)"
    if isinstance(value, str):
        text = value.strip().lower()
        if text == "auto":
            return 0
        if not text.isdecimal():
            _refuse(name, value, allowed)
        return int(text)
    return _integer(name, value, allowed)


def _integer(name: str, value: object, allowed: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        _refuse(name, value, allowed)
    number = value.__index__()
    if number < 0:
        _refuse(name, value, allowed)
    return int(number)


def _bytes(name: str, value: object) -> int:
    """A parser for a number of bytes: an integer, or a text such as ``"2GiB"``."""
    allowed = "a number of bytes >= 0, as an integer or as a text like '512MiB' or '2GiB'"
    if name == "AT_ONCE":
        allowed += ", or 'auto' (as MIN_SHARD_BYTES), or 'off' (the same as 0)"
    if name == "MEMORY_BUDGET":
        allowed += ", or 'auto' (the same as 0: half of the available memory divided by the ranks of this machine)"
        if isinstance(value, str) and value.strip().lower() == "auto":
            return 0
    if not isinstance(value, str):
        return _integer(name, value, allowed)
    match = _SIZE.fullmatch(value)
    if match is None or match[2].upper() not in _UNITS:
        _refuse(name, value, allowed)
    shift = _UNITS[match[2].upper()]
    return int(match[1]) << shift if match[1].isdecimal() else int(float(match[1]) * 2**shift)


def _at_once(name: str, value: object) -> int | str:
    """A parser for a number of bytes, or "auto"; "off" is 0."""
    if isinstance(value, str) and value.strip().lower() in ("auto", "on", "off"):
        return 0 if value.strip().lower() == "off" else "auto"
    return _bytes(name, value)


def _seconds(name: str, value: Any) -> float:
    """A parser for a time in seconds, where 0 is "off"."""
    allowed = "a number of seconds >= 0, or 'off' (the same as 0)"
    if isinstance(value, str) and value.strip().lower() == "off":
        return 0.0
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        _refuse(name, value, allowed)
    return number


def _weights(name: str, value: Any) -> tuple[float, ...] | str:
    """A parser for one positive number for each rank; the empty tuple where all are equal, or there are none."""
    allowed = "a positive number for each rank, as a sequence or a text like '2,1,1', or 'measured'; empty: all alike"
    if isinstance(value, str) and value.strip().lower() == MEASURED:
        return MEASURED
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    try:
        found = tuple(math.nan if isinstance(word, bool) else float(word) for word in words)
    except (TypeError, ValueError):
        found = (math.nan,)
    if not all(0 < weight < math.inf for weight in found):
        _refuse(name, value, allowed)
    return found if len(set(found)) > 1 else ()


def _plugins(name: str, value: object) -> str:
    """A parser for what plug-ins may do: words, and names of plug-ins with or without a minus, between commas."""
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else []
    if not words or not all(re.fullmatch(r"-?[\w.-]+", word) for word in words):
        _refuse(
            name,
            value,
            "'own' (plug-ins override functions of their own packages), 'all' or 'none', and names of plug-ins that "
            "are to be on altogether, or off ('-name'), between commas",
        )
    return ",".join(words)


def _backend(name: str, value: object) -> str:
    """A parser for a backend, or those of the ranks between commas.

    They are ours, or of the entry points in the group ``numpy_dist.backends``.
    """
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else []
    found = [word.lower() if word.lower() in _BACKENDS else word for word in words]
    if not found or not set(found) <= set(_BACKENDS) or len(found) > 1 and not set(found).isdisjoint(_FOR_ALL):
        others = sorted({point.name for point in importlib.metadata.entry_points(group="numpy_dist.backends")})
        allowed = {*_BACKENDS, *others} - set(_FOR_ALL if len(found) > 1 else ())
        if not found or not set(found) <= allowed:
            known = ", ".join((*_BACKENDS, *others))
            _refuse(name, value, f"one of {known}, or one for each rank between commas, but for {', '.join(_FOR_ALL)}")
    return ",".join(found)


def _directory(name: str, value: object) -> str:
    """A parser for a folder, which need not exist."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str) or not os.fspath(value):
        _refuse(name, value, "the path of a folder (it is made when it is needed)")
    return os.path.abspath(os.path.expanduser(os.fspath(value)))


def _folder(name: str, value: object) -> str:
    """A parser for a folder, or none."""
    return "" if value == "" else _directory(name, value)


def _default_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "numpy_dist")


class Setting(Generic[T]):
    """One setting: its default, its parser, and the attribute of `Settings` that reads it."""

    __slots__ = ("default", "documentation", "name", "parse")

    def __init__(self, parse: Callable[[str, object], T], default: T, documentation: str) -> None:
        self.parse = parse
        self.default = default
        self.documentation = documentation
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, instance: Settings, owner: type) -> T: ...
    def __get__(self, instance: Settings | None, owner: type) -> Setting[T] | T:
        if instance is None:
            return self
        nested = _nested.get()
        if nested is not None and self.name in nested:
            return nested[self.name]
        return instance._values[self.name]

    def __set__(self, instance: Settings, value: object) -> None:
        instance._values[self.name] = self.parse(self.name, value)


class StartSetting(Setting[T]):
    """A setting that a rank reads when it starts: with its first distributed array, or its first message."""

    __slots__ = ("reads",)

    def __init__(self, parse: Callable[[str, object], T], default: T, documentation: str) -> None:
        super().__init__(parse, default, documentation)
        self.reads = 0

    @overload
    def __get__(self, instance: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, instance: Settings, owner: type) -> T: ...
    def __get__(self, instance: Settings | None, owner: type) -> Setting[T] | T:
        if instance is not None:
            self.reads += 1
        return super().__get__(instance, owner)

    def __set__(self, instance: Settings, value: object) -> None:
        before = instance._values[self.name]
        super().__set__(instance, value)
        if self.reads and instance._values[self.name] != before:
            self.warn(value, stacklevel=3)

    def warn(self, value: object, stacklevel: int) -> None:
        """Warn that the value came too late."""
        warnings.warn(
            f"{self.name}={value!r} has no effect: {self.name} was read when the first distributed array was made. "
            f"Set it before, or start the process with the environment variable {PREFIX}{self.name}",
            SettingWarning,
            stacklevel=stacklevel + 1,
        )


class Settings:
    """All settings of numpy_dist, with their values.

    ``config.NAME`` reads a setting and ``config.NAME = value`` sets it for the whole process. ``with
    config(NAME=value, ...):`` sets it for the block only, in the running context (a thread or task of its own is not
    touched); such blocks nest, and win over the process-wide value. The environment variable ``NUMPY_DIST_NAME`` gives
    the value that a process starts with. All ranks must have the same values.

    BACKEND, NUM_THREADS, CACHE_DIR, CACHE_SIZE, COMPILE, COMPILE_AFTER, TRANSPORT and PROFILE are read when a rank
    starts, with its first distributed array. Another value that is set later, or a block in which no rank has started,
    gets a `SettingWarning`.

    Raises
    ------
    AttributeError
        For a name that is no setting.
    ValueError
        For a value that is not allowed. The message names the setting, the value, and what is allowed.

    Examples
    --------
    >>> from numpy_dist.settings import config
    >>> with config(FALLBACK="silent", MEMORY_BUDGET="2GiB"):
    ...     config.FALLBACK, config.MEMORY_BUDGET
    ('silent', 2147483648)
    """

    __slots__ = ("_values",)

    BACKEND = StartSetting(
        _backend,
        "auto",
        "What computes on the shards; mixed: GPUs on ranks that have them; names between commas: by rank, over again.",
    )
    FALLBACK = Setting(_one_of("warn", "error", "silent"), "warn", "What happens where only gathered NumPy can do it.")
    MIN_SHARD_BYTES = Setting(_bytes, 262144, "Arrays of at least this many bytes are sharded when they are created.")
    AT_ONCE: Setting[int | str] = Setting(
        _at_once, "auto", "Arrays and parts of fewer bytes are worked on at once; auto: MIN_SHARD_BYTES; 0: none."
    )
    NUM_THREADS = StartSetting(_count, 0, "Threads for each rank; 0: as many as the rank may use.")
    PLUGINS = Setting(
        _plugins, "own", "Which plug-ins are on: own (and matplotlib, pandas), all, none, names, names with a minus."
    )
    ADVICE = Setting(_one_of("on", "off"), "on", "Whether a running program is told, once a line, what makes it slow.")
    WEIGHTS: Setting[tuple[float, ...] | str] = Setting(
        _weights,
        (),
        "How much each rank gets of new arrays, beside the others; measured: as its speed is; empty: all equally much.",
    )
    RANK_ORDER = StartSetting(
        _one_of("mpi", "node"),
        "mpi",
        "Whether ranks have MPI's numbers, or go node by node; where they differ, rank 0's setting counts.",
    )
    REPORT = Setting(_one_of("off", "on"), "off", "Whether it is counted, and told at exit, what ran where.")
    CACHE_DIR = StartSetting(_directory, _default_cache(), "Where compiled kernels are kept.")
    CACHE_SIZE = StartSetting(_bytes, 256 << 20, "The bytes that compiled kernels may take there.")
    COMPILE = StartSetting(_one_of("auto", "first", "never"), "auto", "When a group of statements is compiled.")
    COMPILE_AFTER = StartSetting(
        _seconds, 60.0, "Seconds (60 at most) after a script's end in which what it asked for is compiled; 0: none."
    )
    TRANSPORT = StartSetting(_one_of("auto", "mpi-gpu", "nccl", "ipc", "host"), "auto", "How shards on GPUs travel.")
    PROFILE = StartSetting(_folder, "", "The folder of a profile of the whole program; empty: there is none.")
    MEMORY_BUDGET = Setting(_bytes, 0, "The bytes that a gather may take on one rank; 0: worked out from free memory.")
    CHECK = Setting(_one_of("off", "on"), "off", "Whether ranks compare what they do, and replicated inputs.")
    TIMEOUT = Setting(_seconds, 0.0, "Seconds of waiting after which it is printed where every rank is; 0: never.")
    ON_TIMEOUT = Setting(_one_of("report", "end"), "report", "Whether the job ends after that is printed.")
    TRACEBACK = Setting(
        _one_of("short", "full"), "short", "Whether the report of an error that is shown has numpy_dist's lines."
    )

    _values: dict[str, Any]

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        values = {}
        for name in NAMES:
            setting = vars(Settings)[name]
            text = environ.get(PREFIX + name, "")
            try:
                # An empty variable is what a shell leaves where a variable was cleared: the same as none.
                values[name] = setting.parse(name, text) if text.strip() else setting.default
            except ValueError as error:
                raise SettingError(PREFIX + name, str(error)) from None
        object.__setattr__(self, "_values", values)

    def __call__(self, **values: object) -> SettingsBlock:
        """A context manager inside which the given settings have the given values."""
        parsed = {}
        for name, value in values.items():
            if name not in NAMES:
                self.__getattr__(name)
            parsed[name] = vars(Settings)[name].parse(name, value)
        return SettingsBlock(parsed)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"numpy_dist has no setting {name!r}; the settings are {', '.join(NAMES)}")

    def __setattr__(self, name: str, value: object) -> None:
        if name not in NAMES:
            self.__getattr__(name)
        object.__setattr__(self, name, value)
        if name in LISTENERS:
            LISTENERS[name]()
        if name in MIRRORS:
            MIRRORS[name]()

    def __dir__(self) -> list[str]:
        return [*NAMES, "snapshot"]

    def snapshot(self) -> dict[str, object]:
        """The value of every setting, as the running context sees it."""
        return self._values | (_nested.get() or {})

    def __repr__(self) -> str:
        return "Settings(" + ", ".join(f"{name}={value!r}" for name, value in self.snapshot().items()) + ")"


NAMES = tuple(name for name, value in vars(Settings).items() if isinstance(value, Setting))


def _described(name: str, indent: str) -> str:
    setting = vars(Settings)[name]
    default = "a folder for caches in the home folder" if name == "CACHE_DIR" else repr(setting.default)
    return f"{indent}{name}\n{indent}    {setting.documentation} Default: {default}."


if Settings.__doc__ is not None:  # there is none under -OO; Python 3.13 takes the indentation away
    _indent = "    " if "\n    Raises\n" in Settings.__doc__ else ""
    _before, _section, _after = Settings.__doc__.partition(f"\n{_indent}Raises\n")
    _lines = [f"{_indent}Attributes", f"{_indent}----------", *(_described(name, _indent) for name in NAMES)]
    Settings.__doc__ = _before + "\n" + "\n".join(_lines) + "\n" + _section + _after


class SettingsBlock:
    """What ``config(NAME=value)`` returns. It may be entered again, also while it is entered."""

    __slots__ = ("_late", "_tokens", "_values")

    def __init__(self, values: Keywords) -> None:
        self._values = values
        self._tokens: list[contextvars.Token[Keywords | None]] = []
        self._late: list[dict[StartSetting[object], int]] = []

    def __enter__(self) -> Settings:
        before = config.snapshot()
        self._tokens.append(_nested.set((_nested.get() or {}) | self._values))
        changed = (vars(Settings)[name] for name, value in self._values.items() if value != before[name])
        self._late.append({s: s.reads for s in changed if isinstance(s, StartSetting) and s.reads})
        for name in LISTENERS.keys() & self._values.keys():
            LISTENERS[name]()
        self._mirror()
        return config

    def _mirror(self) -> None:
        for name in MIRRORS.keys() & self._values.keys():
            MIRRORS[name]()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _nested.reset(self._tokens.pop())
        self._mirror()
        for setting, reads in self._late.pop().items():
            if setting.reads == reads and kind is None:  # no rank has started in the block
                setting.warn(self._values[setting.name], stacklevel=2)


config = Settings()
