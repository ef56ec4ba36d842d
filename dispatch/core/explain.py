"""Which rule a call would take, and why; nothing is run and nothing is communicated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Keywords
from numpy_dist.dispatch.core import engine_support, fallback, operands, registry, targets
from numpy_dist.dispatch.core.keys import key_of, name_of
from numpy_dist.dispatch.core.policy import format_bytes
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.dispatch.core.keys import Key


@dataclass
class Explanation:
    """What `explain` found; it prints itself.

    Attributes
    ----------
    function : str
        Name of the function.
    kind : str
        How it would be computed: a kind of rule, "replicated" (NumPy on every rank, which has or gets all values),
        "gathered", or "foreign" (another type's rules decide).
    rule : str or None
        The implementation that would be asked first.
    gathered_bytes : int
        Bytes that would be gathered on one rank (0 unless `kind` is "gathered").
    replicated_bytes : int
        Bytes of sharded arrays that every rank would get.
    notes : list of str
        Why: each rule that was considered, in order.
    """

    function: str
    kind: str = "gathered"
    rule: str | None = None
    gathered_bytes: int = 0
    replicated_bytes: int = 0
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ending = f" by {self.rule}" if self.rule else ""
        lines = [f"{self.function}: {self.kind}{ending}"]
        if self.kind == "gathered":
            lines[0] += f", {format_bytes(self.gathered_bytes)} to one rank"
        elif self.replicated_bytes:
            lines[0] += f", {format_bytes(self.replicated_bytes)} to every rank"
        return "\n".join([*lines, *(f"  - {note}" for note in self.notes)])

    __repr__ = __str__


def explain(function: Callable[..., object], *args: object, **kwargs: object) -> Explanation:
    """Tell how ``function(*args, **kwargs)`` would be computed, without computing it.

    Parameters
    ----------
    function : callable
        A function, ufunc or ufunc method of NumPy, or one of your own that has implementations.
    *args, **kwargs
        As for the call.

    Returns
    -------
    Explanation
        Its string says which rule would run, why the others would not, and what would be gathered.
    """
    registry.load()
    key = key_of(function)
    found = Explanation(name_of(function))
    foreign = [type(x).__name__ for x in _top_level(args, kwargs) if operands.is_foreign(type(x))]
    if foreign:
        found.kind = "foreign"
        found.notes.append(f"{', '.join(foreign)} has rules of its own: NumPy asks it, or raises TypeError")
        return found
    if not operands.find_handles(args, kwargs):
        found.notes.append("no argument is a DistArray")
    record = registry.lookup(function)
    if record is not None and record.target == (np.ufunc, "reduce") and record.rules[0].house:
        reason = engine_support.why_not_reduced(key[0], _input(args[0]))
        if reason is None:
            record = None  # the engine's own
        else:
            found.notes.append(f"not the engine: {reason}")
    if record is None or not _explain_rules(found, record, args, kwargs):
        _explain_rest(found, function, key, record, args, kwargs)
    return found


def _input(x: object) -> object:
    return x if type(x) in operands.PLAIN else operands.as_operand(x)


def _top_level(args: Arguments, kwargs: Keywords) -> list[object]:
    return [*args, *kwargs.values()]


def _explain_rules(found: Explanation, record: registry.Record, args: Arguments, kwargs: Keywords) -> bool:
    """Go through the rules as `protocol.apply` does; whether one of them settled it."""
    plain = operands.survey(args, kwargs) == operands.REPLICATED
    for rule in record.rules:
        name = f"{rule.kind} rule {rule.described}"
        off = None if rule.why_off is None else rule.why_off()
        if off is not None:
            found.notes.append(f"not the {name}: {off or 'it is in force elsewhere'}")
            continue
        if plain and not rule.replicated:
            found.kind, found.rule = "replicated", None
            found.notes.append("no argument is sharded: plain NumPy on every rank")
            return True
        if rule.lacks and (unknown := rule.unknown(args, kwargs)):
            found.notes.append(f"not the {name}: it does not know {', '.join(sorted(unknown))}")
        elif rule.when is not None and not rule.when(*args, **kwargs):
            found.notes.append(f"not the {name}: {rule.reason or 'it does not apply to these arguments'}")
        elif rule.kind == "gathered":
            found.notes.append(f"declared to be gathered: {rule.reason}")
            return False
        elif _is_left_to_numpy(rule, args, kwargs):
            found.kind, found.rule = rule.kind, rule.described
            found.notes.append(f"{name} leaves it to NumPy, on the memory of the only process")
            return True
        elif rule.outlook is not None:
            outlook = rule.outlook(*args, **kwargs)
            if outlook.how == "gathered":
                found.notes.append(f"not the {name}: {outlook.note}")
                continue
            found.kind, found.rule, found.replicated_bytes = outlook.how, rule.described, outlook.nbytes
            found.notes += [f"{name} applies", outlook.note]
            return True
        else:
            found.kind, found.rule = rule.kind, rule.described
            reason = f" ({rule.reason})" if rule.reason else ""
            found.notes.append(
                f"{name} raises UnsupportedError{reason}"
                if rule.kind == "refused"
                else f"{name} applies{reason}; it may still decline when it sees the details"
            )
            if rule.kind in _COMMUNICATES:
                found.notes.append(_COMMUNICATES[rule.kind])
            return True
    return False


def _is_left_to_numpy(rule: registry.Rule, args: Arguments, kwargs: Keywords) -> bool:
    """As `fallback.alone`, as far as that is known beforehand."""
    rt = engine.runtime()
    if not rule.alone or rt.size > 1 or not engine.has_ndarrays(rt):
        return False
    return rule.alone is True or (not rule.wants_ufunc and rule.leaves_to_numpy(args, kwargs))


# What rules of a kind communicate; those of other kinds do so as they like.
_COMMUNICATES = {
    "structural": "nothing is communicated, unless a reshape has to move data",
    "elementwise": "communicated: what ranks do not hold of operands that are cut otherwise",
    "reduction": "communicated: one partial result of each rank",
    "axis-local": "communicated: the array is redistributed where the axis is cut",
    "composed": "communicated: what the functions that it is made of communicate",
}


def _messages(method: str, inputs: list[object], kwargs: Keywords) -> str:
    """What the engine would communicate, as far as metadata tell."""
    if method == "reduce":
        return _COMMUNICATES["reduction"]
    arrays = [x for x in (*inputs, *(kwargs.get("out") or ()), kwargs.get("where")) if engine.is_sharded(x)]
    whole = all(x.shape == x._storage.shape == arrays[0].shape for x in arrays)
    if whole and len({x._storage.layout for x in arrays}) <= 1:
        return "nothing is communicated: all operands are cut alike"
    return _COMMUNICATES["elementwise"]


def _explain_rest(
    found: Explanation,
    function: Callable[..., object],
    key: Key,
    record: registry.Record | None,
    args: Arguments,
    kwargs: Keywords,
) -> None:
    """The engine, plain NumPy, or the fallback."""
    if not operands.any_sharded(args, kwargs):
        found.kind = "replicated"
        found.notes.append("no argument is sharded: plain NumPy on every rank")
        return
    ufunc, method = key if isinstance(key, tuple) else (key, "__call__")
    own = record is not None and record.has_house_rule
    if not own and isinstance(ufunc, np.ufunc) and method in ("__call__", "reduce"):
        inputs = [_input(x) for x in args[: ufunc.nin]]
        if method == "reduce":
            reason = engine_support.why_not_reduced(ufunc, inputs[0])
        else:
            reason = engine_support.why_not_element_wise(ufunc, inputs, kwargs)
        if reason is None:
            found.kind, found.rule = ("elementwise" if method == "__call__" else "reduction"), "the engine"
            found.notes.append("recorded, and fused with what is recorded around it")
            found.notes.append(_messages(method, inputs, kwargs))
            return
        found.notes.append(f"not the engine: {reason}")
    elif record is None:
        found.notes.append("there is no rule for it")
    if targets.is_view_function(function):
        found.notes.append("it returns views, and is never gathered: an internal error")
    sharded = [x for x in operands.find_handles(args, kwargs) if engine.is_sharded(x)]
    found.gathered_bytes = fallback.gathered_bytes(sharded, fallback.unread_outputs(function, args, kwargs))
    where = "every rank, as it calls a function back" if fallback.calls_back(args, kwargs) else "rank 0"
    found.notes.append(
        f"{len(sharded)} sharded array{'s' * (len(sharded) != 1)} would be gathered, and NumPy run on {where}; "
        f"FALLBACK is {config.FALLBACK!r}"
    )
