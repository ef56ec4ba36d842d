"""Calls of overrides: what goes wrong in one is told with the override, its package and the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.keys import Key, name_of
from numpy_dist.dispatch.core.registry import Declined, Rule
from numpy_dist.dispatch.core.targets import outputs
from numpy_dist.errors import OverrideError, RankError
from numpy_dist.frames import call_site
from numpy_dist.ir.rules import broadcast_shapes
from numpy_dist.settings import config

_LONGEST = 60


def guarded(rule: Any, key: Key, shape: Callable[..., Iterable[int]] | None) -> Function:
    """The implementation of a rule, guarded: its errors bear a note, and what it returns is looked at.

    The first call of each override compares on all ranks what came out (one small collective), as does every call with
    ``CHECK=on``.
    """
    implementation = rule.implementation

    def call(*args: object, **kwargs: object) -> object:
        try:
            result = implementation(*args, **kwargs)
        except (Declined, engine.Unrecordable) as declined:
            _agree(rule, key, f"declined: {declined.reason}", args, kwargs)
            raise
        except RankError:
            raise
        except Exception as error:
            error.add_note(f"raised in {_words(rule, key, args, kwargs)}")
            raise
        problem = _problem(rule, key, result, args, kwargs, shape)
        _agree(rule, key, f"returned {summary(result)}", args, kwargs)
        if problem:
            _refuse(rule, key, problem, args, kwargs)
        return result

    return call


def _words(rule: Rule, key: Key, args: Arguments, kwargs: Keywords) -> str:
    given = args[1:] if rule.wants_ufunc else args
    listed = [summary(x) for x in given] + [f"{name}={summary(x)}" for name, x in kwargs.items()]
    call = f"{name_of(key)}({', '.join(listed)})"
    return f"the override {rule.described} of {name_of(key)}, called as {call} at {call_site()}"


def _refuse(rule: Rule, key: Key, problem: str, args: Arguments, kwargs: Keywords) -> NoReturn:
    raise OverrideError(f"{_words(rule, key, args, kwargs)}: {problem}")


def summary(value: object) -> str:
    """A value in a few words: arrays by dtype and shape."""
    if engine.is_handle(value) or isinstance(value, np.ndarray):
        cut = "sharded " if engine.is_sharded(value) else "ndarray " if isinstance(value, np.ndarray) else ""
        return f"{cut}{value.dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, list | tuple):
        inside = ", ".join(summary(item) for item in value[:4]) + (", ..." if len(value) > 4 else "")
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    # Ranks of other processors may differ in a last bit.
    text = getattr(value, "__name__", None) or (f"{value:.10g}" if isinstance(value, float) else repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _agree(rule: Rule, key: Key, outcome: str, args: Arguments, kwargs: Keywords) -> None:
    """Compare on all ranks what an override did: the first time, and always with ``CHECK=on``; collective then."""
    comm = engine.runtime().comm
    if comm.size == 1:
        return
    compared = policy.ledger().compared
    if rule in compared and config.CHECK != "on":
        return
    compared.add(rule)
    told = comm.allgather(outcome)
    if told.count(told[0]) != len(told):
        by_rank = "".join(f"\n  rank {rank}: {what}" for rank, what in enumerate(told))
        _refuse(rule, key, f"it behaves differently on different ranks:{by_rank}", args, kwargs)


def _problem(
    rule: Rule,
    key: Key,
    result: object,
    args: Arguments,
    kwargs: Keywords,
    shape: Callable[..., Iterable[int]] | None,
) -> str:
    """What is wrong with a result; empty if nothing is."""
    inputs = args[1:] if rule.wants_ufunc else args
    if result is NotImplemented:
        return "it returned NotImplemented; numpy_dist.decline(reason) leaves a call to the next implementation"
    given = outputs(key[0] if isinstance(key, tuple) else key, inputs, kwargs)
    results = result if isinstance(result, tuple) else (result,)
    if given and not all(any(out is x for x in results) for out in given):
        return f"it returned {summary(result)} in place of the array that was given as out"
    for x in results:
        if type(x) is np.ndarray and x.ndim and not any(x is y for y in (*inputs, *given)):
            return (
                f"it returned an ndarray of shape {x.shape}, which is one rank's; numpy_dist.from_local makes a "
                "distributed array of the ranks' parts, and numpy_dist.asarray one of what every rank has whole"
            )
    expected = _expected_shape(rule, key, inputs, kwargs) if shape is None else tuple(shape(*inputs, **kwargs))
    if expected is not None and (wrong := [np.shape(x) for x in results if _shape_of(x) != expected]):
        return f"it returned {_shaped(result, wrong[0])}, and the call has a result of shape {expected}"
    return ""


def _shape_of(x: object) -> tuple[int, ...] | None:
    return tuple(x.shape) if hasattr(x, "shape") else () if isinstance(x, int | float | complex) else None


def _shaped(result: object, shape: tuple[int, ...]) -> str:
    return f"{summary(result)} of shape {shape}" if _shape_of(result) is not None else summary(result)


def _expected_shape(rule: Rule, key: Key, inputs: Arguments, kwargs: Keywords) -> tuple[int, ...] | None:
    """The shape that all results of a call must have, where that is known."""
    ufunc, method = key if isinstance(key, tuple) else (key, "__call__")
    of_ufunc = isinstance(ufunc, np.ufunc) or ufunc is np.ufunc
    if of_ufunc and isinstance(ufunc, np.ufunc) and ufunc.signature is not None:
        return None
    if method == "accumulate":
        return tuple(np.shape(inputs[0]))
    if method == "outer":
        return (*np.shape(inputs[0]), *np.shape(inputs[1]))
    if method == "reduce" or rule.kind == "reduction":
        return _reduced(inputs, kwargs, 0 if of_ufunc else None)
    if (of_ufunc and method == "__call__") or rule.kind == "elementwise":
        arrays = [x for x in (*inputs, *kwargs.values()) if engine.is_handle(x) or isinstance(x, np.ndarray)]
        return broadcast_shapes(*(x.shape for x in arrays))
    return None


def _reduced(inputs: Arguments, kwargs: Keywords, default: int | None) -> tuple[int, ...] | None:
    """The shape of a reduction of the first argument, of which `axis` is the second one or a keyword."""
    shape = np.shape(inputs[0])
    axis = inputs[1] if len(inputs) > 1 else kwargs.get("axis", default)
    if axis is None:
        axes = tuple(range(len(shape)))
    elif isinstance(axis, int | tuple | np.integer):
        wanted = axis if isinstance(axis, tuple) else (int(axis),)
        axes = np.lib.array_utils.normalize_axis_tuple(wanted, len(shape))
    else:
        return None
    keepdims = kwargs.get("keepdims", False) not in (False, np._NoValue)
    return tuple(1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes)
