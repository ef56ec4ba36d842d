"""NumPy's two protocols: from a call to the rule that computes it.

The way of a call: foreign types are left to themselves; a rule from outside of numpy_dist; plain NumPy where nothing is
sharded; the house's rules in order; at last the fallback. Ufuncs without a rule are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.dispatch.core import fallback, operands, policy, registry, report, targets
from numpy_dist.dispatch.core.engine_support import why_not_element_wise
from numpy_dist.dispatch.core.keys import canonical, name_of
from numpy_dist.dispatch.core.noting import Noted, NotedIfRecorded
from numpy_dist.dispatch.core.operands import PLAIN, any_sharded, as_operand, is_foreign
from numpy_dist.dispatch.core.registry import TABLE, Declined, Record, Rule
from numpy_dist.errors import UnsupportedError

NO_RULE = "it has no distributed implementation"
_ufunc_class = np.ufunc
_DTYPE_CLASS = type(np.dtype)
_ARRAYS = (engine.Handle, np.ndarray)
_VIEWING = frozenset(("structural", "composed"))  # kinds of rules whose results may be views
_COMPUTED = frozenset(("parallel", "axis-local"))  # kinds of rules whose results are new arrays
_NOTED = _COMPUTED | {"elementwise", "composed"}  # kinds of rules that all ranks run at the same place
_OUTPUTS = (*_ARRAYS, type(None), type(Ellipsis))
_NO_ARRAY = "return arrays must be of ArrayType"
_NO_OUTPUT = {  # of those that are no reductions
    **dict.fromkeys("argmax argmin choose compress cumprod cumsum round take trace".split(), "output must be an array"),
    **dict.fromkeys("concatenate dot hstack stack vstack".split(), "'out' must be an array"),
    "__call__": _NO_ARRAY,
    "einsum": "keyword parameter out must be an array for einsum",
}


def array_function(
    handle_class: type[engine.Handle],
    function: Function,
    types: Iterable[type],
    args: Arguments,
    kwargs: Keywords,
) -> object:
    """What ``DistArray.__array_function__`` does.

    Parameters
    ----------
    handle_class : type
        Our array class.
    function, types, args, kwargs
        As the protocol passes them (NEP 18).
    """
    for kind in types:
        if kind is not handle_class and kind not in PLAIN and is_foreign(kind):
            return NotImplemented
    if not registry.loaded:
        registry.load()
    record = TABLE.get(function)
    if record is None:
        return fallback.call(function, args, kwargs, NO_RULE)
    first = record.rules[0] if record.rules else None
    if first is not None and not first.replicated and first.why_off is None:
        result = fallback.simple(handle_class, function, args, kwargs)
        if result is not fallback.SLOW:
            return result
    if "out" in kwargs and not isinstance(kwargs["out"], _OUTPUTS) and record.name.startswith("numpy."):
        _refuse_output(function.__name__, lambda: function(*map(_few, args), **{k: _few(x) for k, x in kwargs.items()}))
    return apply(record, function, args, kwargs)


def _refuse_output(name: str, reduced: Callable[[], object]) -> NoReturn:
    """The error of NumPy's function, or of a method of a ufunc, for an output that is no array.

    Versions say it differently for reductions, of which `reduced` computes one; it may fail for another reason before.
    """
    if name not in _NO_OUTPUT:
        reduced()
    raise TypeError(_NO_OUTPUT.get(name, _NO_ARRAY))


def _few(x: object) -> object:
    """An array with one element, or none, in place of a distributed one."""
    return np.ones([min(n, 1) for n in x._array.shape], x._array.dtype) if isinstance(x, engine.Handle) else x


Last = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], str], Any]


def apply(
    record: Record,
    function: Function,
    args: Arguments,
    kwargs: Keywords,
    last: Last = fallback.call,
) -> object:
    """Ask the rules of a record in order, then the fallback.

    Parameters
    ----------
    record : Record
    function : callable
        What the fallback runs: the function, or the ufunc's method.
    args, kwargs
        Of the call.
    last : callable
        What does the call if no rule does; it is told why none did.
    """
    reason = NO_RULE
    held = -1
    for rule in record.rules:
        if rule.why_off is not None and (off := rule.why_off()) is not None:
            reason = reason if off == "" else f"{rule.described} is off: {off}"
            continue
        if not rule.replicated:
            if held < 0:
                held = operands.survey(args, kwargs)
            if held == operands.REPLICATED:
                return fallback.plain(function, args, kwargs)
        if rule.lacks and (unknown := rule.unknown(args, kwargs)):
            reason = f"{rule.described} does not know {', '.join(sorted(unknown))}"
            continue
        if rule.when is not None and not rule.when(*args, **kwargs):
            reason = rule.reason or f"{rule.described} does not apply to these arguments"
            continue
        if rule.function is None or rule.kind == "refused":
            if rule.kind == "refused":
                raise UnsupportedError(f"{record.name} cannot be used with a DistArray: {rule.reason or NO_RULE}")
            reason = rule.reason or NO_RULE
            break
        given = (_ufunc_of(function), *args) if rule.wants_ufunc else args
        if rule.alone and rule.leaves_to_numpy(given, kwargs):
            made = fallback.alone(function, args, kwargs, instead=rule.instead)
            if made is not fallback.SLOW:
                if report.active:
                    report.note(record.name, rule.kind)
                return made
        try:
            noted = rule.kind in _COMPUTED or (rule.kind in _NOTED and engine.runtime().size > 1)
            result = _noted(rule, function, given, args, kwargs) if noted else rule.function(*given, **kwargs)
            if report.active:
                report.note(record.name, rule.kind)
            if rule.kind in _COMPUTED:
                return _as_made(result, args, kwargs)
            if args and rule.kind in _VIEWING:
                return _as_view(result, args, kwargs, rule.function.__module__ == rule.source)
            return result
        except (Declined, engine.Unrecordable) as declined:
            reason = declined.reason
    return last(function, args, kwargs, reason)


def _noted(rule: Rule, function: Function, given: Arguments, args: Arguments, kwargs: Keywords) -> object:
    """What a rule makes of a call that all ranks have to make alike, as far as it computes something."""
    assert rule.function is not None
    several, texts = engine.runtime().size > 1, function not in targets.FILE_WRITERS

    def writes() -> Sequence[object]:
        return targets.writes(function, args, kwargs)

    if rule.kind == "composed":
        with NotedIfRecorded(args, kwargs, writes, texts):
            return rule.function(*given, **kwargs)
    written = writes() if several else ()
    together = engine.reported_together() if targets.outputs(function, args, kwargs) else nullcontext()
    recorder = engine.runtime().recorder
    if recorder is not None:
        with recorder.call(name_of(function), function, args, kwargs), Noted(args, kwargs, written, texts), together:
            return rule.function(*given, **kwargs)
    with Noted(args, kwargs, written, texts), together:
        return rule.function(*given, **kwargs)


def _as_made(result: object, args: Arguments, kwargs: Keywords) -> object:
    """A result that is computed, which to the user is no view, whatever our own arrays that it was made with."""
    if isinstance(result, engine.Handle):
        storage = result._storage
        if storage is not None and all(x._storage is not storage for x in operands.find_handles(args, kwargs)):
            engine.as_made(result)
    return result


def _as_view(result: Any, args: Arguments, kwargs: Keywords, ours: bool) -> object:
    """A result that looks at the first argument, which is its base even where it looks at all of it.

    Of a function of `ours` what looks at all of new memory has no base, whatever it was made with; NumPy's own source
    gives what it gives.
    """
    given = args[0]
    for each in result if type(result) in (list, tuple) else (result,):
        if not isinstance(each, engine.Handle) or each is given or engine.is_at_hand(each) or each._storage is None:
            continue
        if isinstance(given, engine.Handle) and engine.lies_in(given, each._storage):
            given._owned(each)
        elif ours and hasattr(each, "_owner"):
            if all(x._storage is not each._storage for x in operands.find_handles(args, kwargs)):
                del each._owner  # which was an array within the function
    return result


def _ufunc_of(function: Any) -> np.ufunc:
    """The ufunc of a ufunc or of its method."""
    return function if isinstance(function, _ufunc_class) else canonical(function.__self__)


def array_ufunc(self: engine.Handle, ufunc: Function, method: str, inputs: Arguments, kwargs: Keywords) -> object:
    """What ``DistArray.__array_ufunc__`` does (NEP 13)."""
    for value in inputs:
        if type(value) not in PLAIN:
            converted = _converted(inputs, method)
            if converted is None:
                return NotImplemented
            inputs = converted
            break
    if kwargs:
        prepared = _keywords(kwargs, method)
        if prepared is None:
            return NotImplemented
        kwargs = prepared
    if not registry.loaded:
        registry.load()
    if method == "__call__":
        return _call(ufunc, inputs, kwargs)
    return _method(ufunc, method, inputs, kwargs)


def _converted(inputs: tuple[object, ...], method: str) -> Arguments | None:
    """Inputs with lists and the like as arrays; None if one belongs to somebody else."""
    if any(is_foreign(type(value)) for value in inputs):
        return None
    if method == "at":  # a tuple of indices is no array
        return inputs
    if method == "reduceat" and type(inputs[1]) in (list, tuple) and not operands.find_handles(inputs[1]):
        inputs = inputs[0], np.asarray(inputs[1], np.intp)  # whatever the numbers in a list are
    return tuple(value if type(value) in PLAIN else as_operand(value) for value in inputs)


def _keywords(kwargs: Keywords, method: str) -> Keywords | None:
    """Keywords without `subok`, `where` as an array or bool; None if an array among them belongs to somebody else."""
    for value in (*(kwargs.get("out") or ()), kwargs.get("where")):
        if type(value) not in PLAIN and is_foreign(type(value)):
            return None
    for value in kwargs.get("out") or ():
        if value is Ellipsis:
            np.negative(0, out=(...,))  # type: ignore[arg-type]  # NumPy's error
        if value is not None and not isinstance(value, _ARRAYS):
            _refuse_output(method, lambda: np.add.reduce(np.zeros(1), out=3))  # type: ignore[call-overload]
    if type(kwargs.get("dtype")) is _DTYPE_CLASS and isinstance(kwargs["dtype"].type, type):
        kwargs = {**kwargs, "dtype": kwargs["dtype"].type}  # a class such as np.dtypes.Float64DType
    where = kwargs.get("where", True)
    if "subok" in kwargs or type(where) not in PLAIN:
        kwargs = {name: value for name, value in kwargs.items() if name != "subok"}
        if "where" in kwargs and type(where) not in PLAIN:
            where = as_operand(where)
            # NumPy takes the truth of whatever it is given that is no array (its own code passes a sentinel).
            kwargs["where"] = where.astype(bool) if where.dtype != bool else where
    return kwargs


def _call(ufunc: Function, inputs: Arguments, kwargs: Keywords) -> object:
    """An element-wise call, or a generalised ufunc."""
    if type(ufunc) is not _ufunc_class:
        ufunc = _numba_ufunc(ufunc, inputs)
    record = TABLE.get(ufunc)
    if record is not None:
        return apply(record, ufunc, inputs, kwargs, fallback.call if record.has_house_rule else _by_the_engine)
    return _by_the_engine(ufunc, inputs, kwargs)


def _by_the_engine(ufunc: Any, inputs: Arguments, kwargs: Keywords, _: str = "") -> object:
    reason = why_not_element_wise(ufunc, inputs, kwargs)
    if reason is not None:
        return fallback.call(ufunc, inputs, kwargs, reason)
    if "out" in kwargs:
        _announce_gather_into(ufunc, inputs, kwargs["out"])
    return engine.elementwise(ufunc, inputs, **kwargs)


def _announce_gather_into(ufunc: np.ufunc, inputs: tuple[object, ...], out: tuple[object, ...]) -> None:
    """Every rank holds the whole of an ndarray, so ``ndarray += sharded`` gathers."""
    whole = [x for x in out if isinstance(x, np.ndarray)]
    if whole and any_sharded(inputs, {}):
        policy.permit(
            name_of(ufunc),
            "its output is an ndarray, which every rank holds whole",
            sum(x.nbytes for x in whole),
            action="bring the result to every rank",
        )


def _numba_ufunc(ufunc: Function, inputs: tuple[object, ...]) -> np.ufunc:
    """The NumPy ufunc inside a Numba one, which compiles itself for new dtypes when it is called with them."""
    inner = canonical(ufunc)
    if inner is ufunc or not isinstance(inner, _ufunc_class):
        raise UnsupportedError(f"{name_of(ufunc)} is neither a NumPy ufunc nor one made by Numba")
    ufunc(*(np.empty(0, x.dtype) if hasattr(x, "dtype") else np.empty(0, type(x)) for x in inputs))
    return inner


def _method(ufunc: object, method: str, inputs: Arguments, kwargs: Keywords) -> object:
    """reduce, accumulate, reduceat, outer, at."""
    ufunc = canonical(ufunc)
    bound = getattr(ufunc, method)
    record = TABLE.get((ufunc, method))
    if record is not None:
        return apply(record, bound, inputs, kwargs, fallback.call if record.has_house_rule else _method_of_any)
    return _method_of_any(bound, inputs, kwargs)


def _method_of_any(bound: Function, inputs: Arguments, kwargs: Keywords, _: str = "") -> object:
    """A method as it is for every ufunc."""
    record = TABLE.get((_ufunc_class, bound.__name__))
    if record is None:
        return fallback.call(bound, inputs, kwargs, NO_RULE)
    return apply(record, bound, inputs, kwargs)
