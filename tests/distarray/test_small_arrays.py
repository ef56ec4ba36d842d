"""Small arrays, which every rank has: NumPy's own operators on them, with its warnings at the user's line."""

from __future__ import annotations

import linecache
import operator
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.engine.data import watch

pytestmark = pytest.mark.spmd(ranks=(1, 2))


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Arrays of these sizes are not cut, as is the default."""
    with nd.config(MIN_SHARD_BYTES=1 << 18):
        yield


def told(program: Callable[[Any], Any], x: Any) -> list[tuple[str, str]]:
    """The warnings of a program: text, and the line of this file that it is shown at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(x)
    assert {w.filename for w in caught} <= {__file__}
    return [(str(w.message), linecache.getline(__file__, w.lineno).strip()) for w in caught]


def _divides(x: Any) -> None:
    x / 0
    1 / x
    x // 0
    x % 0
    divmod(x, 0)
    x**-1
    x /= 0


def _calls(x: Any) -> None:
    np.log(x)
    np.sqrt(-1 - x)
    np.divide(x, 0)
    np.exp(x + 1000)


def _single(x: Any) -> None:
    x = x.astype(np.float32)
    x / 1e300
    np.divide(x, 1e300)


@pytest.mark.parametrize("program", [_divides, _calls, _single])
def test_warnings_are_numpys_at_the_users_line(program: Callable[[Any], Any]) -> None:
    values = np.arange(4.0)
    expected = told(program, values.copy())
    assert told(program, nd.asarray(values)) == expected != []


@pytest.mark.parametrize("work", [lambda x: x / 0, lambda x: x**-1, np.log])
def test_error_states_are_obeyed(work: Callable[[Any], Any]) -> None:
    x = nd.asarray(np.zeros(3))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        work(x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        work(x)
    assert not watch.met


def test_a_thread_is_told_of_its_own_events() -> None:
    watch.met.append((-1, "divide by zero"))  # of a thread that is still at it
    try:
        assert told(lambda x: x / 2, nd.asarray(np.ones(3))) == []
        assert watch.met == [(-1, "divide by zero")]
    finally:
        watch.met.clear()


def test_threads_do_not_take_each_others_events() -> None:
    found: dict[int, list[Any]] = {}
    x = nd.asarray(np.ones(2000))

    def work(divisor: int) -> None:
        for _ in range(200):
            x / divisor
        found[divisor] = watch.forget()

    threads = [threading.Thread(target=work, args=(divisor,)) for divisor in (0, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {0: [], 1: []} and not watch.met


def test_views_have_the_array_that_owns_the_memory_as_base() -> None:
    x = nd.asarray(np.arange(12.0).reshape(3, 4))
    part = x[1:]
    assert part.base is x and part[0, :2].base is x and x.T.base is x and x.T[1:].base is x
    assert x.base is None and (x + 1).base is None
    part.T[0, 0] = 7
    x[2, 3] = np.float32(5)
    x[0] = [1, 2, 3, 4]
    x[:, 1] = x[:, 2]
    np.testing.assert_array_equal(x.gather(), [[1, 3, 3, 4], [7, 6, 6, 7], [8, 10, 10, 5]])


def test_what_means_nothing_is_the_same_on_every_rank() -> None:
    comm = engine.runtime().comm
    junk = [np.full(1000, 1.0 + comm.rank) for _ in range(50)]
    del junk
    x = nd.empty(1000)
    y = np.empty_like(x)
    z = np.empty_like(x, dtype=np.int16, shape=(10, 50))
    for array in (x, y, z):
        assert len(set(comm.allgather(array.gather().tobytes()))) == 1
    assert nd.empty(2, object).gather().tolist() == [None, None]


_ROWS, _COLUMNS = np.arange(0, 12, 5), np.array([[2], [0], [1]])
_MASK = np.arange(12) % 3 == 0
_KEYS: dict[str, Any] = {
    "positions": _ROWS,
    "negative positions": -1 - _ROWS,
    "rows and columns": (_ROWS, _COLUMNS),
    "positions behind a slice": (slice(1, -1), _COLUMNS),
    "positions beside an integer": (3, _ROWS[:2]),
    "positions and new axes": (None, _ROWS, ..., None),
    "one position": np.array(2),
    "unsigned ones": _ROWS.astype("u1"),
    "mask of rows": _MASK,
    "mask of elements": np.arange(144).reshape(12, 12) % 5 == 0,
    "mask and positions": (_MASK, np.arange(4)),
    "mask beside a slice": (slice(None), _MASK),
    "one truth": np.array(True),
    "none": np.zeros(0, int),
    "out of bounds": np.array([3, 12]),
    "a mask too long": np.ones(13, bool),
    "too many": (_ROWS, _ROWS, _ROWS),
    "shapes that do not fit": (_ROWS, np.arange(2)),
    "floats": np.ones(2),
    "none of them": None,
}


def _everywhere(key: Any) -> Any:
    """An index with distributed arrays in the place of ndarrays."""
    if type(key) is tuple:
        return tuple(map(_everywhere, key))
    return nd.asarray(key) if isinstance(key, np.ndarray) else key


def _outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        made = call(*args)
    except Exception as error:
        return type(error), str(error)
    made = made.gather() if engine.is_handle(made) else made
    return type(made), np.asarray(made).tolist()


@pytest.mark.parametrize("name", _KEYS)
def test_indices_by_arrays_have_numpys_outcome(name: str) -> None:
    values, key = np.arange(144.0).reshape(12, 12), _KEYS[name]
    for mine in (key, _everywhere(key)):
        x = nd.asarray(values.copy())
        assert _outcome(operator.getitem, x, mine) == _outcome(operator.getitem, values, key)
        for given in (7, 2.5, np.float32(0.1), values[0], values[:3], np.arange(5), [1, 2], "a", 1j, values[None, :1]):
            y = values.copy()
            theirs = _outcome(operator.setitem, y, key, given)
            for new in (given, _everywhere(given)):
                z = nd.asarray(values.copy())
                assert _outcome(operator.setitem, z, mine, new)[0] == theirs[0]
                assert z.gather().tolist() == y.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_what_a_mask_assigns_is_read_before_it_is_overwritten(seed: int) -> None:
    """NumPy overwrites part of it: ours is the same however long the array."""
    mask = np.random.default_rng(seed).random(60) > 0.5
    count = int(mask.sum())
    for key in (mask, np.flatnonzero(mask)[::-1]):
        for part in (slice(None, count), slice(-1, -1 - count, -1), slice(60 - count, None)):
            x, expected = nd.asarray(np.arange(60.0)), np.arange(60.0)
            expected[key] = expected[part].copy()
            x[nd.asarray(key)] = x[part]
            assert x.gather().tolist() == expected.tolist()


def test_an_index_does_not_write_to_what_is_read_only() -> None:
    x = nd.asarray(np.arange(12.0))
    x.flags.writeable = False
    for key in (_ROWS, _MASK, nd.asarray(_MASK)):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            x[key] = 1
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        x[np.array([40])] = 1
