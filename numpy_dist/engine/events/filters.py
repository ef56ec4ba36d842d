"""Warning filters as of a statement, under which its floating-point events are reported when it has been executed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_warnings: Any = warnings  # with the attributes that type checkers are not told of
# Since Python 3.14 each context (PEP 567) may have filters of its own.
CONTEXT_AWARE = bool(getattr(sys.flags, "context_aware_warnings", False))
_HOOKS = ("showwarning", "_showwarnmsg_impl")
_NEVER_READ_EARLY: list[object] = []  # recorders (see `lazily_recorded`)
_registries: dict[str, dict] = {}  # of code whose module is not among `sys.modules`, by file name


def current_filters() -> list[tuple]:
    """The list of filters in force. It is another object in each block of `warnings.catch_warnings`."""
    return _warnings._get_filters() if CONTEXT_AWARE else _warnings.filters


class Filters:
    """Snapshot of the warning filters, and of what is called with a warning that they let pass.

    Parameters
    ----------
    number : int
        Its name in events, the same on every rank.

    Attributes
    ----------
    prompt : bool
        Whether statements that may warn are executed at once: a filter may make an error of the warning, or it goes to
        a recorder that the user may read at any time, such as the list of ``catch_warnings(record=True)``.
    states : dict
        The error states that were met under these filters (see `floating.ErrorState`), by their capsules' ids.
    """

    __slots__ = ("_content", "_hooks", "_log", "_registries", "_source", "number", "prompt", "states")

    def __init__(self, number: int) -> None:
        self.number = number
        self._source = current_filters()
        self._content = list(self._source)
        self._hooks = {name: getattr(warnings, name) for name in _HOOKS if hasattr(warnings, name)}
        self._log = _warnings._get_context().log if CONTEXT_AWARE else None
        self._registries: dict[str, dict] = {}
        self.states: dict[int, tuple[object, Any]] = {}
        actions = _possible_actions(self._content)
        self.prompt = "error" in actions or (actions != {"ignore"} and _may_be_read(self._recorder()))

    def in_force(self) -> bool:
        """Whether these are the filters here and now."""
        now, content = current_filters(), self._content
        # The functions that change the list insert at its front, append, or put another list in its place.
        return now is self._source and len(now) == len(content) and (not now or now[0] is content[0])

    def warn(self, message: str, filename: str, line: int, module: str) -> None:
        """Issue a `RuntimeWarning` for a line of the user's as if these filters were in force.

        A warning that is shown once for each line is looked up in the registry of the user's module, as Python does;
        where the filters are no longer in force, in one of their own: a change of filters makes registries void.
        """
        if self.in_force():
            found = sys.modules.get(module)
            registries: dict[str, Any] = _registries if found is None else vars(found)
            registry: dict = registries.setdefault(filename if found is None else "__warningregistry__", {})
            warnings.warn_explicit(message, RuntimeWarning, filename, line, module, registry)
            return
        with self._restored():
            registry = self._registries.setdefault(filename, {})
            warnings.warn_explicit(message, RuntimeWarning, filename, line, module, registry)

    def _recorder(self) -> object:
        """The object whose method is called with warnings, if it is a method."""
        if self._log is not None:
            return self._log
        show = self._hooks.get("showwarning")
        replaced = show is not getattr(warnings, "_showwarning_orig", None)
        return getattr(show if replaced else self._hooks.get("_showwarnmsg_impl"), "__self__", None)

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """A block in which they are in force; registries do not notice."""
        if CONTEXT_AWARE:
            before = _warnings._get_context()
            context = before.copy()
            context._filters, context.log = list(self._content), self._log
            _warnings._set_context(context)
        filters, hooks = warnings.filters, {name: getattr(warnings, name) for name in self._hooks}
        _warnings.filters = list(self._content)
        vars(warnings).update(self._hooks)
        try:
            yield
        finally:
            _warnings.filters = filters
            vars(warnings).update(hooks)
            if CONTEXT_AWARE:
                _warnings._set_context(before)


def _possible_actions(filters: list[tuple]) -> set[str]:
    """What these filters may do with a RuntimeWarning, whatever its message and place."""
    actions = set()
    for action, message, category, module, line in filters:
        if issubclass(RuntimeWarning, category):
            actions.add(action)
            if message is None and module is None and line == 0:
                return actions
    return actions | {warnings.defaultaction}  # type: ignore[attr-defined]


def _may_be_read(recorder: object) -> bool:
    """Whether a recorder is one that the user may read before the program is next executed."""
    if any(recorder is known for known in _NEVER_READ_EARLY):
        return False
    # NumPy's `suppress_warnings` has filters of its own, which it forgets at the end of the block.
    return isinstance(recorder, list) or type(recorder).__name__ == "suppress_warnings"


class lazily_recorded:  # used as a statement, like numpy.errstate
    """A block in which statements stay pending although warnings are recorded.

    For test runners, which record all warnings of a test and read them when it has ended: the block is about the
    recorder that is in force when it is entered. Under others within, statements are executed at once, as everywhere.
    """

    __slots__ = ("_recorder",)

    def __enter__(self) -> None:
        self._recorder = Filters(0)._recorder()
        _NEVER_READ_EARLY.append(self._recorder)

    def __exit__(self, *error: object) -> None:
        del _NEVER_READ_EARLY[next(n for n, known in enumerate(_NEVER_READ_EARLY) if known is self._recorder)]
