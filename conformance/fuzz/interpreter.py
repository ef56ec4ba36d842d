"""Interpreter of programs: the same statements on ndarrays, which tell what is right, and on arrays under test."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import gc
import itertools
import operator
import os
import pickle
import random
import re
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.conformance import arguments, known_differences
from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.fuzz.comparison import Problem, differences, message, snapshot
from numpy_dist.conformance.fuzz.program import RandomProgram
from numpy_dist.engine.data import walks
from numpy_dist.settings import config

__all__ = ["Observation", "execute", "judge", "namespace", "replay"]

_MODULES = {
    module.__name__: module
    for module in (contextlib, copy, gc, itertools, operator, os, pickle, threading, warnings, functools)
}


class Observation(NamedTuple):
    """What a program has shown: the number of the statement, a label ("value", "error", "warnings"), what it is."""

    step: int
    label: str
    value: Any
    ulps: float = 0


class _Ended(BaseException):
    """The end of a program whose sides have parted."""


walks.FEWEST = 1  # so that short programs come to walk over arrays

Show = Callable[[Observation], None]
Make = Callable[[np.ndarray, int], Any]


def as_ndarray(base: np.ndarray, seed: int) -> np.ndarray:
    """The base of an array on NumPy's side."""
    return base


def as_ours(base: np.ndarray, seed: int) -> object:
    """The base of an array under test, in a layout that follows from `seed`."""
    return current().distribute(base, random.Random(seed))[0]


def namespace(make: Make) -> dict[str, Any]:
    """What a program finds when it begins, but for `check` and `checkpoint`."""

    def array(description: arguments.Array, seed: int = 0) -> object:
        enlarge, view = arguments.VIEWS[description.view if current().views else "whole"]
        return view(make(np.array(enlarge(description.make(str(seed))), order="C"), seed))

    return {**_MODULES, "np": np, "a": arguments.a, "of": arguments.of, "array": array}


def variables(names: Iterable[str]) -> list[str]:
    """The names that a program has bound, in an order that both sides share."""
    return sorted((name for name in names if name[0] == "v" and name[1:].isdecimal()), key=lambda name: int(name[1:]))


def execute(program: RandomProgram, make: Make, show: Show) -> None:
    """Run a program, and show what it lets one see; errors of its statements are shown, and it goes on."""
    names = namespace(make)
    step = 0
    with config(**program.settings), warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")

        def check(value: object, ulps: float = 0) -> None:
            show(Observation(step, "value", snapshot(value), ulps))

        def checkpoint() -> None:
            for name in variables(names):
                show(Observation(step, name, snapshot(names[name])))
            if make is as_ours:
                current().finish()
            told = [(w.category, str(w.message)) for w in caught]
            caught.clear()
            counted = collections.Counter((c.__name__, text) for c, text in told if not current().is_fallback(c))
            for entry in counted:
                if entry[0] == "ComplexWarning":  # one for each of NumPy's internal casts, and that is all it means
                    counted[entry] = 1
            show(Observation(step, "warnings", sorted(counted.items())))

        names.update(check=check, checkpoint=checkpoint)
        for step, text in enumerate((*program.statements, "checkpoint()")):  # noqa: B007 - `check` tells it
            try:
                exec(_compiled(text, step), names)
            except _Ended:
                return
            except Exception as error:
                shown = Observation(step, "error", (type(error).__name__, message(error), _where(error)))
            else:
                shown = Observation(step, "done", None)
            with contextlib.suppress(_Ended):
                show(shown)
                continue
            return


@functools.lru_cache(4096)
def _compiled(text: str, step: int) -> CodeType:
    return compile(text, f"<statement {step}>", "exec")


def _where(error: Exception) -> str:
    return "".join(traceback.format_exception(error)[-6:])


def judge(program: RandomProgram) -> Problem | None:
    """Run a program on both sides (collective): the first difference, or None."""
    theirs: list[Observation] = []
    execute(program, as_ndarray, theirs.append)
    expected = iter(theirs)
    found: list[Problem] = []

    def show(mine: Observation) -> None:
        for kind, text in _parted(mine, next(expected, None), program.statements):
            found.append(Problem(kind, mine.step, text))
            raise _Ended

    execute(program, as_ours, show)
    if found:
        _settle()
    return found[0] if found else None


def _settle() -> None:
    """Run what a program that was left half-way has recorded, so that it does not warn in the next one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            current().finish()
        except Exception as error:
            print(f"what was recorded before the difference raises {error!r}")


def _parted(mine: Observation, other: Observation | None, statements: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What differs between two observations, if anything does."""
    if other is None:
        yield "more", f"{mine.label} {mine.value!r:.200} where NumPy's program has ended"
    elif "error" in (mine.label, other.label):
        if mine.label != "error":
            yield "no error", f"{mine.label} {mine.value!r:.100} where NumPy raises {': '.join(other.value[:2])}"
        elif other.label != "error":
            yield f"error {mine.value[0]}", f"raises {': '.join(mine.value[:2])}, NumPy does not\n{mine.value[2]}"
        elif mine.value[:2] != other.value[:2] and not _same_error(mine.value, other.value):
            kind = "message" if mine.value[0] == other.value[0] else "error"
            instead = f"instead of {': '.join(other.value[:2])}"
            yield kind, f"raises {': '.join(mine.value[:2])} {instead}\n{mine.value[2]}"
    elif mine.step != other.step or mine.label != other.label:
        yield "more", f"shows {mine.label} in statement {mine.step}, NumPy {other.label} in {other.step}"
    elif mine.label == "warnings":
        if mine.value != other.value and not _spurious(mine.value, other.value, statements):
            yield "warnings", f"warnings are {mine.value} instead of {other.value}"
    else:
        yield from differences(mine.value, other.value, other.ulps, mine.label)


def _same_error(ours: tuple[str, str, str], theirs: tuple[str, str, str]) -> bool:
    """Whether two errors differ only in which of several elements they name."""
    starts = (start for start in known_differences.OF_SOME_ELEMENT if theirs[1].startswith(start))
    return ours[0] == theirs[0] and any(ours[1].startswith(start) for start in starts)


# Of sums: whether infinities of both signs meet before there is a NaN depends on the order of the terms.
_SPURIOUS = {*known_differences.SPURIOUS, "invalid value encountered in reduce"}
# Whether a library's function underflows on the way depends on whether it is the one for vectors, which is for strides.
_SPURIOUS |= {
    f"underflow encountered in {name}"
    for name in "arcsin arcsinh arctan arctan2 arctanh cbrt exp exp2 expm1 hypot log1p sin sinh tan tanh".split()
}
_NAME = re.compile(r"(?<= encountered in )\w+")


def _spurious(ours: list, theirs: list, statements: Sequence[str]) -> bool:
    """Whether lists of warnings differ only in what `docs/warnings.md` says: by BLAS, sums, or casts of outputs."""
    mine, others = ({entry[0][1] for entry in told} - _SPURIOUS for told in (ours, theirs))
    if {entry[0] for entry in ours} == {entry[0] for entry in theirs}:
        return False  # their numbers differ
    if any("out=" in text or "dtype=" in text for text in statements):  # a cast may be told as one or as the operation
        mine, others = ({_NAME.sub("an operation", text) for text in told} for told in (mine, others))
    if any("where=" in text and "out=" in text for text in statements):  # NumPy casts what is there, too
        others = {text for text in others if text in mine or not text.endswith(" an operation")}
    return mine == others


def replay(statements: Sequence[str], **settings: object) -> int:
    """Run statements on both sides and print the first difference (collective); 1 if there is one, else 0."""
    problem = judge(RandomProgram(tuple(statements), settings=settings))
    if problem is None:
        print("no difference")
        return 0
    known = [*statements, "(at the end)"]
    print(f"{problem.kind}, in statement {problem.step}: {known[problem.step]}\n{problem.text}")
    return 1
