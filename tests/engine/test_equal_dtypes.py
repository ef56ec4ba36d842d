"""Dtypes that are equal, and yet have scalars of different types, as int64 and longlong: what is kept tells them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist.settings import config


def _made(x: Any) -> list[Any]:
    made = [np.sum(x), np.max(x), x.sum(dtype=x.dtype), x[3], *np.divmod(x[4:5], 3), x + x, -x, np.cumsum(x), x % 7]
    return made + _cast(x)


def _cast(x: Any) -> list[Any]:
    kept = x.astype("d").astype(x.dtype)
    return [kept, kept @ kept, np.where(kept > 2, kept, x)]


@pytest.mark.parametrize("at_once", [0, 1])
@pytest.mark.parametrize("chars", [("q", "l"), ("Q", "L")])
def test_scalars_have_the_type_of_their_own_dtype(chars: tuple[str, str], at_once: int) -> None:
    assert np.dtype(chars[0]) == np.dtype(chars[1]), "the platform has no such dtypes"
    with config(MIN_SHARD_BYTES=0, AT_ONCE=at_once):
        for char in chars * 2:
            values = np.arange(5000).astype(char)
            for found, expected in zip(_made(numpy_dist.asarray(values)), _made(values), strict=True):
                assert found.dtype.char == expected.dtype.char
                assert isinstance(found, np.generic) == isinstance(expected, np.generic)
                np.testing.assert_array_equal(found, expected)
