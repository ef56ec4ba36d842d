"""Structured arrays, field by field."""

from __future__ import annotations

import numpy as np
from numpy.lib import recfunctions

from .harness import check

KIND = np.dtype([("a", "i4"), ("b", "f8"), ("c", [("d", "i2")])])
OTHER = np.dtype([("b", "f4"), ("c", [("d", "i4")])])
WAYS = ("default", "first", "irregular", "descending", "flipped", "strided")


def _records(kind, start):
    made = np.zeros(9, kind)
    made["b"] = np.arange(start, start + 9)
    made["c"]["d"] = 3
    return made


def test_fields_are_assigned_by_name():
    check(recfunctions.assign_fields_by_name, _records(KIND, 0), _records(OTHER, 5), ways=WAYS)

    def keep(x, y):
        recfunctions.assign_fields_by_name(x, y, zero_unassigned=False)

    check(keep, _records(KIND, 0), _records(OTHER, 5), ways=WAYS)


def test_the_output_that_was_filled_is_returned():
    def fill(x, y):
        assert recfunctions.recursive_fill_fields(x, y) is y

    check(fill, _records(OTHER, 5), _records(KIND, 0), ways=WAYS)


def test_fields_side_by_side_and_records_one_after_the_other():
    numbers, words = np.arange(9.0), np.arange(9).astype("U3")
    pair, nested = np.zeros(9, "i4,f8"), _records(KIND, 2)
    pair["f1"] = numbers

    def same(function, *args):
        check(function, *args, ways=WAYS, ranks=(3,))

    for flatten in (False, True):
        same(lambda *x, f=flatten: recfunctions.merge_arrays(x, flatten=f), pair, numbers, words)
    same(lambda *x: recfunctions.merge_arrays(x), nested, numbers)
    same(lambda x, *y: recfunctions.append_fields(x, ["x", "y"], y, usemask=False), nested, numbers, words)
    lines = np.zeros(9, [("a", "i4", 2), ("b", "f8")])
    lines["a"][:, 1] = numbers
    same(lambda x, *y: recfunctions.append_fields(x, ["c"], y, usemask=False), lines, numbers)
    same(lambda *x: recfunctions.stack_arrays(x, usemask=False), pair, pair[::-1].copy())
    for convert in (False, True):
        same(lambda *x, c=convert: recfunctions.stack_arrays(x, None, False, False, c), pair, pair.astype("i8,f4"))


def test_views_of_elements():
    """What NumPy returns as a view is one of the sharded array, also where that has one element or none."""
    pair = np.array([(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)], [("x", "f8"), ("y", "f8")])
    for key in (slice(None), slice(None, None, -1), slice(1), slice(0), (0, ...)):
        check(lambda x, key=key: recfunctions.rename_fields(x[key], {"x": "z"}), pair, ranks=(1, 3), ways=("default",))
        check(lambda x, key=key: recfunctions.structured_to_unstructured(x[key]), pair, ranks=(1, 3), ways=("default",))
