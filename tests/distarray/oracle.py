"""Comparison of one function's outcome on ndarrays and on distributed arrays, at several numbers of simulated ranks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import numpy_dist as nd
from numpy_dist.spmd_testing import run_simulated

RANKS = (1, 2, 3)


def outcome(function: Callable[..., Any], arrays: list[Any]) -> Any:
    """What a function returns or raises, and what becomes of its arguments."""
    with np.errstate(all="ignore"):
        try:
            result = function(*arrays)
        except Exception as error:
            return error, arrays
        return result, arrays


def assert_same(ours: Any, theirs: Any, what: str = "", flags: bool = False) -> None:
    """Values, dtypes, shapes, types and errors are NumPy's."""
    if isinstance(theirs, BaseException):
        if not isinstance(ours, BaseException):
            raise AssertionError(f"{what}: NumPy raises {theirs!r}, ours returned {ours!r}")
        if not (type(ours) is type(theirs) and str(ours) == str(theirs)):
            raise AssertionError(f"{what}: NumPy raises {theirs!r}, ours {ours!r}") from ours
        return
    if isinstance(ours, BaseException):
        raise ours
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, nd.DistArray), f"{what}: {type(ours)}"
        assert ours.shape == theirs.shape, f"{what}: {ours.shape} != {theirs.shape}"
        assert ours.dtype == theirs.dtype, f"{what}: {ours.dtype} != {theirs.dtype}"
        if flags:
            assert (ours.flags.c_contiguous, ours.flags.f_contiguous) == (
                theirs.flags.c_contiguous,
                theirs.flags.f_contiguous,
            )
        np.testing.assert_array_equal(ours.gather(), theirs, err_msg=what, strict=True)
    elif isinstance(theirs, tuple | list):
        assert type(ours) is type(theirs) and len(ours) == len(theirs), f"{what}: {ours!r} != {theirs!r}"
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, what, flags)
    else:
        assert type(ours) is type(theirs), f"{what}: {type(ours)} != {type(theirs)}"
        assert ours == theirs or (ours != ours and theirs != theirs), f"{what}: {ours!r} != {theirs!r}"


def check(
    function: Callable[..., Any],
    *arrays: Any,
    ranks: tuple[int, ...] = RANKS,
    fallback: str = "error",
    flags: bool = False,
    replicated: bool = True,
) -> None:
    """The function has the same outcome on ndarrays, on sharded and on replicated arrays.

    Parameters
    ----------
    *arrays : ndarray or other
        Arguments; ndarrays are made distributed.
    fallback : str
        The policy: "error" shows that nothing is gathered.
    flags : bool
        Whether the contiguity of results is compared too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, after = outcome(function, [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in arrays])

    def body(bytes_to_shard: int) -> None:
        with nd.config(MIN_SHARD_BYTES=bytes_to_shard, FALLBACK=fallback), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = [nd.asarray(a) if isinstance(a, np.ndarray) else a for a in arrays]
            got, changed = outcome(function, mine)
            assert_same(got, expected, "result", flags)
            for ours, theirs in zip(changed, after, strict=True):
                if isinstance(theirs, np.ndarray):
                    assert_same(ours, theirs, "argument")

    for n in ranks:
        run_simulated(n, body, 0)
    if replicated:
        run_simulated(2, body, 1 << 40)
