"""Where implementations are: in the module of `dispatch.functions` that bears the topic of NumPy's manual."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from numpy_dist.conformance import topics
from numpy_dist.dispatch import functions
from numpy_dist.dispatch.core import registry

# What the names of a topic's modules begin with.
WORDS = {
    "Array creation routines": "array_creation",
    "Array manipulation routines": "array_manipulation",
    "Bit-wise operations": "bitwise",
    "Data type routines": "data_types",
    "Datetime support functions": "datetime_support",
    "Discrete Fourier Transform": "fourier",
    "Functional programming": "functional",
    "Indexing routines": "indexing",
    "Input and output": "input_output",
    "Linear algebra": "linear_algebra",
    "Logic functions": "logic",
    "Mathematical functions": "mathematical",
    "Mathematical functions with automatic domain": "mathematical",
    "Miscellaneous routines": "miscellaneous",
    "Polynomials": "polynomials",
    "Set routines": "sets",
    "Sorting, searching, and counting": "sorting",
    "Statistics": "statistics",
    "String functionality": "strings",
    "Structured arrays": "structured_arrays",
    "Universal functions": "ufunc",
}
# A topic none of whose functions can be overridden.
OTHERS = {"window_functions"}


@pytest.fixture(scope="module")
def rules():
    """The house's rules, with the function or ufunc that each is for."""
    registry.load()
    return [
        (key[0] if isinstance(key, tuple) else key, record.name, rule)
        for key, record in registry.TABLE.items()
        for rule in record.rules
        if rule.house
    ]


def is_of(module, word):
    return module == word or module.startswith(f"{word}_")


def test_every_function_is_in_a_module_of_its_topic(rules):
    astray = {}
    for function, name, rule in rules:
        package, _, module = rule.source.rpartition(".")
        titles = topics.titles_of(function)
        if package != registry.FUNCTIONS or not any(is_of(module, WORDS[title]) for title in titles):
            astray[name] = f"{rule.source}, but its topics are {sorted(titles)}"
    assert not astray


def test_every_module_bears_a_topic():
    known = set(WORDS.values()) | OTHERS
    assert not [module for module in functions.MODULES if not any(is_of(module, word) for word in known)]


def test_every_topic_of_the_table_is_one_of_the_manuals(rules):
    assert {title for function, _, _ in rules for title in topics.titles_of(function)} == set(WORDS)


@pytest.mark.parametrize(
    "function, module, text",
    [
        (np.sort, "sorting", "@implements(np.sort,"),
        (np.argmax, "sorting", "@implements(np.argmax,"),
        (np.unique, "sets", "@implements(np.unique,"),
        (np.cumsum, "mathematical_sums", "@implements(np.cumsum,"),
        (np.diff, "mathematical_sums", "np.diff,"),  # NumPy's own source
        (np.roots, "polynomials", "np.roots,"),  # gathered
        (np.add.at, "ufunc_methods", 'method="at"'),
    ],
)
def test_the_module_that_explain_names_has_the_function(function, module, text):
    source = registry.lookup(function).rules[0].source
    assert source == f"{registry.FUNCTIONS}.{module}"
    assert text in Path(importlib.import_module(source).__file__).read_text(encoding="utf-8")
