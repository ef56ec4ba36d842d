"""One table of implementations: for each function, ufunc and ufunc method an ordered list of rules.

The table is filled by the modules of `numpy_dist.dispatch.functions` at the first dispatch, not at import; rules from
elsewhere (a user's, a library's: see `overrides`) go before the house's, by priority, the latest first.
"""

from __future__ import annotations

import importlib
import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

import numpy as np

from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.dispatch.core import signatures
from numpy_dist.dispatch.core.keys import Key, key_of, name_of

KINDS = (
    "native",
    "elementwise",
    "reduction",
    "scan",
    "structural",
    "axis-local",
    "parallel",
    "composed",
    "gathered",
    "refused",
)
HOUSE = "numpy_dist.dispatch"
FUNCTIONS = f"{HOUSE}.functions"

Implementation = TypeVar("Implementation", bound=Function)


class Declined(Exception):
    """A rule does not apply to these arguments: the next one is asked, at last the fallback."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def decline(reason: str) -> NoReturn:
    """Leave the call to the next rule; to be called before anything was communicated or written.

    Parameters
    ----------
    reason : str
        What this rule cannot do; the warning of the fallback says it. It must be the same on every rank.
    """
    raise Declined(reason)


class Outlook(NamedTuple):
    """What a rule would do with the arguments of one call, as `explain` tells it.

    Attributes
    ----------
    how : str
        "gathered" (it would decline), "replicated", or the rule's kind.
    note : str
        What is communicated, or why it is gathered.
    nbytes : int
        Bytes of the sharded arrays that would come to every rank.
    """

    how: str
    note: str
    nbytes: int = 0


class Rule:
    """One way to compute a function.

    Attributes
    ----------
    function : callable or None
        The implementation, with NumPy's own signature; None for kinds "gathered" and "refused".
    kind : str
        One of `KINDS`.
    when : callable or None
        ``when(*args, **kwargs)`` tells from metadata whether the rule applies.
    reason : str or None
        What `when` asks for, or why the function is gathered or refused.
    source : str
        The module that registered it.
    wants_ufunc : bool
        Whether the ufunc itself goes before the inputs.
    lacks : frozenset of str
        Parameters of this NumPy that the implementation does not have.
    positions : int
        Where it lacks some: how many arguments it takes by position as NumPy does.
    replicated : bool
        Whether the rule is asked although no argument is sharded (else plain NumPy computes that).
    house : bool
        Whether it is one of numpy_dist's own.
    why_off : callable or None
        Tells why the rule is not asked at present, None if it is; None for rules that always are.
    outlook : callable or None
        ``outlook(*args, **kwargs)`` tells from metadata, as an `Outlook`, what the rule would do.
    alone : bool or callable
        Whether NumPy itself is called where one process has all elements in its host's memory.
    instead : callable or None
        What is called then in the place of NumPy's function.
    place : tuple
        Rules are asked in ascending order of it.
    unread : tuple or None
        The arguments of `read_signature` where that is left to the first who asks for what it finds out.
    """

    lacks: frozenset[str]
    positions: int
    wants_ufunc: bool

    __slots__ = (
        "alone",
        "function",
        "house",
        "instead",
        "kind",
        "lacks",
        "outlook",
        "place",
        "positions",
        "reason",
        "replicated",
        "source",
        "unread",
        "wants_ufunc",
        "when",
        "why_off",
    )

    def __init__(
        self,
        function: Function | None,
        kind: str,
        when: Callable[..., object] | None = None,
        reason: str | None = None,
        source: str = "",
    ) -> None:
        self.function, self.kind, self.when, self.reason, self.source = function, kind, when, reason, source
        self.unread: tuple[Function, Key, tuple[str, ...]] | None = None
        self.house = source.startswith(HOUSE)
        self.replicated = not self.house or kind in ("structural", "refused")
        self.why_off: Callable[[], str | None] | None = None
        self.outlook: Callable[..., Outlook] | None = None
        self.alone: bool | Callable[..., bool] = False
        self.instead: Function | None = None
        number = next(_numbers)
        self.place: tuple[int, ...] = (1, number) if self.house else (0, 0, 0, -number)

    def __repr__(self) -> str:
        return f"Rule({self.kind}, {self.described})"

    @property
    def described(self) -> str:
        """The implementation's name and module."""
        if self.function is None:
            return f"declared in {self.source}"
        return f"{self.source}.{self.function.__qualname__}"

    def read_signature(self, function: Function, key: Key, varies: tuple[str, ...] = ()) -> None:
        """Compare the signatures of an implementation and of what it implements; raises SignatureError."""
        self.lacks = signatures.check(function, key, varies)
        self.positions = signatures.shared_positions(function, key) if self.lacks else 0
        self.wants_ufunc = signatures.takes_ufunc(function, key)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """What `read_signature` finds out, while nobody has asked for it."""
            if name not in ("lacks", "positions", "wants_ufunc"):
                raise AttributeError(f"a rule has no {name}")
            if self.unread is None:
                self.lacks, self.positions, self.wants_ufunc = frozenset(), 0, False
            else:
                self.read_signature(*self.unread)
            return getattr(self, name)

    def unknown(self, args: Arguments, kwargs: Keywords) -> frozenset[str]:
        """The parameters of this NumPy that a call uses and the implementation lacks."""
        return self.lacks if len(args) > self.positions else self.lacks & kwargs.keys()

    def leaves_to_numpy(self, args: Arguments, kwargs: Keywords) -> bool:
        """Whether NumPy itself does a call where one process has all elements."""
        return self.alone if isinstance(self.alone, bool) else self.alone(*args, **kwargs)


class Record:
    """All rules of one function, ufunc or ufunc method, in the order in which they are asked."""

    __slots__ = ("name", "rules", "target")

    def __init__(self, target: Key) -> None:
        self.target = target
        self.name = name_of(target)
        self.rules: tuple[Rule, ...] = ()

    def __repr__(self) -> str:
        return f"Record({self.name}: {', '.join(rule.kind for rule in self.rules)})"

    @property
    def kind(self) -> str:
        """The kind of the first rule."""
        return self.rules[0].kind if self.rules else "gathered"

    @property
    def has_house_rule(self) -> bool:
        """Whether one of the rules is numpy_dist's own; of other ufuncs, the engine does what no rule takes."""
        return self.rules[-1].house if self.rules else False

    def add(self, rule: Rule) -> None:
        """Put a rule in its place: the house's in order, others before them."""
        self.rules = tuple(sorted((*self.rules, rule), key=lambda known: known.place))


_numbers = itertools.count()
TABLE: dict[Key, Record] = {}
_internal: dict[str, Function] = {}
# Called with a key when rules from elsewhere came for it, or went; and when the house's rules are there.
CHANGED: list[Callable[[Key], None]] = []
LOADED: list[Callable[[], None]] = []
loaded = False
_loading = False
_lock = threading.RLock()
_waiting: list[tuple[Key, Rule]] = []  # rules from elsewhere that were registered before the table was loaded


def add(key: Key, rule: Rule) -> None:
    """Enter a rule into the table."""
    if not loaded and not rule.house:
        _waiting.append((key, rule))
        return
    record = TABLE.get(key)
    if record is None:
        record = TABLE[key] = Record(key)
    record.add(rule)
    if not rule.house:
        _tell(key)


def remove(key: Key, rule: Rule) -> None:
    """Take a rule out of the table; a record that is left without rules goes, too."""
    if (key, rule) in _waiting:
        _waiting.remove((key, rule))
        return
    record = TABLE[key]
    record.rules = tuple(known for known in record.rules if known is not rule)
    if not record.rules:
        del TABLE[key]
    _tell(key)


def _tell(key: Key) -> None:
    for listener in CHANGED:
        listener(key)


def outside() -> list[tuple[Key, Rule]]:
    """All rules that are not numpy_dist's own, in the order in which they are asked, by function."""
    found = [(key, rule) for key, record in list(TABLE.items()) for rule in record.rules if not rule.house]
    return found + sorted(_waiting, key=lambda entry: entry[1].place)


def implements(
    *functions: Function,
    method: str | None = None,
    kind: str = "native",
    reason: str | None = None,
    when: Callable[..., object] | None = None,
    varies: tuple[str, ...] = (),
    replicated: bool | None = None,
    outlook: Callable[..., Outlook] | None = None,
    source: str | None = None,
    alone: bool | Callable[..., bool] = False,
    instead: Function | None = None,
) -> Callable[[Implementation], Implementation]:
    """Register the decorated function as an implementation for distributed arrays.

    Parameters
    ----------
    *functions : callable
        NumPy's functions or ufuncs, a ufunc's method (``np.add.at``), or functions of your own. The class ``np.ufunc``
        stands for every ufunc, with `method` ("reduce", "accumulate", "reduceat", "outer" or "at").
    kind : str
        One of `KINDS`, such as "composed"; with "refused" the decorated function is never called.
    reason : str, optional
        What `when` asks for (``"needs a 1-D array"``), or why the function is refused.
    when : callable, optional
        ``when(*args, **kwargs)`` tells whether the rule applies, from what all ranks share: shapes, dtypes, layouts.
    varies : tuple of str
        Parameters that not every supported version of NumPy has, or has in the same way.
    replicated : bool, optional
        Whether the rule is to be asked also where no argument is sharded. By default plain NumPy computes that, but for
        rules from outside of numpy_dist and for kinds "structural" and "refused".
    outlook : callable, optional
        ``outlook(*args, **kwargs)`` tells `explain`, from metadata, what the implementation would do (an `Outlook`).
    source : str, optional
        The module in whose name it is registered (``__name__``); by default that of the implementation.
    alone : bool or callable
        Whether NumPy itself is called where one process has all elements in its host's memory: for functions whose
        results have the same bits, and are no views. ``alone(*args, **kwargs)`` tells it, as `when` does.
    instead : callable, optional
        What is called then, with ndarrays, in the place of NumPy's function: it does the same on all threads.

    Raises
    ------
    TypeError
        If the implementation's signature is not that of the function (names, order, kinds and defaults of the
        parameters; ``like`` aside); of rules of the house when they are first asked, since reading hundreds of
        signatures takes a while at each start. Ufunc methods pass inputs by position and everything else by keyword,
        ``out`` always as a tuple; an implementation whose first parameter is called `ufunc` is given the ufunc.
    ValueError
        For an unknown kind.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; the kinds are {', '.join(KINDS)}")
    keys = [key_of(function, method) for function in functions]

    def register(function: Implementation) -> Implementation:
        for key in keys:
            rule = Rule(function, kind, when, reason, source or function.__module__)
            if kind not in ("refused", "gathered"):
                rule.unread = function, key, varies
                if not rule.house:
                    rule.read_signature(function, key, varies)
            if replicated is not None:
                rule.replicated = replicated
            rule.outlook, rule.alone, rule.instead = outlook, alone, instead
            add(key, rule)
        return function

    return register


def declare(*functions: object, kind: str, reason: str, source: str, method: str | None = None) -> None:
    """State that functions are "gathered" or "refused", and why.

    Parameters
    ----------
    *functions : callable
    kind : {"gathered", "refused"}
    reason : str
        The warning or error says it.
    source : str
        The module that says so (``__name__``).
    method : str, optional
        A ufunc method.
    """
    if kind not in ("gathered", "refused"):
        raise ValueError(f"only 'gathered' and 'refused' can be declared, not {kind!r}")
    for function in functions:
        add(key_of(function, method), Rule(None, kind, None, reason, source))


def internal(name: str) -> Callable[[Implementation], Implementation]:
    """Register the decorated function under a name, for an operation of arrays that no function of NumPy stands for."""

    def register(function: Implementation) -> Implementation:
        _internal[name] = function
        return function

    return register


def internal_function(name: str) -> Function:
    """The function that was registered with `internal`. It may raise `Declined`: the caller then falls back."""
    load()
    return _internal[name]


def load() -> None:
    """Fill the table: import the modules that `dispatch.functions` lists, once."""
    global loaded, _loading
    with _lock:
        if loaded or _loading:
            return
        _loading = True
        try:
            for name in importlib.import_module(FUNCTIONS).MODULES:
                importlib.import_module(f"{FUNCTIONS}.{name}")
            importlib.import_module("numpy_dist.dispatch.core.plugins")
        finally:
            _loading = False
        loaded = True
        waiting = list(_waiting)
        _waiting.clear()
        for key, rule in waiting:
            add(key, rule)
        for listener in LOADED:
            listener()


def lookup(target: Function, method: str | None = None) -> Record | None:
    """The record of a function, ufunc or ufunc method; for a method that has none of its own, that of all ufuncs."""
    load()
    key = key_of(target, method)
    record = TABLE.get(key)
    if record is None and isinstance(key, tuple):
        record = TABLE.get((np.ufunc, key[1]))
    return record
