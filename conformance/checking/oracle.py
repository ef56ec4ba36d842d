"""The oracle: a case on ndarrays against the same case on distributed arrays.

NumPy computes on plain ndarrays; ours are gathered explicitly before anything is compared, outside of the block in
which gathers are forbidden. Nothing of NumPy's testing functions sees a distributed array: it would dispatch to the
arrays under test.
"""

from __future__ import annotations

import functools
import shutil
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.conformance import known_differences
from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.case import Case, Tolerance
from numpy_dist.conformance.checking import raising
from numpy_dist.conformance.checking.compare import differences, gathered, leaves
from numpy_dist.conformance.checking.subject import Subject, build, target
from numpy_dist.dispatch.core import catalogue

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass
class CallOutcome:
    """What a call gave, and said."""

    result: object = None
    error: Exception | None = None
    warnings: list[tuple[type, str]] = field(default_factory=list)  # each as often as it was given
    late: set[str] = field(default_factory=set)  # of the warnings: those after the function had returned values


class Unexpected(AssertionError):
    """Ours raised where NumPy does not: the ranks may no longer be together, and the run ends here."""


def check(case: Case, seed: str = "0") -> list[str]:
    """Run a case on the calling rank (collective), and tell what is not as NumPy has it.

    Parameters
    ----------
    case : Case
    seed : str
        For the layouts.

    Raises
    ------
    Unexpected
        If ours raises an error that NumPy does not.
    """
    with current().settings():
        subject = build(case, seed)
    theirs = _numpy(case, subject)
    gathers = (case.declines is not None and not (case.alone and current().comm.size == 1)) or (
        is_overridable(case.function) and current().kind_of(case.function) == "gathered"
    )
    ours = _ours(case, subject, gathers, theirs.error is not None)
    declined = ours.error is not None and not gathers and current().is_declined(ours.error)
    reason = known_differences.may_gather(case, ours.error) if declined and ours.error is not None else None
    found = [] if reason is not None else list(_compare(case, subject, ours, theirs, gathers))
    real = {text for _, text in theirs.warnings if not known_differences.is_spurious(text, leaves(theirs.result))}
    if not case.variant and not found and raising.tell_of_events(real) and current().arithmetic().tells_events:
        found += raising.differences(case, seed, gathers)
    if subject.files:
        current().comm.barrier()  # every rank has read them
        for paths in subject.files:
            shutil.rmtree(Path(paths[0]).parent, ignore_errors=True)
    if reason is not None:
        return check(replace(case, declines=reason), seed)
    return [f"{case}\n    {text}\n    seed {seed}, arguments: {subject.layouts}" for text in found]


def is_overridable(function: object) -> bool:
    """Whether NumPy's protocols can hand us a function; methods and attributes of ndarray are the class's own."""
    return getattr(function, "__objclass__", None) is not np.ndarray


def _numpy(case: Case, subject: Subject) -> CallOutcome:
    outcome = CallOutcome()
    args, kwargs = subject.theirs
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome.result = target(case)(*args, **kwargs)
        except Exception as error:
            outcome.error = error
    outcome.warnings = [(w.category, str(w.message)) for w in caught]
    return outcome


def _ours(case: Case, subject: Subject, gathers: bool, fails: bool) -> CallOutcome:
    """Ours, executed; without a fallback and without gathers unless the case is known to gather.

    `fails` tells whether NumPy raises an error, which every rank knows.
    """
    outcome = CallOutcome()
    args, kwargs = subject.ours
    ours = current()
    # What is written into a replicated array has to come to every rank.
    may_move = gathers or case.materialises or subject.has_replicated
    with warnings.catch_warnings(record=True) as caught, ours.watched(gathers, may_move):
        warnings.simplefilter("always")
        try:
            outcome.result = target(case)(*args, **kwargs)
            told = len(caught)
            arrays = [x for x in leaves(outcome.result) if ours.is_array(x)]
            ours.finish(
                *arrays,
                *(x.ours for x in subject.operands if ours.is_array(x.ours)),
            )
        except Exception as error:
            outcome.error = error
        else:
            if not arrays and any(isinstance(x, np.generic | int | float | complex) for x in leaves(outcome.result)):
                outcome.late = {str(w.message) for w in caught[told:]}
        if fails:
            ours.finish()  # what was recorded before the error warns now, not in the next case
    outcome.warnings = [(w.category, str(w.message)) for w in caught]
    return outcome


def _compare(case: Case, subject: Subject, ours: CallOutcome, theirs: CallOutcome, gathers: bool) -> Iterator[str]:
    comm = current().comm
    if ours.error is not None and theirs.error is None:
        raise Unexpected(f"{case}\n    raises {ours.error!r}\n    arguments: {subject.layouts}") from ours.error
    told = comm.allgather((repr(ours.error), sorted(_entry(c, text) for c, text in ours.warnings)))
    if len({text for text, _ in told}) > 1:
        yield f"the ranks differ: {[text for text, _ in told]}"
        return
    yield from _warning_differences(told, theirs, subject.sharded and gathers, case, ours.late)
    if theirs.error is not None:
        if ours.error is None:
            if not isinstance(theirs.error, FloatingPointError) or current().arithmetic().tells_events:
                yield f"returns {ours.result!r:.100}, NumPy raises {theirs.error!r}"
        elif type(ours.error) is not type(theirs.error) or not known_differences.same_text(
            case, _text(ours.error), _text(theirs.error)
        ):
            yield f"raises {ours.error!r} instead of {theirs.error!r}"
        yield from _argument_differences(case, subject)
    else:
        found = [*_result_differences(case, subject, ours, theirs), *_sharing_differences(subject, ours, theirs)]
        try:
            _write_through(subject, ours, theirs)
            found += _argument_differences(case, subject)
            if not found:
                _write_into_arguments(subject)
                found += _view_differences(case, ours, theirs)
        except Exception as error:
            raise Unexpected(f"{case}\n    writing into the result raises {error!r}\n    {subject.layouts}") from error
        yield from found
    yield from _file_differences(subject, theirs.error is not None)


def _entry(category: type, text: str) -> tuple[str, str, bool]:
    """A warning's class and text, and whether it says that something was gathered."""
    return category.__name__, text, current().is_fallback(category)


def _text(error: Exception) -> str:
    """An error's message, in which either class of arrays may be named."""
    return str(error).replace("'numpy.ndarray'", "'DistArray'")


def _tolerance(case: Case) -> Tolerance | None:
    """How far results may be from NumPy's: what the case says, or what the backend does."""
    owner = getattr(case.function, "__self__", None)  # of a method of a ufunc
    function = owner if isinstance(owner, np.ufunc) else case.function
    known = [x for x in (case.tolerance, current().arithmetic().rounded.get(function)) if x is not None]
    return max(known, key=lambda x: x.ulps, default=None)


def _warning_differences(
    told: list[Any], theirs: CallOutcome, gathers: bool, case: Case, late: set[str]
) -> Iterator[str]:
    by_rank = [Counter(tuple(entry) for entry in entries) for _, entries in told]
    ours = by_rank[0]
    fallbacks = {entry for counted in by_rank for entry in counted if entry[2]}
    if gathers and not fallbacks and theirs.error is None and not case.variant:
        yield "there is no FallbackWarning: is it native by now?"
    told_why = any((case.declines or "") in text for _, text, _ in fallbacks)
    if gathers and fallbacks and not told_why and asks_us(case.function):
        yield f"the warning does not say {case.declines!r}: {sorted(fallbacks)[0][1]}"
    if fallbacks and not gathers:
        yield f"gathers: {sorted(fallbacks)[0][1]}"
    if any(counted != ours for counted in by_rank):
        yield f"the ranks' warnings differ: {[sorted(counted.elements()) for counted in by_rank]}"
    numpys = Counter((category.__name__, text) for category, text in theirs.warnings)
    others = Counter(entry[:2] for entry in ours.elements() if not entry[2])
    differing = (others - numpys) + (numpys - others)
    if not current().arithmetic().tells_events:
        differing = Counter(entry for entry in differing if not raising.is_event(entry[1]))
    if not all(known_differences.is_spurious(text, leaves(theirs.result)) for _, text in differing):
        yield f"warnings are {_counted(others)} instead of {_counted(numpys)}"
    if late:
        yield f"warns after it has returned a value: {sorted(late)}"


def _counted(warned: Counter[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Warnings, with their number where there are several of a kind."""
    return [entry if count == 1 else (*entry, f"{count} times") for entry, count in sorted(warned.items())]


def _result_differences(case: Case, subject: Subject, ours: CallOutcome, theirs: CallOutcome) -> Iterator[str]:
    for mine, other in zip(leaves(ours.result), leaves(theirs.result), strict=False):
        for operand in subject.operands:
            if other is operand.theirs and mine is not operand.ours:
                yield "does not return the argument itself"
        if type(mine) is np.ndarray and _is_ours_to_make(case, subject, mine):
            yield "a result is an ndarray, not a distributed array"
    collected, bases = gathered(ours.result), [operand.theirs_base for operand in subject.operands]
    found = list(
        differences(
            collected, theirs.result, _tolerance(case), case.values, arguments=bases, order=current().memory_order
        )
    )
    if found and known_differences.depends_on_strides(case, subject.theirs):
        found = list(_contiguous_differences(case, subject, collected, theirs))
    yield from found


@functools.cache
def _overridable() -> frozenset[object]:
    return frozenset(catalogue.overridable_functions())


def asks_us(function: object) -> bool:
    """Whether this NumPy asks us about a function; older ones convert the arguments of some, as of strings."""
    if not is_overridable(function):
        return function is not np.ndarray.__array__
    ufunc = getattr(function, "__self__", function)
    return isinstance(ufunc, np.ufunc) or function in _overridable()


def _is_ours_to_make(case: Case, subject: Subject, result: np.ndarray) -> bool:
    """Whether a result has to be a distributed array: one was given, and the ndarray is not itself an argument.

    Other array classes (records) are what they are in NumPy.
    """
    if not asks_us(case.function) or not any(current().is_array(x.ours) for x in subject.operands):
        return False
    return not any(result is x.ours for x in subject.operands)


def _contiguous_differences(case: Case, subject: Subject, collected: object, theirs: CallOutcome) -> Iterator[str]:
    """Ours against NumPy's on contiguous copies of the same arguments, which then also get what was written there.

    Where operands of the case overlap, NumPy's call is one whose operands do not.
    """
    again = build(case, subject.seed)
    copies = {
        # A copy also of a single element: it keeps its strides in `ascontiguousarray`, and they matter, too.
        id(operand.theirs): np.array(operand.theirs, order="C")
        for operand in again.operands
    }

    def contiguous(value: object) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(contiguous(item) for item in value)
        return copies.get(id(value), value)

    args, kwargs = again.theirs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plainly = {name: contiguous(value) for name, value in kwargs.items()}
        result = (case.apart or target(case))(*contiguous(args), **plainly)
    for operand, original in zip(subject.operands, again.operands, strict=True):
        if operand.theirs.flags.writeable:
            operand.theirs[...] = copies[id(original.theirs)]
    yield from differences(
        collected,
        result,
        _tolerance(case),
        case.values,
        arguments=[operand.theirs for operand in again.operands],
        order=False,  # that of the copies says nothing
    )


def _write_through(subject: Subject, ours: CallOutcome, theirs: CallOutcome) -> None:
    """Write into results on both sides: whether they are views shows in the arguments, compared afterwards."""
    if not current().views:
        return
    given = [operand.theirs for operand in subject.operands]
    with current().settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # NumPy warns who looks at flags of `broadcast_arrays`
        for mine, other in zip(leaves(ours.result), leaves(theirs.result), strict=False):
            if not isinstance(other, np.ndarray) or not current().is_array(mine) or any(other is x for x in given):
                continue
            if other.flags.writeable and other.size and mine.flags.writeable and mine.shape == other.shape:
                value = _written(other.dtype)
                mine[...] = value
                other[...] = value


def _write_into_arguments(subject: Subject) -> None:
    """Write into the arguments' bases on both sides: which results are views of them shows in the results."""
    if not current().views:
        return
    with current().settings():
        for operand in subject.operands:
            if operand.theirs_base.flags.writeable and current().is_array(operand.ours_base):
                value = _written(operand.theirs_base.dtype, again=True)
                operand.theirs_base[...] = value
                operand.ours_base[...] = value


def _view_differences(case: Case, ours: CallOutcome, theirs: CallOutcome) -> Iterator[str]:
    """What results are after the arguments have been written to."""
    for number, (mine, other) in enumerate(zip(leaves(ours.result), leaves(theirs.result), strict=False)):
        if current().views and case.values and isinstance(other, np.ndarray) and current().is_array(mine):
            name = f"result {number}, after the arguments were written to,"
            yield from differences(gathered(mine), other, _tolerance(case), name=name, order=False)


def _sharing_differences(subject: Subject, ours: CallOutcome, theirs: CallOutcome) -> Iterator[str]:
    """Where NumPy's functions that tell whether arrays share memory answer otherwise."""
    if not current().views:
        return
    for number, operand in enumerate(subject.operands):
        for mine, other in zip(leaves(ours.result), leaves(theirs.result), strict=False):
            if not (isinstance(other, np.ndarray) and current().is_array(mine) and current().is_array(operand.ours)):
                continue
            for function in (np.shares_memory, np.may_share_memory):
                answer, expected = function(mine, operand.ours), function(other, operand.theirs)
                if answer is not expected:
                    name = function.__name__
                    yield f"np.{name} of a result and argument {number} is {answer} instead of {expected}"


def _written(dtype: np.dtype, again: bool = False) -> npt.ArrayLike:
    """A value that the cases' arguments do not have; `again`, another one."""
    if dtype.kind in "SUT":
        return np.array("^" if again else "~", dtype)[()]
    if dtype.kind == "V":
        return np.frombuffer((b"\1" if again else b"\0") * dtype.itemsize, dtype)[0]
    if dtype.kind == "b":
        return np.bool_(not again)
    value = 76 if again else 77
    return np.array(value if dtype.kind in "iumM" else value + 0.25).astype(dtype)[()]


def _argument_differences(case: Case, subject: Subject) -> Iterator[str]:
    for number, operand in enumerate(subject.operands):
        mine = gathered(operand.ours_base)
        yield from differences(
            mine,
            operand.theirs_base,
            _tolerance(case),
            name=f"argument {number}, afterwards,",
            order=current().memory_order,
        )


def _file_differences(subject: Subject, failed: bool) -> Iterator[str]:
    """Files that are not NumPy's; after an error NumPy leaves half a file or an empty one, others may leave none."""
    if subject.files:
        current().comm.barrier()  # every rank has written them
    for theirs, ours in subject.files:
        if not Path(theirs).exists() or (failed and not Path(ours).exists()):
            continue
        if not Path(ours).exists() or _content(theirs) != _content(ours):
            yield "the file that was written differs"


def _content(path: str) -> bytes:
    return Path(path).read_bytes()
