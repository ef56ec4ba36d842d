"""The options that the command hands on to the ranks, and what they bring into force."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from numpy_dist.conformance import adapter, known_differences, suite
from numpy_dist.conformance.case import Topic

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def load(names: Sequence[str]) -> None:
    """Import modules that register overrides; one may add cases (`TOPIC`) and known differences (`DIFFERENCES`)."""
    for name in names:
        module = importlib.import_module(name)
        topic = getattr(module, "TOPIC", None)
        if isinstance(topic, Topic):
            suite.add(topic)
        known_differences.add(getattr(module, "DIFFERENCES", ()))


def adapter_named(name: str | None) -> AbstractContextManager[object]:
    """The adapter ``module:Class``, in force within a block."""
    if name is None:
        return nullcontext()
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute, None) if attribute else None
    if not (isinstance(found, type) and issubclass(found, adapter.Adapter)):
        raise TypeError(f"{name!r} is not module:Class, with a subclass of numpy_dist.conformance.adapter.Adapter")
    return adapter.use(found())


def at_least_one(text: str) -> int:
    """A number that is not less than 1."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--area", action="append", default=[], help="topics whose titles contain this (repeatable)")
    made.add_argument("--functions", action="append", default=[], help="names, as sort,linalg.norm (repeatable)")
    made.add_argument("--seed", default="0", help="of the layouts (default: %(default)s)")
    made.add_argument("--layouts", type=at_least_one, default=1, help="for each case (default: %(default)s)")
    made.add_argument("--variants", action="store_true", help="derive further cases from those that are written")
    made.add_argument("--load", action="append", default=[], help="a module with overrides, TOPIC, DIFFERENCES")
    made.add_argument("--adapter", help="module:Class, an adapter for arrays of another library")
    return made


def names_in(texts: Sequence[str]) -> list[str]:
    """Names separated by commas."""
    return [name for text in texts for name in text.split(",") if name]


def as_words(options: argparse.Namespace) -> list[str]:
    """The options as words of a command."""
    words = ["--seed", options.seed, "--layouts", str(options.layouts)]
    for name in ("area", "functions", "load"):
        words += [word for value in getattr(options, name) for word in (f"--{name}", value)]
    words += ["--variants"] if options.variants else []
    return words + (["--adapter", options.adapter] if options.adapter else [])
