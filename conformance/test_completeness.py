"""Everything that NumPy lets us override has a kind and a case, whatever the version of NumPy."""

from __future__ import annotations

from collections import Counter

import numpy as np

from numpy_dist.argument_types import Arguments
from numpy_dist.conformance import coverage, parameters
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.suite import label
from numpy_dist.dispatch.core import catalogue, registry
from numpy_dist.dispatch.core.keys import METHODS, key_of, name_of

# Parameters that the oldest supported NumPy has, and newer ones have not.
REMOVED = {"numpy.array2string: style", "numpy.reshape: newshape", "numpy.save: fix_imports"}


def test_the_kinds_are_a_partition() -> None:
    targets = [key_of(target) for target in [*coverage.functions(), *coverage.ufunc_targets()]]
    assert all(count == 1 for count in Counter(targets).values())
    by_kind = {kind: {t for t in targets if catalogue.kind_of(*_split(t)) == kind} for kind in registry.KINDS}
    assert set().union(*by_kind.values()) == set(targets)
    assert sum(len(its) for its in by_kind.values()) == len(targets)
    ufuncs = catalogue.overridable_ufuncs()
    assert len(targets) == len(coverage.functions()) + len(ufuncs) * len(METHODS)


def test_the_table_has_nothing_that_numpy_does_not_dispatch() -> None:
    targets = {key_of(target) for target in [*coverage.functions(), *coverage.ufunc_targets()]}
    targets |= {(np.ufunc, method) for method in METHODS}
    registry.load()
    house = [
        key for key, record in registry.TABLE.items() if all(r.source.startswith(registry.HOUSE) for r in record.rules)
    ]
    assert [name_of(key) for key in house if key not in targets] == []


def test_every_function_has_a_case() -> None:
    assert [label(target) for target in coverage.without_cases()] == []


def test_every_parameter_is_known() -> None:
    # A parameter that a new NumPy has, and that an implementation does not know, is named here.
    registry.load()
    unknown = {
        f"{record.name}: {', '.join(sorted(rule.lacks))}"
        for record in registry.TABLE.values()
        for rule in record.rules
        if rule.lacks and rule.source.startswith(registry.HOUSE)
    }
    assert sorted(unknown - REMOVED) == []


def test_every_parameter_is_given_a_value_in_some_case() -> None:
    # One that a new NumPy has, and that nobody has tried, is named here.
    assert list(parameters.never_passed()) == []


def test_parameters_that_are_missing_are_named() -> None:
    def function(a: object, b: object = 1, *, c: object = "c", **rest: object) -> None:
        """Nobody calls it."""

    def missing(*cases: Case) -> list[str]:
        return list(parameters.missing("f", parameters.parameters(function), cases))

    assert missing() == ["f: b", "f: c", "f: rest"]
    assert missing(Case(function, (1, 1), {"c": "c"})) == ["f: b", "f: c", "f: rest"]  # the defaults
    assert missing(Case(function, (1, 2), {"c": 3})) == ["f: rest"]
    assert missing(Case(function, (1, 2), {"d": 3}, via=function)) == ["f: b", "f: c"]


def _split(target: object) -> Arguments:
    return target if isinstance(target, tuple) else (target,)
