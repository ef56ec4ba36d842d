"""Where the ranks' operations begin to differ, and what is to be done about it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from numpy_dist.comm.divergence import fingerprint
from numpy_dist.comm.divergence.journal import DRAW, JournalEntry
from numpy_dist.comm.divergence.ranks_in_words import ranks_in_words
from numpy_dist.errors import DivergenceError

__all__ = ["NOT_THE_SAME", "PAGE", "deadlock_error", "describe", "divergence_error", "first_difference", "unlike_error"]

PAGE = "docs/when-ranks-disagree.md"
NOT_THE_SAME = "the ranks did not run the same program; NUMPY_DIST_CHECK=on shows where they began to differ"
Histories = Mapping[int, Sequence[JournalEntry]]
Fingerprints = Mapping[int, dict[str, str]]

_SHOWING = ("repr()", "str()", "format()", "numpy.array_repr", "numpy.array_str", "numpy.array2string")
_SHOWN = (
    "Showing a distributed array is collective: every rank must do it (`text = str(x)` on every rank, then "
    "`if rank == 0: print(text)`)."
)
_SAVING = ("save", "savez", "savez_compressed", "savetxt", "tofile", "tobytes", "dump", "dumps", "pickling")
_SAVED = (
    "Writing a distributed array is collective: every rank calls it, and one file is written (`np.save(f, x)` "
    "without `if rank == 0`). Or gather it first: `values = x.gather()` on every rank, then `if rank == 0: np.save(f, "
    "values)`."
)
_OWN = (
    "Asking for `x.local` executes what is pending, so that every rank must ask: `part = x.local` on every rank, then "
    "`if rank == 0: print(part)`."
)
_LAYOUTS = (
    "A result that is pending stays in the layout that somebody was told, so that every rank must ask: "
    "`layout = x.layout` on every rank, then `if rank == 0: print(layout)`."
)
_PARTS = (
    "The ranks did this with different parts of an array, but every rank must name the same part. A rank's own part is "
    "`x.local`; for a row or column of its own choice a rank takes NumPy's array, which `x.gather()` gives on every "
    "rank, or an array that is small enough to lie on every rank as it is."
)
_ROOTS = (
    "The ranks named different roots. Every rank must name the same one, also those that give nothing, or get nothing: "
    "`asarray(x, root=0)` on every rank. Arrays of which each rank has a part come in by `from_local`."
)
_ARGUMENTS = (
    "The ranks did this with other arguments. Every rank must pass the same indices, numbers and arrays, none that "
    "comes from the rank, a clock or an unseeded random generator. Let one rank choose: `index = x.comm.bcast(index)`; "
    "for elements of its own choice a rank takes NumPy's array, which `x.gather()` gives on every rank."
)
_GENERATORS = (
    "The ranks have random generators in different states: they were seeded differently, or used on some ranks only. "
    "Seed them alike, and draw on every rank; what one rank draws for itself comes from a generator of its own."
)
_ORDER = (
    "The ranks did the same operations in another order, as loops over a set do: each process orders sets of strings "
    "in its own way. Loop over sorted(...) or a list."
)
_NUMBER = (
    "A number differs between the ranks: one that came from a clock, from an unseeded random generator, from id() or "
    "hash(), or from the rank itself. Let one rank choose it: `value = x.comm.bcast(value)`."
)
_ARRAYS = (
    "The ranks have arrays of different shapes, dtypes or layouts. Every rank must pass the same array to asarray "
    "(`asarray(x, root=0)` takes that of one rank); arrays of which each rank has a part come in by `from_local`."
)
_OTHER_ARRAYS = (
    "The ranks did this with different arrays, which they made or chose in another order, or of which each has other "
    "values."
)
_LOOP = (
    "Some ranks went round a loop once more than others. What ends a loop must be the same on every rank: not a clock, "
    "nor anything read from a rank's own part. Let one rank decide: `go_on = x.comm.bcast(go_on)`."
)
_BRANCH = (
    "The ranks took different branches. What chooses one must be the same on every rank: not the rank, a clock, an "
    "unseeded random number or the state of one machine. Let one rank decide: `choice = x.comm.bcast(choice)`."
)
_ABSENT = (
    "Every rank must run the same operations on distributed arrays; work for one rank only needs plain NumPy arrays "
    "(`x.gather()` on every rank, then `if rank == 0`)."
)
_LOST = (
    "The first difference is further back than what the ranks remember. NUMPY_DIST_CHECK=on finds it when it happens."
)
_NO_DIFFERENCE = "All ranks have recorded the same operations."
_SO_FAR = (
    "As far as the ranks have come, they have recorded the same operations: the others wait for those that do not."
)
_ORDER_WINDOW = 64


def first_difference(histories: Histories, behind: Collection[int] = ()) -> int | None:
    """The number of the first operation that is not the same on all ranks; None if there is none that is known.

    Ranks that are `behind` still run: what they have not recorded may come.
    """
    by_number = {rank: {op.number: op for op in history} for rank, history in histories.items()}
    known = [min(numbers) for numbers in by_number.values() if numbers]
    last = max((max(numbers) for numbers in by_number.values() if numbers), default=-1)
    first = max(known, default=0)
    # Where what was before is forgotten, it may have shifted the numbers by which arrays are known.
    for key in (_rough_key, _key) if first else (_key,):
        for number in range(first, last + 1):
            found = {rank: numbers.get(number) for rank, numbers in by_number.items()}
            if len({op and key(op) for rank, op in found.items() if op is not None or rank not in behind}) > 1:
                return number
    return None


def describe(histories: Histories, ended: Mapping[int, str] | None = None, behind: Collection[int] = ()) -> str:
    """The first difference with both sides, and a sentence of advice.

    Parameters
    ----------
    histories : mapping
        By rank, its latest operations.
    ended : mapping, optional
        How ranks have ended, by rank.
    behind : collection of int
        Ranks that do not wait: what they have not recorded may come.
    """
    number = first_difference(histories, behind)
    layouts = _layout_that_some_asked_for(histories, number)
    if number is None:
        if layouts:
            return f"{_NO_DIFFERENCE}{layouts}"
        return _SO_FAR if behind else "\n".join([_NO_DIFFERENCE, *_latest(histories)])
    sides = {rank: next((op for op in ops if op.number == number), None) for rank, ops in histories.items()}
    started = {rank: ops[0].number for rank, ops in histories.items() if ops}
    remembered = max(started.values(), default=0)
    if number == remembered and number > 0:
        return "\n".join([_LOST, *_latest(histories)])
    lines = [f"The first difference is in operation {number + 1}:"]
    if remembered:
        lines[0] = (
            f"The first difference after operation {remembered} (what was before is forgotten) is in {number + 1}:"
        )
    for text, ranks in _by_text(sides, ended or {}).items():
        lines.append(f"  rank {ranks_in_words(ranks)}: {text}")
    before = _operation(next(iter(histories.values())), number - 1)
    if before is not None:
        lines.append(f"  before it, on every rank: {before}")
    return "\n".join([*lines, advice(histories, sides, number)]) + layouts


def _layout_that_some_asked_for(histories: Histories, before: int | None) -> str:
    """What is to be said where some ranks only have asked for a layout, before an operation that all have recorded."""
    by_number = [{op.number: (rank, op.asked) for op in history} for rank, history in histories.items()]
    for number in sorted({op.number for history in histories.values() for op in history if op.asked}):
        if before is not None and number > before:
            break
        asked = [numbers[number] for numbers in by_number if number in numbers]
        for line in dict.fromkeys(line for _, lines in asked for line in lines):
            others = [rank for rank, lines in asked if line not in lines]
            if others:
                ranks = ranks_in_words(rank for rank, lines in asked if line in lines)
                told = f"Rank {ranks} asked for a layout at {line}, and rank {ranks_in_words(others)} did not."
                return f"\n{told} {_LAYOUTS}"
    return ""


def divergence_error(
    histories: Histories, ended: Mapping[int, str] | None = None, fingerprints: Fingerprints | None = None
) -> DivergenceError:
    """The error to be raised on every rank; with `fingerprints`, what the ranks are, by rank."""
    unlike, note = _unlike(histories, fingerprints)
    if unlike is not None:
        return unlike
    return DivergenceError(f"the ranks do not run the same program. {describe(histories, ended)}{note} See {PAGE}.")


def _unlike(histories: Histories, fingerprints: Fingerprints | None) -> tuple[DivergenceError | None, str]:
    """What ranks that are not alike are told; what is added where that may also be a consequence."""
    differences = fingerprint.compare(fingerprints or {})
    if not differences.deciding:
        return None, ""
    # Settings may differ since the ranks are at different places, within different blocks.
    if differences.overrides or first_difference(histories) is None:
        return unlike_error(differences), ""
    return None, f"\nThe ranks have different settings, too:\n{differences.text}\n"


def unlike_error(differences: fingerprint.Differences) -> DivergenceError:
    """The error about ranks that would decide otherwise what to communicate, to be raised on every rank."""
    return DivergenceError(
        f"the ranks have different settings, plug-ins or overrides:\n{differences.text}\nAll ranks must have "
        "the same: set and register them before the first array, or in an environment that the launcher gives "
        f"to all ranks. See {PAGE}."
    )


def deadlock_error(
    waits: Mapping[int, str],
    histories: Histories,
    ended: Mapping[int, str],
    fingerprints: Fingerprints | None = None,
) -> Exception:
    """The error about ranks that wait for each other, to be raised on every rank.

    Parameters
    ----------
    waits : mapping
        By rank, where it waits, or why it does not.
    histories : mapping
        By rank, its latest operations.
    ended : mapping
        How ranks have ended, by rank.
    fingerprints : mapping, optional
        By rank, what it is (`comm.fingerprint`).
    """
    unlike, note = _unlike(histories, fingerprints)
    if unlike is not None:
        return unlike
    kind = RuntimeError if first_difference(histories) is None else DivergenceError
    lines = [f"  rank {rank}: {where}" for rank, where in sorted(waits.items())]
    lines += [f"  rank {rank}: ended ({how})" for rank, how in sorted(ended.items())]
    all_wait = histories.keys() >= waits.keys()
    headline = f"deadlock: {'every rank waits' if all_wait else 'ranks wait for each other'}"
    return kind("\n".join([headline, *lines, describe(histories, ended)]) + note)


def _latest(histories: Histories) -> list[str]:
    """How far each rank has come."""
    latest = {rank: ops[-1] for rank, ops in histories.items() if ops}
    texts = {rank: f"operation {op.number + 1} is {op}" for rank, op in latest.items()}
    return [f"  rank {rank}: the latest, {text}" for rank, text in sorted(texts.items())]


def _operation(history: Sequence[JournalEntry], number: int) -> JournalEntry | None:
    return next((op for op in history if op.number == number), None)


def _by_text(sides: Mapping[int, JournalEntry | None], ended: Mapping[int, str]) -> dict[str, list[int]]:
    """Ranks that are alike come in one line; what is shown of callers and details is what differs."""
    operations = [op for op in sides.values() if op is not None]
    number = len({op.key for op in operations})
    texts_differ = len({str(op) for op in operations}) == number
    parts_differ = len({(str(op), op.parts) for op in operations}) == number
    given_differ = len({(str(op), op.given) for op in operations}) == number
    found: dict[str, list[int]] = {}
    for rank, op in sorted(sides.items()):
        if op is None:
            text = f"nothing ({ended[rank]})" if rank in ended else "nothing so far"
        elif texts_differ:
            text = str(op)
        elif parts_differ:
            text = f"{op}, of {op.parts or 'nothing'}"
        elif given_differ:
            text = f"{op}, with {', '.join(_own(op.given, operations)) or 'no numbers'}"
        else:
            text = f"{op}, called from {op.caller}"
        found.setdefault(text, []).append(rank)
    return found


def _own(given: Sequence[str], operations: Sequence[JournalEntry]) -> list[str]:
    """What one operation was given, without what all were given at the same place."""
    if len({len(op.given) for op in operations}) > 1:
        return list(given)
    places = zip(given, zip(*(op.given for op in operations), strict=True), strict=True)
    return [word for word, words in places if len(set(words)) > 1]


def advice(histories: Histories, sides: Mapping[int, JournalEntry | None], number: int) -> str:
    """What probably went wrong, and what to do instead."""
    operations = [op for op in sides.values() if op is not None]
    showing = [op.function in _SHOWING for op in operations]
    if any(showing) and not (all(showing) and len(operations) == len(sides)):
        return _SHOWN
    saving = [op.function.removeprefix("numpy.") in _SAVING for op in operations]
    if any(saving) and not (all(saving) and len(operations) == len(sides)):
        return _SAVED
    own = [op.function == "local" for op in operations]
    if any(own) and not (all(own) and len(operations) == len(sides)):
        return _OWN
    if _same_in_another_order(histories, number):
        return _ORDER
    places = {(os.path.basename(op.line), op.function) for op in operations}
    if len(places) == 1 and len(operations) == len(sides):
        return _about_arguments(operations)
    if _is_loop(histories, operations, number):
        return _LOOP
    return _ABSENT if len(operations) < len(sides) else _BRANCH


def _about_arguments(operations: Sequence[JournalEntry]) -> str:
    """The same function at the same line: what differs between its arguments."""
    differing = [
        operands for operands in zip(*(op.operands for op in operations), strict=False) if len(set(operands)) > 1
    ]
    if any(operand.is_array and operand.kind != operands[0].kind for operands in differing for operand in operands):
        return _ARRAYS
    if any(not operand.is_array for operands in differing for operand in operands):
        return _NUMBER
    if len({op.result for op in operations}) > len({op.given for op in operations}) == 1:
        return _ARRAYS
    if differing:
        return _OTHER_ARRAYS
    if any(op.kind == DRAW for op in operations):
        return _GENERATORS
    if len({op.parts.partition("root ")[2] for op in operations}) > 1:
        return _ROOTS
    if len({op.parts for op in operations}) > 1:
        return _PARTS
    if len({op.given for op in operations}) > 1:
        return _about_given(operations)
    return _BRANCH if len({op.caller for op in operations}) > 1 else _ARRAYS


def _about_given(operations: Sequence[JournalEntry]) -> str:
    others = [words for words in zip(*(op.given for op in operations), strict=False) if len(set(words)) > 1]
    if any(word.startswith("the array") for words in others for word in words):
        return _OTHER_ARRAYS
    return _NUMBER if all(op.kind == "statement" for op in operations) else _ARGUMENTS


def _same_in_another_order(histories: Histories, number: int) -> bool:
    """Whether the next few operations of all ranks are the same ones in another order."""
    following = [[op for op in ops if op.number >= number][:_ORDER_WINDOW] for ops in histories.values()]
    if len(following) < 2:
        return False
    for key in (_key, _key_without_results):
        keys = [[key(op) for op in ops] for ops in following]
        for count in range(2, min(map(len, keys)) + 1):
            first = keys[0][:count]
            if any(other[:count] != first for other in keys) and all(
                Counter(other[:count]) == Counter(first) for other in keys
            ):
                return True
    return False


def _key(operation: JournalEntry) -> tuple[object, ...]:
    return operation.key


def _rough_key(operation: JournalEntry) -> tuple[object, ...]:
    return operation.rough_key


def _key_without_results(operation: JournalEntry) -> tuple[object, ...]:
    """An operation, whichever statement has made its operands."""
    operands = [operand._replace(value="") if operand.is_array else operand for operand in operation.operands]
    return operation.function, operation.line, tuple(operands), operation.result


def _is_loop(histories: Histories, operations: Sequence[JournalEntry], number: int) -> bool:
    """Whether, of different places, some ranks have been at theirs before."""
    seen = {(op.line, op.function) for op in next(iter(histories.values())) if op.number < number}
    again = [(op.line, op.function) in seen for op in operations]
    return any(again) and (not all(again) or len(operations) < len(histories))
