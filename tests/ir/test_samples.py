"""Texts of scalars that have none of their own, and what marks of values are made of."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.ir.samples import text_of

UNITLESS = np.arange(9).view("M8")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (10**5000, 10**5000 + 1),
        (UNITLESS[0], UNITLESS[1]),
        (UNITLESS.view("m8")[0], UNITLESS[0]),
        ([1.0, UNITLESS[0]], [2.0, UNITLESS[0]]),
        ((10**5000, (UNITLESS[7],)), (10**5000, (UNITLESS[8],))),
    ],
    ids=["long integers", "datetimes without unit", "kinds without unit", "a list", "nested tuples"],
)
def test_what_python_does_not_print_has_a_text_of_its_value(one: object, other: object) -> None:
    assert text_of(one) != text_of(other)
    assert text_of(one) == text_of(one)


def test_what_python_prints_is_its_text() -> None:
    assert text_of((1, 2.5, np.float32(3))) == repr((1, 2.5, np.float32(3)))


def test_errors_of_other_values_go_on() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        text_of(Silent())
